"""Values to item dicts and back: field names, schema version and the size of an item.

Reading is strict: an item that lacks a field, has one of another kind or is of an unknown schema is `UnreadableError`,
never a default. Absent values are left out, never null (the service refuses ``ttl: null``).
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any, Final, cast

from ._fields import field, name, optional, texts
from ._identity import (
    Scope,
    TenantId,
    checkpoint_item_id,
    keyframe_guard_id,
    keyframe_item_id,
    part_item_id,
    upload_guard_id,
)
from ._records import (
    Auxiliary,
    CheckpointHeader,
    CheckpointKey,
    EncodedPayload,
    Keyframe,
    Place,
    StoredCheckpoint,
    StoredKeyframe,
    UnreadableError,
    Upload,
)
from .settings import MAX_OPERATION_TIMEOUT, MAX_TTL

SCHEMA: Final = 1
CHECKPOINT_TYPE: Final = "checkpoint"
KEYFRAME_TYPE: Final = "keyframe"
KEYFRAME_GUARD_TYPE: Final = "keyframe_guard"
PART_TYPE: Final = "part"
UPLOAD_GUARD_TYPE: Final = "upload_guard"

MAX_HEADER_BYTES: Final = 512 * 1024
"""Bytes of a checkpoint's item as JSON in UTF-8, without its data; the batch that it is written in takes 2 MB
(https://learn.microsoft.com/azure/cosmos-db/concepts-limits), and has to hold that data and a keyframe too."""

PART_BYTES: Final = 290_000
"""Bytes in one part, and the most that an item holds itself: in base64, with its other fields, under 400 KB. An item
may have 2 MB, but the service throttles by the second, and 400 KB cost some 200 RU at once."""

REUSE_SECONDS: Final = 24 * 3600
"""Seconds in which new checkpoints may refer to a keyframe: the life of its guard."""

UPLOAD_SECONDS: Final = int(MAX_OPERATION_TIMEOUT)
"""Seconds in which an upload can be committed: the life of its guard."""

NEVER: Final = -1
"""The ``ttl`` of an item that does not expire, whatever the container's default."""

_MARGIN_SECONDS: Final = 3600
_MAX_PARTS: Final = 1000  # of 64 MiB there are 232
_MAX_PENDING_IDS: Final = 100
_MAX_PENDING_BYTES: Final = 16 * 1024
_WRITTEN_BY: Final = f"{version('cosmos-workflow-state')}/{version('agent-framework-core')}"


def checkpoint_item(
    header: CheckpointHeader,
    sort_key: str,
    payload: EncodedPayload,
    upload: Upload | None = None,
    ttl: int | None = None,
) -> dict[str, Any]:
    """Return the item of a checkpoint.

    Args:
        header: The queryable part.
        sort_key: Its place in the order.
        payload: The encoded state.
        upload: Where its data lies, None for within the item.
        ttl: Seconds until it expires, None for never.
    """
    key = header.key
    item: dict[str, Any] = {
        **_base(checkpoint_item_id(key.scope, key.checkpoint_id), CHECKPOINT_TYPE, key.place, ttl),
        "checkpoint_id": key.checkpoint_id,
        "sort_key": sort_key,
        "timestamp": header.timestamp,
        "iteration_count": header.iteration_count,
        "written_by": _WRITTEN_BY,
        "payload": {**_payload_fields(payload), **_data_fields(payload.data, upload)},
    }
    if header.previous_checkpoint_id is not None:
        item["previous_checkpoint_id"] = header.previous_checkpoint_id
    if header.pending_request_ids:
        item["pending_request_ids"] = _bounded(header.pending_request_ids)
        item["pending_request_count"] = len(header.pending_request_ids)
    return item


def keyframe_item(place: Place, keyframe: Keyframe, data_digest: str, upload: Upload | None) -> dict[str, Any]:
    """Return the item of a keyframe, which outlives every checkpoint that may refer to it.

    Args:
        place: Where it lives.
        keyframe: What it holds.
        data_digest: ``algorithm:hex`` of its data.
        upload: Where its data lies, None for within the item.
    """
    item = {
        **_base(keyframe_item_id(keyframe.id), KEYFRAME_TYPE, place, keyframe_ttl(keyframe)),
        "keyframe_id": keyframe.id,
        "size": keyframe.size,
        "digest": data_digest,
        **_data_fields(keyframe.data, upload),
    }
    if keyframe.serves_ttl is not None:
        item["serves_ttl"] = keyframe.serves_ttl
    return item


def keyframe_guard_item(place: Place, keyframe_id: str) -> dict[str, Any]:
    """Return the guard of a keyframe."""
    base = _base(keyframe_guard_id(keyframe_id), KEYFRAME_GUARD_TYPE, place, REUSE_SECONDS)
    return {**base, "keyframe_id": keyframe_id}


def upload_guard_item(place: Place, write_id: str) -> dict[str, Any]:
    """Return the guard of an upload that is under way."""
    return {**_base(upload_guard_id(write_id), UPLOAD_GUARD_TYPE, place, UPLOAD_SECONDS), "write_id": write_id}


def keyframe_ttl(keyframe: Keyframe) -> int:
    """Return the ``ttl`` of a keyframe's item: it outlives the last checkpoint that may come to refer to it."""
    if keyframe.serves_ttl is None:
        return NEVER
    return _up_to_max(REUSE_SECONDS + keyframe.serves_ttl + _MARGIN_SECONDS)


def part_items(place: Place, upload: Upload, owner: str, data: bytes, ttl: int) -> Iterator[dict[str, Any]]:
    """Yield the items of an upload's parts.

    Args:
        place: Where they live.
        upload: Which upload it is.
        owner: Id of the item that will name the upload.
        data: All of the bytes.
        ttl: Seconds until the owner expires, `NEVER` for never; it is written up to `UPLOAD_SECONDS` later.
    """
    life = NEVER if ttl == NEVER else _up_to_max(ttl + UPLOAD_SECONDS)
    for number in range(upload.parts):
        piece = data[number * PART_BYTES : (number + 1) * PART_BYTES]
        part_id = part_item_id(upload.write_id, number)
        yield {
            **_base(part_id, PART_TYPE, place, life),
            "write_id": upload.write_id,
            "owner": owner,
            "data": _base64(piece),
        }


def parts_of(data: bytes) -> int:
    """Return how many parts bytes need: 0 when an item can hold them itself."""
    return 0 if len(data) <= PART_BYTES else -(-len(data) // PART_BYTES)


def item_bytes(item: Mapping[str, Any]) -> int:
    """Return the bytes of an item as it goes over the wire."""
    return len(json.dumps(item, ensure_ascii=False, separators=(",", ":")).encode())


def belongs_to(item: Mapping[str, Any], tenant: TenantId, scope: Scope) -> bool:
    """Return whether an item is one of this tenant and scope; to be asked of every item read, before anything else."""
    return item.get("tenant_id") == tenant.value and item.get("scope") == scope.value


def read_checkpoint(item: Mapping[str, Any], tenant: TenantId, scope: Scope) -> StoredCheckpoint:
    """Return what is in a checkpoint item that `belongs_to` this tenant and scope.

    Raises:
        UnreadableError: It is no checkpoint item of a schema this version knows.
    """
    _check_type(item, CHECKPOINT_TYPE)
    key = CheckpointKey(tenant, scope, field(item, "workflow_name", str), field(item, "checkpoint_id", str))
    fields = cast("Mapping[str, Any]", field(item, "payload", dict))
    upload = read_upload(fields)
    return StoredCheckpoint(
        header=_read_header(item, key),
        sort_key=field(item, "sort_key", str),
        payload=_read_payload(fields, _read_data(fields) if upload is None else b""),
        upload=upload,
        ttl=optional(item, "ttl", int),
        etag=field(item, "_etag", str),
    )


def read_keyframe(item: Mapping[str, Any], keyframe_id: str) -> StoredKeyframe:
    """Return what is in a keyframe item that `belongs_to` the tenant and scope that ask.

    Raises:
        UnreadableError: It is no keyframe item of a schema this version knows.
    """
    _check_type(item, KEYFRAME_TYPE)
    upload = read_upload(item)
    serves_ttl = optional(item, "serves_ttl", int)
    data = _read_data(item) if upload is None else b""
    keyframe = Keyframe(keyframe_id, field(item, "size", int), data, serves_ttl)
    if keyframe.size <= 0:
        raise UnreadableError("a keyframe is empty")
    return StoredKeyframe(keyframe, upload, field(item, "digest", str))


def read_part(item: Mapping[str, Any], upload: Upload) -> bytes:
    """Return the bytes in one part of an upload.

    Raises:
        UnreadableError: It is no part of this upload, of a schema this version knows.
    """
    _check_type(item, PART_TYPE)
    if item.get("write_id") != upload.write_id:
        raise UnreadableError("a part belongs to another upload")
    return _read_data(item)


def names_upload(item: Mapping[str, Any], write_id: str) -> bool:
    """Return whether a keyframe's or checkpoint's item has its data in this upload."""
    payload = item.get("payload")
    inner = cast("Mapping[str, Any]", payload if isinstance(payload, dict) else {})
    return write_id in {item.get("write_id"), inner.get("write_id")}


def read_auxiliary(item: Mapping[str, Any], tenant: TenantId) -> Auxiliary:
    """Return what is in the row of an auxiliary item of a tenant.

    Raises:
        UnreadableError: It is no such row, or another tenant's.
    """
    if item.get("schema") != SCHEMA or item.get("tenant_id") != tenant.value:
        raise UnreadableError("an item is not of this tenant and of a schema that this version knows")
    found = Auxiliary(
        item_id=name(item, "id"),
        place=Place(tenant, Scope(field(item, "scope", str)), field(item, "workflow_name", str)),
        keyframe_id=name(item, "keyframe_id") if "keyframe_id" in item else "",
        write_id=name(item, "write_id") if "write_id" in item else "",
        parts=optional(item, "parts", int) or 0,
        owner=name(item, "owner") if "owner" in item else "",
        etag=field(item, "_etag", str),
    )
    named = {keyframe_item_id(found.keyframe_id), keyframe_guard_id(found.keyframe_id), upload_guard_id(found.write_id)}
    # What is deleted goes by the fields, what it is deleted by is the id: both have to be of the same thing.
    if found.item_id not in named and not found.item_id.startswith(("cp:", f"pt:{found.write_id}:")):
        raise UnreadableError("an item has an id that does not belong to what it says it is")
    return found


def read_upload(fields: Mapping[str, Any]) -> Upload | None:
    """Return where the data of a checkpoint's payload, or of a keyframe, lies; None for within the item.

    Raises:
        UnreadableError: What it says is of another kind.
    """
    if "write_id" not in fields:
        return None
    parts = field(fields, "parts", int)
    if not 0 < parts <= _MAX_PARTS:
        raise UnreadableError("an item names an impossible number of parts")
    return Upload(name(fields, "write_id"), parts)


def _base(item_id: str, kind: str, place: Place, ttl: int | None) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "id": item_id,
        "tenant_id": place.tenant.value,
        "workflow_name": place.workflow_name,
        "type": kind,
        "schema": SCHEMA,
        "scope": place.scope.value,
    }
    if ttl is not None:
        fields["ttl"] = ttl
    return fields


def _up_to_max(ttl: int) -> int:
    return ttl if ttl <= MAX_TTL else NEVER


def _bounded(pending_request_ids: Sequence[str]) -> list[str]:
    """Return as many ids as a header has room for."""
    kept: list[str] = []
    room = _MAX_PENDING_BYTES
    for request_id in pending_request_ids[:_MAX_PENDING_IDS]:
        room -= len(request_id.encode("utf-8", "surrogatepass"))
        if room < 0:
            break
        kept.append(request_id)
    return kept


def _read_header(item: Mapping[str, Any], key: CheckpointKey) -> CheckpointHeader:
    pending = "pending_request_ids"
    return CheckpointHeader(
        key=key,
        previous_checkpoint_id=optional(item, "previous_checkpoint_id", str),
        timestamp=field(item, "timestamp", str),
        iteration_count=field(item, "iteration_count", int),
        pending_request_ids=texts(item, pending) if pending in item else (),
    )


def _payload_fields(payload: EncodedPayload) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "format": payload.format,
        "codecs": list(payload.codecs),
        "digest": payload.digest,
        "size": payload.size,
    }
    if payload.keyframe_id is not None:
        fields |= {"keyframe": payload.keyframe_id, "spent": payload.spent}
    return fields


def _data_fields(data: bytes, upload: Upload | None) -> dict[str, Any]:
    if upload is None:
        return {"data": _base64(data)}
    return {"write_id": upload.write_id, "parts": upload.parts, "stored": 4 * -(-len(data) // 3)}


def _read_payload(fields: Mapping[str, Any], data: bytes) -> EncodedPayload:
    keyframe_id = name(fields, "keyframe") if "keyframe" in fields else None
    return EncodedPayload(
        format=field(fields, "format", str),
        codecs=texts(fields, "codecs"),
        digest=field(fields, "digest", str),
        size=field(fields, "size", int),
        data=data,
        keyframe_id=keyframe_id,
        spent=0 if keyframe_id is None else field(fields, "spent", int),
    )


def _read_data(fields: Mapping[str, Any]) -> bytes:
    try:
        return base64.b64decode(field(fields, "data", str), validate=True)
    except (binascii.Error, ValueError):
        raise UnreadableError("the data of an item is not base64") from None


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _check_type(item: Mapping[str, Any], kind: str) -> None:
    if item.get("type") != kind or item.get("schema") != SCHEMA:
        raise UnreadableError(f"an item is not a {kind} of a schema that this version knows")
