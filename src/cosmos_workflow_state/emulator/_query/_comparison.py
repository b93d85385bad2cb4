"""Comparing two values as the service does: within one type, otherwise the answer is undefined.

Owns =, !=, <, <=, > and >= over values. The order of strings and numbers agrees with that of their index terms.
Source of the rules: learn.microsoft.com, "Equality and comparison operators in Azure Cosmos DB for NoSQL".
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Final, TypeAlias

from cosmos_workflow_state.emulator._ordering import UNDEFINED, Undefined, Value, double, term

__all__ = ["COMPARISONS", "Compare", "is_equal"]

Compare: TypeAlias = Callable[[Value, Value], bool | Undefined]

_Test: TypeAlias = Callable[[float | str, float | str], bool]


def is_equal(left: Value, right: Value) -> bool | Undefined:
    """Compare with `=`: undefined across types, structural for arrays and objects."""
    if isinstance(left, (dict, list)):
        return term(left) == term(right) if type(left) is type(right) else UNDEFINED
    return _compare_scalars(operator.eq, left, right)


def _comparison(test: _Test) -> Compare:
    def compare(left: Value, right: Value) -> bool | Undefined:
        return UNDEFINED if isinstance(left, (dict, list)) else _compare_scalars(test, left, right)

    return compare


def _compare_scalars(test: _Test, left: Value, right: Value) -> bool | Undefined:
    if isinstance(left, str):
        return test(left, right) if isinstance(right, str) else UNDEFINED
    if isinstance(left, bool) or isinstance(right, bool):
        return test(left, right) if isinstance(left, bool) and isinstance(right, bool) else UNDEFINED
    if isinstance(left, (int, float)):
        return test(double(left), double(right)) if isinstance(right, (int, float)) else UNDEFINED
    # There is one null, equal to itself.
    return test(0, 0) if left is None and right is None else UNDEFINED


COMPARISONS: Final[dict[str, Compare]] = {
    "=": is_equal,
    "!=": _comparison(operator.ne),
    "<": _comparison(operator.lt),
    "<=": _comparison(operator.le),
    ">": _comparison(operator.gt),
    ">=": _comparison(operator.ge),
}
