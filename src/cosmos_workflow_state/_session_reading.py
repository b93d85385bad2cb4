"""The way out of a session: read its item, check whose it is, and rebuild the session from it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from typing import Final

from agent_framework import AgentSession

from ._codec import decode_payload
from ._gateway import Item, Meter
from ._records import UnreadableError
from ._session_items import SESSION_ITEM_ID, SessionVersion, StoredSessionItem, read_session_item
from ._session_snapshots import FORMAT, deserialize
from ._session_view import SessionView
from ._threads import off_loop
from ._uploads import MissingItemError, Uploads
from .errors import StateCorruptError

_DELAYS: Final = (0.0, 0.1, 0.3)
"""Seconds before a part that is not there is looked for again."""

_SLOWER: Final = 10
"""How many times longer rebuilding a session takes than compressing its bytes (100 KiB of messages: 4 milliseconds)."""


async def read_item(view: SessionView, meter: Meter) -> StoredSessionItem | None:
    """Return the item of a session, None when there is none. One request.

    Raises:
        StateCorruptError: It is no session item of a schema this version knows.
        ServiceError: The service refused, throttled or could not be reached.
    """
    item = await view.backend.gateway.read(view.place.key, SESSION_ITEM_ID, meter)
    return parse(view, item) if item is not None and view.owns(item) else None


def parse(view: SessionView, item: Item) -> StoredSessionItem:
    """Return what is in the item of a session.

    Raises:
        StateCorruptError: It is no session item of a schema this version knows.
    """
    with view.about():
        return read_session_item(item)


async def read_session(view: SessionView, meter: Meter) -> tuple[AgentSession, SessionVersion, int] | None:
    """Return a session, its version and its bytes before the codecs; None when there is none.

    One request, and one for each part. The parts of a version that another one has replaced may be gone, or a replica
    has not seen them yet, so the item is read again before anything is called lost.

    Raises:
        StateCorruptError: What is stored cannot be read.
        StateNotRestorableError: The decoder of a registered type does not take what is stored.
        StateTooLargeError: It is over this process's ``max_payload_bytes``.
        ServiceError: The service refused, throttled or could not be reached.
    """
    seen, delays = "", iter(_DELAYS)
    while True:
        found = await read_item(view, meter)
        view.backend.memory.note(view.place, None if found is None else found.version)
        if found is None:
            return None
        if found.version.etag != seen:
            seen, delays = found.version.etag, iter(_DELAYS)
        try:
            raw = await _raw(view, found, meter)
        except MissingItemError:
            await _wait(view, next(delays, None))
            continue
        with view.about():
            return await restored(raw), found.version, len(raw)


async def restored(raw: bytes) -> AgentSession:
    """Rebuild a session; the decoders of registered types run in a thread when there are many bytes to it.

    Raises:
        RefusedTypesError: The decoder of a registered type does not take what is stored.
        UnreadableError: The bytes are no session.
    """
    return await off_loop(_SLOWER * len(raw), partial(deserialize, raw))


async def _wait(view: SessionView, delay: float | None) -> None:
    if delay is None:
        raise StateCorruptError("the session names a part that is not there", **view.which)
    await asyncio.sleep(delay)


async def _raw(view: SessionView, found: StoredSessionItem, meter: Meter) -> bytes:
    payload, upload = found.payload, found.version.upload
    view.check_size(payload.size)
    with view.about():
        if payload.format != FORMAT or payload.keyframe_id is not None:
            raise UnreadableError("the session has a format that this version does not know")
        if upload is not None:
            data = await Uploads(view.backend.gateway, view.place, meter).read(upload)
            payload = replace(payload, data=data)
        return await off_loop(payload.size, lambda: decode_payload(payload))
