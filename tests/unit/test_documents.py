"""Checkpoint items: what is written, how strictly it is read, and that the first schema stays readable for ever."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from cosmos_workflow_state._codec import decode_payload, encode_whole
from cosmos_workflow_state._documents import (
    REUSE_SECONDS,
    belongs_to,
    checkpoint_item,
    keyframe_guard_item,
    keyframe_item,
    keyframe_ttl,
    read_auxiliary,
    read_checkpoint,
    read_keyframe,
)
from cosmos_workflow_state._identity import Scope, TenantId
from cosmos_workflow_state._items import (
    NEVER,
    PART_BYTES,
    UPLOAD_SECONDS,
    item_bytes,
    names_upload,
    part_items,
    parts_of,
    read_part,
    upload_guard_item,
)
from cosmos_workflow_state._maf import FORMAT, RestorePolicy, deserialize
from cosmos_workflow_state._ordering import time_of
from cosmos_workflow_state._records import (
    Auxiliary,
    CheckpointHeader,
    EncodedPayload,
    Keyframe,
    Place,
    StoredCheckpoint,
    StoredKeyframe,
    UnreadableError,
    Upload,
)
from cosmos_workflow_state.settings import MAX_TTL
from support.expenses import ALLOWED, Approval, Expense
from support.payloads import KEY

GOLDEN = Path(__file__).parents[1] / "golden" / "checkpoint-schema-1.json"
SORT_KEY = "0" * 32 + "|000063900000000000.00000000000000000001"
PAYLOAD = encode_whole(b"state" * 100, payload_format=FORMAT)
HEADER = CheckpointHeader(
    key=KEY,
    previous_checkpoint_id="cp-0",
    timestamp="2026-11-29T10:00:00+00:00",
    iteration_count=4,
    pending_request_ids=("r-1", "r-2"),
)
FIRST = replace(HEADER, previous_checkpoint_id=None, pending_request_ids=())


def stored(header: CheckpointHeader = HEADER, payload: EncodedPayload = PAYLOAD, **changes: Any) -> dict[str, Any]:
    """Return an item as it comes back from the service, with some of its fields changed; None takes one away."""
    system = {"_rid": "x", "_self": "x", "_etag": '"1"', "_ts": 1, "_attachments": "a/"}
    item = json.loads(json.dumps({**checkpoint_item(header, SORT_KEY, payload), **system})) | changes
    return {name: value for name, value in item.items() if value is not None}


def read(item: Mapping[str, Any]) -> StoredCheckpoint:
    """Read an item as its owner does."""
    return read_checkpoint(item, KEY.tenant, KEY.scope)


def values_in(value: Any) -> Iterator[Any]:
    """Yield a JSON value and all in it."""
    yield value
    for child in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from values_in(child)


# --- writing ------------------------------------------------------------------------------------------------------


def test_item_of_a_checkpoint() -> None:
    """The fields are those of the schema, named once and for ever."""
    item = checkpoint_item(HEADER, SORT_KEY, PAYLOAD)
    written_by, payload = item.pop("written_by"), item.pop("payload")
    assert item == {
        "id": "cp:session-42:cp-1",
        "tenant_id": "contoso",
        "workflow_name": "invoice-approval",
        "type": "checkpoint",
        "schema": 1,
        "scope": "session-42",
        "checkpoint_id": "cp-1",
        "previous_checkpoint_id": "cp-0",
        "sort_key": SORT_KEY,
        "timestamp": "2026-11-29T10:00:00+00:00",
        "iteration_count": 4,
        "pending_request_ids": ["r-1", "r-2"],
        "pending_request_count": 2,
    }
    assert written_by == f"{version('cosmos-workflow-state')}/{version('agent-framework-core')}"
    assert payload.keys() == {"format", "codecs", "digest", "size", "data"}


@pytest.mark.parametrize("header", [HEADER, FIRST], ids=["full", "first"])
def test_absent_values_are_left_out(header: CheckpointHeader) -> None:
    """No field is ever null: the service refuses some of those, and a null is one more thing to read."""
    assert not [value for value in values_in(checkpoint_item(header, SORT_KEY, PAYLOAD)) if value is None]


def test_first_checkpoint_has_neither_parent_nor_requests() -> None:
    """What a first checkpoint has not got is not there."""
    item = checkpoint_item(FIRST, SORT_KEY, PAYLOAD)
    assert not item.keys() & {"previous_checkpoint_id", "pending_request_ids", "pending_request_count", "ttl"}


@pytest.mark.parametrize(("pending", "kept"), [(1, 1), (100, 100), (101, 100), (5_000, 100)])
def test_pending_ids_are_bounded_and_counted(pending: int, kept: int) -> None:
    """At most 100 ids are written; the count is that of all."""
    header = replace(HEADER, pending_request_ids=tuple(f"r-{number}" for number in range(pending)))
    item = checkpoint_item(header, SORT_KEY, PAYLOAD)
    assert item["pending_request_ids"] == [f"r-{number}" for number in range(kept)]
    assert item["pending_request_count"] == pending


def test_header_is_lean() -> None:
    """What every save pays for beside its data stays under 700 bytes, the reference to a keyframe included."""
    difference = replace(PAYLOAD, data=b"", keyframe_id="0" * 32, spent=12_345)
    assert item_bytes(checkpoint_item(HEADER, SORT_KEY, difference)) < 700


def test_size_is_that_of_the_json_in_utf_8() -> None:
    """Characters count as their UTF-8 bytes, and nothing is escaped that need not be."""
    assert item_bytes({"a": "é\U0001f600\0", "b": [1, 2]}) == len(b'{"a":"') + 2 + 4 + 6 + len(b'","b":[1,2]}')


# --- reading ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("header", [HEADER, FIRST], ids=["full", "first"])
def test_item_comes_back_as_it_was_written(header: CheckpointHeader) -> None:
    """Header, place in the order, payload and version of the item."""
    assert read(stored(header)) == StoredCheckpoint(header, SORT_KEY, PAYLOAD, None, None, '"1"')


def test_unknown_fields_are_passed_over() -> None:
    """A later version may add fields to the schema."""
    assert read(stored(lease={"a": None})) == read(stored())
    assert read(stored(ttl=60)) == replace(read(stored()), ttl=60)


@pytest.mark.parametrize(
    "item",
    [
        stored(type="keyframe"),
        stored(type=None),
        stored(schema=2),
        stored(schema=0),
        stored(schema="1"),
        stored(schema=None),
        {},
    ],
    ids=["other type", "no type", "later", "earlier", "text", "no schema", "nothing"],
)
def test_unknown_schema_is_unreadable(item: dict[str, Any]) -> None:
    """What this version does not know is not guessed at."""
    with pytest.raises(UnreadableError, match="schema that this version knows"):
        read(item)


TEXTS = ["workflow_name", "checkpoint_id", "sort_key", "timestamp", "_etag"]
REQUIRED = [*TEXTS, "iteration_count", "payload"]


@pytest.mark.parametrize("name", REQUIRED)
def test_missing_field_is_unreadable(name: str) -> None:
    """A field that is not there is an error that names it, never a default."""
    with pytest.raises(UnreadableError, match=rf"^field {name} of the item is missing"):
        read({field: value for field, value in stored().items() if field != name})


@pytest.mark.parametrize("value", [None, 7, True, ["a"], {"a": 1}], ids=repr)
@pytest.mark.parametrize("name", [*TEXTS, "previous_checkpoint_id"])
def test_text_of_another_kind_is_unreadable(name: str, value: Any) -> None:
    """A text is a text, null included: absent values are left out, not null."""
    with pytest.raises(UnreadableError, match=rf"^field {name} of the item"):
        read({**stored(), name: value})


@pytest.mark.parametrize("value", [None, "4", True, 4.5, [4]], ids=repr)
def test_count_of_another_kind_is_unreadable(value: Any) -> None:
    """A count is a whole number; true is none."""
    with pytest.raises(UnreadableError, match=r"^field iteration_count of the item"):
        read({**stored(), "iteration_count": value})


@pytest.mark.parametrize("value", [None, "r-1", {"r-1": 1}, [1], ["r-1", None], [["r-1"]]], ids=repr)
def test_pending_ids_of_another_kind_are_unreadable(value: Any) -> None:
    """A list of texts, or not there."""
    with pytest.raises(UnreadableError, match=r"^field pending_request_ids of the item"):
        read({**stored(), "pending_request_ids": value})


@pytest.mark.parametrize("value", [None, "data", [], 7], ids=repr)
def test_payload_of_another_kind_is_unreadable(value: Any) -> None:
    """The payload is an object."""
    with pytest.raises(UnreadableError, match=r"^field payload of the item"):
        read({**stored(), "payload": value})


@pytest.mark.parametrize("name", ["format", "codecs", "digest", "size", "data"])
def test_missing_field_of_the_payload_is_unreadable(name: str) -> None:
    """Each field of the payload is needed."""
    item = stored()
    del item["payload"][name]
    with pytest.raises(UnreadableError, match=rf"^field {name} of the item"):
        read(item)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("format", 1),
        ("format", None),
        ("codecs", "zstd"),
        ("codecs", ["zstd", 1]),
        ("codecs", None),
        ("digest", 1),
        ("size", "500"),
        ("size", 500.0),
        ("size", True),
        ("size", None),
        ("data", 1),
        ("data", None),
    ],
)
def test_payload_fields_of_another_kind_are_unreadable(name: str, value: Any) -> None:
    """Each field of the payload has its kind."""
    item = stored()
    item["payload"][name] = value
    with pytest.raises(UnreadableError, match=rf"^field {name} of the item"):
        read(item)


@pytest.mark.parametrize("data", ["a", "é", "a b=", "YQ=", "YQ==!", "YQ==\n", "Y_8="], ids=repr)
def test_data_that_is_no_base64_is_unreadable(data: str) -> None:
    """Base64 is read strictly: nothing is skipped."""
    item = stored()
    item["payload"]["data"] = data
    with pytest.raises(UnreadableError, match="not base64"):
        read(item)


def test_error_does_not_quote_the_item() -> None:
    """Items hold what users wrote: an error names the field, not what is in it."""
    with pytest.raises(UnreadableError) as raised:
        read(stored(timestamp=["4111-1111"]))
    assert "4111" not in repr(raised.value)


@pytest.mark.parametrize(
    ("tenant", "scope", "owned"),
    [
        ("contoso", "session-42", True),
        ("contoso", "", False),
        ("contoso", "session-4", False),
        ("Contoso", "session-42", False),
        ("contoso1", "session-42", False),
        ("contos", "session-42", False),
    ],
)
def test_item_belongs_to_exactly_its_tenant_and_scope(tenant: str, scope: str, *, owned: bool) -> None:
    """No prefix, no case folding, and the unnamed scope is not all scopes."""
    assert belongs_to(stored(), TenantId(tenant), Scope(scope)) is owned


@pytest.mark.parametrize("item", [{}, stored(scope=None), stored(tenant_id=None), stored(tenant_id=["contoso"])])
def test_item_without_an_owner_belongs_to_nobody(item: dict[str, Any]) -> None:
    """A missing field is no wildcard, also not for the unnamed scope."""
    assert not belongs_to(item, KEY.tenant, KEY.scope)
    assert not belongs_to(item, KEY.tenant, Scope(""))


# --- differences, keyframes and parts -----------------------------------------------------------------------------


def test_difference_names_its_keyframe() -> None:
    """What a payload refers to, and what its lineage has cost since, come back with it."""
    difference = replace(PAYLOAD, keyframe_id="k-1", spent=700)
    assert read(stored(payload=difference)).payload == difference


@pytest.mark.parametrize(("name", "value"), [("keyframe", 7), ("keyframe", None), ("spent", "7"), ("spent", None)])
def test_difference_of_another_kind_is_unreadable(name: str, value: Any) -> None:
    """A keyframe is named by a text, with a number beside it."""
    item = stored(payload=replace(PAYLOAD, keyframe_id="k-1", spent=700))
    item["payload"][name] = value
    with pytest.raises(UnreadableError, match=rf"^field {name} of the item"):
        read(item)


def test_checkpoint_in_parts_holds_no_data() -> None:
    """The item names the upload, how many parts it has and the characters that they hold."""
    item = checkpoint_item(HEADER, SORT_KEY, PAYLOAD, Upload("w-1", 2), ttl=60)
    assert item["payload"].keys() == {"format", "codecs", "digest", "size", "write_id", "parts", "stored"}
    assert item["payload"]["stored"] == len(base64.b64encode(PAYLOAD.data))
    assert item["ttl"] == 60
    found = read({**item, "_etag": '"1"'})
    assert (found.upload, found.payload.data) == (Upload("w-1", 2), b"")
    assert names_upload(item, "w-1")
    assert not names_upload(item, "w-2")


@pytest.mark.parametrize("parts", [0, -1, 1001, 10**9, True, "2", None], ids=repr)
def test_impossible_number_of_parts_is_unreadable(parts: Any) -> None:
    """A number that a reader would have to make room for is checked first."""
    item = checkpoint_item(HEADER, SORT_KEY, PAYLOAD, Upload("w-1", 2))
    item["payload"]["parts"] = parts
    with pytest.raises(UnreadableError, match="parts"):
        read({**item, "_etag": '"1"'})


@pytest.mark.parametrize(
    "length", [0, 1, PART_BYTES - 1, PART_BYTES, PART_BYTES + 1, 3 * PART_BYTES, 3 * PART_BYTES + 1]
)
def test_parts_hold_all_bytes_and_stay_under_400_kb(length: int) -> None:
    """Every byte is in one part, in order; no part is over 400 KB, whatever the names around it are."""
    data = random.Random(length).randbytes(length)
    place = Place(TenantId("t" * 1024), Scope("\1" * 1024), "\1" * 1024)
    count = parts_of(data)
    assert count == (0 if length <= PART_BYTES else -(-length // PART_BYTES))
    upload = Upload("w-1", max(1, count))
    items = list(part_items(place, upload, "o" * 1023, data, NEVER))
    assert b"".join(read_part(item, upload) for item in items) == data
    assert all(item_bytes(item) <= 400 * 1024 for item in items)
    assert [item["id"] for item in items] == [f"pt:w-1:{number:04d}" for number in range(upload.parts)]


def test_part_of_another_upload_is_unreadable() -> None:
    """A part says which upload it belongs to, and that is checked."""
    (item,) = part_items(KEY.place, Upload("w-1", 1), "cp:1", b"data", NEVER)
    with pytest.raises(UnreadableError, match="another upload"):
        read_part(item, Upload("w-2", 1))
    with pytest.raises(UnreadableError, match="not a part"):
        read_part({**item, "type": "keyframe"}, Upload("w-1", 1))


KEYFRAME = Keyframe("k-1", 500, b"compressed", serves_ttl=None)


@pytest.mark.parametrize("upload", [None, Upload("w-1", 3)], ids=["inline", "in parts"])
@pytest.mark.parametrize("serves", [None, 60])
def test_keyframe_comes_back_as_it_was_written(serves: int | None, upload: Upload | None) -> None:
    """Id, size, data, what it serves and where its data lies."""
    keyframe = replace(KEYFRAME, serves_ttl=serves)
    item = keyframe_item(KEY.place, keyframe, "sha256:0", upload)
    found = read_keyframe(item, "k-1")
    expected = keyframe if upload is None else replace(keyframe, data=b"")
    assert found == StoredKeyframe(expected, upload, "sha256:0")
    assert item["id"] == "kf:k-1"
    assert item["ttl"] == (-1 if serves is None else 24 * 3600 + 60 + 3600)


@pytest.mark.parametrize(
    "changes", [{"size": 0}, {"size": -1}, {"size": "1"}, {"type": "part"}, {"digest": 1}], ids=repr
)
def test_keyframe_of_another_kind_is_unreadable(changes: dict[str, Any]) -> None:
    """Nothing is guessed at."""
    with pytest.raises(UnreadableError):
        read_keyframe({**keyframe_item(KEY.place, KEYFRAME, "sha256:0", None), **changes}, "k-1")


@pytest.mark.parametrize("ttl", [1, 60, 86_400, MAX_TTL - 90_001, MAX_TTL - 90_000, MAX_TTL - 89_999, MAX_TTL])
def test_keyframes_and_parts_outlive_what_refers_to_them(ttl: int) -> None:
    """A keyframe lives for the reuse window and its checkpoint's life, an hour over, or for ever."""
    life = keyframe_ttl(replace(KEYFRAME, serves_ttl=ttl))
    (part,) = part_items(KEY.place, Upload("w-1", 1), "cp:1", b"data", ttl)
    for lives, least in ((life, ttl + REUSE_SECONDS), (part["ttl"], ttl + UPLOAD_SECONDS)):
        assert lives == NEVER or least <= lives <= MAX_TTL


