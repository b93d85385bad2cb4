"""Deleting on purpose: one checkpoint, or everything of a scope.

A scope is erased in the order that keeps it whole for whoever writes to it at the same time: guards, so that nothing
new refers to what is there; checkpoints; then keyframes and parts, each by `_collecting`, which spares what a
checkpoint that came in between refers to.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Final

from ._auxiliaries import auxiliaries, by_upload
from ._collecting import collect_keyframe, collect_parts
from ._documents import CHECKPOINT_TYPE, KEYFRAME_GUARD_TYPE, KEYFRAME_TYPE
from ._gateway import Delete, Item, Meter
from ._identity import full_key
from ._items import PART_TYPE, UPLOAD_GUARD_TYPE, read_upload
from ._records import Auxiliary, Place, UnreadableError
from ._uploads import Uploads, part_ids
from ._view import CheckpointView
from .errors import CheckpointConflictError, CheckpointCorruptError, CosmosStateError
from .typing import EraseProgress

_NOT_FOUND: Final = 404
_MAX_TRIES: Final = 5
_AT_A_TIME: Final = 20
"""Items deleted in one batch: some 120 RU at once, of the 400 RU a second that the smallest container has."""


async def delete_checkpoint(view: CheckpointView, item: Item, meter: Meter) -> bool:
    """Delete the item of a checkpoint, then its parts; return False when it was not there any more.

    Raises:
        CheckpointConflictError: Other writers kept replacing it.
        ServiceError: The service refused, throttled or could not be reached.
    """
    key = full_key(view.tenant, item["workflow_name"])
    for _ in range(_MAX_TRIES):
        status = await _delete_version(view, key, item["id"], item["_etag"], meter)
        if status is None:
            await _remove_parts(view, item, meter)
            return True
        again = None if status == _NOT_FOUND else await view.backend.gateway.read(key, item["id"], meter)
        if again is None:
            return False
        item = again
    raise CheckpointConflictError(
        "other writers kept replacing this checkpoint", **view.which(item["workflow_name"], item.get("checkpoint_id"))
    )


async def erase(
    view: CheckpointView, meter: Meter, progress: Callable[[EraseProgress], object] | None
) -> EraseProgress:
    """Delete everything of a scope, in all workflows or in the one that the view is narrowed to.

    Raises:
        CheckpointCorruptError: Items are left that this version cannot read; all others are deleted.
        ServiceError: The service refused, throttled or could not be reached; a repeat goes on.
    """
    return await _Erasure(view, meter, progress).run()


class _Erasure:
    """One erasure, and how far it is."""

    def __init__(self, view: CheckpointView, meter: Meter, progress: Callable[[EraseProgress], object] | None) -> None:
        self._view, self._meter, self._progress = view, meter, progress
        self._done, self._unreadable = EraseProgress(), 0

    async def run(self) -> EraseProgress:
        view, meter, gateway = self._view, self._meter, self._view.backend.gateway
        for guards in _groups([*await self._listed(KEYFRAME_GUARD_TYPE), *await self._listed(UPLOAD_GUARD_TYPE)]):
            self._tell(guards=await _delete_together(view, guards, meter))
        for checkpoints in _groups(await self._listed(CHECKPOINT_TYPE)):
            self._tell(checkpoints=await _delete_together(view, checkpoints, meter))
        for keyframe in await self._listed(KEYFRAME_TYPE):
            self._tell(keyframes=await collect_keyframe(gateway, keyframe, meter))
        for parts in by_upload(await self._listed(PART_TYPE)):
            self._tell(uploads=await collect_parts(gateway, parts, meter))
        if self._unreadable:
            raise CheckpointCorruptError(
                f"{self._unreadable} items of this scope cannot be read by this version and were left", **view.which()
            )
        return self._done

    async def _listed(self, kind: str) -> list[Auxiliary]:
        view = self._view
        found = auxiliaries(view, kind, self._meter, workflow_name=view.workflow_name, scope=view.scope)
        items = [item async for item in found]
        self._unreadable += items.count(None)
        return [item for item in items if item is not None]

    def _tell(self, *, guards: int = 0, checkpoints: int = 0, keyframes: int = 0, uploads: int = 0) -> None:
        done = self._done
        self._done = EraseProgress(
            done.guards + guards, done.checkpoints + checkpoints, done.keyframes + keyframes, done.uploads + uploads
        )
        if self._progress is not None:
            self._progress(self._done)


def _groups(items: list[Auxiliary]) -> Iterator[list[Auxiliary]]:
    """Yield items that one batch can delete: of one logical partition, not too many."""
    for _, same in groupby(sorted(items, key=_workflow), key=_workflow):
        together = list(same)
        for start in range(0, len(together), _AT_A_TIME):
            yield together[start : start + _AT_A_TIME]


def _workflow(item: Auxiliary) -> str:
    return item.place.workflow_name


async def _delete_together(view: CheckpointView, items: list[Auxiliary], meter: Meter) -> int:
    """Delete items in one batch; return how many there were. One that has changed makes it one request an item.

    What was saved anew since it was listed is left: nobody who goes on saving loses anything.
    """
    gateway, key = view.backend.gateway, full_key(view.tenant, _workflow(items[0]))
    unknown_before = meter.unknown_outcomes
    refusal = await gateway.batch(key, [Delete(item.item_id, item.etag) for item in items], meter)
    if refusal is None:
        return len(items)
    lost = meter.unknown_outcomes > unknown_before
    statuses = [await _delete_version(view, key, item.item_id, item.etag, meter) for item in items]
    # A refused repeat that finds nothing to delete has found the work of the try whose answer was lost.
    return len(items) if lost and None not in statuses else statuses.count(None)


async def _delete_version(view: CheckpointView, key: list[str], item_id: str, etag: str, meter: Meter) -> int | None:
    """Delete one version of an item; return the status of a refusal, None when it is gone.

    Only this version: a repeat that comes late would otherwise meet what was saved under the id since.
    """
    unknown_before = meter.unknown_outcomes
    refusal = await view.backend.gateway.batch(key, [Delete(item_id, etag)], meter)
    # After a lost answer a refusal is taken for this delete's own work: gone, or gone and saved anew since.
    return None if refusal is None or meter.unknown_outcomes > unknown_before else refusal.status


async def _remove_parts(view: CheckpointView, item: Item, meter: Meter) -> None:
    """Delete the parts of a checkpoint that is gone.

    What it says of them may be unreadable, as all of it may be; what is not deleted here is swept later.
    """
    with contextlib.suppress(KeyError, TypeError, UnreadableError, CosmosStateError):
        made = read_upload(item["payload"])
        if made is not None:
            place = Place(view.tenant, view.scope, item["workflow_name"])
            await Uploads(view.backend.gateway, place, meter).remove(part_ids(made))
