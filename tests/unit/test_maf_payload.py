"""Payload format ``maf/1``: what goes in comes out, as the framework's own file storage gives it back or better."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from agent_framework import (
    InMemoryCheckpointStorage,
    WorkflowCheckpoint,
    WorkflowEvent,
    WorkflowMessage,
)
from hypothesis import given

from cosmos_workflow_state._maf import RestorePolicy, deserialize, serialize
from support import expenses
from support.payloads import (
    KEY,
    Colour,
    Count,
    Items,
    Level,
    Line,
    Point,
    Ratio,
    Record,
    Text,
    Word,
    any_values,
    checkpoint_of,
    free_keys,
    named_values,
    policy,
    same,
    state_through_payload,
    through_file,
    through_payload,
)
from support.strangers import (
    StrangeText,
)
from support.strategies import quick


@quick
@given(named_values)
def test_comes_back_exactly_as_from_the_file_storage(tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
    """Where keys are texts, every value and its type is what the framework's file storage gives back."""
    expected = through_file(checkpoint_of(value), tmp_path_factory.getbasetemp())
    assert same(through_payload(checkpoint_of(value)), expected)


@quick
@given(any_values)
def test_is_never_less_than_the_file_storage(tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
    """Demand 14: nothing that the file storage accepts is refused; no more than it loses is lost, whatever the keys."""
    folder = tmp_path_factory.getbasetemp()
    expected = through_file(checkpoint_of(value), folder)
    assert same(through_file(through_payload(checkpoint_of(value)), folder), expected)


@quick
@given(free_keys)
def test_keys_keep_their_type_where_that_is_free(value: dict[Any, Any]) -> None:
    """Demand 14: keys that JSON would turn into text come back as they were."""
    assert same(list(state_through_payload(value)), list(value))


@pytest.mark.parametrize(
    "value",
    [
        2**70,
        -(2**70),
        int("9" * 4300),
        1.0,
        0.1 + 0.2,
        math.nan,
        math.inf,
        -math.inf,
        -0.0,
        "\0",
        'quotes " and \\ud83d',
        chr(0xD800),
        chr(0xD83D) + chr(0xDE00),  # a pair of lone surrogates, which is not the character
        chr(0xDE00) + chr(0xD83D),
        chr(0x1F600),
        {"\ud800": "\udfff"},
        {1: "a", "1": "b"},
        {True: "a", "True": "b", None: "c", "None": "d"},
        {1: {2: {3.5: [None]}}},
        {math.nan: math.nan, b"\0": -0.0},
        {"__pickled__": "gASVBQ==", "__type__": "builtins:int"},
        {"__pickled__": 3},
        {"__type__": [{"__pickled__": {"__type__": None}}]},
        [{"a": [{"__pickled__": "x", "b": {"__type__": "y"}}]}],
        {Word.MARKER: 1},
        [Items([1]), Record(a=1), Record(__pickled__=1)],
        (1, (2, [3, {4: 5}])),
        Line(Point(1, {"a": (Point(None, Colour.BLUE),)}), Line.Style()),
        [Colour.RED, (Level.LOW, Word.YES, Text("t"), Count(7), Ratio(0.5))],
        [],
        {},
        "",
        None,
    ],
    ids=repr,
)
def test_comes_back_as_it_was(value: Any) -> None:
    """Values at the edges of JSON, text and pickle come back equal in type and content."""
    assert same(state_through_payload(value), value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [(Level.HIGH, 2), (Word.YES, "yes"), (Text("t"), "t"), (Count(2**70), 2**70), (Ratio(math.inf), math.inf)],
    ids=repr,
)
def test_subclasses_of_json_types_become_those(value: Any, expected: Any) -> None:
    """A bare subclass of str, int or float comes back as the framework's file storage gives it: the plain value."""
    assert same(state_through_payload(value), expected)


@pytest.mark.parametrize("key", [(1, 2), Level.LOW, Word.YES, Text("t"), Colour.RED], ids=repr)
def test_keys_of_other_kinds_become_text_as_in_the_file_storage(key: Any, tmp_path: Path) -> None:
    """A key that is not surely restored becomes text as the framework does it; it is not refused."""
    found = state_through_payload({key: "a"})
    assert same(found, {str(key): "a"})
    assert same(found, through_file(checkpoint_of({key: "a"}), tmp_path).state["value"])


@pytest.mark.parametrize("value", [StrangeText("t"), type("Local", (str,), {})("t")], ids=["unlisted", "unpicklable"])
def test_dict_that_would_not_come_back_whole_is_stored_as_the_framework_does(value: str, tmp_path: Path) -> None:
    """A subclass of str is text in JSON but refused in a pickle: the dict around it is then not pickled."""
    assert same(state_through_payload({1: value}), {"1": "t"})
    assert same(through_file(checkpoint_of({1: value}), tmp_path).state["value"], {"1": "t"})


def test_every_field_comes_back(tmp_path: Path) -> None:
    """A checkpoint of real messages, request events and a sub-workflow's checkpoint inside its state."""
    request = WorkflowEvent.request_info("r-1", "approval", Point("pay?", 7), bool)
    checkpoint = checkpoint_of(
        {"_executor_state": {"child": {"checkpoint": WorkflowCheckpoint("child", "hash", state={"a": (1,)})}}},
        previous_checkpoint_id="cp-0",
        messages={"intake": [WorkflowMessage(Point(1, 2), "intake", "approval", original_request_info_event=request)]},
        pending_request_info_events={"r-1": request},
        iteration_count=4,
        metadata={"nan": math.nan, "big": 2**70},
        version="1.1",
    )
    found = through_payload(checkpoint)
    assert same(found, checkpoint)
    assert same(found, through_file(checkpoint, tmp_path))


async def test_checkpoints_of_a_real_workflow_come_back() -> None:
    """Each checkpoint that the framework makes on the way to a pause comes back as it was, the pending request too."""
    memory = InMemoryCheckpointStorage()
    await expenses.run_to_the_pause(memory)
    checkpoints = await memory.list_checkpoints(workflow_name=expenses.WORKFLOW)
    assert any(checkpoint.pending_request_info_events for checkpoint in checkpoints)
    for checkpoint in checkpoints:
        key = replace(KEY, workflow_name=expenses.WORKFLOW, checkpoint_id=checkpoint.checkpoint_id)
        allowed = RestorePolicy(expenses.ALLOWED)
        assert same(deserialize(serialize(checkpoint, key, allowed), key, RestorePolicy(expenses.ALLOWED)), checkpoint)


def test_payload_is_deterministic() -> None:
    """The same checkpoint gives the same bytes, so that saving it again can be told from saving another."""
    one, other = (serialize(checkpoint_of([{1: Point(1, 2)}, (3,)]), KEY, policy()) for _ in range(2))
    assert one == other


def test_what_comes_back_is_a_copy() -> None:
    """Changing the live state after a save changes nothing that was saved."""
    live: dict[str, Any] = {"items": [1], "point": Point(1, [2])}
    raw = serialize(checkpoint_of(live), KEY, policy())
    live["items"].append(2)
    live["point"].y.append(3)
    assert same(deserialize(raw, KEY, policy()).state["value"], {"items": [1], "point": Point(1, [2])})
