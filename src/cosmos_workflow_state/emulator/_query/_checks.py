"""What a parsed query must satisfy before it is planned: names that exist, calls that fit, bounded depth.

Owns the rules that span more than one rule of the grammar and need no parameters and no container.
"""

from __future__ import annotations

from collections.abc import Iterator

from cosmos_workflow_state.emulator._query import _tree as tree
from cosmos_workflow_state.emulator._query._aggregates import aggregates_of, is_aggregate
from cosmos_workflow_state.emulator._query._errors import QueryError
from cosmos_workflow_state.emulator._query._functions import FUNCTIONS
from cosmos_workflow_state.emulator._query._text import expression_text

__all__ = ["check"]

_MOST_LEVELS = 100
"""How deep expressions may nest; what walks them later is recursive, with up to four frames a level."""


_MOST_GROUPED = 2000
"""How many parts SELECT may have beside GROUP BY, since each is compared with what is grouped by, text by text."""


def check(statement: tree.Statement) -> None:
    """Check a whole query.

    Args:
        statement: The query as parsed.

    Raises:
        QueryError: A name that is no alias, an unknown function, a wrong number of arguments, an aggregate in
            the wrong place, a property beside it that its groups do not share, ORDER BY of the whole item or of
            groups, or expressions nested too deep.
    """
    for expression in _of_items(statement):
        _check_nodes(expression, statement.alias)
        _check_no_aggregate(expression)
    for expression in tree.selected(statement.selection):
        _check_nodes(expression, statement.alias)
    for item in statement.order:
        if not item.property.steps:
            raise item.property.place.error("ORDER BY takes a property, not the whole item")
    if statement.group or aggregates_of(statement.selection):
        _check_groups(statement)


def _of_items(statement: tree.Statement) -> Iterator[tree.Expression]:
    """Give the expressions outside SELECT, where there are no groups yet."""
    if statement.where is not None:
        yield statement.where
    yield from statement.group
    yield from (item.property for item in statement.order)


def _check_nodes(expression: tree.Expression, alias: str) -> None:
    for node, depth in tree.walk(expression):
        match node:
            case tree.Property(root=root, place=place) if root != alias:
                raise place.error(f"identifier '{root}' could not be resolved")
            case tree.Call():
                _check_call(node)
            case _:
                pass
        if depth > _MOST_LEVELS:
            raise QueryError(f"expressions may nest {_MOST_LEVELS} levels deep", 1, 1, "")


def _check_call(call: tree.Call) -> None:
    fewest, most = _takes(call)
    given = len(call.arguments)
    if given < fewest or (most is not None and given > most):
        wanted = f"{fewest} or more" if most is None else f"{fewest} to {most}"
        raise call.place.error(f"{call.name} takes {wanted} arguments")


def _takes(call: tree.Call) -> tuple[int, int | None]:
    """Tell how many arguments a call may have."""
    if is_aggregate(call):
        return 1, 1
    function = FUNCTIONS.get(call.name)
    if function is None:
        raise call.place.error(f"'{call.place.token}' is not a supported function")
    return function.fewest, function.most


def _check_no_aggregate(expression: tree.Expression) -> None:
    for node, _ in tree.walk(expression):
        if is_aggregate(node):
            raise node.place.error(f"the aggregate {node.name} can stand in SELECT only, and in no other aggregate")


def _check_groups(statement: tree.Statement) -> None:
    if statement.order:
        raise statement.order[0].property.place.error("ORDER BY is not supported beside GROUP BY or an aggregate")
    if isinstance(statement.selection, tree.AllProperties):
        raise QueryError("SELECT * is not supported beside GROUP BY", 1, 1, "SELECT")
    shared = {expression_text(expression) for expression in statement.group}
    for expression in tree.selected(statement.selection):
        if shared and sum(1 for _ in tree.walk(expression)) > _MOST_GROUPED:
            raise QueryError(f"an expression beside GROUP BY may have {_MOST_GROUPED} parts", 1, 1, "SELECT")
        _check_shared(expression, shared)


def _check_shared(expression: tree.Expression, shared: set[str]) -> None:
    """Check that all items of a group give an expression one value."""
    if is_aggregate(expression):
        _check_no_aggregate(expression.arguments[0])
    elif not shared or expression_text(expression) not in shared:
        if isinstance(expression, tree.Property):
            raise expression.place.error("a property beside an aggregate or GROUP BY has to be one of GROUP BY")
        for child in tree.children(expression):
            _check_shared(child, shared)
