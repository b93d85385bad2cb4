"""The order of checkpoints, and the queries that rely on it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosmos_workflow_state import _queries
from cosmos_workflow_state._identity import Scope, TenantId
from cosmos_workflow_state._ordering import SaveClock, SortKey, hybrid_time, microseconds, scope_range, time_of
from cosmos_workflow_state._records import RefusedTypesError, UnreadableError
from support.strategies import awkward_texts, quick, texts

SCOPE = Scope("session-42")

offsets = st.integers(-24 * 60 + 1, 24 * 60 - 1).map(lambda minutes: timezone(timedelta(minutes=minutes)))
moments = st.datetimes(
    min_value=datetime(2, 1, 1),  # noqa: DTZ001 - hypothesis wants bounds without a zone
    max_value=datetime(9998, 12, 31),  # noqa: DTZ001 - the same
    timezones=offsets,
)
times = st.integers(0, 10**18 - 1)
saves = st.integers(0, 10**20 - 1)


def sort_key(timestamp: str, saved: int = 0) -> str:
    """Return the stored sort key of a checkpoint without a parent."""
    return str(SortKey(SCOPE, microseconds(timestamp), saved))


@quick
@given(moments, moments)
def test_order_is_the_order_of_time_for_mixed_offsets(one: datetime, other: datetime) -> None:
    """The text sorts as the moments do, whatever offsets they are written with."""
    assert (sort_key(one.isoformat()) < sort_key(other.isoformat())) is (one < other)


@quick
@given(moments, offsets, saves, saves)
def test_equal_timestamps_are_ordered_by_save(moment: datetime, zone: timezone, one: int, other: int) -> None:
    """The same moment, also written with another offset: the later save is the later checkpoint."""
    same_moment = moment.astimezone(zone)
    assert (sort_key(moment.isoformat(), one) < sort_key(same_moment.isoformat(), other)) is (one < other)


@quick
@given(times, saves, times, saves)
def test_text_order_is_number_order(time: int, saved: int, other_time: int, other_saved: int) -> None:
    """Over the whole range of digits the text compares as time and save do."""
    one, other = SortKey(SCOPE, time, saved), SortKey(SCOPE, other_time, other_saved)
    assert (str(one) < str(other)) is ((time, saved) < (other_time, other_saved))
    assert time_of(str(one)) == time


def test_extreme_dates_keep_their_order() -> None:
    """The ends of the calendar, with offsets that reach over them, neither overflow nor change places."""
    timestamps = [
        "0001-01-01T00:00:00+14:00",  # clamped
        "0001-01-01T00:00:00.000001+00:00",
        "0001-01-01T00:00:00-14:00",
        "1969-12-31T23:59:59.999999+00:00",
        "2026-11-29T10:00:00+00:00",
        "9999-12-31T23:59:59.999999+14:00",
        "9999-12-31T23:59:59.999999+00:00",
        "9999-12-31T23:59:59.999999-12:00",
    ]
    keys = [sort_key(timestamp) for timestamp in timestamps]
    assert keys == sorted(set(keys))
    assert len({len(key) for key in keys}) == 1


def test_time_before_the_calendar_is_its_first_moment() -> None:
    """What the offset moves before the year 1 is the year 1."""
    assert microseconds("0001-01-01T00:00:00+14:00") == microseconds("0001-01-01T00:00:00+00:00") == 0


def test_time_without_an_offset_is_utc() -> None:
    """A naive timestamp has one meaning everywhere, not that of the machine."""
    assert microseconds("2026-11-29T10:00:00") == microseconds("2026-11-29T10:00:00+00:00")


def test_microseconds_and_offsets_count() -> None:
    """The number is microseconds since the year 1 in UTC."""
    assert microseconds("0001-01-02T00:00:00.000003+00:00") == 86_400_000_003
    assert microseconds("2026-11-29T12:00:00+02:00") == microseconds("2026-11-29T10:00:00Z")


@pytest.mark.parametrize("timestamp", ["", "yesterday", "2026-13-01T00:00:00", "2026-11-29T10:00:00+25:00", None, 7])
def test_what_is_no_time_is_refused(timestamp: Any) -> None:
    """A timestamp that cannot be ordered cannot be saved; it is not quoted."""
    with pytest.raises(RefusedTypesError, match=r"^timestamp must be an ISO 8601 date and time$"):
        microseconds(timestamp)


def test_child_of_a_parent_known_here_comes_after_it() -> None:
    """A node whose clock is two seconds behind cannot put a child before its parent."""
    parent = microseconds("2026-11-29T10:00:00+00:00")
    child = hybrid_time("2026-11-29T09:59:58+00:00", parent)
    assert child == parent + 1
    assert str(SortKey(SCOPE, child, 0)) > str(SortKey(SCOPE, parent, 10**20 - 1))


@quick
@given(moments, st.none() | times)
def test_hybrid_time_is_after_the_parent_and_not_before_the_timestamp(moment: datetime, parent: int | None) -> None:
    """The time is the checkpoint's own unless the parent's is later."""
    own = microseconds(moment.isoformat())
    time = hybrid_time(moment.isoformat(), parent)
    assert time >= own
    assert time == own or (parent is not None and time == min(parent + 1, 10**18 - 1))
    assert parent is None or time > parent or parent == 10**18 - 1


@quick
@given(texts | awkward_texts, texts | awkward_texts, times, saves)
def test_ranges_of_scopes_never_overlap(one: str, other: str, time: int, saved: int) -> None:
    """A scope's range holds all of its own keys and none of another's."""
    low, high = scope_range(Scope(one))
    assert low <= str(SortKey(Scope(one), time, saved)) < high
    assert (low <= str(SortKey(Scope(other), time, saved)) < high) is (one == other)


def test_ranges_hold_the_first_and_last_key() -> None:
    """The ends of the digits are inside the range."""
    low, high = scope_range(SCOPE)
    assert low <= str(SortKey(SCOPE, 0, 0))
    assert str(SortKey(SCOPE, 10**18 - 1, 10**20 - 1)) < high


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0" * 32,
        "0" * 32 + "|",
        "0" * 32 + "|12.3",
        "0" * 32 + "|" + "x" * 18 + ".0",
        "0" * 32 + "|" + "-" + "1" * 17,
    ],
)
def test_malformed_sort_keys_are_unreadable(text: str) -> None:
    """A stored sort key that is none is an error, never a time."""
    with pytest.raises(UnreadableError, match="sort key"):
        time_of(text)


def test_save_clock_is_strictly_increasing_when_time_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the clock stands still, goes back or starts before 1970: each save is later than the one before."""
    readings: Iterator[int] = iter([-5, 100, 100, 50, 0, 101, 10**9])
    monkeypatch.setattr("time.time_ns", lambda: next(readings))
    clock = SaveClock()
    assert [clock.next() for _ in range(7)] == [1, 100, 101, 102, 103, 104, 10**9]


