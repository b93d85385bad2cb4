"""The pure parts of a migration: what is the same, what is decoded, in which order, and how work is shared out."""

from __future__ import annotations

import asyncio
import copy
import pickle
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import pytest
from agent_framework import WorkflowCheckpoint
from agent_framework._workflows._checkpoint_encoding import decode_checkpoint_value, encode_checkpoint_value
from hypothesis import given
from hypothesis import strategies as st

from cosmos_workflow_state._maf import RestorePolicy
from cosmos_workflow_state._migration._ends import in_turn
from cosmos_workflow_state._migration._equality import same
from cosmos_workflow_state._migration._job import UnfitError
from cosmos_workflow_state._migration._upstream import Header, decode, in_order
from cosmos_workflow_state.testing._values import ALLOWED_TYPES, VALUES, form


class Plain:
    """A class that does not say when two of it are equal."""

    def __init__(self, value: Any) -> None:
        self.value = value


class Unpicklable:
    """A class that cannot be taken apart."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Refuse."""
        raise TypeError(protocol)


class Named:
    """A class that pickle knows by a name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Return the name."""
        del protocol
        return self.name


def circle(value: Any) -> Plain:
    """Return an object that holds itself."""
    made = Plain([value])
    made.value.append(made)
    return made


def deep(value: Any, levels: int = 5000) -> Any:
    """Return a value far below many lists."""
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("name", VALUES)
def test_a_copy_is_the_same(name: str) -> None:
    """Every value of the corpus, after a way through pickle, NaN included."""
    value = VALUES[name]
    assert same(value, pickle.loads(pickle.dumps(value)))  # noqa: S301 - made right here
    assert same(value, copy.deepcopy(value))


@pytest.mark.parametrize("name", VALUES)
def test_every_value_differs_from_the_others(name: str) -> None:
    """No value of the corpus is taken for another one."""
    assert [other for other, value in VALUES.items() if same(VALUES[name], value)] == [name]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True),
        (1, 1.0),
        (0.0, -0.0),
        ("a", "b"),
        ([1], [1, 2]),
        ([1], (1,)),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({"a": 1}, {"a": 2}),
        ({1}, {2}),
        ({Plain(1)}, {Plain(2)}),
        (Plain(1), Plain(2)),
        (Plain([Plain({1, 2})]), Plain([Plain({1, 3})])),
        (OrderedDict(a=1), OrderedDict(a=2)),
        (int, str),
        (Plain, Named),
        (Named("a"), Named("b")),
        (Named("a"), Plain("a")),
        (Unpicklable(), Unpicklable()),
        (circle(1), circle(2)),
        (deep(1), deep(2)),
        (complex(0.0, 1), complex(-0.0, 1)),
    ],
)
def test_what_is_not_the_same(one: Any, other: Any) -> None:
    """However deep it lies, and whatever it says of itself."""
    assert not same(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Plain([float("nan")]), Plain([float("nan")])),
        ({Plain(1)}, {Plain(1)}),
        (frozenset({Plain(1), Plain(2)}), frozenset({Plain(2), Plain(1)})),
        (circle(1), circle(1)),
        (deep(1), deep(1)),
        (Plain(int), Plain(int)),
        (Named("a"), Named("a")),
    ],
    ids=["nan", "set", "frozenset", "circle", "deep", "class", "named"],
)
def test_what_is_the_same_without_saying_so(one: Any, other: Any) -> None:
    """Where ``==`` would not know."""
    assert same(one, other)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.binary(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)


@given(_JSON, _JSON)
def test_it_agrees_with_a_comparison_part_by_part(one: Any, other: Any) -> None:
    """On plain values it says what the comparison of the test kit says."""
    assert same(one, other) == (form(one) == form(other))
    assert same(one, copy.deepcopy(one))


@pytest.mark.parametrize("name", VALUES)
def test_decoding_is_the_frameworks(name: str) -> None:
    """What an item holds is decoded as the framework's storage decodes it under the same allow-list."""
    encoded = encode_checkpoint_value(WorkflowCheckpoint("w", "h", "cp", state={"value": VALUES[name]}).to_dict())
    item = {"id": "w_cp", **encoded, "_rid": "", "_self": "", "_etag": "", "_attachments": "", "_ts": 1}
    allowed = frozenset(ALLOWED_TYPES)
    theirs = WorkflowCheckpoint.from_dict(decode_checkpoint_value(encoded, allowed_types=allowed))

    assert same(decode(item, RestorePolicy(allowed)), theirs)


def test_what_nests_too_deep_is_refused() -> None:
    """As everywhere, before Python gives up."""
    with pytest.raises(UnfitError, match="nests too deep"):
        decode({"state": deep(1)}, RestorePolicy(frozenset()))


def header(checkpoint_id: str, timestamp: str, parent: str | None = None) -> Header:
    """Return a header with what orders it."""
    return Header(f"w_{checkpoint_id}", checkpoint_id, parent, timestamp, 0)


@given(st.lists(st.tuples(st.sampled_from("0123456789"), st.none() | st.integers(0, 9)), max_size=10))
def test_each_is_placed_once_and_after_its_parent(drawn: Sequence[tuple[str, int | None]]) -> None:
    """In the order of time but for that, whatever clocks and parents are."""
    known = [
        header(str(number), time, None if parent is None or parent >= number else str(parent))
        for number, (time, parent) in enumerate(drawn)
    ]
    placed = in_order(known)
    position = {one.checkpoint_id: index for index, one in enumerate(placed)}

    assert sorted(placed, key=lambda one: one.checkpoint_id) == known
    for one in placed:
        if one.previous_checkpoint_id is not None:
            assert position[one.previous_checkpoint_id] < position[one.checkpoint_id]
    if not any(one.previous_checkpoint_id for one in known):
        assert placed == sorted(known, key=lambda one: one.timestamp)


async def test_work_is_shared_out() -> None:
    """Each task is done once."""
    done: list[int] = []

    async def work(task: int) -> None:
        done.append(task)

    await in_turn(range(10), work)
    assert sorted(done) == list(range(10))


async def test_the_first_error_ends_the_work() -> None:
    """It is raised as it is, and what was not begun is not done."""
    done: list[int] = []

    async def work(task: int) -> None:
        await asyncio.sleep(0)
        if task == 5:
            raise KeyError(task)
        done.append(task)

    with pytest.raises(KeyError) as raised:
        await in_turn(range(100), work)
    assert raised.value.args == (5,)
    assert len(done) < 10
