"""Numbers as the service has them: doubles, of which those that JSON cannot say are undefined.

Owns arithmetic between two values and the mathematical functions. Nothing here raises.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Final

from cosmos_workflow_state.emulator._ordering import UNDEFINED, Value, double
from cosmos_workflow_state.emulator._query._function import Function

__all__ = ["ARITHMETIC", "NUMBER_FUNCTIONS", "as_double", "as_integer", "number"]

_EXACT = 2.0**53
"""Up to here every whole double is one integer, and is written as one."""

_LEAST_INTEGER = -(2.0**63)


def as_double(value: Value) -> float | None:
    """Read a number; None for anything else, booleans included."""
    return double(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def as_integer(value: Value) -> int | None:
    """Read a whole number; None for anything else."""
    read = as_double(value)
    return int(read) if read is not None and read.is_integer() else None


def number(value: float) -> Value:
    """Make a value of a double: whole numbers without a fraction, infinities and NaN undefined."""
    if not math.isfinite(value):
        return UNDEFINED
    return int(value) if value.is_integer() and abs(value) <= _EXACT else value


def _numeric(function: Callable[..., float]) -> Callable[..., Value]:
    """Make a function of values out of one of doubles: undefined for other types and outside its domain."""

    def evaluate(*values: Value) -> Value:
        read = [each for each in map(as_double, values) if each is not None]
        if len(read) < len(values):
            return UNDEFINED
        try:
            return number(float(function(*read)))
        except (ValueError, ArithmeticError):
            return UNDEFINED

    return evaluate


def _divide(dividend: float, divisor: float) -> float:
    return dividend / divisor


def _square(value: float) -> float:
    return value * value


def _sign(value: float) -> float:
    return (value > 0) - (value < 0)


def _round(value: float) -> float:
    whole = math.floor(abs(value))
    return math.copysign(whole + (abs(value) - whole >= 0.5), value)  # noqa: PLR2004 -- one half, away from zero


def _truncate(value: float) -> float:
    return math.trunc(value)


def _cotangent(value: float) -> float:
    return 1 / math.tan(value)


def _is_integer(value: Value) -> Value:
    whole = as_integer(value)
    return whole is not None and _LEAST_INTEGER <= whole < -_LEAST_INTEGER


def _is_number(value: Value) -> Value:
    return as_double(value) is not None


ARITHMETIC: Final = {
    "+": _numeric(operator.add),
    "-": _numeric(operator.sub),
    "*": _numeric(operator.mul),
    "/": _numeric(_divide),
    "%": _numeric(math.fmod),
}
"""Two values to one, by sign."""

NUMBER_FUNCTIONS: Final = {
    "ABS": Function(_numeric(math.fabs), 1, 1),
    "ACOS": Function(_numeric(math.acos), 1, 1),
    "ASIN": Function(_numeric(math.asin), 1, 1),
    "ATAN": Function(_numeric(math.atan), 1, 1),
    "ATN2": Function(_numeric(math.atan2), 2, 2),
    "CEILING": Function(_numeric(math.ceil), 1, 1),
    "COS": Function(_numeric(math.cos), 1, 1),
    "COT": Function(_numeric(_cotangent), 1, 1),
    "DEGREES": Function(_numeric(math.degrees), 1, 1),
    "EXP": Function(_numeric(math.exp), 1, 1),
    "FLOOR": Function(_numeric(math.floor), 1, 1),
    "IS_FINITE_NUMBER": Function(_is_number, 1, 1),
    "IS_INTEGER": Function(_is_integer, 1, 1),
    "IS_NUMBER": Function(_is_number, 1, 1),
    "LOG": Function(_numeric(math.log), 1, 2),
    "LOG10": Function(_numeric(math.log10), 1, 1),
    "PI": Function(lambda: math.pi, 0, 0),
    "POWER": Function(_numeric(math.pow), 2, 2),
    "RADIANS": Function(_numeric(math.radians), 1, 1),
    "ROUND": Function(_numeric(_round), 1, 1),
    "SIGN": Function(_numeric(_sign), 1, 1),
    "SIN": Function(_numeric(math.sin), 1, 1),
    "SQRT": Function(_numeric(math.sqrt), 1, 1),
    "SQUARE": Function(_numeric(_square), 1, 1),
    "TAN": Function(_numeric(math.tan), 1, 1),
    "TRUNC": Function(_numeric(_truncate), 1, 1),
}
