"""The item of a session: its fields, and what of it has to be known to replace or delete it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from ._fields import field, texts
from ._items import check_type, data_fields, item_base, payload_fields, read_data, read_payload, read_upload
from ._records import EncodedPayload, SessionPlace, Upload

SESSION_TYPE: Final = "session"

SESSION_ITEM_ID: Final = "ss"
"""There is one to a logical partition."""

MAX_WRITES: Final = 8
"""How many of the last writes an item remembers: so many others may overtake a write whose answer was lost, and it is
still known that it was done."""


@dataclass(frozen=True, slots=True)
class SessionVersion:
    """One version of a stored session.

    Attributes:
        etag: Which one.
        writes: The writes that it is the outcome of, the newest first: each replaced the version that the next left.
        upload: The parts that hold its data, None when the item holds it itself.
    """

    etag: str
    writes: tuple[str, ...]
    upload: Upload | None


@dataclass(frozen=True, slots=True)
class StoredSessionItem:
    """The item of a session as read back.

    Attributes:
        version: Which version.
        payload: The encoded session; its ``data`` is empty where it lies in parts.
    """

    version: SessionVersion
    payload: EncodedPayload


def writes_after(write_id: str, replaced: SessionVersion | None) -> tuple[str, ...]:
    """Return the writes of the version that a write makes of the one it replaces."""
    return (write_id, *(() if replaced is None else replaced.writes))[:MAX_WRITES]


def session_item(
    place: SessionPlace, payload: EncodedPayload, upload: Upload | None, writes: tuple[str, ...], ttl: int | None
) -> dict[str, Any]:
    """Return the item of a session.

    Args:
        place: Where it lives.
        payload: The encoded session.
        upload: Where its data lies, None for within the item.
        writes: The writes that it is the outcome of.
        ttl: Seconds until it expires, None for never.
    """
    return {
        **item_base(SESSION_ITEM_ID, SESSION_TYPE, place, ttl),
        "writes": list(writes),
        "payload": {**payload_fields(payload), **data_fields(payload.data, upload)},
    }


def read_session_item(item: Mapping[str, Any]) -> StoredSessionItem:
    """Return what is in the item of a session that lies in the place that was asked.

    Raises:
        UnreadableError: It is no session item of a schema this version knows.
    """
    check_type(item, SESSION_TYPE)
    fields = cast("Mapping[str, Any]", field(item, "payload", dict))
    upload = read_upload(fields)
    return StoredSessionItem(
        SessionVersion(field(item, "_etag", str), texts(item, "writes"), upload),
        read_payload(fields, read_data(fields) if upload is None else b""),
    )
