"""Aggregates and GROUP BY: values, types, undefined, pages."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosmos_workflow_state.emulator._query import QueryError, parse
from support.queries import ListSource, rows_of

SELECT = "SELECT {} FROM c"

ITEMS: list[dict[str, Any]] = [
    {"id": "0", "kind": "a", "n": 3, "mixed": 1, "tags": ["x"]},
    {"id": "1", "kind": "b", "n": 1, "mixed": "one", "tags": []},
    {"id": "2", "kind": "a", "n": 2.5, "mixed": None},
    {"id": "3", "n": 4, "mixed": True},
    {"id": "4", "kind": None, "mixed": 7},
]


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        ("VALUE COUNT(1)", [5]),
        ("VALUE COUNT(c.kind)", [4]),
        ("VALUE COUNT(c.missing)", [0]),
        ("VALUE SUM(c.n)", [10.5]),
        ("VALUE SUM(c.n * 2)", [21]),
        ("VALUE SUM(c.mixed)", []),
        ("VALUE SUM(c.missing)", [0]),
        ("VALUE AVG(c.n)", [2.625]),
        ("VALUE AVG(c.mixed)", []),
        ("VALUE AVG(c.missing)", []),
        ("VALUE MIN(c.n)", [1]),
        ("VALUE MAX(c.n)", [4]),
        ("VALUE MIN(c.mixed)", [None]),
        ("VALUE MAX(c.mixed)", ["one"]),
        ("VALUE MIN(c.missing)", []),
        ("VALUE MAX(c.tags)", []),
        ("VALUE min(@p)", [9]),
        ("VALUE COUNT(1) + MAX(c.n)", [9]),
        ("VALUE {n: COUNT(1), none: AVG(c.mixed)}", [{"n": 5}]),
        ("VALUE [COUNT(1), @p, 'x']", [[5, 9, "x"]]),
        ("DISTINCT VALUE COUNT(1)", [5]),
        ("COUNT(1)", [{"$1": 5}]),
        ("COUNT(1) AS total, MIN(c.n) AS least, AVG(c.mixed) AS nothing", [{"total": 5, "least": 1}]),
        ("SUM(c.n), SUM(c.n)", [{"$1": 10.5, "$2": 10.5}]),
    ],
)
def test_aggregates_over_all_items(selection: str, expected: list[Any]) -> None:
    """Each aggregate over numbers, mixed types, arrays and nothing; in SELECT VALUE, in lists and in expressions."""
    assert rows_of(SELECT.format(selection), ITEMS, p=9) == expected


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        ("VALUE COUNT(1)", [0]),
        ("VALUE SUM(c.n)", [0]),
        ("VALUE AVG(c.n)", []),
        ("VALUE MIN(c.n)", []),
        ("COUNT(1) AS n, MAX(c.n) AS m", [{"n": 0}]),
    ],
)
def test_aggregates_over_no_items(selection: str, expected: list[Any]) -> None:
    """Without items there still is one row, unless its value is undefined; with GROUP BY there is none."""
    assert rows_of(SELECT.format(selection) + " WHERE false", ITEMS) == expected
    assert rows_of(SELECT.format(selection) + " WHERE false GROUP BY c.kind", ITEMS) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "SELECT c.kind, COUNT(1) AS n, SUM(c.n) AS s FROM c GROUP BY c.kind",
            [
                {"n": 1, "s": 4},
                {"kind": None, "n": 1, "s": 0},
                {"kind": "a", "n": 2, "s": 5.5},
                {"kind": "b", "n": 1, "s": 1},
            ],
        ),
        ("SELECT VALUE c.kind FROM c GROUP BY c.kind", [None, "a", "b"]),
        ("SELECT VALUE MAX(c.n) FROM c GROUP BY c.kind", [4, 3, 1]),
        ("SELECT VALUE UPPER(c.kind) FROM c WHERE IS_STRING(c.kind) GROUP BY c.kind", ["A", "B"]),
        ("SELECT VALUE [c.n > 2, COUNT(1)] FROM c GROUP BY c['n'] > 2", [[1], [False, 1], [True, 3]]),
        ("SELECT c.kind, c.n FROM c WHERE c.n > 2 GROUP BY c.n, c.kind", None),
        ("SELECT DISTINCT VALUE COUNT(1) FROM c GROUP BY c.kind", [1, 2]),
        ("SELECT VALUE 'x' FROM c GROUP BY c.kind", ["x", "x", "x", "x"]),
        ("SELECT VALUE c.kind FROM c GROUP BY c.kind OFFSET 1 LIMIT 1", ["a"]),
        ("SELECT TOP 1 VALUE COUNT(1) FROM c GROUP BY c.kind", [1]),
        ("SELECT VALUE c FROM c WHERE c.id = '4' GROUP BY c", [ITEMS[4]]),
        ("SELECT VALUE COUNT(1) FROM c GROUP BY 1", [5]),
    ],
)
def test_group_by(text: str, expected: list[Any] | None) -> None:
    """Groups by properties and expressions; undefined and null are groups of their own."""
    wanted = [{"kind": "a", "n": 2.5}, {"kind": "a", "n": 3}, {"n": 4}] if expected is None else expected
    assert rows_of(text, ITEMS) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "SELECT c.kind, COUNT(1) AS n FROM c GROUP BY c.kind",
        "SELECT DISTINCT VALUE COUNT(1) FROM c GROUP BY c.kind",
        "SELECT VALUE c.kind FROM c GROUP BY c.kind OFFSET 1 LIMIT 2",
        "SELECT VALUE SUM(c.n) FROM c",
    ],
)
def test_groups_in_pages_are_the_groups(text: str) -> None:
    """Resuming behind any group gives exactly the rest."""
    plan = parse(text).bind({})
    rows = list(plan.rows(ListSource(ITEMS)))
    assert rows
    for number, row in enumerate(rows):
        assert list(plan.rows(ListSource(ITEMS), after=row.position)) == rows[number + 1 :]


def test_plans_with_groups_can_run_more_than_once() -> None:
    """What one run gathers is not seen by another, not even by one that runs at the same time."""
    plan = parse("SELECT c.kind, COUNT(1) AS n FROM c GROUP BY c.kind").bind({})
    first, second = plan.rows(ListSource(ITEMS)), plan.rows(ListSource(ITEMS[:1]))
    assert [next(first).value, next(second).value] == [{"n": 1}, {"kind": "a", "n": 1}]
    assert [row.value for row in first][-1] == {"kind": "b", "n": 1}


def test_a_huge_selection_beside_group_by_is_refused() -> None:
    """Every part of SELECT is compared with what is grouped by, so there is a limit to the parts."""
    wide = ", ".join(["1"] * 2001)
    with pytest.raises(QueryError, match="2000 parts"):
        parse(SELECT.format(f"VALUE [{wide}]") + " GROUP BY c.a")
    assert rows_of(SELECT.format(f"VALUE ARRAY_LENGTH([COUNT(1), {wide}])"), ITEMS) == [2002]


NUMBERS = st.lists(st.integers(-1000, 1000), max_size=20)


@given(numbers=NUMBERS)
def test_aggregates_agree_with_python(numbers: list[int]) -> None:
    """Over whole numbers every aggregate is what Python says."""
    items = [{"id": str(place), "n": number} for place, number in enumerate(numbers)]
    text = "SELECT COUNT(c.n) AS c, SUM(c.n) AS s, MIN(c.n) AS l, MAX(c.n) AS h, AVG(c.n) AS a FROM c"
    some = {"l": min(numbers), "h": max(numbers), "a": sum(numbers) / len(numbers)} if numbers else {}
    assert rows_of(text, items) == [{"c": len(numbers), "s": sum(numbers), **some}]
