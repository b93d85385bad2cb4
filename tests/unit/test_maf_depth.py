"""State that nests deep, contains itself or meets a full stack: it comes back, or a typed error says why not."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable
from typing import Any

import pytest

from cosmos_workflow_state._maf import deserialize, serialize
from cosmos_workflow_state._records import RefusedTypesError, UnreadableError
from support.payloads import (
    KEY,
    Point,
    checkpoint_of,
    policy,
    refusal_of,
    state_through_payload,
)


def nested(levels: int, innermost: Any = 1) -> Any:
    """Return lists and dicts in one another."""
    value = innermost
    for level in range(levels):
        value = [value] if level % 2 else {"k": value}
    return value


@pytest.mark.parametrize("innermost", [1, (1,), {1: 2}], ids=repr)
def test_200_levels_come_back(innermost: Any) -> None:
    """Deep state is ordinary."""
    assert state_through_payload(nested(200, innermost)) == nested(200, innermost)


@pytest.mark.parametrize("levels", [254, 255])
def test_limit_of_depth(levels: int) -> None:
    """256 levels, the checkpoint's own two among them, are the limit."""
    if levels == 254:
        assert state_through_payload(nested(levels)) == nested(levels)
    else:
        assert "256 levels" in str(refusal_of(nested(levels)))


@pytest.mark.parametrize("levels", [300, 100_000])
def test_too_deep_is_refused(levels: int) -> None:
    """Beyond it the save is refused, not the load; no RecursionError escapes."""
    refusal_of(nested(levels))


def test_state_that_contains_itself_is_refused() -> None:
    """A loop in plain lists and dicts has no end to write."""
    loop: list[Any] = []
    loop.append({"again": loop})
    assert "contains itself" in str(refusal_of(loop))


def test_loop_beside_something_unpicklable_is_refused() -> None:
    """The search for what cannot be pickled does not fall into the loop."""
    loop: list[Any] = []
    loop.append(loop)
    assert "contains itself" in str(refusal_of([threading.Lock(), loop]))


def test_objects_that_refer_to_themselves_come_back() -> None:
    """A loop inside a pickled object is pickle's to keep."""
    loop = Point(1, None)
    loop.y = loop
    found = state_through_payload(loop)
    assert found.y is found


def on_a_stack_of(frames: int, call: Callable[[], object]) -> object:
    """Call from deeper down the stack."""
    return call() if frames == 0 else on_a_stack_of(frames - 1, call)


def outcome_of(call: Callable[[], object]) -> tuple[str, str]:
    """Return the kind and message of the error that a call ends with; the stack may end before the call."""
    try:
        call()
    except (RefusedTypesError, UnreadableError) as error:
        return type(error).__name__, str(error)
    except RecursionError as error:
        return "RecursionError", traceback.extract_tb(error.__traceback__)[-1].name
    return "", ""


def test_caller_with_little_stack_left_gets_our_errors() -> None:
    """However deep the caller is, saving and loading work or say in our words that there is no room."""
    checkpoint = checkpoint_of([nested(60, (1,)), {1: Point(1, nested(10))}])
    raw = serialize(checkpoint, KEY, policy())
    calls = (lambda: serialize(checkpoint, KEY, policy()), lambda: deserialize(raw, KEY, policy()))
    outcomes = {
        outcome_of(lambda frames=frames, call=call: on_a_stack_of(frames, call))
        for frames in range(500, 930)
        for call in calls
    }
    ours = {outcome for outcome in outcomes if outcome[0] != "RecursionError"}
    assert ours == {
        ("", ""),
        ("RefusedTypesError", "the state contains itself or nests too deep"),
        ("UnreadableError", "the payload nests deeper than the caller's stack leaves room for"),
    }
    assert {name for _, name in outcomes - ours} <= {"on_a_stack_of", "<lambda>", "policy"}


def test_integer_of_5000_digits_is_refused_where_json_writes_it() -> None:
    """Python would neither write nor read it; inside a tuple, which is pickled, it comes back."""
    huge = 10**5000
    assert "digits" in str(refusal_of({"n": huge}))
    assert state_through_payload((huge,)) == (huge,)
