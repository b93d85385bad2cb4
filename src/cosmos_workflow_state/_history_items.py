"""Histories to item dicts and back: a head for each session and source, and an item for each message.

Ids and the order: messages of a source are numbered, and the head sorts behind them all, so that one query, newest
first, finds the head and then the newest messages. Reading is strict, as in `_items`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeGuard, cast

from ._fields import field
from ._heads import MAX_SEQUENCE, Head, head_fields, read_head_fields
from ._identities import is_identity
from ._identity import accept_session_id, accept_source_id, encode_component
from ._items import check_type, data_fields, item_base, lies_in, payload_fields, read_data, read_payload, read_upload
from ._records import EncodedPayload, SessionPlace, UnreadableError, Upload
from .errors import InvalidIdentifierError

HEAD_TYPE: Final = "history_head"
MESSAGE_TYPE: Final = "message"

_MAX_SOURCE_BYTES: Final = 200
"""Encoded bytes of a source in an item id before it is hashed; an id has at most 1,023 bytes
(https://learn.microsoft.com/azure/cosmos-db/concepts-limits)."""

_TOKEN_DIGITS: Final = 32
_SEQUENCE_DIGITS: Final = len(str(MAX_SEQUENCE))
_AFTER_ALL_NUMBERS: Final = "~"


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """What is in a message item.

    Attributes:
        sequence: Its number in the history.
        identity: What it is told from others by.
        write_id: Of the batch that wrote it.
        payload: The encoded message; as read back, its ``data`` is empty where it lies in parts.
        upload: The parts, None when the item holds the data itself.
    """

    sequence: int
    identity: str
    write_id: str
    payload: EncodedPayload
    upload: Upload | None


def head_id(source_id: str) -> str:
    """Return the id of the head of a source."""
    return f"hd:{encode_component(source_id, _MAX_SOURCE_BYTES)}"


def message_id(source_id: str, sequence: int) -> str:
    """Return the id of a message of a source."""
    return f"ms:{encode_component(source_id, _MAX_SOURCE_BYTES)}:{sequence:0{_SEQUENCE_DIGITS}d}"


def order_of(source_id: str, sequence: int) -> str:
    """Return the place of a message in the order."""
    return f"{_token(source_id)}|{sequence:0{_SEQUENCE_DIGITS}d}"


def order_range(source_id: str) -> tuple[str, str]:
    """Return the range of the places of a source, its head's included; the end is not in it."""
    token = _token(source_id)
    return f"{token}|", f"{token}}}"


def head_item(place: SessionPlace, source_id: str, head: Head) -> dict[str, Any]:
    """Return the item of a head."""
    return {
        **item_base(head_id(source_id), HEAD_TYPE, place, head.ttl),
        "source_id": source_id,
        "sort_key": _head_order(source_id),
        **head_fields(head),
    }


def message_item(place: SessionPlace, source_id: str, message: StoredMessage, ttl: int | None) -> dict[str, Any]:
    """Return the item of a message.

    Args:
        place: Where it lives.
        source_id: Whose history it is in.
        message: What it holds.
        ttl: Seconds until it expires, None for never.
    """
    payload = message.payload
    return {
        **item_base(message_id(source_id, message.sequence), MESSAGE_TYPE, place, ttl),
        "source_id": source_id,
        "sequence": message.sequence,
        "sort_key": order_of(source_id, message.sequence),
        "identity": message.identity,
        "write_id": message.write_id,
        "payload": {**payload_fields(payload), **data_fields(payload.data, message.upload)},
    }


def is_number(value: object) -> TypeGuard[int]:
    """Return whether a message may have this number."""
    return isinstance(value, int) and 0 <= value <= MAX_SEQUENCE


def is_in_place(item: Mapping[str, Any]) -> bool:
    """Return whether a head or a message is where its source and number say, and so where a history is looked for."""
    try:
        source_id = accept_source_id(item.get("source_id", ""))
    except InvalidIdentifierError:
        return False
    if item.get("type") == HEAD_TYPE:
        return item.get("id") == head_id(source_id)
    sequence = item.get("sequence")
    if not is_number(sequence):
        return False
    place = message_id(source_id, sequence), order_of(source_id, sequence)
    return (item.get("id"), item.get("sort_key")) == place


def is_of(item: Mapping[str, Any], place: SessionPlace, source_id: str) -> bool:
    """Return whether an item is one of this session and source; to be asked of every item, before anything else."""
    return lies_in(item, place) and item.get("source_id") == source_id


def read_head(item: Mapping[str, Any]) -> Head:
    """Return the head in an item that `is_of` the session and source that ask.

    Raises:
        UnreadableError: It is no head of a schema this version knows.
    """
    check_type(item, HEAD_TYPE)
    return read_head_fields(item, field(item, "_etag", str))


def read_message(item: Mapping[str, Any]) -> StoredMessage:
    """Return what is in a message item that `is_of` the session and source that ask.

    Raises:
        UnreadableError: It is no message of a schema this version knows.
    """
    check_type(item, MESSAGE_TYPE)
    sequence, told_by = field(item, "sequence", int), field(item, "identity", str)
    if not is_number(sequence) or item.get("sort_key") != order_of(field(item, "source_id", str), sequence):
        raise UnreadableError("a message is not where its number says")
    if not is_identity(told_by):
        raise UnreadableError("a message lacks what it is told by")
    fields = cast("Mapping[str, Any]", field(item, "payload", dict))
    upload = read_upload(fields)
    return StoredMessage(
        sequence=sequence,
        identity=told_by,
        write_id=field(item, "write_id", str),
        payload=read_payload(fields, read_data(fields) if upload is None else b""),
        upload=upload,
    )


def read_listed(row: Mapping[str, Any]) -> tuple[str, int]:
    """Return the session, and how many messages of it count, in what the query for sessions finds.

    Raises:
        UnreadableError: A field is missing, of another kind or impossible.
    """
    try:
        session_id = accept_session_id(field(row, "session_id", str))
    except InvalidIdentifierError:
        raise UnreadableError("a head is of a session that cannot be") from None
    first, end = field(row, "first", int), field(row, "next", int)
    if not 0 <= first <= end:
        raise UnreadableError("a head counts what is impossible")
    return session_id, end - first


def _head_order(source_id: str) -> str:
    return f"{_token(source_id)}|{_AFTER_ALL_NUMBERS}"


def _token(source_id: str) -> str:
    return hashlib.sha256(source_id.encode()).hexdigest()[:_TOKEN_DIGITS]
