"""Taking messages away: a history is cleared in one write of its head, and what that no longer counts is deleted.

The head goes on numbering where it was, so a save that is on its way is refused by its version and goes on behind the
clearing: whoever saves meanwhile loses nothing. A clearing that is interrupted after its write is done; what it has
left lying is deleted by the next one.
"""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Final

from . import _history_queries
from ._conversations import Conversation
from ._gateway import Create, Delete, Item, Refusal, Replace
from ._heads import Head
from ._history_items import HEAD_TYPE, MESSAGE_TYPE, head_id, head_item, read_head
from ._history_uploads import collect
from ._items import PART_TYPE, UPLOAD_GUARD_TYPE, lies_in, read_upload
from ._records import UnreadableError
from ._uploads import part_ids
from .errors import ProvisioningError, StateConflictError, StateCorruptError

_MAX_TRIES: Final = 20
"""Times in a row that other writers may be first."""

_AT_ONCE: Final = 100
"""Steps of a batch (https://learn.microsoft.com/azure/cosmos-db/concepts-limits)."""


async def clear(conversation: Conversation, ttl: int | None) -> Head | None:
    """Take all messages of a history away; return its head, None when there is none.

    Also where the head is lost or cannot be read: it is written anew, behind all messages that are there.

    Args:
        conversation: The history.
        ttl: Seconds that the head is kept, None for ever.

    Raises:
        StateConflictError: Other writers kept being first.
        StateCorruptError: The head is another's.
        ServiceError: The service refused, throttled or could not be reached; a repeat goes on.
    """
    for _ in range(_MAX_TRIES):
        found = await _head(conversation)
        # Asked after the head: where another writer has added to it since, the head is not replaced.
        items = await _messages(conversation)
        after = 1 + max((_sequence(item) for item in items), default=-1)
        if found is None and not items:
            return None
        cleared = await _cleared(conversation, found or Head(), after, ttl)
        if cleared is not None:
            await _delete(conversation, items)
            return cleared
    raise StateConflictError("other writers kept adding to the history", **conversation.which)


async def delete_session(conversation: Conversation) -> bool:
    """Delete everything of a session, of every source; return False when there was nothing.

    Args:
        conversation: Of any source of the session.

    Raises:
        ProvisioningError: Uploads are left, and the account does not order reads after writes.
        StateConflictError: Other writers kept being first.
        StateCorruptError: Items are left that this version cannot read; all others are deleted.
        ServiceError: The service refused, throttled or could not be reached; a repeat goes on.
    """
    before = await _everything(conversation)
    sources = {item.get("source_id") for item in before if item.get("type") in {HEAD_TYPE, MESSAGE_TYPE}}
    for source_id in sorted(one for one in sources if isinstance(one, str)):
        await _delete_source(replace(conversation, source_id=source_id))
    left = await _everything(conversation)
    await _collect_uploads(conversation, left)
    known = {HEAD_TYPE, MESSAGE_TYPE, PART_TYPE, UPLOAD_GUARD_TYPE}
    if any(item.get("type") not in known for item in left):
        raise StateCorruptError("items of the session are left that this version cannot read", **conversation.which)
    return bool(before)


async def _head(conversation: Conversation) -> Head | None:
    """Return the head; one that counts nothing and was written by nobody where it cannot be read."""
    item = await conversation.read_item(head_id(conversation.source_id))
    if item is None:
        return None
    try:
        return read_head(item)
    except UnreadableError:
        return Head(etag=str(item["_etag"]))


async def _messages(conversation: Conversation) -> list[Item]:
    """Return the ids of all messages that are there, their numbers, and the uploads that they name."""
    parameters = _history_queries.of_source(conversation.place, conversation.source_id)
    items = conversation.query(_history_queries.MESSAGES, parameters)
    return [item async for item in items if item["id"] != head_id(conversation.source_id)]


def _sequence(item: Item) -> int:
    sequence = item.get("sequence")
    return sequence if isinstance(sequence, int) else -1


async def _cleared(conversation: Conversation, found: Head, after: int, ttl: int | None) -> Head | None:
    """Write a head that counts none of the messages, unless that is so; None when another writer was first.

    A refusal may be of this clearing's own work; then the head that is read next counts no messages.
    """
    if found.write_id and not found.messages and found.next >= after:
        return found
    head = replace(found, next=max(found.next, after)).cleared(ttl, uuid.uuid4().hex)
    item = head_item(conversation.place, conversation.source_id, head)
    step = Replace(item, found.etag) if found.etag else Create(item)
    done = await conversation.backend.gateway.commit(conversation.place.key, [step], conversation.meter)
    return None if isinstance(done, Refusal) else head.at(done[0])


async def _delete(conversation: Conversation, items: list[Item]) -> None:
    """Delete messages that are not counted any more."""
    # Parts first: interrupted in between, the messages are still there to name the others.
    await conversation.uploads.remove(part_id for item in items for part_id in _parts(item))
    gateway, key = conversation.backend.gateway, conversation.place.key
    for start in range(0, len(items), _AT_ONCE):
        item_ids = [str(item["id"]) for item in items[start : start + _AT_ONCE]]
        refusal = await gateway.batch(key, [Delete(item_id) for item_id in item_ids], conversation.meter)
        if refusal is not None:
            # One of them is gone already.
            await conversation.uploads.remove(item_ids)


def _parts(item: Item) -> tuple[str, ...]:
    """Return the ids of the parts that a message names; none where that cannot be read."""
    try:
        made = read_upload(item)
    except UnreadableError:
        return ()
    return () if made is None else part_ids(made)


async def _delete_source(conversation: Conversation) -> None:
    """Delete a history with its head, unless somebody has added to it meanwhile: that stays."""
    head = await clear(conversation, ttl=None)
    if head is not None:
        end = Delete(head_id(conversation.source_id), head.etag)
        await conversation.backend.gateway.batch(conversation.place.key, [end], conversation.meter)


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


async def _collect_uploads(conversation: Conversation, items: list[Item]) -> None:
    """Delete the parts that no message names, and the guards of uploads that were never committed."""
    parts: dict[str, list[str]] = {}
    for item in items:
        if item.get("type") in {PART_TYPE, UPLOAD_GUARD_TYPE}:
            found = parts.setdefault(str(item.get("write_id")), [])
            found += [str(item["id"])] if item["type"] == PART_TYPE else []
    if parts and not await conversation.backend.gateway.is_sequential():
        raise ProvisioningError(
            "deleting uploads that were never committed needs Session consistency and an account that is written to "
            "in one region: otherwise one that is in use may look unused"
        )
    for write_id, item_ids in parts.items():
        await collect(conversation, write_id, item_ids)
