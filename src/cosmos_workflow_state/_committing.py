"""The commit point of a save: one batch with the checkpoint and what must be true of its keyframe.

Before the batch only parts are written, which nothing names yet; in it, a new keyframe appears together with its guard
and its first checkpoint, an old one must still have its guard. Nothing is overwritten in place. So whatever interrupts
a save, the state before it or the state after it is there, whole.
"""

from __future__ import annotations

import contextlib
import uuid
from dataclasses import dataclass, replace
from typing import Final

from ._auxiliaries import Parts
from ._codec import digest
from ._collecting import collect_parts
from ._documents import MAX_HEADER_BYTES, checkpoint_item, keyframe_guard_item, keyframe_item, keyframe_ttl
from ._gateway import Create, Delete, Gateway, Item, Meter, Read, Refusal, Replace, Step
from ._identity import checkpoint_item_id, full_key, keyframe_guard_id, keyframe_item_id, upload_guard_id
from ._items import NEVER, item_bytes
from ._keyframes import Base, Encoding, encode
from ._maf import FORMAT
from ._reading import fetch_current, parse
from ._records import CheckpointHeader, EncodedPayload, StoredCheckpoint, Upload
from ._threads import off_loop
from ._uploads import Uploads, part_ids
from ._view import CheckpointView
from .errors import (
    CheckpointConflictError,
    CheckpointCorruptError,
    CheckpointFields,
    CosmosStateError,
    ServiceError,
)

_MAX_TRIES: Final = 5


@dataclass(frozen=True, slots=True)
class Draft:
    """A checkpoint that is to be stored.

    Attributes:
        header: The queryable part.
        raw: The state, before the codecs.
        sort_key: Its place in the order, unless its id is there already and has one.
    """

    header: CheckpointHeader
    raw: bytes
    sort_key: str


@dataclass(frozen=True, slots=True)
class Stored:
    """What a commit has come to.

    Attributes:
        sort_key: The one that is in force.
        base: What the children of the checkpoint may be stored against, None when that is not known.
        stored_bytes: Bytes of the items in the batch, 0 when the checkpoint was there already.
        new_keyframe: Whether a keyframe was written.
    """

    sort_key: str
    base: Base | None = None
    stored_bytes: int = 0
    new_keyframe: bool = False


@dataclass(frozen=True, slots=True)
class _Cargo:
    """A payload that is ready to be committed: its parts are written.

    Attributes:
        payload: The encoded state.
        upload: Its parts, None when the checkpoint's item holds it.
        base: The keyframe that it refers to, None when it stands alone.
        conditions: The steps of the batch before the checkpoint's own.
        new_keyframe: Whether they create that keyframe.
        parts: All parts that were written for it, those of a new keyframe included.
    """

    payload: EncodedPayload
    upload: Upload | None
    base: Base | None
    conditions: tuple[Step, ...]
    new_keyframe: bool
    parts: tuple[Parts, ...]


