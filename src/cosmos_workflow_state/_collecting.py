"""Deleting what nothing refers to any more, so that nothing which may still be referred to is ever deleted.

The proof, of keyframes as of uploads: whoever commits a reference needs the guard to be there, in the same batch. The
collector takes the guard away in a batch of its own. The service orders the batches of a logical partition, so a
reference is committed either before, and the question that is asked afterwards finds it, or not at all. The guard is
written and deleted in that batch, which is therefore a write also where the guard had expired: its session token is
later than every batch that still found the guard. No clock and no lock is in the proof; it needs session consistency
and one region that is written to, see `Gateway.is_sequential`.
"""

from __future__ import annotations

from . import _queries
from ._auxiliaries import Parts
from ._documents import keyframe_guard_item
from ._gateway import Delete, Gateway, Item, Meter, Upsert
from ._items import names_upload, upload_guard_item
from ._records import AnyPlace, Auxiliary, Upload
from ._uploads import Uploads, part_ids


async def take_away(gateway: Gateway, place: AnyPlace, guard: Item, meter: Meter) -> None:
    """Delete a guard, there or not, in a batch that is always a write; see the proof above.

    Raises:
        ServiceError: The service refused, throttled or could not be reached.
    """
    await gateway.batch(place.key, [Upsert(guard), Delete(guard["id"])], meter)


async def collect_keyframe(gateway: Gateway, keyframe: Auxiliary, meter: Meter) -> bool:
    """Delete a keyframe and its parts unless a checkpoint refers to it; return whether it was deleted.

    One that is still referred to loses its guard: it is not referred to anew, and a later sweep sees it again.

    Raises:
        ServiceError: The service refused, throttled or could not be reached; a later sweep goes on.
    """
    place, keyframe_id = keyframe.place, keyframe.keyframe_id
    key = place.key
    await take_away(gateway, place, keyframe_guard_item(place, keyframe_id), meter)
    parameters = _queries.references(place.tenant, place.workflow_name, keyframe_id)
    if [found async for found in gateway.query(_queries.REFERENCES, parameters, key, meter)]:
        return False
    # This version only: a commit that arrives late may have brought it back, with a guard and a reference of its own.
    unknown_before = meter.unknown_outcomes
    refusal = await gateway.batch(key, [Delete(keyframe.item_id, keyframe.etag)], meter)
    deleted = refusal is None or meter.unknown_outcomes > unknown_before
    if deleted and keyframe.write_id:
        made = Upload(keyframe.write_id, keyframe.parts)
        await Uploads(gateway, place, meter).remove(part_ids(made))
    return deleted


async def collect_parts(gateway: Gateway, parts: Parts, meter: Meter) -> bool:
    """Delete the parts of an upload unless what they were written for names them; return whether they were deleted.

    An upload that is still under way can no longer be committed afterwards; its save writes the parts anew.

    Raises:
        ServiceError: The service refused, throttled or could not be reached; a later sweep goes on.
    """
    place, write_id = parts.place, parts.write_id
    await take_away(gateway, place, upload_guard_item(place, write_id), meter)
    owner = await gateway.read(place.key, parts.owner, meter)
    if owner is not None and names_upload(owner, write_id):
        return False
    await Uploads(gateway, place, meter).remove(parts.item_ids)
    return True
