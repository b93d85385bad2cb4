"""What a parsed query must satisfy before it is planned: names that exist, calls that fit, bounded depth.

Owns the rules that span more than one rule of the grammar and need no parameters and no container.
"""

from __future__ import annotations

from collections.abc import Iterator

from cosmos_workflow_state.emulator._query import _tree as tree
from cosmos_workflow_state.emulator._query._errors import QueryError
from cosmos_workflow_state.emulator._query._functions import AGGREGATES, FUNCTIONS

__all__ = ["check"]

_MOST_LEVELS = 100
"""How deep expressions may nest; what walks them later is recursive, with up to four frames a level."""


def check(statement: tree.Statement) -> None:
    """Check a whole query.

    Args:
        statement: The query as parsed.

    Raises:
        QueryError: A name that is no alias, an unknown function, a wrong number of arguments, an aggregate in
            the wrong place, ORDER BY of the whole item or beside an aggregate, or expressions nested too deep.
    """
    for expression in _expressions(statement):
        for node, depth in tree.walk(expression):
            _check_node(node, statement.alias)
            if depth > _MOST_LEVELS:
                raise QueryError(f"expressions may nest {_MOST_LEVELS} levels deep", 1, 1, "")
    for item in statement.order:
        if not item.property.steps:
            raise item.property.place.error("ORDER BY takes a property, not the whole item")
    if isinstance(statement.selection, tree.Count):
        _check_aggregate(statement)


def _expressions(statement: tree.Statement) -> Iterator[tree.Expression]:
    match statement.selection:
        case tree.OneValue(expression) | tree.Count(expression):
            yield expression
        case tree.SelectList(columns):
            yield from (expression for _, expression in columns)
        case _:
            pass
    if statement.where is not None:
        yield statement.where
    yield from (item.property for item in statement.order)


def _check_node(node: tree.Expression, alias: str) -> None:
    match node:
        case tree.Property(root=root, place=place) if root != alias:
            raise place.error(f"identifier '{root}' could not be resolved")
        case tree.Call():
            _check_call(node)
        case _:
            pass


def _check_call(call: tree.Call) -> None:
    if call.name in AGGREGATES:
        raise call.place.error(f"{call.name} is supported as SELECT VALUE {call.name}(expression) only")
    function = FUNCTIONS.get(call.name)
    if function is None:
        raise call.place.error(f"'{call.place.token}' is not a supported function")
    if not function.fewest <= len(call.arguments) <= function.most:
        raise call.place.error(f"{call.name} takes {function.fewest} to {function.most} arguments")


def _check_aggregate(statement: tree.Statement) -> None:
    if statement.order:
        raise statement.order[0].property.place.error("ORDER BY has no meaning beside an aggregate")
    if statement.distinct:
        raise QueryError("DISTINCT is not supported beside an aggregate", 1, 1, "DISTINCT")