def test_guards_are_small_and_expire() -> None:
    """A guard is paid for with every keyframe, and read with every save: under 300 bytes."""
    for item, seconds in (
        (keyframe_guard_item(KEY.place, "0" * 32), 86_400),
        (upload_guard_item(KEY.place, "0" * 32), 3600),
    ):
        assert item_bytes(item) < 300
        assert item["ttl"] == seconds


def test_auxiliary_rows_are_read_strictly() -> None:
    """A row of another tenant, or of another kind, is nothing that could be deleted."""
    row = {**keyframe_item(KEY.place, KEYFRAME, "sha256:0", Upload("w-1", 3)), "_etag": '"1"'}
    found = read_auxiliary(row, KEY.tenant)
    assert found == Auxiliary("kf:k-1", KEY.place, "k-1", "w-1", 3, "", '"1"')
    (part,) = part_items(KEY.place, Upload("w-1", 1), "cp:1", b"", NEVER)
    assert read_auxiliary({**part, "_etag": '"1"'}, KEY.tenant).owner == "cp:1"
    for guard in (keyframe_guard_item(KEY.place, "k-1"), upload_guard_item(KEY.place, "w-1")):
        assert read_auxiliary({**guard, "_etag": '"1"'}, KEY.tenant).item_id == guard["id"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"tenant_id": "another"},
        {"schema": 2},
        {"scope": None},
        {"write_id": 7},
        {"workflow_name": 1},
        {"_etag": None},
        {"keyframe_id": "k-2"},
        {"keyframe_id": "../k-1"},
        {"id": "kf:k-2"},
        {"id": "pt:w-2:0000"},
        {"owner": ""},
        {"owner": "cp:a/b"},
        {"owner": "cp:\ud800"},
        {"owner": "x" * 1024},
    ],
    ids=repr,
)
def test_auxiliary_row_of_another_kind_is_unreadable(wrong: dict[str, Any]) -> None:
    """What is deleted goes by the fields, what it is deleted by is the id: a row in which they differ is left alone."""
    row = {**keyframe_item(KEY.place, KEYFRAME, "sha256:0", Upload("w-1", 3)), "_etag": '"1"'}
    with pytest.raises(UnreadableError):
        read_auxiliary({**row, **wrong}, KEY.tenant)


