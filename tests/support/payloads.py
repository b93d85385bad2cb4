"""Values that a workflow's state may hold, how to compare them strictly, and the framework's file storage as oracle."""

from __future__ import annotations

import asyncio
import math
from collections import Counter, OrderedDict, defaultdict, deque
from dataclasses import dataclass, fields
from datetime import UTC
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from pathlib import Path
from typing import Any

import pytest
from agent_framework import FileCheckpointStorage, WorkflowCheckpoint, WorkflowEvent, WorkflowMessage
from hypothesis import strategies as st

from cosmos_workflow_state._identity import Scope, TenantId
from cosmos_workflow_state._maf import RestorePolicy, deserialize, serialize
from cosmos_workflow_state._records import CheckpointKey, RefusedTypesError

KEY = CheckpointKey(TenantId("contoso"), Scope("session-42"), "invoice-approval", "cp-1")


class Colour(Enum):
    """An enum of an application."""

    RED = "red"
    BLUE = ("b", 1)


class Level(IntEnum):
    """An int that is more than an int."""

    LOW = 1
    HIGH = 2


class Word(StrEnum):
    """A str that is more than a str."""

    YES = "yes"
    MARKER = "__pickled__"


class Text(str):
    """A subclass of str."""

    __slots__ = ()


class Count(int):
    """A subclass of int."""


class Ratio(float):
    """A subclass of float."""


class Record(dict[str, Any]):
    """A subclass of dict."""


class Items(list[Any]):
    """A subclass of list."""


@dataclass
class Point:
    """A dataclass."""

    x: Any
    y: Any


@dataclass(frozen=True, slots=True)
class Line:
    """A dataclass with slots that holds others."""

    start: Point
    end: Any

    class Style:
        """A class inside a class."""

        def __eq__(self, other: object) -> bool:
            """Compare by class."""
            return type(other) is type(self)

        def __hash__(self) -> int:
            """Hash as `__eq__` compares."""
            return 0


ALLOWED = frozenset(
    f"{kind.__module__}:{kind.__qualname__}"
    for kind in (Colour, Level, Word, Text, Count, Ratio, Record, Items, Point, Line, Line.Style)
)
"""The types of this module, as a user lists them."""


def policy(*more: str) -> RestorePolicy:
    """Return a policy that has checked nothing yet and allows the types of this module and more."""
    return RestorePolicy(ALLOWED | frozenset(more))


def checkpoint_of(state: Any, **changes: Any) -> WorkflowCheckpoint:
    """Return the checkpoint of `KEY` with a state."""
    values: dict[str, Any] = {
        "workflow_name": KEY.workflow_name,
        "checkpoint_id": KEY.checkpoint_id,
        "graph_signature_hash": "0" * 64,
        "timestamp": "2026-11-29T10:00:00.123456+00:00",
        "state": {"value": state},
    }
    return WorkflowCheckpoint(**(values | changes))


def refusal_of(state: Any, **changes: Any) -> RefusedTypesError:
    """Return the error with which a state is refused."""
    with pytest.raises(RefusedTypesError) as raised:
        serialize(checkpoint_of(state, **changes), KEY, policy())
    return raised.value


def through_payload(checkpoint: WorkflowCheckpoint) -> WorkflowCheckpoint:
    """Return what comes back from our payload, read by a process that has seen nothing of it."""
    return deserialize(serialize(checkpoint, KEY, policy()), KEY, policy())


def state_through_payload(state: Any) -> Any:
    """Return the state that comes back from our payload."""
    return through_payload(checkpoint_of(state)).state["value"]


def through_file(checkpoint: WorkflowCheckpoint, folder: Path) -> WorkflowCheckpoint:
    """Return what comes back from the framework's file storage."""

    async def save_and_load() -> WorkflowCheckpoint:
        storage = FileCheckpointStorage(folder, allowed_checkpoint_types=sorted(ALLOWED))
        return await storage.load(await storage.save(checkpoint))

    return asyncio.run(save_and_load())


def same(one: Any, other: Any) -> bool:
    """Return whether two values are the same in type, order and every part; NaN is the same as NaN, 0.0 not as -0.0."""
    return type(one) is type(other) and _same_content(one, other)


