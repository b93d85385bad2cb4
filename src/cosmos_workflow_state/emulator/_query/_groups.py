"""Groups of items: GROUP BY, and aggregates over all items, which are then one group.

Owns gathering groups and one row for each. Must not know of sources, pages or positions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import cast

from cosmos_workflow_state.emulator._ordering import UNDEFINED, Value, term
from cosmos_workflow_state.emulator._query import _tree as tree
from cosmos_workflow_state.emulator._query._aggregates import AGGREGATES, Accumulator, aggregates_of
from cosmos_workflow_state.emulator._query._expressions import Parameters, compile_expression, compile_selection
from cosmos_workflow_state.emulator._query._operators import Evaluate
from cosmos_workflow_state.emulator._query._text import expression_text
from cosmos_workflow_state.emulator._values import Json, JsonObject

__all__ = ["Grouping", "compile_grouping"]


class _Group(dict[str, Json]):
    """One group, in the place of an item: its first item, and what the aggregates give for all of them."""

    results: dict[str, Value]


@dataclass(frozen=True, slots=True)
class Grouping:
    """How items become groups and groups become rows.

    Attributes:
        keys: What items of one group have in common; nothing if all items are one group, even if there are none.
        aggregates: The aggregates by their text, each with its name and its argument.
        project: One group to its row.
    """

    keys: tuple[Evaluate, ...]
    aggregates: dict[str, tuple[str, Evaluate]]
    project: Evaluate

    def rows(self, items: Iterable[JsonObject]) -> Iterator[tuple[bytes, Value]]:
        """Read all items and give each group's key and row, in the order of the keys."""
        groups: dict[bytes, tuple[_Group, list[tuple[Evaluate, Accumulator]]]] = {}
        if not self.keys:
            groups[b""] = self._begin({})
        for item in items:
            key = b"".join(term(evaluate(item)) for evaluate in self.keys)
            if key not in groups:
                groups[key] = self._begin(item)
            for evaluate, accumulator in groups[key][1]:
                value = evaluate(item)
                if value is not UNDEFINED:
                    accumulator.add(value)
        for key in sorted(groups):
            group, gathered = groups[key]
            results = (accumulator.result() for _, accumulator in gathered)
            group.results = dict(zip(self.aggregates, results, strict=True))
            yield key, self.project(group)

    def _begin(self, first: JsonObject) -> tuple[_Group, list[tuple[Evaluate, Accumulator]]]:
        return _Group(first), [(operand, AGGREGATES[name].begin()) for name, operand in self.aggregates.values()]


def compile_grouping(statement: tree.Statement, parameters: Parameters) -> Grouping | None:
    """Make the grouping of a query.

    Args:
        statement: The query; `_checks` has seen to it that a group's first item stands for all of them.
        parameters: Values by name, the name with its `@`.

    Returns:
        The grouping, None if the query has neither GROUP BY nor an aggregate.

    Raises:
        QueryError: A parameter has no value.
    """
    calls = aggregates_of(statement.selection)
    if not statement.group and not calls:
        return None
    return Grouping(
        tuple(compile_expression(expression, parameters) for expression in statement.group),
        {expression_text(call): (call.name, compile_expression(call.arguments[0], parameters)) for call in calls},
        compile_selection(statement.selection, parameters, _result),
    )


def _result(call: tree.Call) -> Evaluate:
    key = expression_text(call)
    # Where aggregates are compiled, what comes in is always a group.
    return lambda group: cast("_Group", group).results[key]
