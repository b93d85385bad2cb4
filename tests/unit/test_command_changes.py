"""What two states differ in: complete, minimal where nothing changed, and readable."""

from __future__ import annotations

import json
import math
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cosmos_workflow_state._cli._views._changes import NOTHING, Change, changes, same
from cosmos_workflow_state._cli._views._state import change_json, changes_lines, checkpoint_lines, shown_path
from cosmos_workflow_state.typing import PickledValue
from support.headers import header

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-2, 2)
    | st.floats()
    | st.text("ab\x1b", max_size=2)
    | st.builds(PickledValue, st.just("m:T"), st.integers(1, 2), st.just("0"))
)
STATES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("xy", max_size=2), inner),
    max_leaves=12,
)
INVOICE = PickledValue("support.states:Invoice", 62, "0")


def applied(before: Any, found: list[Change]) -> Any:
    """Do to a value what its differences say."""
    root = [deepcopy(before)]
    removed = [change for change in found if change.kind == "removed"]
    for change in [*(change for change in found if change.kind != "removed"), *reversed(removed)]:
        *way, last = (0, *change.path)
        holder: Any = root
        for step in way:
            holder = holder[step]
        if change.kind == "removed":
            del holder[last]
        elif change.kind == "added" and isinstance(holder, list):
            holder.insert(last, change.after)
        else:
            holder[last] = change.after
    return root[0]


@settings(deadline=None)
@given(STATES, STATES)
def test_differences_are_all_there_is(before: Any, after: Any) -> None:
    """Applied to the one state they give the other."""
    assert same(applied(before, list(changes(before, after))), after)


@settings(deadline=None)
@given(STATES)
def test_what_is_the_same_has_no_differences(state: Any) -> None:
    """A state does not differ from its copy, NaN included."""
    assert list(changes(state, deepcopy(state))) == []


@settings(deadline=None)
@given(STATES, STATES)
def test_differences_can_be_shown(before: Any, after: Any) -> None:
    """Whatever is in a state, its differences are printable lines and valid JSON."""
    found = list(changes(before, after))

    assert all(line.plain.isprintable() for line in changes_lines("a", "b", found, 40))
    json.dumps([change_json(change) for change in found], allow_nan=False)


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        pytest.param([1], [True], [Change((0,), before=1, after=True)], id="a number is no truth value"),
        pytest.param(1, 1.0, [Change((), 1, 1.0)], id="kinds of numbers"),
        pytest.param({"a": 1}, {"b": 1}, [Change(("a",), 1, NOTHING), Change(("b",), NOTHING, 1)], id="another key"),
        pytest.param([1, 2, 3], [1, 3], [Change((1,), 2, NOTHING)], id="an item less"),
        pytest.param([1, 3], [1, 2, 3], [Change((1,), NOTHING, 2)], id="an item more"),
        pytest.param(["a"], ["b", "a"], [Change((0,), NOTHING, "b")], id="an item more in front"),
        pytest.param([{"x": 1}], [{"x": 2}], [Change((0, "x"), 1, 2)], id="within an item"),
        pytest.param({"a": None}, {}, [Change(("a",), None, NOTHING)], id="None is a value"),
        pytest.param([], {}, [Change((), [], {})], id="another kind"),
    ],
)
def test_differences(before: Any, after: Any, found: list[Change]) -> None:
    """Paths are as deep as the difference, and items that stay are recognised at both ends of a list."""
    assert list(changes(before, after)) == found


def test_lines_of_differences() -> None:
    """What fits is one line; what does not has its two sides below its path, as a patch has."""
    found = [
        Change(("state", "total"), 1, 2),
        Change(("state", "an odd.key", 0), NOTHING, "x" * 100),
        Change(("state", "invoice"), INVOICE, PickledValue("support.states:Invoice", 1070, "1")),
    ]

    assert [line.plain for line in changes_lines("cp-1", "cp-2", found, 80)] == [
        "- cp-1",
        "+ cp-2",
        "3 differences (1 added, 2 changed)",
        "",
        "~ state.total: 1 -> 2",
        '+ state["an odd.key"][0]',
        f'    + "{"x" * 70}...',
        "~ state.invoice",
        "    - <pickled support.states:Invoice, 62 bytes>",
        "    + <pickled support.states:Invoice, 1,070 bytes>",
    ]


def test_no_difference_is_said() -> None:
    """Two states that are the same are not silence."""
    assert [line.plain for line in changes_lines("a", "b", [], None)] == ["- a", "+ b", "0 differences"]


def test_json_of_a_difference_has_the_sides_that_are_there() -> None:
    """None is a value, and is told apart from nothing."""
    assert change_json(Change(("a", 0), None, NOTHING)) == {"kind": "removed", "path": ["a", 0], "before": None}
    assert change_json(Change((), NOTHING, math.inf)) == {"kind": "added", "path": [], "after": "Infinity"}
    assert change_json(Change(("i",), 1, INVOICE))["after"] == {"__pickled__": 62, "__type__": "support.states:Invoice"}


def test_paths_are_written_as_in_a_program() -> None:
    """Names follow a dot, everything else is in brackets."""
    assert (
        shown_path(("state", "_executor_state", "req-1", 2, "a\x1b")) == r'state._executor_state["req-1"][2]["a\u001b"]'
    )


@pytest.mark.parametrize("width", [40, None], ids=["narrow", "pipe"])
def test_a_checkpoint_is_its_header_and_an_outline(width: int | None) -> None:
    """Pickles are named, not restored; texts are shortened; empty containers are seen; the id is whole."""
    state = {"invoice": INVOICE, "lines": ["a" * 100, {}], "none": None, "\x1b[31m": [], "nan": math.nan}
    fields = {"checkpoint_id": "cp-1", "state": state, "version": "1.0"}
    room = 26 if width else 56
    pickled = "<pickled Invoice, 62 bytes>" if width else "<pickled support.states:Invoice, 62 bytes>"

    lines = [line.plain for line in checkpoint_lines(header("cp-1" * 20, pending=("r-1",)), fields, width)]

    assert lines[0] == f"checkpoint  {'cp-1' * 20}"
    assert "waits for   r-1" in lines
    assert lines[lines.index("") + 1 :] == [
        "state:",
        f"  invoice: {pickled}",
        "  lines:",
        f'    [0]: "{"a" * (room if width is None else 27)}...',
        "    [1]: {}",
        "  none: null",
        r"  \x1b[31m: []",
        '  nan: "NaN"',
        'version: "1.0"',
    ]
