"""Expressions to functions: a tree and its parameters become one call per item.

Owns the meaning of every node of `_tree`, three-valued logic included: true, false and undefined, and whatever
is not a boolean counts as undefined. Must not know of sources, plans or rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from cosmos_workflow_state.emulator._ordering import UNDEFINED, Undefined, Value, term
from cosmos_workflow_state.emulator._query import _tree as tree
from cosmos_workflow_state.emulator._query._comparison import COMPARISONS
from cosmos_workflow_state.emulator._query._functions import FUNCTIONS
from cosmos_workflow_state.emulator._values import Json, JsonObject

__all__ = ["Evaluate", "compile_expression", "compile_selection", "parameter_value"]

Evaluate: TypeAlias = Callable[[JsonObject], Value]
"""One item to the value of an expression for it."""

Parameters: TypeAlias = Mapping[str, Json]


def parameter_value(parameter: tree.Parameter, parameters: Parameters) -> Json:
    """Look a parameter up.

    Raises:
        QueryError: The request did not bring it.
    """
    if parameter.name not in parameters:
        raise parameter.place.error(f"the parameter {parameter.name} has no value")
    return parameters[parameter.name]


def compile_expression(expression: tree.Expression, parameters: Parameters) -> Evaluate:
    """Make a function of an expression.

    Args:
        expression: The expression; its depth is bounded by `_checks`.
        parameters: Values by name, the name with its `@`.

    Returns:
        The function. It raises nothing and does not change the item; its value may share parts with the item.

    Raises:
        QueryError: A parameter has no value.
    """
    match expression:
        case tree.Literal(value):
            return _constant(value)
        case tree.Parameter():
            return _constant(parameter_value(expression, parameters))
        case tree.Property(steps=steps):
            return _property(steps)
        case tree.ObjectLiteral(properties):
            return _object(_compile_named(properties, parameters))
        case _:
            return _compile_compound(expression, parameters)


def compile_selection(
    selection: tree.AllProperties | tree.OneValue | tree.SelectList, parameters: Parameters
) -> Evaluate:
    """Make a function of a SELECT clause: one item to its row, `UNDEFINED` for none.

    Raises:
        QueryError: A parameter has no value.
    """
    match selection:
        case tree.AllProperties():
            return _property(())
        case tree.OneValue(expression):
            return compile_expression(expression, parameters)
        case _:
            return _object(_compile_named(selection.columns, parameters))


def _compile_compound(
    expression: tree.Call | tree.Comparison | tree.Membership | tree.AllOf | tree.AnyOf | tree.Not | tree.ArrayLiteral,
    parameters: Parameters,
) -> Evaluate:
    operands = [compile_expression(child, parameters) for child in tree.children(expression)]
    match expression:
        case tree.Call(name):
            return _call(FUNCTIONS[name].evaluate, operands)
        case tree.Comparison(operator):
            return _comparison(COMPARISONS[operator], *operands)
        case tree.Membership():
            return _membership(operands[0], operands[1:])
        case tree.AllOf() | tree.AnyOf():
            return _unless(operands, decisive=isinstance(expression, tree.AnyOf))
        case tree.Not():
            return _not(operands[0])
        case _:
            return _array(operands)


def _compile_named(
    properties: tuple[tuple[str, tree.Expression], ...], parameters: Parameters
) -> list[tuple[str, Evaluate]]:
    return [(name, compile_expression(expression, parameters)) for name, expression in properties]


def _constant(value: Value) -> Evaluate:
    return lambda _: value


def _property(steps: tuple[tree.Step, ...]) -> Evaluate:
    def evaluate(item: JsonObject) -> Value:
        value: Value = item
        for step in steps:
            value = _step(value, step)
        return value

    return evaluate


def _step(value: Value, step: tree.Step) -> Value:
    if isinstance(step, str):
        return value.get(step, UNDEFINED) if isinstance(value, dict) else UNDEFINED
    return value[step] if isinstance(value, list) and step < len(value) else UNDEFINED


def _call(function: Callable[..., Value], operands: list[Evaluate]) -> Evaluate:
    return lambda item: function(*(operand(item) for operand in operands))


def _comparison(compare: Callable[[Value, Value], Value], left: Evaluate, right: Evaluate) -> Evaluate:
    return lambda item: compare(left(item), right(item))


def _membership(needle: Evaluate, options: list[Evaluate]) -> Evaluate:
    def evaluate(item: JsonObject) -> bool | Undefined:
        wanted = needle(item)
        if wanted is UNDEFINED:
            return UNDEFINED
        key = term(wanted)
        return any(term(option(item)) == key for option in options)

    return evaluate


def _unless(operands: list[Evaluate], *, decisive: bool) -> Evaluate:
    """AND (false decides) and OR (true decides); undecided, an operand that is no boolean makes undefined."""

    def evaluate(item: JsonObject) -> bool | Undefined:
        answer: bool | Undefined = not decisive
        for operand in operands:
            value = operand(item)
            if value is decisive:
                return decisive
            if not isinstance(value, bool):
                answer = UNDEFINED
        return answer

    return evaluate


def _not(operand: Evaluate) -> Evaluate:
    def evaluate(item: JsonObject) -> bool | Undefined:
        value = operand(item)
        return not value if isinstance(value, bool) else UNDEFINED

    return evaluate


def _array(operands: list[Evaluate]) -> Evaluate:
    def evaluate(item: JsonObject) -> list[Json]:
        values = (operand(item) for operand in operands)
        return [value for value in values if value is not UNDEFINED]

    return evaluate


def _object(properties: list[tuple[str, Evaluate]]) -> Evaluate:
    def evaluate(item: JsonObject) -> JsonObject:
        values = ((name, operand(item)) for name, operand in properties)
        return {name: value for name, value in values if value is not UNDEFINED}

    return evaluate