class Commit:
    """Stores one checkpoint, in as many tries as other writers make necessary."""

    def __init__(self, view: CheckpointView, draft: Draft, meter: Meter) -> None:
        """Set what is to be stored, for whom, and what counts the cost."""
        key = draft.header.key
        self._view, self._draft, self._meter = view, draft, meter
        self._key = key
        self._partition = full_key(key.tenant, key.workflow_name)
        self._item_id = checkpoint_item_id(key.scope, key.checkpoint_id)
        self._gateway: Gateway = view.backend.gateway
        self._uploads = Uploads(self._gateway, key.place, meter)

    async def run(self, base: Base | None) -> Stored:
        """Create the checkpoint, or replace what is there under its id if that differs.

        Args:
            base: What it may be stored against, None when nothing is known.

        Raises:
            CheckpointConflictError: Other writers kept replacing or deleting it.
            CheckpointCorruptError: What is there under its id cannot be read, so it is not replaced.
            CheckpointTooLargeError: Its header does not leave room in an item.
            ServiceError: The service refused, throttled or could not be reached.
        """
        there: StoredCheckpoint | None = None
        cargo = await self._load(await self._encode(base))
        for _ in range(_MAX_TRIES):
            item = self._item(cargo, there)
            unknown_before = self._meter.unknown_outcomes
            refusal = await self._write(item, cargo, there)
            if refusal is None:
                await self._remove_replaced(there)
                return _stored(item, cargo)
            found = await self._read_after(unknown_before)
            if found is not None and _is_echo(found, item):
                return _stored(item, cargo)
            there = None if found is None else parse(self._view, found)
            if there is not None and await self._is_same(there, cargo.payload):
                await self._give_up(cargo)
                return Stored(there.sort_key)
            if refusal.index < len(cargo.conditions):
                # The keyframe may no longer be referred to, or the parts were swept: a new one, new ones.
                self._view.backend.keyframes.forget(self._key.place, cargo.payload.keyframe_id or "")
                await self._give_up(cargo)
                cargo = await self._load(await self._encode(None))
        await self._give_up(cargo)
        raise CheckpointConflictError("other writers kept replacing or deleting this checkpoint", **self._which)

    async def _encode(self, base: Base | None) -> Encoding:
        raw, ttl, new_id = self._draft.raw, self._view.ttl, uuid.uuid4().hex
        work = len(raw) if base is None else max(len(raw), base.keyframe.size)
        return await off_loop(work, lambda: encode(raw, base, ttl=ttl, keyframe_id=new_id, payload_format=FORMAT))

    async def _load(self, encoding: Encoding) -> _Cargo:
        """Write the parts of what is too large for an item, and say under which conditions it may be committed."""
        self._check_header(encoding.payload)
        payload, base, ttl = encoding.payload, encoding.base, self._view.ttl
        keyframe_parts: Parts | None = None
        conditions: list[Step] = []
        if base is not None and encoding.is_new:
            keyframe_parts, conditions = await self._load_keyframe(base)
        elif base is not None:
            conditions = [Read(keyframe_guard_id(base.keyframe.id))]
        made = await self._uploads.write(self._item_id, payload.data, NEVER if ttl is None else ttl)
        parts = [keyframe_parts] if keyframe_parts is not None else []
        if made is not None:
            parts.append(Parts(self._key.place, made.write_id, self._item_id, part_ids(made)))
        # An upload is committed only if nobody has taken its guard away before.
        ends = [Delete(upload_guard_id(one.write_id)) for one in parts]
        return _Cargo(payload, made, base, (*conditions, *ends), encoding.is_new, tuple(parts))

    async def _load_keyframe(self, base: Base) -> tuple[Parts | None, list[Step]]:
        keyframe, place = base.keyframe, self._key.place
        owner = keyframe_item_id(keyframe.id)
        made = await self._uploads.write(owner, keyframe.data, keyframe_ttl(keyframe))
        item = keyframe_item(place, keyframe, digest(keyframe.data), made)
        parts = None if made is None else Parts(place, made.write_id, owner, part_ids(made))
        return parts, [Create(item), Create(keyframe_guard_item(place, keyframe.id))]

    def _item(self, cargo: _Cargo, there: StoredCheckpoint | None) -> Item:
        sort_key = self._draft.sort_key if there is None else there.sort_key
        return checkpoint_item(self._draft.header, sort_key, cargo.payload, cargo.upload, self._view.ttl)

    def _check_header(self, payload: EncodedPayload) -> None:
        item = checkpoint_item(self._draft.header, self._draft.sort_key, replace(payload, data=b""))
        self._view.check_size(item_bytes(item), MAX_HEADER_BYTES, self._key, what="ids beside its state")

    async def _write(self, item: Item, cargo: _Cargo, there: StoredCheckpoint | None) -> Refusal | None:
        """Write the batch; where its outcome cannot be known, read the truth before anything is said."""
        own: Step = Create(item) if there is None else Replace(item, there.etag)
        unknown_before = self._meter.unknown_outcomes
        try:
            return await self._gateway.batch(self._partition, (*cargo.conditions, own), self._meter)
        except ServiceError:
            if self._meter.unknown_outcomes > unknown_before:
                with contextlib.suppress(ServiceError):
                    found = await self._read()
                    if found is not None and _is_echo(found, item):
                        return None
            raise

    async def _read(self) -> Item | None:
        found = await self._gateway.read(self._partition, self._item_id, self._meter)
        if found is not None and not self._view.owns(found, self._key.checkpoint_id):
            raise CheckpointCorruptError("the item with the id of this checkpoint is another's", **self._which)
        return found

    async def _read_after(self, unknown_before: int) -> Item | None:
        """Read what is there after a refusal, which may be of this save's own work where an answer was lost."""
        lost = self._meter.unknown_outcomes > unknown_before
        try:
            return await self._read()
        except ServiceError as error:
            error.outcome_unknown |= lost
            raise

    async def _is_same(self, there: StoredCheckpoint, payload: EncodedPayload) -> bool:
        """Return whether what is there has this content and life, and can be read; false when it is gone by now."""
        if (there.payload.digest, there.ttl) != (payload.digest, self._view.ttl):
            return False
        return await fetch_current(self._view, there, self._meter) is not None

    async def _remove_replaced(self, there: StoredCheckpoint | None) -> None:
        """Delete the parts of the version that was replaced; what cannot be deleted now is swept later."""
        if there is not None and there.upload is not None:
            with contextlib.suppress(CosmosStateError):
                await self._uploads.remove(part_ids(there.upload))

    async def _give_up(self, cargo: _Cargo) -> None:
        """Delete the parts of what is not committed after all; what cannot be deleted now is swept later."""
        with contextlib.suppress(CosmosStateError):
            if cargo.parts and await self._gateway.is_sequential():
                for parts in cargo.parts:
                    # Asking first: where an answer was lost, it may have been committed.
                    await collect_parts(self._gateway, parts, self._meter)

    @property
    def _which(self) -> CheckpointFields:
        return self._view.which(self._key.workflow_name, self._key.checkpoint_id)


def _is_echo(found: Item, item: Item) -> bool:
    """Return whether an item that is there is the one that was sent; no two saves have the same sort key."""
    return all(found.get(name) == value for name, value in item.items())


def _stored(item: Item, cargo: _Cargo) -> Stored:
    created = [item, *(step.item for step in cargo.conditions if isinstance(step, Create))]
    return Stored(item["sort_key"], cargo.base, sum(map(item_bytes, created)), cargo.new_keyframe)
