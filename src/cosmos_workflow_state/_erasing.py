"""Deleting on purpose: one checkpoint, or everything of a scope.

A scope is erased in the order that keeps it whole for whoever writes to it at the same time: guards, so that nothing
new refers to what is there; checkpoints; then keyframes and parts, each by `_collecting`, which spares what a
checkpoint that came in between refers to.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import groupby
from typing import Final

from ._auxiliaries import auxiliaries, by_upload
from ._collecting import collect_keyframe, collect_parts
from ._documents import (
    CHECKPOINT_TYPE,
    KEYFRAME_GUARD_TYPE,
    KEYFRAME_TYPE,
    PART_TYPE,
    UPLOAD_GUARD_TYPE,
    read_upload,
)
from ._gateway import Delete, Item, Meter
from ._identity import full_key
from ._records import Auxiliary, Place, UnreadableError
from ._uploads import Uploads, part_ids
from ._view import CheckpointView
from .errors import CosmosStateError
from .typing import EraseProgress

_AT_A_TIME: Final = 20
"""Items deleted in one batch: some 120 RU at once, of the 400 RU a second that the smallest container has."""


async def delete_checkpoint(view: CheckpointView, item: Item, meter: Meter) -> bool:
    """Delete the item of a checkpoint, then its parts; return False when it was not there any more.

    Raises:
        ServiceError: The service refused, throttled or could not be reached.
    """
    gateway, name = view.backend.gateway, item["workflow_name"]
    deleted = await gateway.delete(full_key(view.tenant, name), item["id"], meter)
    # What it says of its parts may be unreadable, as all of it may be; what is not deleted here is swept later.
    with contextlib.suppress(KeyError, TypeError, UnreadableError, CosmosStateError):
        made = read_upload(item["payload"])
        if made is not None:
            await Uploads(gateway, Place(view.tenant, view.scope, name), meter).remove(part_ids(made))
    return deleted


async def erase(
    view: CheckpointView, meter: Meter, progress: Callable[[EraseProgress], object] | None
) -> EraseProgress:
    """Delete everything of a scope, in all workflows or in the one that the view is narrowed to.

    Raises:
        ServiceError: The service refused, throttled or could not be reached; a repeat goes on.
    """
    gateway, done = view.backend.gateway, EraseProgress()

    def tell(**counts: int) -> None:
        nonlocal done
        done = replace(done, **counts)
        if progress is not None:
            progress(done)

    for guards in _groups(
        await _listed(view, KEYFRAME_GUARD_TYPE, meter) + await _listed(view, UPLOAD_GUARD_TYPE, meter)
    ):
        tell(guards=done.guards + await _delete_together(view, guards, meter))
    for checkpoints in _groups(await _listed(view, CHECKPOINT_TYPE, meter)):
        tell(checkpoints=done.checkpoints + await _delete_together(view, checkpoints, meter))
    for keyframe in await _listed(view, KEYFRAME_TYPE, meter):
        tell(keyframes=done.keyframes + await collect_keyframe(gateway, keyframe, meter))
    for parts in by_upload(await _listed(view, PART_TYPE, meter)):
        tell(uploads=done.uploads + await collect_parts(gateway, parts, meter))
    return done


async def _listed(view: CheckpointView, kind: str, meter: Meter) -> list[Auxiliary]:
    found = auxiliaries(view, kind, meter, workflow_name=view.workflow_name, scope=view.scope)
    return [item async for item in found]


def _groups(items: list[Auxiliary]) -> Iterator[list[Auxiliary]]:
    """Yield items that one batch can delete: of one logical partition, not too many."""
    for _, same in groupby(sorted(items, key=_workflow), key=_workflow):
        together = list(same)
        for start in range(0, len(together), _AT_A_TIME):
            yield together[start : start + _AT_A_TIME]


def _workflow(item: Auxiliary) -> str:
    return item.place.workflow_name


async def _delete_together(view: CheckpointView, items: list[Auxiliary], meter: Meter) -> int:
    """Delete items in one batch; return how many there were. One that is gone already makes it one request an item."""
    gateway, key = view.backend.gateway, full_key(view.tenant, _workflow(items[0]))
    unknown_before = meter.unknown_outcomes
    refusal = await gateway.batch(key, [Delete(item.item_id) for item in items], meter)
    lost = meter.unknown_outcomes > unknown_before
    deleted = 0 if refusal is None else sum([await gateway.delete(key, item.item_id, meter) for item in items])
    # A refused repeat that finds nothing to delete has found the work of the try whose answer was lost.
    return len(items) if refusal is None or (lost and not deleted) else deleted
