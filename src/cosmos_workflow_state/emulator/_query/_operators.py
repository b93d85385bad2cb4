"""What operators do: functions of an item made of functions of an item.

Owns three-valued logic (true, false and undefined, and whatever is no boolean counts as undefined), paths into values
and the making of arrays and objects. Must not know of the tree or of parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import TypeAlias

from cosmos_workflow_state.emulator._ordering import UNDEFINED, Undefined, Value, term
from cosmos_workflow_state.emulator._query._comparison import COMPARISONS
from cosmos_workflow_state.emulator._query._tree import Step
from cosmos_workflow_state.emulator._values import Json, JsonObject

__all__ = [
    "Evaluate",
    "apply",
    "arithmetic",
    "array",
    "between",
    "coalesce",
    "conditional",
    "constant",
    "member",
    "membership",
    "negation",
    "object_of",
    "property_of",
    "unless",
]

Evaluate: TypeAlias = Callable[[JsonObject], Value]
"""One item to the value of an expression for it."""


def constant(value: Value) -> Evaluate:
    """Give the same value for every item."""
    return lambda _: value


def property_of(steps: tuple[Step, ...]) -> Evaluate:
    """Follow a path into the item."""

    def evaluate(item: JsonObject) -> Value:
        value: Value = item
        for step in steps:
            value = _step(value, step)
        return value

    return evaluate


def _step(value: Value, step: Step) -> Value:
    if isinstance(step, str):
        return value.get(step, UNDEFINED) if isinstance(value, dict) else UNDEFINED
    return value[step] if isinstance(value, list) and step < len(value) else UNDEFINED


def apply(function: Callable[..., Value], operands: list[Evaluate]) -> Evaluate:
    """Call a function with the values of its arguments."""
    return lambda item: function(*(operand(item) for operand in operands))


def member(base: Evaluate, steps: tuple[Step, ...]) -> Evaluate:
    """Follow a path into a value."""
    return lambda item: reduce(_step, steps, base(item))


def arithmetic(operations: list[Callable[..., Value]], operands: list[Evaluate]) -> Evaluate:
    """Apply one operation after the other, from left to right."""
    first, *rest = operands
    following = list(zip(operations, rest, strict=True))

    def evaluate(item: JsonObject) -> Value:
        value = first(item)
        for operation, operand in following:
            value = operation(value, operand(item))
        return value

    return evaluate


def conditional(condition: Evaluate, then: Evaluate, otherwise: Evaluate) -> Evaluate:
    """Choose between two values; only true chooses the first."""
    return lambda item: then(item) if condition(item) is True else otherwise(item)


def coalesce(operands: list[Evaluate]) -> Evaluate:
    """Give the first value that is defined."""

    def evaluate(item: JsonObject) -> Value:
        values = (operand(item) for operand in operands)
        return next((value for value in values if value is not UNDEFINED), UNDEFINED)

    return evaluate


def between(operand: Evaluate, low: Evaluate, high: Evaluate) -> Evaluate:
    """Test whether a value lies between two others, both ends within."""

    def evaluate(item: JsonObject) -> bool | Undefined:
        value = operand(item)
        above, below = COMPARISONS[">="](value, low(item)), COMPARISONS["<="](value, high(item))
        if above is False or below is False:
            return False
        return True if above is True and below is True else UNDEFINED

    return evaluate


def membership(needle: Evaluate, options: list[Evaluate]) -> Evaluate:
    """Test whether a value equals one of others."""

    def evaluate(item: JsonObject) -> bool | Undefined:
        wanted = needle(item)
        if wanted is UNDEFINED:
            return UNDEFINED
        key = term(wanted)
        return any(term(option(item)) == key for option in options)

    return evaluate


def unless(operands: list[Evaluate], *, decisive: bool) -> Evaluate:
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


def negation(operand: Evaluate) -> Evaluate:
    """NOT: undefined for anything but a boolean."""

    def evaluate(item: JsonObject) -> bool | Undefined:
        value = operand(item)
        return not value if isinstance(value, bool) else UNDEFINED

    return evaluate


def array(operands: list[Evaluate]) -> Evaluate:
    """Make an array of the values that are defined."""

    def evaluate(item: JsonObject) -> list[Json]:
        values = (operand(item) for operand in operands)
        return [value for value in values if value is not UNDEFINED]

    return evaluate


def object_of(properties: list[tuple[str, Evaluate]]) -> Evaluate:
    """Make an object of the values that are defined."""

    def evaluate(item: JsonObject) -> JsonObject:
        values = ((name, operand(item)) for name, operand in properties)
        return {name: value for name, value in values if value is not UNDEFINED}

    return evaluate
