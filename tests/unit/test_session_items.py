"""The item of a session: golden, strict when read, and what a process remembers of it. No I/O."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cosmos_workflow_state import _session_view
from cosmos_workflow_state._codec import decode_payload, encode_whole
from cosmos_workflow_state._definitions import SESSIONS
from cosmos_workflow_state._identity import MAX_NAME_BYTES, TenantId
from cosmos_workflow_state._items import PART_BYTES, PART_TYPE, UPLOAD_GUARD_TYPE, UPLOAD_SECONDS
from cosmos_workflow_state._records import SessionPlace, UnreadableError, Upload
from cosmos_workflow_state._session_items import (
    MAX_WRITES,
    SESSION_ITEM_ID,
    SESSION_TYPE,
    SessionVersion,
    read_session_item,
    session_item,
    tells_of,
    writes_after,
)
from cosmos_workflow_state._session_snapshots import FORMAT, MAX_DEPTH, deserialize
from cosmos_workflow_state._session_view import SessionMemory

PLACE = SessionPlace(TenantId("contoso"), "s-1")
PAYLOAD = encode_whole(b"raw", payload_format=FORMAT)
GOLDEN: dict[str, Any] = {
    "id": "ss",
    "tenant_id": "contoso",
    "session_id": "k",
    "type": "session",
    "schema": 1,
    "ttl": 60,
    "writes": ["0123456789abcdef", "fedcba9876543210"],
    "payload": {
        "format": "maf-session/1",
        "codecs": ["zstd"],
        "digest": "sha256:7aa6679ccda61cca80eaace9b532f23aa7a483513fba65d47411390ae77b3150",
        "size": 255,
        "data": "KLUv/ST/vQQAskkcGYC5OeQP2yQR4x7nGNmonsG8CA/MR8xR1EfNAYAx5hdfa37hqP5whNYYWo82n6xMjHQQghyfV0"
        "o3GM+L+A7Quup7zquSVq6e5BOgVaWyZujvWfU1m+IwWi20R/OLWoeZ8QMtaQoEGWe1kOrV6CeJNQsNAGoTFQuECDRC"
        "NCylwiVhxYWI4oYYrxkUnwxtdtO5nL7FDl8uraI=",
    },
    "_etag": "v1",
}
"""What version 0.1 has stored: to be read for ever."""


def test_what_is_stored_stays_readable() -> None:
    """Schema 1, format maf-session/1."""
    found = read_session_item(GOLDEN)
    assert found.version == SessionVersion("v1", ("0123456789abcdef", "fedcba9876543210"), None)
    session = deserialize(decode_payload(found.payload))
    assert (session.session_id, session.service_session_id) == ("s-1", {"conversation": "c-1"})
    assert session.state["turns"] == 2
    assert session.state["last"].text == "hello"


def item(upload: Upload | None = None, **fields: Any) -> dict[str, Any]:
    """Return the item of a session as the service gives it back."""
    return session_item(PLACE, PAYLOAD, upload, ("w-1",), None) | {"_etag": "v1"} | fields


@pytest.mark.parametrize("upload", [None, Upload("u-1", 3)], ids=["inline", "parts"])
@pytest.mark.parametrize("ttl", [None, 60])
def test_what_is_written_is_read(upload: Upload | None, ttl: int | None) -> None:
    """Version and payload come back; a time to live is left out when there is none."""
    made = session_item(PLACE, PAYLOAD, upload, ("w-2", "w-1"), ttl)
    assert made.get("ttl", None) == ttl
    found = read_session_item(made | {"_etag": "v1"})
    assert found.version == SessionVersion("v1", ("w-2", "w-1"), upload)
    assert found.payload.digest == PAYLOAD.digest
    assert found.payload.data == (PAYLOAD.data if upload is None else b"")


@pytest.mark.parametrize(
    "fields",
    [
        {"type": "checkpoint"},
        {"schema": 2},
        {"writes": None},
        {"writes": "w-1"},
        {"writes": [1]},
        {"payload": None},
        {"payload": {}},
        {"payload": {"write_id": "../x", "parts": 1}},
        {"payload": {"write_id": "u-1", "parts": 0}},
        {"_etag": None},
    ],
    ids=str,
)
def test_a_damaged_item_is_unreadable(fields: dict[str, Any]) -> None:
    """No default for what is not as it was written."""
    with pytest.raises(UnreadableError):
        read_session_item(item(**fields))


def test_the_last_writes_are_remembered() -> None:
    """The newest first, of which a bounded number."""
    version: SessionVersion | None = None
    for number in range(MAX_WRITES + 2):
        version = SessionVersion("v", writes_after(f"w-{number}", version), None)
    assert version is not None
    assert version.writes == tuple(f"w-{number}" for number in range(MAX_WRITES + 1, 1, -1))


def test_a_version_tells_of_the_writes_since_one_that_it_lists() -> None:
    """And of all since its creation, while it was not cut; one that is not there, or names no write, tells nothing."""

    def made_by(*writes: str) -> SessionVersion:
        return SessionVersion("v", writes, None)

    cut = made_by(*(f"w-{number}" for number in range(MAX_WRITES)))
    replaced = made_by("w-5", "gone")
    assert tells_of(cut, replaced)
    assert tells_of(replaced, replaced)
    assert not tells_of(made_by("w-6", "gone"), replaced)
    assert not tells_of(None, replaced)
    assert not tells_of(cut, made_by())
    assert tells_of(made_by(*cut.writes[1:]), None)
    assert not tells_of(cut, None)
    assert not tells_of(None, None)


def test_the_memory_keeps_what_a_version_is() -> None:
    """Also the order of its writes, and its parts."""
    memory, place = SessionMemory(), SessionPlace(TenantId("contoso"), "k")
    for version in (SessionVersion("v", ("w-2", "w-1"), Upload("u-1", 3)), SessionVersion("v", (), None)):
        memory.note(place, version)
        assert memory.get(place) == version


def test_the_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was seen longest ago is forgotten first; nothing there is not remembered at all."""
    monkeypatch.setattr(_session_view, "_REMEMBERED", 2)
    memory = SessionMemory()
    places = [SessionPlace(TenantId("contoso"), name) for name in "abc"]
    versions = [SessionVersion(name, (), None) for name in "abc"]
    for place, version in zip(places, versions, strict=True):
        memory.note(place, version)
        memory.note(places[0], versions[0])
    assert [memory.get(place) for place in places] == [versions[0], None, versions[2]]
    memory.note(places[0], None)
    assert memory.get(places[0]) is None


def test_the_page_says_what_is_so() -> None:
    """Names and limits on the page about sessions are those of the code."""
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "agent-sessions.md").read_text("utf-8")
    assert f"partition key {', '.join(f'`{path}`' for path in SESSIONS.partition_key_paths)}" in page
    assert f"| `{SESSION_TYPE}` | `{SESSION_ITEM_ID}` |" in page
    assert f"| `{PART_TYPE}` | `pt:…` | up to {PART_BYTES:,} bytes" in page
    assert f"| `{UPLOAD_GUARD_TYPE}` | `pg:…` |" in page
    assert UPLOAD_SECONDS == 3600, "the page says an hour"
    assert f"the last {MAX_WRITES} `writes`" in page
    assert f"of format `{FORMAT}`" in page
    assert f"{MAX_DEPTH} levels deep" in page
    assert f"at most {MAX_NAME_BYTES:,} bytes in UTF-8" in page
