"""What a client needs to know of a query that it runs over several physical partitions: a query plan.

Owns the plan's fields and the query that runs in each partition. Must not know how a plan travels, nor which partitions
there are. The shapes of rows are those that the clients' merging expects: `{"orderByItems": [{"item": …}], "payload":
…}` with ORDER BY, `[{"item": …}]` for an aggregate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeGuard

from cosmos_workflow_state.emulator._query import _tree as tree
from cosmos_workflow_state.emulator._query._aggregates import AGGREGATES, aggregates_of, is_aggregate
from cosmos_workflow_state.emulator._query._plan import parse, window_of
from cosmos_workflow_state.emulator._query._text import expression_text, query_text, selection_text
from cosmos_workflow_state.emulator._values import Json, JsonObject

__all__ = ["QueryDescription", "describe"]


@dataclass(frozen=True, slots=True)
class QueryDescription:
    """A query as its client sees it.

    Attributes:
        needs_plan: Whether rows of several partitions have to be merged rather than put one behind the other.
        features: What merging takes, in the words of `x-ms-cosmos-supported-query-features`: a client that lacks one
            of them cannot run this query over several partitions.
        distinct_type: `None`, `Ordered` (equal rows are neighbours) or `Unordered`.
        top: TOP, None without.
        offset: OFFSET, None without.
        limit: LIMIT, None without.
        order_by: `Ascending` or `Descending` for each property of ORDER BY.
        order_by_expressions: The properties of ORDER BY, as text.
        group_by_expressions: The expressions of GROUP BY, as text.
        aggregates: `Count`, `Sum`, `Min`, `Max` or `Average` for each aggregate of SELECT.
        has_select_value: Whether the query is a SELECT VALUE.
        rewritten_query: What to run in each partition, with the parameters of the query; empty if that is the query
            itself, or if there is no merging its rows: with GROUP BY, and with aggregates that are no single
            SELECT VALUE. The clients of today refuse both, by `features` or by `has_select_value`.
    """

    needs_plan: bool
    features: frozenset[str]
    distinct_type: str
    top: int | None
    offset: int | None
    limit: int | None
    order_by: tuple[str, ...]
    order_by_expressions: tuple[str, ...]
    group_by_expressions: tuple[str, ...]
    aggregates: tuple[str, ...]
    has_select_value: bool
    rewritten_query: str

    def info(self) -> JsonObject:
        """Give the `queryInfo` of a query plan."""
        return {
            "distinctType": self.distinct_type,
            "top": self.top,
            "offset": self.offset,
            "limit": self.limit,
            "orderBy": list(self.order_by),
            "orderByExpressions": list(self.order_by_expressions),
            "groupByExpressions": list(self.group_by_expressions),
            "groupByAliases": [],
            "aggregates": list(self.aggregates),
            "groupByAliasToAggregateType": {},
            "rewrittenQuery": self.rewritten_query,
            "hasSelectValue": self.has_select_value,
            "hasNonStreamingOrderBy": False,
        }


def describe(text: str, parameters: Mapping[str, Json]) -> QueryDescription:
    """Describe a query.

    Args:
        text: The query.
        parameters: Values by name, the name with its `@`.

    Returns:
        The description.

    Raises:
        QueryError: The text is no query that this engine runs, or a parameter of TOP, OFFSET or LIMIT is missing.
    """
    statement = parse(text).statement
    offset, limit = window_of(statement.window, parameters)
    is_top = statement.window is not None and statement.window.offset is None
    features = frozenset(_features(statement))
    return QueryDescription(
        needs_plan=bool(features),
        features=features,
        distinct_type=_distinct_type(statement),
        top=limit if is_top else None,
        offset=None if is_top or limit is None else offset,
        limit=None if is_top else limit,
        order_by=tuple("Descending" if item.descending else "Ascending" for item in statement.order),
        order_by_expressions=tuple(expression_text(item.property) for item in statement.order),
        group_by_expressions=tuple(map(expression_text, statement.group)),
        aggregates=tuple(AGGREGATES[call.name].plan_name for call in aggregates_of(statement.selection)),
        has_select_value=isinstance(statement.selection, tree.OneValue),
        rewritten_query=_rewritten(statement, offset, limit, is_top=is_top) if features else "",
    )


def _features(statement: tree.Statement) -> list[str]:
    aggregates = aggregates_of(statement.selection)
    wanted = {
        "Aggregate": bool(aggregates),
        "MultipleAggregates": len(aggregates) > 1 or (bool(aggregates) and not _is_plain(statement.selection)),
        "Distinct": statement.distinct,
        "GroupBy": bool(statement.group),
        "OrderBy": bool(statement.order),
        "MultipleOrderBy": len(statement.order) > 1,
        "Top": statement.window is not None and statement.window.offset is None,
        "OffsetAndLimit": statement.window is not None and statement.window.offset is not None,
    }
    return [name for name, is_wanted in wanted.items() if is_wanted]


def _is_plain(selection: tree.Selection) -> bool:
    """Tell whether each thing selected is an aggregate, so that it can be merged by itself."""
    return all(map(is_aggregate, tree.selected(selection)))


def _distinct_type(statement: tree.Statement) -> str:
    if not statement.distinct:
        return "None"
    ordered = {expression_text(item.property) for item in statement.order}
    selected = {expression_text(expression) for expression in tree.selected(statement.selection)}
    return "Ordered" if ordered and ordered == selected else "Unordered"


def _rewritten(statement: tree.Statement, offset: int, limit: int | None, *, is_top: bool) -> str:
    conditions = [] if statement.where is None else [expression_text(statement.where)]
    selection = selection_text(statement.selection, statement.alias)
    if statement.order:
        if isinstance(statement.selection, tree.OneValue):
            # An item without the value has no row; but a row it would have, only without a payload.
            conditions.append(f"IS_DEFINED({selection})")
        items = ", ".join(f'{{"item": {expression_text(item.property)}}}' for item in statement.order)
        selection = f'{{"orderByItems": [{items}], "payload": {selection}}}'
    elif statement.group or aggregates_of(statement.selection):
        if statement.group or not _is_one_aggregate(statement.selection):
            return ""
        selection = _partial(statement.selection.expression)
    window = "" if limit is None or is_top else f"OFFSET 0 LIMIT {offset + limit}"
    return query_text(statement, selection, " AND ".join(conditions), limit if is_top else None, window)


def _is_one_aggregate(selection: tree.Selection) -> TypeGuard[tree.OneValue]:
    return isinstance(selection, tree.OneValue) and is_aggregate(selection.expression)


def _partial(aggregate: tree.Expression) -> str:
    """Give the aggregate of one partition in a form that can be merged: an average as a sum and a count."""
    match aggregate:
        case tree.Call("AVG", (operand,)):
            inner = expression_text(operand)
            return f'[{{"item": {{"sum": SUM({inner}), "count": COUNT({inner})}}}}]'
        case _:
            return f'[{{"item": {expression_text(aggregate)}}}]'
