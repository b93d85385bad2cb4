"""Items of a history: their ids and their order, how strictly they are read, and that schema 1 stays readable."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosmos_workflow_state._codec import decode_payload, encode_whole
from cosmos_workflow_state._heads import MAX_SEQUENCE, Head
from cosmos_workflow_state._history_items import (
    StoredMessage,
    head_id,
    head_item,
    is_in_place,
    is_of,
    message_id,
    message_item,
    order_of,
    order_range,
    read_head,
    read_listed,
    read_message,
)
from cosmos_workflow_state._identities import BY_CONTENT, identity
from cosmos_workflow_state._identity import TenantId
from cosmos_workflow_state._messages import FORMAT, deserialize
from cosmos_workflow_state._records import SessionPlace, UnreadableError, Upload

GOLDEN = Path(__file__).parents[1] / "golden" / "history-schema-1.json"
PLACE = SessionPlace(TenantId("contoso"), "s-1")
SOURCE = "chat"
TOLD_BY = identity(BY_CONTENT, ["content"])
PAYLOAD = encode_whole(b"message", payload_format=FORMAT)
MESSAGE = StoredMessage(7, TOLD_BY, "w1", PAYLOAD, None)
SOURCES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=100)


def test_a_message_is_read_back() -> None:
    """With its data or with what names its parts, and with a time to live."""
    item = message_item(PLACE, SOURCE, MESSAGE, None)
    assert read_message(item) == MESSAGE
    assert "ttl" not in item
    lying = StoredMessage(7, TOLD_BY, "w1", encode_whole(b"x" * 100, payload_format=FORMAT), Upload("w2", 2))
    item = message_item(PLACE, SOURCE, lying, 10)
    assert item["ttl"] == 10
    found = read_message(item)
    assert (found.upload, found.payload.data, found.payload.size) == (Upload("w2", 2), b"", 100)


def test_a_head_is_read_back() -> None:
    """With what the service adds to it."""
    head = Head().appended([TOLD_BY], 10, "w1")
    assert read_head({**head_item(PLACE, SOURCE, head), "_etag": "e1"}) == head.at("e1")


def test_whose_an_item_is() -> None:
    """By the tenant, the session and the source, all three."""
    item = message_item(PLACE, SOURCE, MESSAGE, None)
    assert is_of(item, PLACE, SOURCE)
    for changed in ({"tenant_id": "t2"}, {"session_id": "s-2"}, {"source_id": "audit"}):
        assert not is_of({**item, **changed}, PLACE, SOURCE)


def test_the_order_is_of_the_numbers_and_the_head_is_last() -> None:
    """As text, up to the last number there is."""
    numbers = [0, 1, 9, 10, 99, 12_345, MAX_SEQUENCE]
    low, high = order_range(SOURCE)
    keys = [order_of(SOURCE, number) for number in numbers]
    head = head_item(PLACE, SOURCE, Head())["sort_key"]
    assert [low, *keys, head, high] == sorted({low, *keys, head, high})
    assert len({len(key) for key in keys}) == 1


@given(one=SOURCES, other=SOURCES)
def test_sources_do_not_meet(one: str, other: str) -> None:
    """Different sources have different ids and ranges that do not overlap; ids are safe in a URL and short enough."""
    ids = [{head_id(source), message_id(source, 0), message_id(source, MAX_SEQUENCE)} for source in (one, other)]
    for item_id in ids[0]:
        assert len(item_id) <= 1_023
        assert not set(item_id) & set("/\\?#\n\0")
    ranges = sorted([order_range(one), order_range(other)])
    assert (one == other) == (ids[0] == ids[1])
    assert one == other or (not ids[0] & ids[1] and ranges[0][1] <= ranges[1][0])


BAD: list[dict[str, Any]] = [
    {"type": "history_head"},
    {"schema": 2},
    {"sequence": 8},
    {"sequence": "7"},
    {"sequence": -1, "sort_key": order_of(SOURCE, -1)},
    {"sequence": 10**15, "sort_key": order_of(SOURCE, 10**15)},
    {"sort_key": None},
    {"source_id": None},
    {"identity": "x"},
    {"identity": None},
    {"write_id": None},
    {"payload": None},
    {"payload": {}},
]


@pytest.mark.parametrize("fields", BAD, ids=str)
def test_what_is_no_message(fields: dict[str, Any]) -> None:
    """Refused, never repaired."""
    with pytest.raises(UnreadableError):
        read_message({**message_item(PLACE, SOURCE, MESSAGE, None), **fields})


PLACED: list[tuple[dict[str, Any], bool]] = [
    ({}, True),
    ({"id": "other"}, False),
    ({"source_id": "other"}, False),
    ({"source_id": {}}, False),
    ({"source_id": ""}, False),
]


@pytest.mark.parametrize(("fields", "expected"), PLACED, ids=str)
def test_where_an_item_lies(fields: dict[str, Any], expected: bool) -> None:
    """Where its history looks for it, or anywhere else; a message also by its number."""
    message = message_item(PLACE, SOURCE, MESSAGE, None)
    for item in (message, head_item(PLACE, SOURCE, Head())):
        assert is_in_place({**item, **fields}) is expected
    for changed in ({"sequence": 8}, {"sequence": None}, {"sequence": 10**15}, {"sort_key": "x"}):
        assert not is_in_place({**message, **changed})


def test_a_listed_session() -> None:
    """How many messages count; what cannot be read is told."""
    row: dict[str, Any] = {"session_id": "s-1", "first": 3, "next": 5}
    assert read_listed(row) == ("s-1", 2)
    for changed in ({"session_id": 5}, {"session_id": "\0"}, {"first": None}, {"next": 2}, {"first": -1}):
        with pytest.raises(UnreadableError):
            read_listed({**row, **changed})


def test_the_first_schema_stays_readable() -> None:
    """A head and a message as they were written by the first version that wrote any."""
    head_then, message_then = json.loads(GOLDEN.read_text(encoding="utf-8"))
    head = read_head(head_then)
    assert (head.first - head.began, head.messages, head.ttl, head.shortest_ttl) == (1, 2, 200, 100)
    assert len(head.recent) == 2
    stored = read_message(message_then)
    message = deserialize(decode_payload(stored.payload), PLACE, SOURCE)
    assert (message.role, message.text, message.author_name, message.message_id) == ("user", "hé \ud800", "ann", "m-1")
    assert stored.sequence == head.next - 1 == 412_345_678_901_236
    assert is_of(head_then, PLACE, SOURCE)
    assert is_of(message_then, PLACE, SOURCE)
