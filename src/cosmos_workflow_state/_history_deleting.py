"""Deleting a session with everything of it that is in the container for history, whoever has written it.

What lies where no history looks goes first, because it may be in the way of one. Then the histories are cleared, so
that whoever saves meanwhile goes on behind that; then their heads go, and the parts that no message names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from . import _history_queries
from ._clearing import clear, delete_versions
from ._conversations import Conversation
from ._fields import name
from ._gateway import Delete, Item
from ._history_items import HEAD_TYPE, MESSAGE_TYPE, head_id, is_in_place
from ._history_uploads import collect
from ._items import PART_TYPE, UPLOAD_GUARD_TYPE, lies_in
from ._records import UnreadableError
from .errors import ProvisioningError, StateCorruptError

_IN_A_HISTORY: Final = (HEAD_TYPE, MESSAGE_TYPE)
_OF_AN_UPLOAD: Final = (PART_TYPE, UPLOAD_GUARD_TYPE)
"""Not sets: what is asked for in them may be anything that JSON can hold."""


async def delete_session(conversation: Conversation) -> bool:
    """Delete everything of a session, of every source; return False when there was nothing.

    Args:
        conversation: Of any source of the session.

    Raises:
        ProvisioningError: Uploads are left, and the account does not order reads after writes.
        StateConflictError: Other writers kept being first.
        StateCorruptError: Items of a kind that this version does not know are left; all others are deleted.
        ServiceError: The service refused, throttled or could not be reached; a repeat goes on.
    """
    before = await _everything(conversation)
    in_histories = [item for item in before if item.get("type") in _IN_A_HISTORY]
    await delete_versions(conversation, [item for item in in_histories if not is_in_place(item)])
    for source_id in sorted({item["source_id"] for item in in_histories if is_in_place(item)}):
        await _delete_source(replace(conversation, source_id=source_id))
    left = await _everything(conversation)
    await _collect_uploads(conversation, left)
    if any(item.get("type") not in (*_IN_A_HISTORY, *_OF_AN_UPLOAD) for item in left):
        raise StateCorruptError("items of the session are left that this version cannot read", **conversation.which)
    return bool(before)


async def _everything(conversation: Conversation) -> list[Item]:
    """Return what says which each item of the session is."""
    place, gateway = conversation.place, conversation.backend.gateway
    parameters = _history_queries.of_session(place)
    found = [
        item async for item in gateway.query(_history_queries.EVERYTHING, parameters, place.key, conversation.meter)
    ]
    for item in found:
        if not lies_in(item, place):
            conversation.tell_of_stranger()
    return [item for item in found if lies_in(item, place)]


async def _delete_source(conversation: Conversation) -> None:
    """Delete a history with its head, unless somebody has added to it meanwhile: that stays."""
    head = await clear(conversation, ttl=None)
    if head is not None and not head.messages:
        end = Delete(head_id(conversation.source_id), head.etag)
        await conversation.backend.gateway.batch(conversation.place.key, [end], conversation.meter)


async def _collect_uploads(conversation: Conversation, items: Sequence[Item]) -> None:
    """Delete the parts that no message names, and the guards of uploads that were never committed."""
    parts, nameless = dict[str, list[str]](), list[Item]()
    for item in items:
        if item.get("type") in _OF_AN_UPLOAD:
            try:
                item_id, write_id = name(item, "id"), name(item, "write_id")
            except UnreadableError:
                nameless.append(item)
                continue
            item_ids = parts.setdefault(write_id, [])
            item_ids += [item_id] if item["type"] == PART_TYPE else []
    await delete_versions(conversation, nameless)
    if parts and not await conversation.backend.gateway.is_sequential():
        raise ProvisioningError(
            "deleting uploads that were never committed needs Session consistency and an account that is written to "
            "in one region: otherwise one that is in use may look unused"
        )
    for write_id, item_ids in parts.items():
        await collect(conversation, write_id, item_ids)
