"""The functions of arrays and objects.

Owns what each one answers. Elements are equal when their index terms are. Nothing here raises.
"""

from __future__ import annotations

from typing import Final

from cosmos_workflow_state.emulator._ordering import UNDEFINED, Value, term
from cosmos_workflow_state.emulator._query._function import Function
from cosmos_workflow_state.emulator._query._numbers import as_integer
from cosmos_workflow_state.emulator._values import Json

__all__ = ["ARRAY_FUNCTIONS"]

_MOST_ELEMENTS: Final = 1024 * 1024
"""Longer arrays are not built; a page of results has no room for more."""


def _concatenate(*arrays: Value) -> Value:
    joined: list[Json] = []
    for array in arrays:
        if not isinstance(array, list) or len(joined) + len(array) > _MOST_ELEMENTS:
            return UNDEFINED
        joined += array
    return joined


def _contains(array: Value, wanted: Value, partial: Value = False) -> Value:  # noqa: FBT002 -- a value of a query
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


def _contains_any(array: Value, *wanted: Value) -> Value:
    if not isinstance(array, list):
        return UNDEFINED
    present = set(map(term, array))
    return any(term(value) in present for value in wanted)


def _contains_all(array: Value, *wanted: Value) -> Value:
    if not isinstance(array, list):
        return UNDEFINED
    present = set(map(term, array))
    return all(term(value) in present for value in wanted)


def _length(array: Value) -> Value:
    return len(array) if isinstance(array, list) else UNDEFINED


def _slice(array: Value, start: Value, count: Value = _MOST_ELEMENTS) -> Value:
    first, length = as_integer(start), as_integer(count)
    if not isinstance(array, list) or first is None or length is None:
        return UNDEFINED
    begin = first if first >= 0 else max(len(array) + first, 0)
    return array[begin : begin + max(length, 0)]


def _intersection(left: Value, right: Value) -> Value:
    if not isinstance(left, list) or not isinstance(right, list):
        return UNDEFINED
    wanted = set(map(term, right))
    return _without_repetition([element for element in left if term(element) in wanted])


def _union(left: Value, right: Value) -> Value:
    if not isinstance(left, list) or not isinstance(right, list):
        return UNDEFINED
    return _without_repetition(left + right)


def _without_repetition(array: list[Json]) -> list[Json]:
    first: dict[bytes, Json] = {}
    for element in array:
        first.setdefault(term(element), element)
    return list(first.values())


def _object_to_array(value: Value, key: Value = "k", content: Value = "v") -> Value:
    if not isinstance(value, dict) or not isinstance(key, str) or not isinstance(content, str):
        return UNDEFINED
    return [{key: name, content: member} for name, member in value.items()]


ARRAY_FUNCTIONS: Final = {
    "ARRAY_CONCAT": Function(_concatenate, 2, None),
    "ARRAY_CONTAINS": Function(_contains, 2, 3),
    "ARRAY_CONTAINS_ALL": Function(_contains_all, 2, None),
    "ARRAY_CONTAINS_ANY": Function(_contains_any, 2, None),
    "ARRAY_LENGTH": Function(_length, 1, 1),
    "ARRAY_SLICE": Function(_slice, 2, 3),
    "OBJECTTOARRAY": Function(_object_to_array, 1, 3),
    "SETINTERSECT": Function(_intersection, 2, 2),
    "SETUNION": Function(_union, 2, 2),
}
