"""One history, of a session and a source, as one operation sees it: its head, its messages, whose items are.

It reads only. What is added is in `_appending`, what is taken away in `_clearing`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from operator import eq
from typing import Final

from agent_framework import Message

from . import _history_queries
from ._codec import decode_payload
from ._gateway import Gateway, Item, Meter
from ._heads import Head
from ._history_items import HEAD_TYPE, StoredMessage, head_id, is_of, read_head, read_message
from ._history_queries import Parameters
from ._logging import ISOLATION_VIOLATED, emit
from ._messages import FORMAT, deserialize
from ._operations import Operations
from ._records import EncodedPayload, SessionPlace, UnreadableError, Upload
from ._threads import off_loop, side_by_side
from ._uploads import MissingItemError, Uploads
from .errors import StateCorruptError, StateFields, StateTooLargeError

_DELAYS: Final = (0.0, 0.1, 0.3)
"""Seconds before a history that is not whole is read again."""

_PAGE_SIZE: Final = 1_000
"""Items in a page at most; the service sends 100 when it is not asked, and never more than 4 MB
(https://learn.microsoft.com/azure/cosmos-db/concepts-limits)."""


@dataclass(frozen=True, slots=True)
class HistoryBackend:
    """What the histories of all tenants share.

    Attributes:
        gateway: The container.
        operations: Runs each operation.
        max_payload_bytes: Bytes of a message before compression.
        ttl: Seconds after its save that a message expires, None for never.
    """

    gateway: Gateway
    operations: Operations
    max_payload_bytes: int
    ttl: int | None


@dataclass(frozen=True, slots=True)
class Conversation:
    """One history in one operation.

    Attributes:
        backend: What all share.
        place: Which tenant and session.
        source_id: Which of the session's histories.
        meter: Counts what the operation costs.
    """

    backend: HistoryBackend
    place: SessionPlace
    source_id: str
    meter: Meter

    @property
    def which(self) -> StateFields:
        """The fields of an error about it."""
        return StateFields(tenant_id=self.place.tenant.value, session_id=self.place.session_id)

    @property
    def uploads(self) -> Uploads:
        """The parts of its messages."""
        return Uploads(self.backend.gateway, self.place, self.meter)

    @contextmanager
    def about(self) -> Generator[None]:
        """Turn a stage's no into the error a caller knows.

        Raises:
            StateCorruptError: Instead of `UnreadableError`.
        """
        try:
            yield
        except UnreadableError as error:
            raise StateCorruptError(str(error), **self.which) from None

    def check_size(self, size: int) -> None:
        """Compare the bytes of a message before compression with the limit.

        Raises:
            StateTooLargeError: They are over it.
        """
        limit = self.backend.max_payload_bytes
        if size > limit:
            raise StateTooLargeError(
                f"a message has {size} bytes before compression, the limit is {limit} (setting max_payload_bytes)",
                size=size,
                limit=limit,
                **self.which,
            )

    def owns(self, item: Item) -> bool:
        """Check an item that was read: another's is an event for whoever watches, and reads as not there."""
        if is_of(item, self.place, self.source_id):
            return True
        self.tell_of_stranger()
        return False

    def tell_of_stranger(self) -> None:
        """Emit the event about an item of somebody else."""
        log = self.backend.operations.logger.error
        emit(log, ISOLATION_VIOLATED, tenant_id=self.place.tenant.value, session_id=self.place.session_id)

    async def query(self, text: str, parameters: Parameters, *, page_size: int = _PAGE_SIZE) -> AsyncIterator[Item]:
        """Yield what a query finds of this history.

        Raises:
            ServiceError: The service refused, throttled or could not be reached.
        """
        gateway = self.backend.gateway
        async for item in gateway.query(text, parameters, self.place.key, self.meter, page_size=page_size):
            if self.owns(item):
                yield item

    async def read_item(self, item_id: str) -> Item | None:
        """Return an item of this history, None when there is none.

        Raises:
            StateCorruptError: The item with this id is another's.
            ServiceError: The service refused, throttled or could not be reached.
        """
        item = await self.backend.gateway.read(self.place.key, item_id, self.meter)
        if item is not None and not self.owns(item):
            raise StateCorruptError("an item of this history is another's", **self.which)
        return item

    async def head(self) -> Head:
        """Return the head, one without a version when there is none. One request.

        Raises:
            StateCorruptError: It cannot be read, or is another's.
            ServiceError: The service refused, throttled or could not be reached.
        """
        item = await self.read_item(head_id(self.source_id))
        with self.about():
            return Head() if item is None else read_head(item)

    async def newest_identities(self, head: Head, count: int) -> tuple[str, ...]:
        """Return what the newest messages are told by, oldest first, those that have expired left out or not.

        No request where the head holds so many: unless lives differ, the newest message is the last to expire.

        Raises:
            StateCorruptError: What is stored cannot be read.
            ServiceError: The service refused, throttled or could not be reached.
        """
        if not count or (count <= len(head.recent) and not head.lives_differ):
            return head.recent[len(head.recent) - count :]
        parameters = _history_queries.of_source(
            self.place, self.source_id, first=head.first, end=head.next, limit=count
        )
        found = [item.get("identity") async for item in self.query(_history_queries.IDENTITIES, parameters)]
        with self.about():
            known = tuple(one for one in reversed(found) if isinstance(one, str))
            if len(known) != len(found):
                raise UnreadableError("a message lacks what it is told by")
            return known

    async def count(self) -> int:
        """Return how many messages there are. One request, a second one where messages expire.

        Raises:
            StateCorruptError: The head cannot be read, or is another's.
            ServiceError: The service refused, throttled or could not be reached.
        """
        head = await self.head()
        if head.shortest_ttl is None:
            return head.messages
        parameters = _history_queries.of_source(self.place, self.source_id, first=head.first, end=head.next)
        rows = self.backend.gateway.query(_history_queries.COUNT, parameters, self.place.key, self.meter)
        return sum([int(row["messages"]) async for row in rows])

    async def read(self, limit: int | None) -> tuple[Head, list[Message]]:
        """Return the head and the newest messages, oldest first. One request a page, and one for each part.

        One more where messages expire and there is more than a page.

        What is not whole is read again before it is called lost: a history may be cleared while it is read, or deleted
        and begun anew.

        Args:
            limit: How many messages at most, None for all.

        Raises:
            StateCorruptError: What is stored cannot be read, or is not what the head counts.
            StateTooLargeError: A message is over this process's ``max_payload_bytes``.
            ServiceError: The service refused, throttled or could not be reached.
        """
        for delay in _DELAYS:
            try:
                return await self._read_once(limit)
            except MissingItemError:
                await asyncio.sleep(delay)
        try:
            return await self._read_once(limit)
        except MissingItemError:
            raise StateCorruptError("the head of the history does not count what is there", **self.which) from None

    async def _read_once(self, limit: int | None) -> tuple[Head, list[Message]]:
        asked_before = self.meter.requests
        items = [item async for item in self._newest_first(limit)]
        asked = self.meter.requests - asked_before
        with self.about():
            head = read_head(items.pop(0)) if items and items[0].get("type") == HEAD_TYPE else Head()
            found = [read_message(item) for item in reversed(items)]
        _check_whole(head, [message.sequence for message in found], limit)
        if asked > 1 and head.shortest_ttl is not None:
            # What has expired is not missed, so what was deleted between two pages is not, either.
            after = await self.head()
            if (after.began, after.first) != (head.began, head.first):
                raise MissingItemError
        return head, await self._messages([message for message in found if message.sequence >= head.first])

    def _newest_first(self, limit: int | None) -> AsyncIterator[Item]:
        """Yield the head and the newest messages, and what a clearing has not deleted yet."""
        if limit is None:
            return self.query(_history_queries.NEWEST_FIRST, _history_queries.of_source(self.place, self.source_id))
        # One more, for the head.
        parameters = _history_queries.of_source(self.place, self.source_id, limit=limit + 1)
        return self.query(_history_queries.NEWEST, parameters, page_size=min(limit + 1, _PAGE_SIZE))

    async def _messages(self, stored: Sequence[StoredMessage]) -> list[Message]:
        for message in stored:
            self.check_size(message.payload.size)
        payloads = [message.payload for message in stored]

        async def fetch(index: int, made: Upload) -> None:
            payloads[index] = replace(payloads[index], data=await self.uploads.read(made))

        with self.about():
            uploads = [(index, message.upload) for index, message in enumerate(stored)]
            await side_by_side(partial(fetch, index, made) for index, made in uploads if made is not None)
            size = sum(payload.size for payload in payloads)
            restored = await off_loop(size, lambda: list(map(self._restored, payloads)))
            return [_message(one) for one in restored]

    def _restored(self, payload: EncodedPayload) -> Message | str:
        """Return the message in a payload, or why it cannot be read: an error carries what it has come through."""
        if payload.format != FORMAT:
            return "a message has a format that this version does not know"
        try:
            return deserialize(decode_payload(payload), self.place, self.source_id)
        except UnreadableError as error:
            return str(error)


def _message(restored: Message | str) -> Message:
    if isinstance(restored, str):
        raise UnreadableError(restored)
    return restored


def _check_whole(head: Head, found: Sequence[int], limit: int | None) -> None:
    """Check that all messages are there which the head counts, and no others but what a clearing may have left.

    Args:
        head: The head.
        found: The numbers of the messages that were found, in order.
        limit: How many were asked for at most, None for all.

    Raises:
        MissingItemError: They are not; where messages expire, only those that are too many can be told.
    """
    if found and not head.began <= found[0] <= found[-1] < head.next:
        raise MissingItemError
    first = head.first if limit is None else max(head.first, head.next - limit)
    counted = [number for number in found if number >= head.first]
    if head.shortest_ttl is not None:
        return
    # The range is as long as a head says it is, so it is never gone through before its length is compared.
    if len(counted) != head.next - first or not all(map(eq, counted, range(first, head.next))):
        raise MissingItemError
