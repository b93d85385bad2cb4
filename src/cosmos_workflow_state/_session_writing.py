"""The commit point of a session: one batch that creates its item, or replaces the version that was seen.

Nothing is overwritten that was not seen: a request that arrives late finds another version, or none, and does nothing.
What one item cannot hold is written in parts before, which nothing names yet; so whatever interrupts it, the session
before or the session after is there, whole.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import uuid
from dataclasses import dataclass
from typing import Final

from ._auxiliaries import Parts
from ._codec import encode_whole
from ._collecting import collect_parts
from ._gateway import Create, Delete, Meter, Refusal, Replace, Step
from ._identity import upload_guard_id
from ._items import NEVER
from ._records import EncodedPayload, Upload
from ._session_items import SESSION_ITEM_ID, SessionVersion, session_item, tells_of, writes_after
from ._session_reading import parse
from ._session_snapshots import FORMAT
from ._session_view import SessionView
from ._threads import off_loop
from ._uploads import Uploads, part_ids
from .errors import (
    CosmosStateError,
    ServiceError,
    ServiceUnavailableError,
    StateChangedError,
    StateConflictError,
    StateCorruptError,
)

NOTHING_THERE: Final = ""
"""As the version that a write expects: none."""

_MAX_TRIES: Final = 8
_FIRST_DELAY: Final = 0.02
"""Seconds; after lost race n the wait is drawn evenly from 0 to ``_FIRST_DELAY * 2**n``: 2.5 at most."""


@dataclass(frozen=True, slots=True)
class _Cargo:
    """A session that is ready to be committed: its parts are written.

    Attributes:
        payload: The encoded session.
        upload: Its parts, None when the item holds it.
    """

    payload: EncodedPayload
    upload: Upload | None

    @property
    def conditions(self) -> tuple[Step, ...]:
        """The steps of the batch before the item's own: an upload is committed only if nobody took its guard away."""
        return () if self.upload is None else (Delete(upload_guard_id(self.upload.write_id)),)


@dataclass(frozen=True, slots=True)
class _Refused:
    """What a try was refused for.

    Attributes:
        found: The version that is there, None for none.
        upload_gone: Whether the parts were collected, as those of a write that nobody expects any more.
        in_doubt: Whether it may have been done all the same: an answer was lost, and what is there does not tell.
    """

    found: SessionVersion | None
    upload_gone: bool
    in_doubt: bool


@dataclass(frozen=True, slots=True)
class Written:
    """What a write has come to.

    Attributes:
        etag: The version it has made.
        stored_bytes: Bytes of the session after the codecs.
    """

    etag: str
    stored_bytes: int


