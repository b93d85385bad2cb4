"""The functions of strings.

Owns what each one answers; a character is a code point. Nothing here raises, and no answer is longer than `_LONGEST`,
so that a short query cannot fill the memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from cosmos_workflow_state.emulator._ordering import UNDEFINED, Value
from cosmos_workflow_state.emulator._query._function import Function, of_texts
from cosmos_workflow_state.emulator._query._numbers import as_integer

__all__ = ["TEXT_FUNCTIONS", "concatenate"]

_LONGEST: Final = 4 * 1024 * 1024
"""Characters; a page of results has no room for more."""

_MOST_REPLICATED: Final = 10_000
"""Characters that REPLICATE makes at most, as documented."""


def concatenate(*parts: Value) -> Value:
    """Join strings; undefined when one is no string, or the result too long."""
    return _joined("", parts)


def _joined(separator: str, parts: Iterable[Value]) -> Value:
    texts: list[str] = []
    length = 0
    for part in parts:
        if not isinstance(part, str):
            return UNDEFINED
        length += len(part) + len(separator)
        if length > _LONGEST:
            return UNDEFINED
        texts.append(part)
    return separator.join(texts)


def _join(array: Value, separator: Value) -> Value:
    return _joined(separator, array) if isinstance(array, list) and isinstance(separator, str) else UNDEFINED


def _replace(text: str, old: str, new: str) -> Value:
    if not old:
        return text
    length = len(text) + text.count(old) * (len(new) - len(old))
    return text.replace(old, new) if length <= _LONGEST else UNDEFINED


def _reverse(text: str) -> Value:
    return text[::-1]


def _replicate(text: Value, times: Value) -> Value:
    count = as_integer(times)
    if not isinstance(text, str) or count is None or not 0 <= count * max(len(text), 1) <= _MOST_REPLICATED:
        return UNDEFINED
    return text * count


def _split(text: str, separator: str) -> Value:
    return list(text.split(separator)) if separator else [text]


def _matching(test: Callable[[str, str], bool]) -> Callable[..., Value]:
    """Make a function of a test of two strings; its third argument, false when left out, ignores the case."""

    def evaluate(text: Value, part: Value, ignore_case: Value = False) -> Value:  # noqa: FBT002 -- a value of a query
        if not isinstance(text, str) or not isinstance(part, str) or not isinstance(ignore_case, bool):
            return UNDEFINED
        return test(text.lower(), part.lower()) if ignore_case else test(text, part)

    return evaluate


def _index_of(text: Value, part: Value, start: Value = 0) -> Value:
    place = as_integer(start)
    if not isinstance(text, str) or not isinstance(part, str) or place is None:
        return UNDEFINED
    return text.find(part, max(place, 0))


def _left(text: Value, count: Value) -> Value:
    return _substring(text, 0, count)


def _right(text: Value, count: Value) -> Value:
    length = as_integer(count)
    if not isinstance(text, str) or length is None:
        return UNDEFINED
    return text[max(len(text) - max(length, 0), 0) :]


def _substring(text: Value, start: Value, count: Value) -> Value:
    first, length = as_integer(start), as_integer(count)
    if not isinstance(text, str) or first is None or length is None:
        return UNDEFINED
    return text[max(first, 0) : max(first, 0) + max(length, 0)] if first <= len(text) else ""


TEXT_FUNCTIONS: Final = {
    "CONCAT": Function(concatenate, 2, None),
    "CONTAINS": Function(_matching(str.__contains__), 2, 3),
    "ENDSWITH": Function(_matching(str.endswith), 2, 3),
    "INDEX_OF": Function(_index_of, 2, 3),
    "LEFT": Function(_left, 2, 2),
    "LENGTH": Function(of_texts(len), 1, 1),
    "LOWER": Function(of_texts(str.lower), 1, 1),
    "LTRIM": Function(of_texts(str.lstrip), 1, 1),
    "REPLACE": Function(of_texts(_replace), 3, 3),
    "REPLICATE": Function(_replicate, 2, 2),
    "REVERSE": Function(of_texts(_reverse), 1, 1),
    "RIGHT": Function(_right, 2, 2),
    "RTRIM": Function(of_texts(str.rstrip), 1, 1),
    "STARTSWITH": Function(_matching(str.startswith), 2, 3),
    "STRINGEQUALS": Function(_matching(str.__eq__), 2, 3),
    "STRINGJOIN": Function(_join, 2, 2),
    "STRINGSPLIT": Function(of_texts(_split), 2, 2),
    "SUBSTRING": Function(_substring, 3, 3),
    "TRIM": Function(of_texts(str.strip), 1, 1),
    "UPPER": Function(of_texts(str.upper), 1, 1),
}
