"""The head of a history: its arithmetic, and what of a state or an item is believed."""

from __future__ import annotations

from typing import Any

import pytest

from cosmos_workflow_state._heads import (
    BEGINNINGS,
    HIGHEST_END,
    MAX_SEQUENCE,
    REMEMBERED,
    Head,
    from_state,
    head_fields,
    read_head_fields,
    to_state,
)
from cosmos_workflow_state._identities import BY_CONTENT, identity
from cosmos_workflow_state._identity import TenantId
from cosmos_workflow_state._records import SessionPlace, UnreadableError

PLACE = SessionPlace(TenantId("contoso"), "s-1")
SOURCE = "chat"


def identities(count: int) -> list[str]:
    """Return so many identities."""
    return [identity(BY_CONTENT, [str(number)]) for number in range(count)]


def test_messages_are_numbered_on() -> None:
    """Each append moves the end; the newest identities stay, as many as a head holds."""
    many = identities(REMEMBERED + 10)
    head = Head().begun(700).appended(many[:3], None, "w1").at("e1")
    assert (head.began, head.first, head.next, head.messages, head.recent) == (700, 700, 703, 3, tuple(many[:3]))
    assert (head.write_id, head.etag, head.was_cleared) == ("w1", "e1", False)
    grown = head.appended(many[3:], None, "w2")
    assert (grown.began, grown.messages, grown.recent, grown.etag) == (700, len(many), tuple(many[10:]), "")


def test_a_history_begins_where_none_is() -> None:
    """Whatever a state without a version says; one that is there goes on."""
    assert Head(next=5).begun(700) == Head(began=700, first=700, next=700)
    head = Head().begun(700).appended(identities(1), None, "w1").at("e1")
    assert head.begun(800) == head


def test_numbers_are_exact_in_json() -> None:
    """Whoever reads them as doubles finds them all; none that is given out is far from the last."""
    assert BEGINNINGS < HIGHEST_END < MAX_SEQUENCE < 2**53


def test_what_is_cleared_is_not_numbered_again() -> None:
    """The numbers go on where they were, and nothing is remembered of what was before."""
    head = Head().begun(700).appended(identities(5), 10, "w1").at("e1").cleared(705, 50, "w2")
    assert (head.began, head.first, head.next, head.messages, head.recent) == (700, 705, 705, 0, ())
    assert (head.ttl, head.shortest_ttl, head.was_cleared) == (50, None, True)
    assert Head(began=9, first=9, next=10).cleared(3, None, "w1").began == 0


@pytest.mark.parametrize(("left", "ttl", "expected"), [(50, 20, 50), (10, 20, 20), (None, 20, None), (20, None, None)])
def test_a_head_outlives_what_a_clearing_has_left(left: int | None, ttl: int | None, expected: int | None) -> None:
    """What is saved behind it may expire before what is still lying there."""
    head = Head().begun(0).cleared(0, left, "w1").appended(identities(1), ttl, "w2")
    assert (head.ttl, head.shortest_ttl) == (expected, ttl)


@pytest.mark.parametrize(
    ("ttls", "ttl", "shortest"),
    [
        ([None], None, None),
        ([10], 10, 10),
        ([10, 20], 20, 10),
        ([20, 10], 20, 10),
        ([None, 10], None, 10),
        ([10, None], None, 10),
        ([30, None, 20], None, 20),
    ],
)
def test_a_head_outlives_its_messages(ttls: list[int | None], ttl: int | None, shortest: int | None) -> None:
    """Their numbers must not be given out again while one of them is there."""
    head = Head()
    for number, one in enumerate(ttls):
        head = head.appended(identities(1), one, str(number))
    assert (head.ttl, head.shortest_ttl) == (ttl, shortest)
    assert head.lives_differ == (ttl != shortest)


@pytest.mark.parametrize("ttl", [None, 10])
def test_a_state_is_read_back(ttl: int | None) -> None:
    """Of the session and source it is of, and of no other."""
    head = Head().appended(identities(3), ttl, "w1").at("e1")
    state = to_state(head, PLACE, SOURCE)
    assert from_state(state, PLACE, SOURCE) == head
    assert from_state(to_state(Head(), PLACE, SOURCE), PLACE, SOURCE) == Head()
    assert from_state(state, SessionPlace(TenantId("contoso"), "s-2"), SOURCE) is None
    assert from_state(state, SessionPlace(TenantId("t2"), "s-1"), SOURCE) is None
    assert from_state(state, PLACE, "audit") is None


BAD: list[dict[str, Any]] = [
    {"next": "3"},
    {"next": True},
    {"next": -1, "first": -4},
    {"first": 4},
    {"next": MAX_SEQUENCE + 2, "recent": identities(REMEMBERED)},
    {"next": 10**30, "recent": identities(REMEMBERED)},
    {"began": 1},
    {"began": -1},
    {"began": None},
    {"began": 0.0},
    {"recent": "abc"},
    {"recent": []},
    {"recent": ["?"] * 3},
    {"recent": [None] * 3},
    {"write_id": None},
    {"ttl": None},
    {"shortest_ttl": "1"},
]


@pytest.mark.parametrize("fields", BAD, ids=str)
def test_what_is_no_head(fields: dict[str, Any]) -> None:
    """As an item it is refused, as a state it is not used."""
    head = Head().appended(identities(3), 10, "w1").at("e1")
    assert read_head_fields({**head_fields(head), "ttl": 10}, "e1") == head
    with pytest.raises(UnreadableError):
        read_head_fields({**head_fields(head), "ttl": 10, **fields}, "e1")
    assert from_state({**to_state(head, PLACE, SOURCE), **fields}, PLACE, SOURCE) is None
    for etag in (None, ""):
        assert from_state({**to_state(head, PLACE, SOURCE), "etag": etag}, PLACE, SOURCE) is None


@pytest.mark.parametrize("state", [None, [], "x", 7, {}], ids=str)
def test_what_is_no_state(state: object) -> None:
    """Anything may lie there."""
    assert from_state(state, PLACE, SOURCE) is None