def test_save_clock_follows_the_time() -> None:
    """On a healthy clock a save has the time of the clock."""
    before = datetime.now(UTC).timestamp() * 10**9
    assert SaveClock().next() >= before - 10**6


@pytest.mark.parametrize(
    "query",
    [
        pytest.param(_queries.LATEST, id="latest"),
        pytest.param(_queries.OLDEST_FIRST, id="oldest first"),
        pytest.param(_queries.IDS_OLDEST_FIRST, id="ids"),
        pytest.param(_queries.ordered(_queries.WHOLE, newest_first=False, limited=False), id="whole"),
        pytest.param(_queries.ordered(_queries.HEADER, newest_first=True, limited=False), id="headers"),
    ],
)
def test_queries_of_a_scope_name_tenant_workflow_and_range(query: str) -> None:
    """Beside the partition key each query has the tenant and the scope as predicates, and every parameter is given."""
    parameters = {entry["name"]: entry["value"] for entry in _queries.in_scope(TenantId("t1"), "w", SCOPE)}
    low, high = scope_range(SCOPE)
    assert parameters == {"@tenant": "t1", "@workflow": "w", "@low": low, "@high": high}
    assert set(re.findall(r"@\w+", query)) == set(parameters)
    assert "c.tenant_id = @tenant" in query
    assert "c.sort_key >= @low AND c.sort_key < @high ORDER BY c.sort_key" in query


def test_a_limit_and_a_beginning_are_parameters() -> None:
    """How many and from where on are never written into a text."""
    query = _queries.ordered(_queries.WHOLE, newest_first=True, limited=True)
    given_parameters = _queries.in_scope(TenantId("t1"), "w", SCOPE, least="from here", limit=3)
    parameters = {entry["name"]: entry["value"] for entry in given_parameters}
    assert query.endswith(" DESC OFFSET 0 LIMIT @limit")
    assert set(re.findall(r"@\w+", query)) == set(parameters)
    assert (parameters["@low"], parameters["@limit"]) == ("from here", 3)


@pytest.mark.parametrize("query", [_queries.BY_ID, _queries.PLACES_OF_ID], ids=["whole", "places"])
def test_query_by_id_names_the_tenant(query: str) -> None:
    """Some emulators ignore a partial partition key, so the tenant is a predicate as well."""
    parameters = {entry["name"]: entry["value"] for entry in _queries.by_id(TenantId("t1"), "cp::x")}
    assert parameters == {"@tenant": "t1", "@id": "cp::x"}
    assert set(re.findall(r"@\w+", query)) == set(parameters)
    assert "c.tenant_id = @tenant" in query


@pytest.mark.parametrize("workflow", [None, "w"], ids=["tenant", "workflow"])
@pytest.mark.parametrize(
    ("query", "values"),
    [
        pytest.param(_queries.WORKFLOWS, {}, id="workflows"),
        pytest.param(_queries.CHILDREN, {"parent": "cp-1"}, id="children"),
    ],
)
def test_queries_of_a_tenant_name_tenant_and_range(query: str, values: dict[str, object], workflow: str | None) -> None:
    """What is asked of a whole tenant has tenant and scope as predicates, and the workflow when it is narrowed."""
    text = query if workflow is None else _queries.in_one_workflow(query)
    given_parameters = _queries.in_tenant(TenantId("t1"), SCOPE, workflow, **values)
    parameters = {entry["name"]: entry["value"] for entry in given_parameters}
    assert set(re.findall(r"@\w+", text)) == set(parameters)
    assert "c.tenant_id = @tenant AND c.sort_key >= @low AND c.sort_key < @high" in text
    assert (parameters["@low"], parameters["@high"]) == scope_range(SCOPE)
    assert parameters.get("@workflow") == workflow
    assert ("c.workflow_name = @workflow" in text) is (workflow is not None)


def test_only_the_newest_is_asked_for() -> None:
    """`LATEST` reads one item, from the end."""
    assert _queries.LATEST.endswith("ORDER BY c.sort_key DESC OFFSET 0 LIMIT 1")
    assert _queries.OLDEST_FIRST.endswith("ORDER BY c.sort_key ASC")