@pytest.mark.parametrize("text", ["", "a/b", "..", "a?b", "a b", "\ud800", "\u00e9"], ids=repr)
@pytest.mark.parametrize("field", ["keyframe", "write_id"])
def test_name_of_another_item_is_checked(field: str, text: str) -> None:
    """Ids inside items become URLs: one that this package never wrote is damage, not a request."""
    item = stored()
    item["payload"] |= {"keyframe": "k-1", "spent": 1, "parts": 1, "write_id": "w-1", field: text}
    with pytest.raises(UnreadableError, match=field):
        read(item)


@pytest.mark.parametrize("item", [{}, {"payload": None}, {"payload": 7}, {"payload": {}}, {"write_id": None}], ids=repr)
def test_item_without_an_upload_names_none(item: dict[str, Any]) -> None:
    """Whatever an owner looks like by now."""
    assert not names_upload(item, "w-1")


def test_pending_ids_have_only_so_much_room() -> None:
    """A hundred ids of a kilobyte each would be paid for at every save: 16 KiB of them are kept, all are counted."""
    header = replace(HEADER, pending_request_ids=tuple(f"{number:01024d}" for number in range(100)))
    item = checkpoint_item(header, SORT_KEY, PAYLOAD)
    assert len(item["pending_request_ids"]) == 16
    assert item["pending_request_count"] == 100


