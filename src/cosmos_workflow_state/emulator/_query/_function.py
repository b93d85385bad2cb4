"""What a function of the query language is, and the reading of its arguments.

Owns the shape that the modules of functions share. Must not know any function.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cosmos_workflow_state.emulator._ordering import UNDEFINED, Value

__all__ = ["Function", "of_texts"]


@dataclass(frozen=True, slots=True)
class Function:
    """A function and how many arguments it takes.

    Attributes:
        evaluate: Values to a value, `UNDEFINED` among both. It raises nothing.
        fewest: How many arguments there must be.
        most: How many there may be, None for any number.
    """

    evaluate: Callable[..., Value]
    fewest: int
    most: int | None


def of_texts(function: Callable[..., Value]) -> Callable[..., Value]:
    """Make a function of values out of one of strings: undefined when one is no string."""

    def evaluate(*values: Value) -> Value:
        return function(*values) if all(isinstance(value, str) for value in values) else UNDEFINED

    return evaluate
