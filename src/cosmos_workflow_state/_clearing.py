"""Taking messages away: a history is cleared in one write of its head, and what that no longer counts is deleted.

The head goes on numbering where it was, so a save that is on its way is refused by its version and goes on behind the
clearing. A clearing that is interrupted after its write is done; what it has left lying is deleted by the next one, and
until then the head lives as long as that may. Everything is deleted in the version that was found: a delete that comes
late deletes nothing newer.
"""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from . import _history_queries
from ._conversations import Conversation
from ._gateway import Create, Delete, Item, Refusal, Replace
from ._heads import BEGINNINGS, HIGHEST_END, Head, longer
from ._history_items import head_id, head_item, is_number, read_head
from ._items import read_upload
from ._records import UnreadableError
from ._threads import side_by_side
from ._uploads import part_ids
from .errors import StateConflictError

_MAX_TRIES: Final = 20
"""Times in a row that other writers may be first."""

_AT_ONCE: Final = 100
"""Steps of a batch (https://learn.microsoft.com/azure/cosmos-db/concepts-limits)."""


async def clear(conversation: Conversation, ttl: int | None) -> Head | None:
    """Take all messages of a history away; return its head, None when there is none.

    Also where the head is lost or cannot be read: it is written anew, behind all messages that are there. What is added
    after the write stays, and has messages in the head that is returned.

    Args:
        conversation: The history.
        ttl: Seconds that the head is kept once all is deleted, None for ever.

    Raises:
        StateConflictError: Other writers kept being first.
        StateCorruptError: The head is another's.
        ServiceError: The service refused, throttled or could not be reached; a repeat goes on.
    """
    return await _Clearing(conversation, ttl).run()


async def delete_versions(conversation: Conversation, items: Iterable[Item]) -> None:
    """Delete items as they were found; what is gone or was written anew since is left.

    Args:
        conversation: Of any source of the session.
        items: What was found, each with its id and version.

    Raises:
        ServiceError: The service refused, throttled or could not be reached; a repeat goes on.
    """
    gateway, key, meter = conversation.backend.gateway, conversation.place.key, conversation.meter
    steps = [Delete(str(item["id"]), str(item["_etag"])) for item in items]
    for start in range(0, len(steps), _AT_ONCE):
        together = steps[start : start + _AT_ONCE]
        if await gateway.batch(key, together, meter) is not None:
            # One of them is gone already.
            await side_by_side(partial(gateway.batch, key, [step], meter) for step in together)


class _Clearing:
    """One clearing, in as many tries as other writers make necessary."""

    def __init__(self, conversation: Conversation, ttl: int | None) -> None:
        """Set what is cleared, and how many seconds its head is kept afterwards, None for ever."""
        self._conversation, self._ttl = conversation, ttl
        self._write_id = uuid.uuid4().hex
        self._items: list[Item] = []  # what is there
        self._end = 0  # the number behind all that is there

    async def run(self) -> Head | None:
        """Do it; see `clear`."""
        found = await self._head()
        for _ in range(_MAX_TRIES):
            # Asked after the head: where another writer has added to it since, the head is not replaced.
            self._items = await self._messages()
            if found is None and not self._items:
                return None
            head = await self._cleared(found or Head())
            if head is None:
                found = await self._head()
                head = found if self._is_done(found) else None
            if head is not None:
                await self._delete()
                return await self._shortened(head)
        raise StateConflictError("other writers kept adding to the history", **self._conversation.which)

    async def _head(self) -> Head | None:
        """Return the head; one that counts nothing and was written by nobody where it cannot be read."""
        item = await self._conversation.read_item(head_id(self._conversation.source_id))
        if item is None:
            return None
        try:
            return read_head(item)
        except UnreadableError:
            return Head(etag=str(item["_etag"]))

    async def _messages(self) -> list[Item]:
        """Return the ids and versions of all messages that are there, their numbers, and the uploads they name."""
        source_id = self._conversation.source_id
        parameters = _history_queries.of_source(self._conversation.place, source_id)
        items = self._conversation.query(_history_queries.MESSAGES, parameters)
        return [item async for item in items if item["id"] != head_id(source_id)]

    async def _cleared(self, found: Head) -> Head | None:
        """Write a head that counts none of the messages, unless that is so; None when another writer was first."""
        self._end = max([found.next, *(1 + number for number in map(_number, self._items))])
        # What lies there, if only until it is deleted, must not be there again when the head has expired.
        life = longer(found.ttl, self._ttl) if self._items else self._ttl
        is_empty = found.write_id and not found.messages and not self._items
        if is_empty and longer(found.ttl, self._ttl) == self._ttl:
            return found
        return await self._write(found.cleared(_next(found, self._end), life, self._write_id), found.etag)

    async def _write(self, head: Head, etag: str) -> Head | None:
        conversation = self._conversation
        item = head_item(conversation.place, conversation.source_id, head)
        step = Replace(item, etag) if etag else Create(item)
        done = await conversation.backend.gateway.commit(conversation.place.key, [step], conversation.meter)
        return None if isinstance(done, Refusal) else head.at(done[0])

    def _is_done(self, found: Head | None) -> bool:
        """Return whether all that was there is cleared: by this clearing, whose answer was lost, or by another one."""
        if found is None or not found.write_id:
            return False
        return found.write_id == self._write_id or found.first >= self._end

    async def _delete(self) -> None:
        """Delete the messages, which are not counted any more."""
        # Parts first: interrupted in between, the messages are still there to name the others.
        await self._conversation.uploads.remove(part_id for item in self._items for part_id in _parts(item))
        await delete_versions(self._conversation, self._items)

    async def _shortened(self, head: Head) -> Head:
        """Let a head that no message outlives any more live as long as was asked, unless it has gone on since."""
        if head.write_id != self._write_id or longer(head.ttl, self._ttl) == self._ttl:
            return head
        shorter = replace(head, ttl=self._ttl, write_id=uuid.uuid4().hex)
        return await self._write(shorter, head.etag) or head


def _number(item: Item) -> int:
    sequence = item.get("sequence")
    return sequence if is_number(sequence) else -1


def _next(found: Head, end: int) -> int:
    """Return the number that the next message gets: behind all that are there, or such that none comes back."""
    beginning = secrets.randbelow(BEGINNINGS)
    if end > HIGHEST_END:
        return beginning
    return end if found.write_id else max(end, beginning)


def _parts(item: Item) -> Sequence[str]:
    """Return the ids of the parts that a message names; none where that cannot be read."""
    try:
        made = read_upload(item)
    except UnreadableError:
        return ()
    return () if made is None else part_ids(made)
