"""Deleting a session: its item in the version that was found, then everything else of it in the logical partition."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from ._auxiliaries import Parts
from ._collecting import collect_parts
from ._fields import name
from ._gateway import Delete, Item, Meter, Refusal
from ._items import PART_TYPE
from ._logging import ITEM_UNREADABLE, emit
from ._records import UnreadableError
from ._session_items import SESSION_ITEM_ID
from ._session_view import SessionView
from ._uploads import Uploads
from .errors import StateConflictError

_MAX_TRIES: Final = 5
_NOT_FOUND: Final = 404
_OF_THE_SESSION: Final = (
    "SELECT c.id, c.tenant_id, c.session_id, c.type, c.owner, c.write_id, c.payload.write_id AS upload, c._etag "
    "FROM c WHERE c.tenant_id = @tenant AND c.session_id = @session"
)


async def delete_session(view: SessionView, meter: Meter) -> bool:
    """Delete a session, whatever is in its item; return whether there was one. Two requests, one when there is none.

    With it go the parts of its versions, also of those whose writing was interrupted.

    Raises:
        StateConflictError: Other writers kept replacing it.
        ServiceError: The service refused, throttled or could not be reached; a repeat goes on.
    """
    view.backend.memory.note(view.place, None)
    for _ in range(_MAX_TRIES):
        items = await _found(view, meter)
        item = next((item for item in items if item["id"] == SESSION_ITEM_ID), None)
        if item is None or await _delete_version(view, item, meter):
            await _remove_parts(view, items, item, meter)
            return item is not None
    raise StateConflictError("other writers kept replacing this session", **view.which)


async def _found(view: SessionView, meter: Meter) -> list[Item]:
    parameters: list[dict[str, Any]] = [
        {"name": "@tenant", "value": view.place.tenant.value},
        {"name": "@session", "value": view.place.session_id},
    ]
    items = view.backend.gateway.query(_OF_THE_SESSION, parameters, view.place.key, meter)
    return [item async for item in items if view.owns(item)]


async def _delete_version(view: SessionView, item: Item, meter: Meter) -> bool:
    """Delete the version that was found; return False when another one is there by now."""
    done = await view.backend.gateway.commit(view.place.key, [Delete(SESSION_ITEM_ID, item["_etag"])], meter)
    return not isinstance(done, Refusal) or done.status == _NOT_FOUND


async def _remove_parts(view: SessionView, items: Iterable[Item], deleted: Item | None, meter: Meter) -> None:
    gateway = view.backend.gateway
    uploads = _uploads(view, items)
    own = uploads.pop(str((deleted or {}).get("upload")), [])
    await Uploads(gateway, view.place, meter).remove(own)
    if uploads and await gateway.is_sequential():
        for write_id, item_ids in uploads.items():
            # A write that is under way finds its guard gone, and writes them anew.
            await collect_parts(gateway, Parts(view.place, write_id, SESSION_ITEM_ID, tuple(item_ids)), meter)


def _uploads(view: SessionView, items: Iterable[Item]) -> dict[str, list[str]]:
    """Return the ids of parts by upload; one that cannot be read is an event, and left."""
    found: dict[str, list[str]] = {}
    for item in items:
        if item.get("type") == PART_TYPE and item.get("owner") == SESSION_ITEM_ID:
            try:
                found.setdefault(name(item, "write_id"), []).append(name(item, "id"))
            except UnreadableError:
                emit(view.backend.operations.logger.error, ITEM_UNREADABLE, **view.place.fields)
    return found
