"""Values to item dicts and back: field names, schema version and the size of an item.

Reading is strict: an item that lacks a field, has one of another kind or is of an unknown schema is `UnreadableError`,
never a default. Absent values are left out, never null (the service refuses ``ttl: null``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any, Final, cast

from ._fields import field, name, optional, texts
from ._identity import (
    Scope,
    TenantId,
    checkpoint_item_id,
    keyframe_guard_id,
    keyframe_item_id,
    upload_guard_id,
)
from ._items import (
    NEVER,
    SCHEMA,
    check_type,
    data_fields,
    item_base,
    payload_fields,
    read_data,
    read_payload,
    read_upload,
    up_to_max,
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

CHECKPOINT_TYPE: Final = "checkpoint"
KEYFRAME_TYPE: Final = "keyframe"
KEYFRAME_GUARD_TYPE: Final = "keyframe_guard"

MAX_HEADER_BYTES: Final = 512 * 1024
"""Bytes of a checkpoint's item as JSON in UTF-8, without its data; the batch that it is written in takes 2 MB
(https://learn.microsoft.com/azure/cosmos-db/concepts-limits), and has to hold that data and a keyframe too."""


REUSE_SECONDS: Final = 24 * 3600
"""Seconds in which new checkpoints may refer to a keyframe: the life of its guard."""


_MARGIN_SECONDS: Final = 3600
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
        **item_base(checkpoint_item_id(key.scope, key.checkpoint_id), CHECKPOINT_TYPE, key.place, ttl),
        "checkpoint_id": key.checkpoint_id,
        "sort_key": sort_key,
        "timestamp": header.timestamp,
        "iteration_count": header.iteration_count,
        "written_by": _WRITTEN_BY,
        "payload": {**payload_fields(payload), **data_fields(payload.data, upload)},
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
        **item_base(keyframe_item_id(keyframe.id), KEYFRAME_TYPE, place, keyframe_ttl(keyframe)),
        "keyframe_id": keyframe.id,
        "size": keyframe.size,
        "digest": data_digest,
        **data_fields(keyframe.data, upload),
    }
    if keyframe.serves_ttl is not None:
        item["serves_ttl"] = keyframe.serves_ttl
    return item


def keyframe_guard_item(place: Place, keyframe_id: str) -> dict[str, Any]:
    """Return the guard of a keyframe."""
    base = item_base(keyframe_guard_id(keyframe_id), KEYFRAME_GUARD_TYPE, place, REUSE_SECONDS)
    return {**base, "keyframe_id": keyframe_id}


def keyframe_ttl(keyframe: Keyframe) -> int:
    """Return the ``ttl`` of a keyframe's item: it outlives the last checkpoint that may come to refer to it."""
    if keyframe.serves_ttl is None:
        return NEVER
    return up_to_max(REUSE_SECONDS + keyframe.serves_ttl + _MARGIN_SECONDS)


def belongs_to(item: Mapping[str, Any], tenant: TenantId, scope: Scope) -> bool:
    """Return whether an item is one of this tenant and scope; to be asked of every item read, before anything else."""
    return item.get("tenant_id") == tenant.value and item.get("scope") == scope.value


def read_checkpoint(item: Mapping[str, Any], tenant: TenantId, scope: Scope) -> StoredCheckpoint:
    """Return what is in a checkpoint item that `belongs_to` this tenant and scope.

    Raises:
        UnreadableError: It is no checkpoint item of a schema this version knows.
    """
    check_type(item, CHECKPOINT_TYPE)
    key = CheckpointKey(tenant, scope, field(item, "workflow_name", str), field(item, "checkpoint_id", str))
    fields = cast("Mapping[str, Any]", field(item, "payload", dict))
    upload = read_upload(fields)
    return StoredCheckpoint(
        header=_read_header(item, key),
        sort_key=field(item, "sort_key", str),
        payload=read_payload(fields, read_data(fields) if upload is None else b""),
        upload=upload,
        ttl=optional(item, "ttl", int),
        etag=field(item, "_etag", str),
    )


def read_keyframe(item: Mapping[str, Any], keyframe_id: str) -> StoredKeyframe:
    """Return what is in a keyframe item that `belongs_to` the tenant and scope that ask.

    Raises:
        UnreadableError: It is no keyframe item of a schema this version knows.
    """
    check_type(item, KEYFRAME_TYPE)
    upload = read_upload(item)
    serves_ttl = optional(item, "serves_ttl", int)
    data = read_data(item) if upload is None else b""
    keyframe = Keyframe(keyframe_id, field(item, "size", int), data, serves_ttl)
    if keyframe.size <= 0:
        raise UnreadableError("a keyframe is empty")
    return StoredKeyframe(keyframe, upload, field(item, "digest", str))


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
