"""Expressions to functions: a tree and its parameters become one call per item.

Owns which operator or function each node of `_tree` stands for. Must not know of sources, plans or rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from cosmos_workflow_state.emulator._ordering import UNDEFINED, Value
from cosmos_workflow_state.emulator._query import _tree as tree
from cosmos_workflow_state.emulator._query._aggregates import is_aggregate
from cosmos_workflow_state.emulator._query._comparison import COMPARISONS
from cosmos_workflow_state.emulator._query._functions import FUNCTIONS
from cosmos_workflow_state.emulator._query._like import MOST_CHARACTERS, like_test
from cosmos_workflow_state.emulator._query._numbers import ARITHMETIC
from cosmos_workflow_state.emulator._query._operators import (
    Evaluate,
    apply,
    arithmetic,
    array,
    between,
    coalesce,
    conditional,
    constant,
    member,
    membership,
    negation,
    object_of,
    property_of,
    unless,
)
from cosmos_workflow_state.emulator._query._text_functions import concatenate
from cosmos_workflow_state.emulator._values import Json

__all__ = ["Parameters", "compile_expression", "compile_selection", "constant_value"]

Parameters: TypeAlias = Mapping[str, Json]
"""Values by name, the name with its `@`."""

Aggregate: TypeAlias = Callable[[tree.Call], Evaluate]
"""The call of an aggregate to a function of what stands for an item there."""

_ValueOperation: TypeAlias = (
    tree.Call
    | tree.Member
    | tree.ArrayLiteral
    | tree.Arithmetic
    | tree.Concatenation
    | tree.Coalesce
    | tree.Conditional
)


def constant_value(written: tree.Literal | tree.Parameter, parameters: Parameters) -> Value:
    """Give the value of what is the same for every item.

    Raises:
        QueryError: The request did not bring the parameter.
    """
    if isinstance(written, tree.Literal):
        return written.value
    if written.name not in parameters:
        raise written.place.error(f"the parameter {written.name} has no value")
    return parameters[written.name]


def compile_expression(
    expression: tree.Expression, parameters: Parameters, aggregate: Aggregate | None = None
) -> Evaluate:
    """Make a function of an expression.

    Args:
        expression: The expression; its depth is bounded by `_checks`.
        parameters: Values by name, the name with its `@`.
        aggregate: What makes a function of the call of an aggregate; None where there is none.

    Returns:
        The function. It raises nothing and does not change the item; its value may share parts with the item.

    Raises:
        QueryError: A parameter has no value, or a constant pattern of LIKE is too long.
    """
    return _Compiler(parameters, aggregate).compile(expression)


def compile_selection(
    selection: tree.Selection, parameters: Parameters, aggregate: Aggregate | None = None
) -> Evaluate:
    """Make a function of a SELECT clause: one item to its row, `UNDEFINED` for none.

    Args:
        selection: The clause.
        parameters: Values by name, the name with its `@`.
        aggregate: What makes a function of the call of an aggregate; None where there is none.

    Returns:
        The function.

    Raises:
        QueryError: A parameter has no value, or a constant pattern of LIKE is too long.
    """
    compiler = _Compiler(parameters, aggregate)
    match selection:
        case tree.AllProperties():
            return property_of(())
        case tree.OneValue(expression):
            return compiler.compile(expression)
        case _:
            return object_of(compiler.compile_named(selection.columns))


@dataclass(frozen=True, slots=True)
class _Compiler:
    """One way down a tree."""

    parameters: Parameters
    aggregate: Aggregate | None

    def compile(self, expression: tree.Expression) -> Evaluate:
        match expression:
            case tree.Literal() | tree.Parameter():
                return constant(constant_value(expression, self.parameters))
            case tree.Property(steps=steps):
                return property_of(steps)
            case tree.ObjectLiteral(properties):
                return object_of(self.compile_named(properties))
            case tree.Call() if self.aggregate is not None and is_aggregate(expression):
                return self.aggregate(expression)
            case _:
                operands = [self.compile(child) for child in tree.children(expression)]
                if isinstance(expression, tree.Condition):
                    return _condition(expression, operands)
                return _value(expression, operands)

    def compile_named(self, properties: tuple[tuple[str, tree.Expression], ...]) -> list[tuple[str, Evaluate]]:
        return [(name, self.compile(expression)) for name, expression in properties]


def _value(expression: _ValueOperation, operands: list[Evaluate]) -> Evaluate:
    match expression:
        case tree.Call(name):
            made = apply(FUNCTIONS[name].evaluate, operands)
        case tree.Member(steps=steps):
            made = member(operands[0], steps)
        case tree.ArrayLiteral():
            made = array(operands)
        case tree.Arithmetic(operators):
            made = arithmetic([ARITHMETIC[operator] for operator in operators], operands)
        case tree.Concatenation():
            made = apply(concatenate, operands)
        case tree.Coalesce():
            made = coalesce(operands)
        case _:
            made = conditional(*operands)
    return made


def _condition(expression: tree.Condition, operands: list[Evaluate]) -> Evaluate:
    match expression:
        case tree.Comparison(operator):
            made = apply(COMPARISONS[operator], operands)
        case tree.Between():
            made = between(*operands)
        case tree.Membership():
            made = membership(operands[0], operands[1:])
        case tree.Like():
            made = _like(expression, *operands)
        case tree.AllOf() | tree.AnyOf():
            made = unless(operands, decisive=isinstance(expression, tree.AnyOf))
        case _:
            made = negation(operands[0])
    return made


def _like(like: tree.Like, value: Evaluate, pattern: Evaluate) -> Evaluate:
    if not isinstance(like.pattern, (tree.Literal, tree.Parameter)):
        return lambda item: _matched(like_test(pattern(item), like.escape), value(item))
    fixed = pattern({})
    if isinstance(fixed, str) and len(fixed) > MOST_CHARACTERS:
        raise like.place.error(f"a pattern of LIKE may have {MOST_CHARACTERS} characters")
    test = like_test(fixed, like.escape)
    return lambda item: _matched(test, value(item))


def _matched(test: Callable[[str], bool] | None, text: Value) -> Value:
    return test(text) if test is not None and isinstance(text, str) else UNDEFINED
