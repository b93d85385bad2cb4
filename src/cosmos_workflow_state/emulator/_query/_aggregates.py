"""Aggregates: functions of all items of a group.

Owns what each aggregate makes of its values. Undefined values never count. Source of the rules: learn.microsoft.com,
"AVG", "COUNT", "MAX", "MIN" and "SUM" of the query language of Azure Cosmos DB for NoSQL.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol, TypeGuard

from cosmos_workflow_state.emulator._ordering import UNDEFINED, Value, term
from cosmos_workflow_state.emulator._query import _tree as tree
from cosmos_workflow_state.emulator._query._numbers import as_double, number
from cosmos_workflow_state.emulator._values import Json

__all__ = ["AGGREGATES", "Accumulator", "Aggregate", "aggregates_of", "is_aggregate"]


class Accumulator(Protocol):
    """What an aggregate has gathered so far."""

    def add(self, value: Json) -> None:
        """Take one defined value."""
        ...

    def result(self) -> Value:
        """Give the aggregate of what came."""
        ...


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate.

    Attributes:
        plan_name: Its name in a query plan.
        begin: Makes an accumulator for one group.
    """

    plan_name: str
    begin: Callable[[], Accumulator]


class _Count:
    def __init__(self) -> None:
        self._seen = 0

    def add(self, value: Json) -> None:
        del value  # That there is one is all that counts.
        self._seen += 1

    def result(self) -> Value:
        return self._seen


class _Sum:
    """The sum of numbers, 0 of none; undefined as soon as one value is no number."""

    def __init__(self) -> None:
        self.sum: float | None = 0.0
        self.seen = 0

    def add(self, value: Json) -> None:
        addend = as_double(value)
        self.sum = None if self.sum is None or addend is None else self.sum + addend
        self.seen += 1

    def result(self) -> Value:
        return UNDEFINED if self.sum is None else number(self.sum)


class _Average(_Sum):
    def result(self) -> Value:
        return UNDEFINED if self.sum is None or not self.seen else number(self.sum / self.seen)


class _Extreme:
    """The first or last of primitive values, in the order across types; undefined as soon as one is not primitive."""

    def __init__(self, *, last: bool) -> None:
        self._last = last
        self._best: tuple[bytes, Value] | None = None
        self._is_primitive = True

    def add(self, value: Json) -> None:
        self._is_primitive = self._is_primitive and not isinstance(value, (dict, list))
        if not self._is_primitive:
            return
        key = term(value)
        if self._best is None or (key != self._best[0] and (key > self._best[0]) == self._last):
            self._best = key, value

    def result(self) -> Value:
        return self._best[1] if self._best is not None and self._is_primitive else UNDEFINED


AGGREGATES: Final = {
    "AVG": Aggregate("Average", _Average),
    "COUNT": Aggregate("Count", _Count),
    "MAX": Aggregate("Max", lambda: _Extreme(last=True)),
    "MIN": Aggregate("Min", lambda: _Extreme(last=False)),
    "SUM": Aggregate("Sum", _Sum),
}


def is_aggregate(expression: tree.Expression) -> TypeGuard[tree.Call]:
    """Tell whether an expression is the call of an aggregate."""
    return isinstance(expression, tree.Call) and expression.name in AGGREGATES


def aggregates_of(selection: tree.Selection) -> list[tree.Call]:
    """Give the calls of aggregates in a SELECT clause, in the order of the text."""
    nodes = (node for expression in tree.selected(selection) for node, _ in tree.walk(expression))
    return [node for node in nodes if is_aggregate(node)]
