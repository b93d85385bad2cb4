"""The functions of the query language: one table, by name in upper case.

Owns what each function answers. A function gets evaluated arguments, `UNDEFINED` among them, and answers a value
or `UNDEFINED`; it must not raise, whatever it is given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from cosmos_workflow_state.emulator._ordering import UNDEFINED, Value, term
from cosmos_workflow_state.emulator._values import Json

__all__ = ["AGGREGATES", "FUNCTIONS", "Function"]


@dataclass(frozen=True, slots=True)
class Function:
    """A function and how many arguments it takes."""

    evaluate: Callable[..., Value]
    fewest: int
    most: int


def _is_defined(value: Value) -> Value:
    return value is not UNDEFINED


def _is_null(value: Value) -> Value:
    return value is None


def _starts_with(text: Value, prefix: Value, *ignore_case: Value) -> Value:
    return _match_text(str.startswith, text, prefix, _flag(ignore_case))


def _contains(text: Value, part: Value, *ignore_case: Value) -> Value:
    return _match_text(str.__contains__, text, part, _flag(ignore_case))


def _flag(given: tuple[Value, ...]) -> Value:
    """Read an optional last argument, which is false when left out."""
    return given[0] if given else False


def _match_text(test: Callable[[str, str], bool], text: Value, part: Value, ignore_case: Value) -> Value:
    if not isinstance(text, str) or not isinstance(part, str) or not isinstance(ignore_case, bool):
        return UNDEFINED
    return test(text.lower(), part.lower()) if ignore_case else test(text, part)


def _array_contains(array: Value, wanted: Value, *matching: Value) -> Value:
    partial = _flag(matching)
    if not isinstance(array, list) or wanted is UNDEFINED or not isinstance(partial, bool):
        return UNDEFINED
    if partial and isinstance(wanted, dict):
        return any(_has_all(element, wanted) for element in array)
    key = term(wanted)
    return any(term(element) == key for element in array)


def _has_all(element: Json, wanted: dict[str, Json]) -> bool:
    return isinstance(element, dict) and all(
        name in element and term(element[name]) == term(value) for name, value in wanted.items()
    )


FUNCTIONS: Final = {
    "ARRAY_CONTAINS": Function(_array_contains, 2, 3),
    "CONTAINS": Function(_contains, 2, 3),
    "IS_DEFINED": Function(_is_defined, 1, 1),
    "IS_NULL": Function(_is_null, 1, 1),
    "STARTSWITH": Function(_starts_with, 2, 3),
}

AGGREGATES: Final = frozenset({"COUNT"})
"""Functions of all rows rather than one; they stand alone behind SELECT VALUE."""
