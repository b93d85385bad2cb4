"""The scheme with one thing left out of it, each of which a test must be able to find."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Final
from unittest import mock

from cosmos_workflow_state import _gateway, _queries
from cosmos_workflow_state._auxiliaries import Parts
from cosmos_workflow_state._committing import Commit
from cosmos_workflow_state._documents import keyframe_guard_item
from cosmos_workflow_state._gateway import Delete, Gateway, Meter, Read, Step, Upsert
from cosmos_workflow_state._identity import full_key, keyframe_guard_id
from cosmos_workflow_state._items import names_upload
from cosmos_workflow_state._keyframes import Encoding
from cosmos_workflow_state._records import Auxiliary, Keyframe, Upload
from cosmos_workflow_state._uploads import Uploads, part_ids

_PACKAGE: Final = "cosmos_workflow_state"
Variant = Callable[[ExitStack], None]


def _replaced(patches: ExitStack, new: Any, *names: str) -> None:
    for name in names:
        patches.enter_context(mock.patch(f"{_PACKAGE}.{name}", new))


def without_guard_read(patches: ExitStack) -> None:
    """A checkpoint is committed without looking whether its keyframe may still be referred to."""
    _without_conditions(patches, Read)


def asks_before_it_takes_the_guard(patches: ExitStack) -> None:
    """A collector first asks for references, then takes the guard away."""

    async def collect(gateway: Gateway, keyframe: Auxiliary, meter: Meter) -> bool:
        if await _is_referred_to(gateway, keyframe, meter):
            return False
        await _take_guard(gateway, keyframe, meter)
        return await _delete(gateway, keyframe, meter)

    _replaced(patches, collect, "_sweeping.collect_keyframe", "_erasing.collect_keyframe")


def never_asks(patches: ExitStack) -> None:
    """A collector trusts the list of candidates that it was given."""

    async def collect(gateway: Gateway, keyframe: Auxiliary, meter: Meter) -> bool:
        await _take_guard(gateway, keyframe, meter)
        return await _delete(gateway, keyframe, meter)

    _replaced(patches, collect, "_sweeping.collect_keyframe", "_erasing.collect_keyframe")


def uploads_without_end(patches: ExitStack) -> None:
    """A commit does not need its uploads to have their guards: whether parts are loose is judged by age alone."""

    async def collect(gateway: Gateway, parts: Parts, meter: Meter) -> bool:
        owner = await gateway.read(full_key(parts.place.tenant, parts.place.workflow_name), parts.owner, meter)
        if owner is not None and names_upload(owner, parts.write_id):
            return False
        await Uploads(gateway, parts.place, meter).remove(parts.item_ids)
        return True

    _without_conditions(patches, Delete)
    _replaced(patches, collect, "_sweeping.collect_parts", "_erasing.collect_parts", "_committing.collect_parts")


def trusts_the_clock(patches: ExitStack) -> None:
    """A collector only deletes the guard, and takes one that has expired for proof, without a write of its own."""

    async def collect(gateway: Gateway, keyframe: Auxiliary, meter: Meter) -> bool:
        key = full_key(keyframe.place.tenant, keyframe.place.workflow_name)
        await gateway.delete(key, keyframe_guard_id(keyframe.keyframe_id), meter)
        return not await _is_referred_to(gateway, keyframe, meter) and await _delete(gateway, keyframe, meter)

    _replaced(patches, collect, "_sweeping.collect_keyframe", "_erasing.collect_keyframe")


def forgets_the_session(patches: ExitStack) -> None:
    """The session token of a batch is not kept, as the client itself does not: what is read after it may be older."""
    listen = _gateway._Listener.__call__

    def without_batches(self: _gateway._Listener, response: Any) -> None:
        if "x-ms-cosmos-is-batch-request" in response.http_request.headers:
            response.http_response.headers.pop("x-ms-session-token", None)
        listen(self, response)

    patches.enter_context(mock.patch.object(_gateway._Listener, "__call__", without_batches))


def keyframes_for_any_time(patches: ExitStack) -> None:
    """A checkpoint refers to a keyframe that may expire before it does."""
    patches.enter_context(mock.patch.object(Keyframe, "serves", return_value=True))


VARIANTS: Final[dict[str, Variant]] = {
    variant.__name__: variant
    for variant in (
        without_guard_read,
        asks_before_it_takes_the_guard,
        never_asks,
        uploads_without_end,
        trusts_the_clock,
        forgets_the_session,
        keyframes_for_any_time,
    )
}


def _without_conditions(patches: ExitStack, kind: type[Step]) -> None:
    load = Commit._load

    async def unconditional(self: Commit, encoding: Encoding) -> Any:
        cargo = await load(self, encoding)
        return replace(cargo, conditions=tuple(step for step in cargo.conditions if not isinstance(step, kind)))

    patches.enter_context(mock.patch.object(Commit, "_load", unconditional))


async def _take_guard(gateway: Gateway, keyframe: Auxiliary, meter: Meter) -> None:
    place, keyframe_id = keyframe.place, keyframe.keyframe_id
    steps: list[Step] = [Upsert(keyframe_guard_item(place, keyframe_id)), Delete(keyframe_guard_id(keyframe_id))]
    await gateway.batch(full_key(place.tenant, place.workflow_name), steps, meter)


async def _is_referred_to(gateway: Gateway, keyframe: Auxiliary, meter: Meter) -> bool:
    place = keyframe.place
    parameters = _queries.references(place.tenant, place.workflow_name, keyframe.keyframe_id)
    key = full_key(place.tenant, place.workflow_name)
    return bool([found async for found in gateway.query(_queries.REFERENCES, parameters, key, meter)])


async def _delete(gateway: Gateway, keyframe: Auxiliary, meter: Meter) -> bool:
    place = keyframe.place
    deleted = await gateway.delete(full_key(place.tenant, place.workflow_name), keyframe.item_id, meter)
    if keyframe.write_id:
        await Uploads(gateway, place, meter).remove(part_ids(Upload(keyframe.write_id, keyframe.parts)))
    return deleted
