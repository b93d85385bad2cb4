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

MAX_WRITES: Final = 64
"""How many of the last writes an item remembers. A write whose answer was lost is found among them, or the one that it
was to replace is; when more others than this have overtaken it, nobody can tell.

64 are 1.2 KB an item. Say one session takes 100 writes a second, 10 ms each, as each needs the version that the one
before has made. The first two repeats of a lost write come within 0.3 seconds (`_gateway`): 30 others then, where all
write as fast as they can; by Poisson more than 63 once in ten million times, and more than 31 every third time.
"""


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


def tells_of(found: SessionVersion | None, replaced: SessionVersion | None) -> bool:
    """Say whether a version lists each write that was done since another one was there, or since none was.

    It lists all since the oldest that it lists, and since its creation while they are few. Of what was deleted nothing
    is known, so one that was made anew does not tell of a version before; where there was none, it is taken to.

    Args:
        found: The version, None for none.
        replaced: The other one, None for none.
    """
    if found is None:
        return False
    if replaced is None:
        return len(found.writes) < MAX_WRITES
    return any(made in found.writes for made in replaced.writes[:1])


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