# --- the golden item ----------------------------------------------------------------------------------------------


def test_golden_item_of_schema_1_stays_readable() -> None:
    """An item stored by the first version, by a real workflow that paused for a human, is read by every later one.

    The file is never written again: if this fails, reading is broken, not the file.
    """
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    item, facts = golden["item"], golden["facts"]
    tenant, scope = TenantId(facts["tenant_id"]), Scope(facts["scope"])
    assert belongs_to(item, tenant, scope)
    found = read_checkpoint(item, tenant, scope)
    checkpoint = deserialize(decode_payload(found.payload), found.header.key, RestorePolicy(ALLOWED))
    for name in ("workflow_name", "checkpoint_id", "previous_checkpoint_id", "iteration_count", "timestamp", "version"):
        assert getattr(checkpoint, name) == facts[name], name
    assert checkpoint.graph_signature_hash == facts["graph_signature_hash"]
    assert found.header.key.checkpoint_id == facts["checkpoint_id"]
    assert time_of(found.sort_key) == facts["sort_key_time"]
    assert list(found.header.pending_request_ids) == facts["pending_request_ids"]


def test_golden_item_brings_its_state_back() -> None:
    """The state, the pending request and the types in them are those that the workflow had."""
    item = json.loads(GOLDEN.read_text(encoding="utf-8"))["item"]
    found = read_checkpoint(item, TenantId(item["tenant_id"]), Scope(item["scope"]))
    checkpoint = deserialize(decode_payload(found.payload), found.header.key, RestorePolicy(ALLOWED))
    (request,) = checkpoint.pending_request_info_events.values()
    expense = Expense("Grüße, \U0001f600", 2**70, ["train", "hotel"])
    assert request.data == Approval(expense)
    assert request.response_type is bool
    assert checkpoint.state["expense"] == expense
    assert checkpoint.state["by_year"] == {2026: (1, 2.5), None: b"\0"}