def _same_content(one: Any, other: Any) -> bool:
    match one:
        case float():
            content = (one == other and repr(one) == repr(other)) or (math.isnan(one) and math.isnan(other))
        case complex():
            content = same((one.real, one.imag), (other.real, other.imag))
        case dict():
            content = same([*map(list, one.items())], [*map(list, other.items())])
        case list() | tuple() | deque():
            content = len(one) == len(other) and all(map(same, one, other))
        case set() | frozenset():
            content = same(sorted(one, key=repr), sorted(other, key=repr))
        case WorkflowEvent():
            content = same(vars(one), vars(other))
        case Point() | Line() | WorkflowMessage() | WorkflowCheckpoint():
            content = all(same(getattr(one, field.name), getattr(other, field.name)) for field in fields(one))
        case Decimal():
            content = repr(one) == repr(other)  # NaN is not equal to itself, a signalling one raises
        case _:
            content = bool(one == other)
    return content


_integers = st.integers() | st.sampled_from([2**53 + 1, 2**63, 2**70, -(2**70)])
_floats = st.floats() | st.sampled_from([math.nan, math.inf, -math.inf, -0.0, 5e-324])
_texts = st.text(st.characters(exclude_categories=("Cs",))) | st.sampled_from(
    ["", "\0", "\u2028", '"\\ud800', "\U0001f600"]
)
_natives = st.none() | st.booleans() | _integers | _floats | _texts
_hashables = (
    st.none()
    | st.booleans()
    | _integers
    | _texts
    | st.binary(max_size=8)
    | st.dates()
    | st.sampled_from([*Colour, *Level])
)
_subclasses = (
    st.sampled_from([*Colour, *Level, *Word])
    | _texts.map(Text)
    | _integers.map(Count)
    | _floats.map(Ratio)
    | st.builds(Line.Style)
)
_others = (
    st.binary(max_size=20)
    | st.binary(max_size=20).map(bytearray)
    | st.datetimes(timezones=st.none() | st.just(UTC))
    | st.dates()
    | st.times()
    | st.timedeltas()
    | st.uuids()
    | st.decimals()
    | st.complex_numbers()
    | st.just(range(1, 9, 2))
    | st.sets(_hashables, max_size=3)
    | st.frozensets(_hashables, max_size=3)
)
_leaves = _natives | _subclasses | _others
_marked = st.sampled_from(["__pickled__", "__type__", "a"])
_keys = (
    _natives | st.sampled_from([*Colour, *Level, *Word, 1, "1", True, "True", None, "None", (1, 2)]) | _texts.map(Text)
)


def _containers(values: st.SearchStrategy[Any], keys: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    few = st.lists(values, max_size=3)
    named = st.dictionaries(_texts, values, max_size=3)
    return (
        few
        | named
        | few.map(tuple)
        | few.map(Items)
        | few.map(deque)
        | named.map(Record)
        | named.map(OrderedDict)
        | named.map(lambda items: defaultdict(list, items))
        | st.lists(_hashables, max_size=4).map(Counter)
        | st.dictionaries(keys, values, max_size=3)
        | st.dictionaries(_marked, values, min_size=1, max_size=3)
        | st.builds(Point, values, values)
        | st.builds(Line, st.builds(Point, values, values), values)
        | st.builds(WorkflowMessage, values, source_id=_texts)
        | st.builds(WorkflowEvent.request_info, _texts, _texts, values, st.sampled_from([str, int, Point, Colour]))
        | named.map(lambda items: WorkflowCheckpoint("sub-workflow", "hash", state=items))
    )


named_values = st.recursive(_leaves, lambda values: _containers(values, _texts), max_leaves=12)
"""Values whose plain dicts have keys of exactly str, the reserved ones too."""

any_values = st.recursive(_leaves, lambda values: _containers(values, _keys), max_leaves=12)
"""Values whose dicts have keys of any hashable kind, also keys that are the same once they are text."""

free_keys = st.dictionaries(
    st.none() | st.booleans() | _integers | _floats | _texts | st.binary(max_size=8), any_values, max_size=4
)
"""Dicts whose keys keep their kind at no cost."""
