"""What items of every container have in common: who owns them, payloads, and the parts of what is too large.

Reading is strict: an item that lacks a field, has one of another kind or is of an unknown schema is `UnreadableError`,
never a default. Absent values are left out, never null (the service refuses ``ttl: null``).
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from ._fields import field, name, texts
from ._identity import part_item_id, upload_guard_id
from ._records import AnyPlace, EncodedPayload, UnreadableError, Upload
from .settings import MAX_OPERATION_TIMEOUT, MAX_TTL

SCHEMA: Final = 1
PART_TYPE: Final = "part"
UPLOAD_GUARD_TYPE: Final = "upload_guard"

PART_BYTES: Final = 290_000
"""Bytes in one part, and the most that an item holds itself: in base64, with its other fields, under 400 KB. An item
may have 2 MB, but the service throttles by the second, and 400 KB cost some 200 RU at once."""

UPLOAD_SECONDS: Final = int(MAX_OPERATION_TIMEOUT)
"""Seconds in which an upload can be committed: the life of its guard."""

NEVER: Final = -1
"""The ``ttl`` of an item that does not expire, whatever the container's default."""

_MAX_PARTS: Final = 1000  # of 64 MiB there are 232


def item_base(item_id: str, kind: str, place: AnyPlace, ttl: int | None) -> dict[str, Any]:
    """Return the fields that every item has.

    Args:
        item_id: Its id.
        kind: Its type.
        place: Where it lives.
        ttl: Seconds until it expires, `NEVER` for never, None for what the container says.
    """
    fields: dict[str, Any] = {"id": item_id, **place.fields, "type": kind, "schema": SCHEMA}
    if ttl is not None:
        fields["ttl"] = ttl
    return fields


def payload_fields(payload: EncodedPayload) -> dict[str, Any]:
    """Return the fields of an encoded payload, without its data."""
    fields: dict[str, Any] = {
        "format": payload.format,
        "codecs": list(payload.codecs),
        "digest": payload.digest,
        "size": payload.size,
    }
    if payload.keyframe_id is not None:
        fields |= {"keyframe": payload.keyframe_id, "spent": payload.spent}
    return fields


def data_fields(data: bytes, upload: Upload | None) -> dict[str, Any]:
    """Return the fields that hold bytes, or say where they lie."""
    if upload is None:
        return {"data": _base64(data)}
    return {"write_id": upload.write_id, "parts": upload.parts, "stored": 4 * -(-len(data) // 3)}


def check_type(item: Mapping[str, Any], kind: str) -> None:
    """Check that an item is of a type, and of a schema that this version knows.

    Raises:
        UnreadableError: It is not.
    """
    if item.get("type") != kind or item.get("schema") != SCHEMA:
        raise UnreadableError(f"an item is not a {kind} of a schema that this version knows")


def read_payload(fields: Mapping[str, Any], data: bytes) -> EncodedPayload:
    """Return the encoded payload in these fields.

    Raises:
        UnreadableError: A field is missing or of another kind.
    """
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


def read_data(fields: Mapping[str, Any]) -> bytes:
    """Return the bytes that an item holds itself.

    Raises:
        UnreadableError: They are missing or no base64.
    """
    try:
        return base64.b64decode(field(fields, "data", str), validate=True)
    except (binascii.Error, ValueError):
        raise UnreadableError("the data of an item is not base64") from None


def lies_in(item: Mapping[str, Any], place: AnyPlace) -> bool:
    """Return whether an item is one of this place; to be asked of every item read, before anything else."""
    return all(item.get(name) == value for name, value in place.fields.items())


def item_bytes(item: Mapping[str, Any]) -> int:
    """Return the bytes of an item as it goes over the wire."""
    return len(json.dumps(item, ensure_ascii=False, separators=(",", ":")).encode())


def parts_of(data: bytes) -> int:
    """Return how many parts bytes need: 0 when an item can hold them itself."""
    return 0 if len(data) <= PART_BYTES else -(-len(data) // PART_BYTES)


def part_items(place: AnyPlace, upload: Upload, owner: str, data: bytes, ttl: int) -> Iterator[dict[str, Any]]:
    """Yield the items of an upload's parts.

    Args:
        place: Where they live.
        upload: Which upload it is.
        owner: Id of the item that will name the upload.
        data: All of the bytes.
        ttl: Seconds until the owner expires, `NEVER` for never; it is written up to `UPLOAD_SECONDS` later.
    """
    life = NEVER if ttl == NEVER else up_to_max(ttl + UPLOAD_SECONDS)
    for number in range(upload.parts):
        piece = data[number * PART_BYTES : (number + 1) * PART_BYTES]
        part_id = part_item_id(upload.write_id, number)
        yield {
            **item_base(part_id, PART_TYPE, place, life),
            "write_id": upload.write_id,
            "owner": owner,
            "data": _base64(piece),
        }


def upload_guard_item(place: AnyPlace, write_id: str) -> dict[str, Any]:
    """Return the guard of an upload that is under way."""
    return {**item_base(upload_guard_id(write_id), UPLOAD_GUARD_TYPE, place, UPLOAD_SECONDS), "write_id": write_id}


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


def read_part(item: Mapping[str, Any], upload: Upload) -> bytes:
    """Return the bytes in one part of an upload.

    Raises:
        UnreadableError: It is no part of this upload, of a schema this version knows.
    """
    check_type(item, PART_TYPE)
    if item.get("write_id") != upload.write_id:
        raise UnreadableError("a part belongs to another upload")
    return read_data(item)


def names_upload(item: Mapping[str, Any], write_id: str) -> bool:
    """Return whether a keyframe's or checkpoint's item has its data in this upload."""
    payload = item.get("payload")
    inner = cast("Mapping[str, Any]", payload if isinstance(payload, dict) else {})
    return write_id in {item.get("write_id"), inner.get("write_id")}


def up_to_max(ttl: int) -> int:
    """Return seconds as the service takes them: what is over its limit is for ever."""
    return ttl if ttl <= MAX_TTL else NEVER


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
