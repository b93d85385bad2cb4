"""Values to item dicts and back: field names, schema version and the size of an item.

Reading is strict: an item that lacks a field, has one of another kind or is of an unknown schema is `UnreadableError`,
never a default. Absent values are left out, never null (the service refuses ``ttl: null``).
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any, Final, TypeVar, cast

from ._identity import Scope, TenantId, checkpoint_item_id
from ._records import CheckpointHeader, CheckpointKey, EncodedPayload, StoredCheckpoint, UnreadableError

SCHEMA: Final = 1
CHECKPOINT_TYPE: Final = "checkpoint"

MAX_ITEM_BYTES: Final = 2 * 1024 * 1024
"""Bytes of an item's JSON in UTF-8; the service answers 413 over it
(https://learn.microsoft.com/azure/cosmos-db/concepts-limits)."""

_MAX_PENDING_IDS: Final = 100
_WRITTEN_BY: Final = {
    "sdk": version("cosmos-workflow-state"),
    "agent_framework": version("agent-framework-core"),
}

_Kind = TypeVar("_Kind")


def checkpoint_item(header: CheckpointHeader, sort_key: str, payload: EncodedPayload) -> dict[str, Any]:
    """Return the item of a checkpoint whose payload lies within it."""
    key = header.key
    item: dict[str, Any] = {
        "id": checkpoint_item_id(key.scope, key.checkpoint_id),
        "tenant_id": key.tenant.value,
        "workflow_name": key.workflow_name,
        "type": CHECKPOINT_TYPE,
        "schema": SCHEMA,
        "scope": key.scope.value,
        "checkpoint_id": key.checkpoint_id,
        "sort_key": sort_key,
        "timestamp": header.timestamp,
        "iteration_count": header.iteration_count,
        "graph_signature_hash": header.graph_signature_hash,
        "version": header.version,
        "written_by": _WRITTEN_BY,
        "payload": _payload_fields(payload),
    }
    if header.previous_checkpoint_id is not None:
        item["previous_checkpoint_id"] = header.previous_checkpoint_id
    if header.pending_request_ids:
        item["pending_request_ids"] = list(header.pending_request_ids[:_MAX_PENDING_IDS])
        item["pending_request_count"] = len(header.pending_request_ids)
    return item


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
    if item.get("type") != CHECKPOINT_TYPE or item.get("schema") != SCHEMA:
        raise UnreadableError("the item is not a checkpoint of a schema that this version knows")
    key = CheckpointKey(tenant, scope, _field(item, "workflow_name", str), _field(item, "checkpoint_id", str))
    return StoredCheckpoint(
        header=_read_header(item, key),
        sort_key=_field(item, "sort_key", str),
        payload=_read_payload(cast("Mapping[str, Any]", _field(item, "payload", dict))),
        etag=_field(item, "_etag", str),
    )


def _read_header(item: Mapping[str, Any], key: CheckpointKey) -> CheckpointHeader:
    parent, pending = "previous_checkpoint_id", "pending_request_ids"
    return CheckpointHeader(
        key=key,
        previous_checkpoint_id=_field(item, parent, str) if parent in item else None,
        timestamp=_field(item, "timestamp", str),
        iteration_count=_field(item, "iteration_count", int),
        graph_signature_hash=_field(item, "graph_signature_hash", str),
        version=_field(item, "version", str),
        pending_request_ids=_texts(item, pending) if pending in item else (),
    )


def _payload_fields(payload: EncodedPayload) -> dict[str, Any]:
    return {
        "format": payload.format,
        "codecs": list(payload.codecs),
        "digest": payload.digest,
        "size": payload.size,
        "data": base64.b64encode(payload.data).decode("ascii"),
    }


def _read_payload(fields: Mapping[str, Any]) -> EncodedPayload:
    try:
        data = base64.b64decode(_field(fields, "data", str), validate=True)
    except (binascii.Error, ValueError):
        raise UnreadableError("the payload is not base64") from None
    return EncodedPayload(
        format=_field(fields, "format", str),
        codecs=_texts(fields, "codecs"),
        digest=_field(fields, "digest", str),
        size=_field(fields, "size", int),
        data=data,
    )


def _texts(item: Mapping[str, Any], name: str) -> tuple[str, ...]:
    values = cast("Sequence[Any]", _field(item, name, list))
    if not all(isinstance(value, str) for value in values):
        raise UnreadableError(f"field {name} of the item does not hold texts")
    return tuple(values)


def _field(item: Mapping[str, Any], name: str, kind: type[_Kind]) -> _Kind:
    value = item.get(name)
    if not isinstance(value, kind) or isinstance(value, bool):  # a bool is an int to Python, not to JSON
        raise UnreadableError(f"field {name} of the item is missing or not {kind.__name__}")
    return value
