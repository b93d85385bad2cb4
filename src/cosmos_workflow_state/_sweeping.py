"""A sweep: finding what nothing refers to any more, in all scopes of a tenant's workflows, and collecting it.

Looking for candidates costs a few queries and may be wrong in either direction: what is deleted is decided by
`_collecting`. So a keyframe that is in use keeps its guard, and an upload that is under way is left alone.
"""

from __future__ import annotations

import contextlib
from typing import Final

from . import _queries
from ._auxiliaries import auxiliaries, by_upload
from ._collecting import collect_keyframe, collect_parts
from ._documents import CHECKPOINT_TYPE, KEYFRAME_TYPE
from ._gateway import Meter
from ._identity import full_key
from ._items import PART_TYPE, UPLOAD_GUARD_TYPE
from ._logging import SWEEP
from ._records import Auxiliary
from ._view import CheckpointView
from .errors import CosmosStateError, ProvisioningError
from .typing import SweepReport

_AT_MOST: Final = 20
"""Of each kind that a sweep after a delete collects, which somebody waits for; the next delete goes on."""


async def sweep_if_due(view: CheckpointView, workflow_name: str) -> None:
    """Sweep a workflow after something of it was deleted, once an hour; that this fails is an event and no more."""
    if not view.backend.sweeps.take(view.tenant, workflow_name):
        return
    meter = Meter()
    with contextlib.suppress(CosmosStateError):
        if await view.backend.gateway.is_sequential():
            async with view.operation(SWEEP, meter, workflow_name=workflow_name) as event:
                report = await sweep(view, meter, workflow_name=workflow_name, at_most=_AT_MOST)
                event.add(keyframes=report.keyframes, uploads=report.uploads)
                if _AT_MOST in {report.keyframes, report.uploads}:
                    view.backend.sweeps.give_back(view.tenant, workflow_name)


async def sweep(
    view: CheckpointView, meter: Meter, *, workflow_name: str | None, at_most: int | None = None
) -> SweepReport:
    """Collect the keyframes and uploads that nothing refers to, of one workflow or of all of the tenant's.

    Args:
        view: Whose.
        meter: Counts what it costs.
        workflow_name: Of which workflow, None for all.
        at_most: How many of each are looked at, None for all.

    Raises:
        ProvisioningError: The account does not order reads after writes, so nothing can be known to be unused.
        ServiceError: The service refused, throttled or could not be reached; what is left is for the next sweep.
    """
    gateway = view.backend.gateway
    if not await gateway.is_sequential():
        raise ProvisioningError(
            "sweeping needs Session consistency (the account's default, and no other consistency_level for the client) "
            "and an account that is written to in one region: otherwise a keyframe that is in use may look unused"
        )
    # What is listed before the references are may have got its reference since, and is then found to have one.
    keyframes = await _listed(view, KEYFRAME_TYPE, workflow_name, meter)
    parts = await _listed(view, PART_TYPE, workflow_name, meter)
    under_way = {guard.write_id for guard in await _listed(view, UPLOAD_GUARD_TYPE, workflow_name, meter)}
    keyframe_ids, write_ids = await _referred_to(
        view, {found.place.workflow_name for found in keyframes + parts}, meter
    )
    unused = [keyframe for keyframe in keyframes if keyframe.keyframe_id not in keyframe_ids]
    in_use = write_ids | under_way | {keyframe.write_id for keyframe in keyframes}
    loose = [upload for upload in by_upload(parts) if upload.write_id not in in_use]
    return SweepReport(
        keyframes=sum([await collect_keyframe(gateway, keyframe, meter) for keyframe in unused[:at_most]]),
        uploads=sum([await collect_parts(gateway, upload, meter) for upload in loose[:at_most]]),
    )


async def _listed(view: CheckpointView, kind: str, workflow_name: str | None, meter: Meter) -> list[Auxiliary]:
    found = auxiliaries(view, kind, meter, workflow_name=workflow_name, scope=None)
    return [item async for item in found if item is not None]


async def _referred_to(view: CheckpointView, names: set[str], meter: Meter) -> tuple[set[object], set[object]]:
    """Return the ids of the keyframes and uploads that the checkpoints of some workflows refer to."""
    keyframe_ids: set[object] = set()
    write_ids: set[object] = set()
    for name in sorted(names):
        parameters = _queries.of_type(CHECKPOINT_TYPE, view.tenant, name, None)
        key = full_key(view.tenant, name)
        async for row in view.backend.gateway.query(_queries.REFERRED_TO, parameters, key, meter):
            keyframe_ids.add(row.get("keyframe"))
            write_ids.add(row.get("write_id"))
    return keyframe_ids, write_ids
