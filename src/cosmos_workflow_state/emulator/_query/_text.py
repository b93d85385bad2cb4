"""A tree as text again: what it says parses to an equal tree.

Owns the canonical text of expressions, by which two of them are told equal, and of whole queries.
"""

from __future__ import annotations

import json

from cosmos_workflow_state.emulator._ordering import UNDEFINED
from cosmos_workflow_state.emulator._query import _tree as tree

__all__ = ["expression_text", "query_text", "selection_text"]


def expression_text(expression: tree.Expression) -> str:
    """Write an expression; one with an operator comes in parentheses.

    Args:
        expression: The expression; its depth is bounded by `_checks`.

    Returns:
        The text.
    """
    match expression:
        case tree.Literal(value):
            text = "undefined" if value is UNDEFINED else json.dumps(value)
        case tree.Parameter(name):
            text = name
        case tree.Property(root, steps):
            text = root + _steps(steps)
        case tree.Member(base, steps):
            text = f"({expression_text(base)})" + _steps(steps)
        case tree.Call(name, arguments):
            text = f"{name}({_list(arguments)})"
        case tree.ArrayLiteral(elements):
            text = f"[{_list(elements)}]"
        case tree.ObjectLiteral(properties):
            text = _object(properties)
        case _:
            text = f"({_operation(expression)})"
    return text


def selection_text(selection: tree.Selection, alias: str) -> str:
    """Write what a SELECT clause gives for an item as one expression.

    Args:
        selection: The clause.
        alias: The name of the item.

    Returns:
        The text.
    """
    match selection:
        case tree.AllProperties():
            return alias
        case tree.OneValue(expression):
            return expression_text(expression)
        case _:
            return _object(selection.columns)


def query_text(statement: tree.Statement, selection: str, where: str, top: int | None, window: str) -> str:
    """Write a query with the DISTINCT and ORDER BY of another.

    Args:
        statement: The other.
        selection: The expression to select.
        where: The condition, empty for none.
        top: TOP, None for none.
        window: The text of OFFSET LIMIT, empty for none.

    Returns:
        The text.
    """
    order = ", ".join(expression_text(item.property) + " DESC" * item.descending for item in statement.order)
    clauses = [
        "SELECT",
        "DISTINCT" * statement.distinct,
        "" if top is None else f"TOP {top}",
        f"VALUE {selection} FROM {statement.alias}",
        f"WHERE {where}" * bool(where),
        f"ORDER BY {order}" * bool(order),
        window,
    ]
    return " ".join(filter(None, clauses))


def _operation(expression: tree.Operation) -> str:
    match expression:
        case tree.Comparison(operator, left, right):
            text = f"{expression_text(left)} {operator} {expression_text(right)}"
        case tree.Between(operand, low, high):
            text = f"{expression_text(operand)} BETWEEN {expression_text(low)} AND {expression_text(high)}"
        case tree.Membership(needle, options):
            text = f"{expression_text(needle)} IN ({_list(options)})"
        case tree.Like(value, pattern, escape):
            end = "" if escape is None else f" ESCAPE {json.dumps(escape)}"
            text = f"{expression_text(value)} LIKE {expression_text(pattern)}{end}"
        case tree.Not(operand):
            text = f"NOT {expression_text(operand)}"
        case tree.Conditional(condition, then, otherwise):
            text = f"{expression_text(condition)} ? {expression_text(then)} : {expression_text(otherwise)}"
        case tree.Arithmetic(operators, operands):
            first, *rest = map(expression_text, operands)
            text = first + "".join(f" {operator} {text}" for operator, text in zip(operators, rest, strict=True))
        case _:
            text = _SIGNS[type(expression)].join(map(expression_text, expression.parts))
    return text


_SIGNS = {tree.AllOf: " AND ", tree.AnyOf: " OR ", tree.Concatenation: " || ", tree.Coalesce: " ?? "}


def _list(expressions: tuple[tree.Expression, ...]) -> str:
    return ", ".join(map(expression_text, expressions))


def _object(properties: tuple[tuple[str, tree.Expression], ...]) -> str:
    return "{" + ", ".join(f"{json.dumps(name)}: {expression_text(value)}" for name, value in properties) + "}"


def _steps(steps: tuple[tree.Step, ...]) -> str:
    return "".join(f"[{json.dumps(step)}]" for step in steps)
