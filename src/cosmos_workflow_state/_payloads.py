"""The bytes of a stored checkpoint: its own data, the keyframe it is a difference against, and the parts of both."""

from __future__ import annotations

from dataclasses import replace

from ._codec import decode_payload, digest
from ._documents import read_keyframe
from ._gateway import Meter
from ._identity import full_key, keyframe_item_id
from ._keyframes import Base
from ._maf import FORMAT
from ._records import CheckpointKey, EncodedPayload, Keyframe, StoredCheckpoint, UnreadableError, Upload
from ._threads import off_loop
from ._uploads import MissingItemError, Uploads
from ._view import CheckpointView
from .settings import MAX_PAYLOAD_BYTES


async def fetch(view: CheckpointView, stored: StoredCheckpoint, meter: Meter) -> tuple[bytes, Base | None]:
    """Return the payload of a checkpoint before the codecs, and what its children may be stored against.

    No further request for a small one; one for a keyframe that this process does not remember; one for each part.

    Raises:
        CheckpointCorruptError: What is stored cannot be read.
        CheckpointTooLargeError: It is over this process's ``max_payload_bytes``.
        MissingItemError: The keyframe or a part is not there.
        ServiceError: The service refused, throttled or could not be reached.
    """
    key, payload = stored.header.key, stored.payload
    view.check_size(payload.size, view.backend.max_payload_bytes, key)
    with view.about(key.workflow_name, key.checkpoint_id):
        data = await _data(view, key, payload.data, stored.upload, meter)
        keyframe = None if payload.keyframe_id is None else await _keyframe(view, key, payload.keyframe_id, meter)
        work = payload.size if keyframe is None else max(payload.size, keyframe.size)
        raw = await off_loop(work, lambda: _undo(replace(payload, data=data), keyframe))
    return raw, None if keyframe is None else Base(keyframe, payload.spent)


async def _keyframe(view: CheckpointView, key: CheckpointKey, keyframe_id: str, meter: Meter) -> Keyframe:
    remembered = view.backend.keyframes.get(key.place, keyframe_id)
    if remembered is not None:
        return remembered
    partition = full_key(key.tenant, key.workflow_name)
    item = await view.backend.gateway.read(partition, keyframe_item_id(keyframe_id), meter)
    if item is None or not view.owns(item):
        raise MissingItemError
    found = read_keyframe(item, keyframe_id)
    # No limit of this process: the checkpoint that is asked for may be far smaller than the keyframe it refers to.
    if found.keyframe.size > MAX_PAYLOAD_BYTES:
        raise UnreadableError("a keyframe is larger than any checkpoint")
    data = await _data(view, key, found.keyframe.data, found.upload, meter)
    if digest(data) != found.digest:
        raise UnreadableError("a keyframe does not have the digest recorded for it")
    keyframe = replace(found.keyframe, data=data)
    view.backend.keyframes.keep(key.place, keyframe)
    return keyframe


async def _data(view: CheckpointView, key: CheckpointKey, inline: bytes, made: Upload | None, meter: Meter) -> bytes:
    return inline if made is None else await Uploads(view.backend.gateway, key.place, meter).read(made)


def _undo(payload: EncodedPayload, keyframe: Keyframe | None) -> bytes:
    if payload.format != FORMAT:
        raise UnreadableError("the payload has a format that this version does not know")
    return decode_payload(payload, keyframe)
