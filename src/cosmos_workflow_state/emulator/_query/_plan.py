"""From a parsed query to one that is ready to run.

Owns the two steps a caller takes: `parse` a text (remembered), `bind` its parameters. Must not read items.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from cosmos_workflow_state.emulator._query import _tree as tree
from cosmos_workflow_state.emulator._query._expressions import compile_expression, compile_selection, constant_value
from cosmos_workflow_state.emulator._query._groups import Grouping, compile_grouping
from cosmos_workflow_state.emulator._query._operators import Evaluate
from cosmos_workflow_state.emulator._query._parser import parse_statement
from cosmos_workflow_state.emulator._query._position import START, decode
from cosmos_workflow_state.emulator._query._rows import Row, Run
from cosmos_workflow_state.emulator._query._seek import Range, choose_seek, ranges_of
from cosmos_workflow_state.emulator._query._source import ItemSource, Path, Seek
from cosmos_workflow_state.emulator._values import Json

__all__ = ["Plan", "Query", "parse", "window_of"]

_REMEMBERED = 512
"""How many texts are remembered; an application has a few dozen."""

_LONGEST_REMEMBERED = 8 * 1024
"""Texts of more characters are read anew each time, so that what is remembered stays a few megabytes."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A query with its parameters, good for any number of sources and runs."""

    _where: Evaluate | None
    _ranges: Mapping[Path, Range]
    _order: tuple[tree.OrderItem, ...]
    _sort: tuple[tuple[Evaluate, bool], ...]
    _project: Evaluate
    _grouping: Grouping | None
    _distinct: bool
    _offset: int
    _limit: int | None

    def seek(self, source: ItemSource) -> Seek | None:
        """Tell which index range a run over a source reads; None for all of its items.

        Raises:
            QueryError: No index of the source serves ORDER BY.
        """
        return choose_seek(self._ranges, self._order, source)

    def rows(self, source: ItemSource, *, after: bytes | None = None) -> Iterator[Row]:
        """Run the query.

        Args:
            source: The items.

        Keyword Args:
            after: The position of a row of an earlier run of the same query over the same source: only rows
                behind it are given, even if its item is gone by now. None for all rows.

        Returns:
            The rows, lazily.

        Raises:
            QueryError: No index of the source serves ORDER BY; raised here, before the first row is asked for.
            PositionError: `after` is no position.
        """
        run = Run(
            source,
            self.seek(source),
            self._where,
            self._sort,
            self._project,
            self._grouping,
            self._distinct,
            self._offset,
            self._limit,
        )
        return run.rows(START if after is None else decode(after))


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed query, without values for its parameters."""

    statement: tree.Statement

    def bind(self, parameters: Mapping[str, Json]) -> Plan:
        """Give the parameters their values.

        Args:
            parameters: Values by name, the name with its `@` as on the wire; more than the query uses are
                welcome.

        Returns:
            The plan.

        Raises:
            QueryError: A parameter has no value, or one that TOP, OFFSET or LIMIT cannot use.
        """
        statement = self.statement
        offset, limit = window_of(statement.window, parameters)
        grouping = compile_grouping(statement, parameters)
        return Plan(
            None if statement.where is None else compile_expression(statement.where, parameters),
            ranges_of(statement.where, parameters),
            statement.order,
            _sort(statement.order, parameters),
            compile_selection(statement.selection, parameters) if grouping is None else grouping.project,
            grouping,
            statement.distinct,
            offset,
            limit,
        )


def parse(text: str) -> Query:
    """Parse a query; texts of ordinary length are remembered.

    Args:
        text: The query.

    Returns:
        The query, shared between callers.

    Raises:
        QueryError: The text is no query, or asks for what this engine does not do.
    """
    return _remembered(text) if len(text) <= _LONGEST_REMEMBERED else Query(parse_statement(text))


@lru_cache(maxsize=_REMEMBERED)
def _remembered(text: str) -> Query:
    return Query(parse_statement(text))


def _sort(order: tuple[tree.OrderItem, ...], parameters: Mapping[str, Json]) -> tuple[tuple[Evaluate, bool], ...]:
    # One property alone comes in order from its index.
    several = order if len(order) > 1 else ()
    return tuple((compile_expression(item.property, parameters), item.descending) for item in several)


def window_of(window: tree.Window | None, parameters: Mapping[str, Json]) -> tuple[int, int | None]:
    """Tell how many rows a query leaves out first and gives at most, None for all.

    Raises:
        QueryError: A parameter has no value, or one that TOP, OFFSET or LIMIT cannot use.
    """
    if window is None:
        return 0, None
    offset = 0 if window.offset is None else _amount(window.offset, parameters)
    return offset, _amount(window.limit, parameters)


def _amount(written: tree.Literal | tree.Parameter, parameters: Mapping[str, Json]) -> int:
    value = constant_value(written, parameters)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise written.place.error("TOP, OFFSET and LIMIT take a whole number of 0 or more")
    return value
