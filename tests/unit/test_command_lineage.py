"""Lineages as forests, and how they are drawn: nothing left out, nothing twice, nothing too wide."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cosmos_workflow_state._cli._views._lineage import Branch, Forest, Gap, Node, drawn, forest_of, related_to
from cosmos_workflow_state._cli._views._tree import tree_json, tree_lines
from cosmos_workflow_state.typing import CheckpointSummary
from support.headers import forked_workflow, header, headers

NAMES = [f"cp-{number}" for number in range(12)]
# Parents anywhere, also later ones and such as are not there: what is stored need not make sense.
ANY_PARENTS = st.lists(st.sampled_from([None, "gone", *NAMES]), max_size=len(NAMES))
TREES = st.lists(st.integers(min_value=0), min_size=1, max_size=200).map(
    lambda numbers: headers(
        *((f"cp-{index}", f"cp-{number % index}" if index else None) for index, number in enumerate(numbers))
    )
)


def drawing(forest: Forest, *, everything: bool = False, width: int | None = None) -> list[str]:
    """Return the lines of a forest as texts."""
    return [line.plain for line in tree_lines("invoices", forest, width, everything=everything)]


def ids(found: list[CheckpointSummary]) -> list[str]:
    """Return which checkpoints these are."""
    return [one.checkpoint_id for one in found]


@settings(deadline=None)
@given(ANY_PARENTS)
def test_every_checkpoint_is_drawn_once(parents: list[str | None]) -> None:
    """Whatever parents are named, circles and missing ones too, each checkpoint has one place."""
    forest = forest_of(headers(*zip(NAMES, parents, strict=False)))

    rows = [row for root in forest.roots for row in drawn(forest, root, everything=True)]

    assert sorted(ids([row.header for row in rows if isinstance(row, Node)])) == sorted(forest.headers)
    assert not any(isinstance(row, Gap) for row in rows)


@settings(deadline=None)
@given(TREES)
def test_a_drawing_stays_narrow(found: list[CheckpointSummary]) -> None:
    """However often it forks, a lineage is indented at most once more than the logarithm of its length."""
    forest = forest_of(found)
    rows = list(drawn(forest, forest.roots[0], everything=False))

    assert max(row.depth for row in rows) <= 1 + math.log2(len(found))
    assert sum(1 if isinstance(row, Node) else row.count if isinstance(row, Gap) else 0 for row in rows) == len(found)
    assert sum(isinstance(row, Branch) for row in rows) == sum(len(forest.children[one]) - 1 for one in forest.forks)


@settings(deadline=None)
@given(TREES)
def test_what_matters_is_never_in_a_gap(found: list[CheckpointSummary]) -> None:
    """Roots, forks and ends are drawn one by one."""
    forest = forest_of(found)
    shown = {row.header.checkpoint_id for row in drawn(forest, "cp-0", everything=False) if isinstance(row, Node)}

    assert {"cp-0", *forest.forks, *(one for one, children in forest.children.items() if not children)} <= shown


def test_the_main_line_leads_to_the_newest() -> None:
    """At a fork the way to the newest checkpoint goes straight on, however small it is."""
    forest = forest_of(headers(("a", None), ("old-1", "a"), ("old-2", "old-1"), ("new", "a")))

    assert forest.children["a"] == ("old-1", "new")
    assert (forest.newest, forest.forks, forest.roots) == ("new", ["a"], ("a",))


def test_a_circle_is_drawn_from_its_oldest() -> None:
    """Checkpoints that name one another as parents, or themselves, end nowhere and are drawn all the same."""
    forest = forest_of(headers(("a", "c"), ("b", "a"), ("c", "b"), ("d", "d")))

    assert forest.roots == ("a", "d")
    assert [line for line in drawing(forest) if line.startswith("*")] == [
        "* a  2026-11-29 10:00:00  step 0",
        "* b  2026-11-29 10:00:07  step 1",
        "* c  2026-11-29 10:00:14  step 2",
        "* d  2026-11-29 10:00:21  step 3  newest",
    ]


def test_a_lineage_of_ten_thousand_is_drawn() -> None:
    """Depth is no matter of Python's stack."""
    forest = forest_of(headers(*((f"{number}", f"{number - 1}" if number else None) for number in range(10_000))))

    assert len(drawing(forest)) == 5
    assert len(drawing(forest, everything=True)) == 10_002
    json.dumps(tree_json("invoices", forest))


