"""Adding messages to a history, each once and in order, however many write and whatever becomes of the answers.

A batch creates messages under the next numbers and replaces the head in the version that was read: the service does
all of it or nothing, so of two writers one is refused, reads the head again and goes on from there. Each batch is whole
in itself; whatever interrupts a save leaves a beginning of it, and the same save again adds the rest. Whenever the head
turns out to be another writer's, what is left to add is judged again: that writer may have added the same.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import secrets
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from ._codec import encode_whole
from ._conversations import Conversation
from ._gateway import Create, Delete, Refusal, Replace, Step
from ._heads import BEGINNINGS, MAX_SEQUENCE, Head
from ._history_items import StoredMessage, head_id, head_item, message_id, message_item
from ._history_uploads import collect
from ._identities import first_new, needed
from ._identity import upload_guard_id
from ._items import NEVER, item_bytes
from ._messages import FORMAT, Entry
from ._records import EncodedPayload, Upload
from ._threads import off_loop
from ._uploads import part_ids
from .errors import CosmosStateError, ServiceError, StateConflictError, StateCorruptError

_MAX_STEPS: Final = 100
"""Steps of a batch (https://learn.microsoft.com/azure/cosmos-db/concepts-limits)."""

_MAX_BATCH_BYTES: Final = 1_000_000
"""Bytes of a batch's items: about half of the 2 MB that the service takes (same page), because what tells whose they
are is escaped on the way, and because the service throttles by the second, and 1 MB costs some 5,000 RU at once."""

_MAX_TRIES: Final = 30
"""Times in a row that other writers may be first: of thirty that begin together, the last is refused 29 times."""

_FIRST_DELAY: Final = 0.01
_MAX_DELAY: Final = 0.5
"""Seconds; after the n-th refusal in a row the wait is drawn evenly from 0 to ``_FIRST_DELAY * 2**(n - 1)``, at most
this. It comes before the head is read again: what is read is not to grow old."""


@dataclass(slots=True)
class _Cargo:
    """A message on its way.

    Attributes:
        entry: The message.
        payload: It, encoded; None before that.
        upload: Its parts, None when its item holds it.
    """

    entry: Entry
    payload: EncodedPayload | None = None
    upload: Upload | None = None


@dataclass(frozen=True, slots=True)
class _Batch:
    """What is written at once.

    Attributes:
        head: The head afterwards.
        steps: The head's step, the messages', and those that end the uploads.
        cargo: The messages.
        first: Number of the first of them.
    """

    head: Head
    steps: tuple[Step, ...] = field(repr=False)
    cargo: tuple[_Cargo, ...]
    first: int


@dataclass(frozen=True, slots=True)
class _Refused:
    """Nothing of a batch was done.

    Attributes:
        index: The step that could not be.
        found: The head that is there.
    """

    index: int
    found: Head


class Append:
    """Adds messages to one history, in as many tries as other writers make necessary."""

    def __init__(self, conversation: Conversation, entries: Sequence[Entry], ttl: int | None) -> None:
        """Set what is added, and how many seconds it lives, None for ever."""
        self._conversation = conversation
        self._left = [_Cargo(entry) for entry in entries]
        self._stored = 0  # so many of them, from the first, are stored already
        self._spare: list[_Cargo] = []  # what others have stored, and whose parts may be written for nothing
        self._ttl = ttl
        self._gateway, self._meter = conversation.backend.gateway, conversation.meter
        self._place, self._source_id = conversation.place, conversation.source_id

    async def run(self, known: Head | None) -> tuple[Head, int]:
        """Add what is new; return the head afterwards, and how many messages were added.

        Args:
            known: The head as it was when somebody last looked, None when it is to be read.

        Raises:
            StateConflictError: Other writers kept being first.
            StateCorruptError: The head cannot be read, or does not count what is there.
            ServiceError: The service refused, throttled or could not be reached.
        """
        try:
            return await self._run(known)
        except CosmosStateError:
            await self._give_up()
            raise

    async def _run(self, known: Head | None) -> tuple[Head, int]:
        head = await self._head() if known is None else known
        await self._judge(head)
        added, tries = 0, 0
        while self._left[self._stored :]:
            batch = await self._batch(head)
            tries += 1
            done = await self._commit(batch, tries)
            if isinstance(done, _Refused):
                await self._recover(done, batch, head, tries)
                head = done.found
            else:
                head, tries, added = done, 0, added + len(batch.cargo)
                self._spare += self._left[: self._stored]
                self._left, self._stored = self._left[self._stored + len(batch.cargo) :], 0
                if self._left and head.write_id != batch.head.write_id:
                    await self._judge(head)
        if known is not None and head is known and (await self._conversation.head()).etag != known.etag:
            # No batch has asked whether that head still stands: the history may have been cleared meanwhile.
            return await self._run(None)
        await self._give_up()
        return head, added

    async def _head(self) -> Head:
        """Read the head; where there is none there must be no messages either, that somebody else is to count.

        Raises:
            StateCorruptError: There are.
        """
        head = await self._conversation.head()
        return head if head.etag else (await self._conversation.read(0))[0]

    async def _judge(self, head: Head) -> None:
        """Find out how many of the messages that are left are stored by now."""
        given = [cargo.entry.given for cargo in self._left]
        newest = await self._conversation.newest_identities(head, needed(head.messages, len(given)))
        self._stored = first_new(newest, given)

    async def _batch(self, head: Head) -> _Batch:
        """Return what is written next: as many of the messages as one batch takes, at least one."""
        head = head.begun(secrets.randbelow(BEGINNINGS))
        write_id, chosen, size = uuid.uuid4().hex, list[_Cargo](), 0
        creates, ends = list[Step](), list[Step]()
        for sequence, cargo in enumerate(self._left[self._stored :], start=head.next):
            create = await self._create(cargo, sequence, write_id)
            size += item_bytes(create.item)
            steps = 1 + len(creates) + len(ends) + 1 + (cargo.upload is not None)
            if chosen and (steps > _MAX_STEPS or size > _MAX_BATCH_BYTES):
                break
            chosen.append(cargo)
            creates.append(create)
            if cargo.upload is not None:
                # A message is committed only if nobody has taken the guard of its parts away before.
                ends.append(Delete(upload_guard_id(cargo.upload.write_id)))
        after = head.appended([cargo.entry.stored for cargo in chosen], self._ttl, write_id)
        own = head_item(self._place, self._source_id, after)
        first: Step = Replace(own, head.etag) if head.etag else Create(own)
        return _Batch(after, (first, *creates, *ends), tuple(chosen), head.next)

    async def _create(self, cargo: _Cargo, sequence: int, write_id: str) -> Create:
        if sequence > MAX_SEQUENCE:
            raise StateCorruptError("the history is numbered as high as none ever is", **self._conversation.which)
        if cargo.payload is None:
            entry = cargo.entry
            cargo.payload = await off_loop(len(entry.raw), lambda: encode_whole(entry.raw, payload_format=FORMAT))
        if cargo.upload is None:
            # Written for the head: under which number the message comes to stand is decided by the batch.
            ttl = NEVER if self._ttl is None else self._ttl
            owner = head_id(self._source_id)
            cargo.upload = await self._conversation.uploads.write(owner, cargo.payload.data, ttl)
        message = StoredMessage(sequence, cargo.entry.stored, write_id, cargo.payload, cargo.upload)
        return Create(message_item(self._place, self._source_id, message, self._ttl))

    async def _commit(self, batch: _Batch, tries: int) -> _Refused | Head:
        """Write a batch; where its outcome cannot be known, read the truth before anything is said.

        Args:
            batch: What to write.
            tries: How many in a row this one makes.
        """
        unknown_before = self._meter.unknown_outcomes
        try:
            done = await self._gateway.commit(self._place.key, batch.steps, self._meter)
        except ServiceError:
            if self._meter.unknown_outcomes > unknown_before:
                with contextlib.suppress(CosmosStateError):
                    found = await self._conversation.head()
                    if await self._is_ours(batch, found, lost=True):
                        return found
            raise
        if not isinstance(done, Refusal):
            return batch.head.at(done[0])
        lost = self._meter.unknown_outcomes > unknown_before
        limit = min(_MAX_DELAY, _FIRST_DELAY * 2 ** (tries - 1))
        await asyncio.sleep(random.uniform(0, limit))  # noqa: S311 - jitter, not a secret
        found = await self._head_after(lost=lost)
        return found if await self._is_ours(batch, found, lost=lost) else _Refused(done.index, found)

    async def _head_after(self, *, lost: bool) -> Head:
        """Read the head after a refusal, which may be of this save's own work where an answer was lost."""
        try:
            return await self._head()
        except ServiceError as error:
            error.outcome_unknown |= lost
            raise

    async def _is_ours(self, batch: _Batch, found: Head, *, lost: bool) -> bool:
        """Return whether a batch was done after all, although it was refused or its answer was lost."""
        if found.write_id == batch.head.write_id:
            return True
        if not lost or found.next <= batch.first:
            return False
        # Others have written since: the message under our first number says whose it is.
        item = await self._conversation.read_item(message_id(self._source_id, batch.first))
        return item is not None and item.get("write_id") == batch.head.write_id

    async def _recover(self, refused: _Refused, batch: _Batch, before: Head, tries: int) -> None:
        """Get ready for the next try.

        Raises:
            StateConflictError: There were enough.
            StateCorruptError: No other writer is the reason.
        """
        which, at_guard = self._conversation.which, refused.index > len(batch.cargo)
        if tries >= _MAX_TRIES:
            raise StateConflictError("other writers kept adding to the history", **which)
        if at_guard:
            await self._upload_again(batch.steps[refused.index])
        elif refused.index and refused.found.etag == before.etag:
            raise StateCorruptError("the history holds a message that its head does not count", **which)
        if refused.found.etag != before.etag:
            await self._judge(refused.found)

    async def _upload_again(self, end: Step) -> None:
        """Forget the parts of which somebody has taken the guard away; they can no longer be committed."""
        for cargo in self._left:
            if cargo.upload is not None and end == Delete(upload_guard_id(cargo.upload.write_id)):
                await self._remove(cargo.upload)
                cargo.upload = None

    async def _give_up(self) -> None:
        """Delete the parts of what is not committed: somebody else has stored the message, or it cannot be stored."""
        for cargo in (*self._spare, *self._left):
            if cargo.upload is not None:
                await self._remove(cargo.upload)

    async def _remove(self, made: Upload) -> None:
        """Delete parts unless they are committed after all; what cannot be deleted now goes with the session."""
        with contextlib.suppress(CosmosStateError):
            if await self._gateway.is_sequential():
                await collect(self._conversation, made.write_id, part_ids(made))