class SessionWrite:
    """Stores one session, in as many tries as other writers make necessary."""

    def __init__(self, view: SessionView, raw: bytes, meter: Meter) -> None:
        """Set what is to be stored, and what counts the cost."""
        self._view, self._raw, self._meter = view, raw, meter
        self._write_id = uuid.uuid4().hex[:16]
        self._answer_lost = False
        self._gateway, self._memory = view.backend.gateway, view.backend.memory
        self._uploads = Uploads(self._gateway, view.place, meter)

    async def run(self, if_match: str | None) -> Written:
        """Create the session or replace what is there.

        Args:
            if_match: The version that must be there, `NOTHING_THERE` for none; None for whatever is there.

        Raises:
            StateChangedError: Another version is there.
            StateConflictError: Other writers kept replacing it.
            StateCorruptError: What is there cannot be read, so it is not replaced.
            ServiceError: The service refused, throttled or could not be reached; or its answer was lost, and what is
                there does not tell whether the write was done (``outcome_unknown``).
        """
        there = await self._expected(if_match)
        payload = await off_loop(len(self._raw), lambda: encode_whole(self._raw, payload_format=FORMAT))
        cargo = await self._load(payload)
        for tries in range(_MAX_TRIES):
            done = await self._try(cargo, there)
            if isinstance(done, SessionVersion):
                await self._finish(done, there)
                return Written(self._version_of(done), len(payload.data))
            there = done.found
            self._memory.note(self._view.place, there)
            over = self._over(done, if_match)
            if over is not None:
                await self._give_up(cargo)
                raise over
            if done.upload_gone:
                cargo = await self._load(payload)
            await _wait(tries)
        await self._give_up(cargo)
        raise StateConflictError("other writers kept replacing this session", **self._view.which)

    async def _expected(self, if_match: str | None) -> SessionVersion | None:
        """Return the version to replace, None for none: asked for only where this process does not know it.

        Raises:
            StateChangedError: Another one is there.
        """
        known = self._memory.get(self._view.place)
        if if_match is None or _is(known, if_match):
            return known
        found = await self._read()
        if not _is(found, if_match):
            raise self._changed(found)
        return found

    async def _load(self, payload: EncodedPayload) -> _Cargo:
        """Write the parts of what is too large for an item."""
        ttl = self._view.backend.ttl
        return _Cargo(payload, await self._uploads.write(SESSION_ITEM_ID, payload.data, NEVER if ttl is None else ttl))

    async def _try(self, cargo: _Cargo, there: SessionVersion | None) -> SessionVersion | _Refused:
        """Write the batch; where its outcome cannot be known, read the truth before anything is said."""
        place, writes = self._view.place, writes_after(self._write_id, there)
        item = session_item(place, cargo.payload, cargo.upload, writes, self._view.backend.ttl)
        own: Step = Create(item) if there is None else Replace(item, there.etag)
        unknown_before = self._meter.unknown_outcomes
        try:
            done = await self._gateway.commit(place.key, (*cargo.conditions, own), self._meter)
        except ServiceError:
            found = await self._mine_after_all(unknown_before)
            if found is None:
                raise
            return found
        if not isinstance(done, Refusal):
            return SessionVersion(done[-1], writes, cargo.upload)
        self._answer_lost |= self._meter.unknown_outcomes > unknown_before
        found = await self._read_after_refusal()
        in_doubt = self._answer_lost and not tells_of(found, there)
        return self._mine(found) or _Refused(found, done.index < len(cargo.conditions), in_doubt)

    async def _mine_after_all(self, unknown_before: int) -> SessionVersion | None:
        """Return what is there after a failure if this write was done all the same."""
        if self._meter.unknown_outcomes > unknown_before:
            with contextlib.suppress(CosmosStateError):
                return self._mine(await self._read())
        return None

    async def _read(self) -> SessionVersion | None:
        item = await self._gateway.read(self._view.place.key, SESSION_ITEM_ID, self._meter)
        if item is None:
            return None
        if not self._view.owns(item):
            raise StateCorruptError("the item with the id of this session's is another's", **self._view.which)
        return parse(self._view, item).version

    async def _read_after_refusal(self) -> SessionVersion | None:
        """Read what is there after a refusal, which may be of this write's own work where an answer was lost."""
        try:
            return await self._read()
        except ServiceError as error:
            error.outcome_unknown |= self._answer_lost
            raise

    def _mine(self, found: SessionVersion | None) -> SessionVersion | None:
        """Return what is there if this write was done, also where others have replaced its outcome since."""
        return found if found is not None and self._write_id in found.writes else None

    def _version_of(self, done: SessionVersion) -> str:
        """Return the version that this write has made; none if it was replaced since, or is not known."""
        return done.etag if done.etag and done.writes[0] == self._write_id else self._write_id

    async def _finish(self, done: SessionVersion, replaced: SessionVersion | None) -> None:
        """Note what is there now, and delete the parts of what was; what cannot be deleted now goes by `delete`."""
        # Without an ETag it could not be replaced conditionally.
        self._memory.note(self._view.place, done if done.etag else None)
        if replaced is not None and replaced.upload is not None:
            with contextlib.suppress(CosmosStateError):
                await self._uploads.remove(part_ids(replaced.upload))

    def _over(self, refused: _Refused, if_match: str | None) -> CosmosStateError | None:
        """Return why there is no further try, None when there is one."""
        if refused.in_doubt:
            return _in_doubt(repeatable=if_match is None)
        return None if if_match is None or _is(refused.found, if_match) else self._changed(refused.found)

    def _changed(self, found: SessionVersion | None) -> StateChangedError:
        what = "there is none" if found is None else "another version is there"
        return StateChangedError(f"the session is not the version that if_match names: {what}", **self._view.which)

    async def _give_up(self, cargo: _Cargo) -> None:
        """Delete the parts of what is not committed after all; what cannot be deleted now goes by `delete`."""
        with contextlib.suppress(CosmosStateError):
            if cargo.upload is not None and await self._gateway.is_sequential():
                ids = part_ids(cargo.upload)
                # Asking first: where an answer was lost, it may have been committed.
                parts = Parts(self._view.place, cargo.upload.write_id, SESSION_ITEM_ID, ids)
                await collect_parts(self._gateway, parts, self._meter)


def _is(version: SessionVersion | None, etag: str) -> bool:
    return etag == (NOTHING_THERE if version is None else version.etag)


def _in_doubt(*, repeatable: bool) -> ServiceUnavailableError:
    error = ServiceUnavailableError(
        "nobody can say whether the session was stored: the answer was lost, and too much has happened since; read "
        "the session, and decide anew",
        outcome_unknown=True,
    )
    # What if_match names is gone for good.
    error.retryable = repeatable
    return error


async def _wait(tries: int) -> None:
    await asyncio.sleep(random.uniform(0, _FIRST_DELAY * 2**tries))  # noqa: S311 - jitter, not a secret