def test_relatives_are_ancestors_and_descendants() -> None:
    """What came from another child of an ancestor is no relative."""
    forest = forest_of(headers(("a", None), ("b", "a"), ("side", "a"), ("c", "b"), ("d", "c"), ("e", "c")))

    assert ids(related_to(forest, "c")) == ["a", "b", "c", "d", "e"]
    assert ids(related_to(forest, "side")) == ["a", "side"]


def test_a_fork_and_two_pending_approvals_among_100_at_80_columns() -> None:
    """What one looks for is seen at once: where it forks, what waits and for which request."""
    assert drawing(forest_of(forked_workflow()), width=80) == [
        "invoices: 100 checkpoints, 1 fork, 2 waiting for an answer",
        "",
        "* cp-000  2026-11-29 10:00:00  step 0",
        ": 39 more, step 1 to 39",
        "* cp-040  2026-11-29 10:04:40  step 40  fork: 2 children",
        "|\\",
        "| * cp-041  2026-11-29 10:04:47  step 41",
        "| : 17 more, step 42 to 58",
        "| * cp-059  2026-11-29 10:06:53  step 59  WAITS for 1 answer",
        "|     request request-of-cp-059",
        "* cp-060  2026-11-29 10:07:00  step 60",
        ": 38 more, step 61 to 98",
        "* cp-099  2026-11-29 10:11:33  step 99  newest, WAITS for 1 answer",
        "    request request-of-cp-099",
    ]


def test_a_narrow_terminal_has_remarks_on_lines_of_their_own() -> None:
    """At 40 columns there is no room for times, and no line is broken in two."""
    lines = drawing(forest_of(forked_workflow()), width=40)

    assert max(map(len, lines)) <= 40
    assert lines[:3] == ["invoices:", "  100 checkpoints, 1 fork,", "  2 waiting for an answer"]
    assert lines[6:8] == ["* cp-040  step 40", "|   fork: 2 children"]


@pytest.mark.parametrize(("width", "told"), [(None, 101), (80, 4)], ids=["pipe", "terminal"])
def test_many_requests(width: int | None, told: int) -> None:
    """A terminal shows a few of many requests and counts the rest; a pipe gets all that the header has."""
    pending = tuple(f"request-{number:03}" for number in range(100))
    one = header("cp-1", "gone", pending=pending, pending_request_count=150)

    lines = drawing(forest_of([one]), width=width)

    assert lines[2].endswith("newest, WAITS for 150 answers, parent is gone")
    assert len(lines[3:]) == told
    assert lines[-1].strip() == f"and {150 - told + 1} more"


def test_a_question_that_was_answered_is_told_where_it_was_asked() -> None:
    """What waited once and goes on is not waiting, and only the first checkpoint of the pause tells of it."""
    chain = [header("a"), header("b", "a", pending=("r",)), header("c", "b", pending=("r",)), header("d", "c")]
    forest = forest_of(chain)

    assert forest.waiting == []
    assert [row.told for row in drawn(forest, "a", everything=True) if isinstance(row, Node)] == [
        True,
        True,
        False,
        True,
    ]
    assert "asked 1 question" in drawing(forest)[3]


def test_the_json_of_a_tree_is_flat() -> None:
    """Roots, children and what waits are ids; readers of JSON need not follow a lineage into its depth."""
    found = tree_json("invoices", forest_of(headers(("a", None), ("b", "a"), ("c", "a"), waiting=("b",))))

    assert {name: found[name] for name in ("workflow_name", "roots", "newest", "forks", "waiting")} == {
        "workflow_name": "invoices",
        "roots": ["a"],
        "newest": "c",
        "forks": ["a"],
        "waiting": ["b"],
    }
    assert [one["children"] for one in found["checkpoints"]] == [["b", "c"], [], []]


def test_a_circle_of_parents_is_related_to_what_hangs_on_it() -> None:
    """All of a circle are ancestors of what comes after one of them, and no parent that is there is said to be gone."""
    forest = forest_of([header("a", "b"), header("b", "a"), header("child", "a"), header("other", "gone")])
    related = related_to(forest, "child")

    assert [one.checkpoint_id for one in related] == ["a", "b", "child"]
    assert "parent is gone" not in "".join(drawing(forest_of(related)))
