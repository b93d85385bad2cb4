"""Values of a state as short texts, as JSON and, once they are restored, as plain dicts and lists.

Of the code of the state's types only what attribute access, iteration and ``str`` of a number or time call is run.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from itertools import count
from typing import Any, Final, TypeVar, cast
from uuid import UUID

from cosmos_workflow_state._cli._output import printable
from cosmos_workflow_state.typing import PickledValue

from ._layout import counted, shorten

_Value = TypeVar("_Value")

_DEEPEST: Final = 100
_DEEPEST_KEY: Final = 3
_MOST: Final = 300_000
_PICKLED: Final = "__pickled__"
_TYPE: Final = "__type__"


def brief(value: Any, limit: int) -> str:
    """Return a value in at most so many characters or little more, pickles in words; of what is long its beginning."""
    if isinstance(value, PickledValue):
        size = counted(value.size, "byte")
        whole = printable(f"<pickled {value.type_name}, {size}>")
        return whole if len(whole) <= limit else printable(f"<pickled {value.type_name.rpartition(':')[2]}, {size}>")
    text = printable(json.dumps(to_json(value), ensure_ascii=False))
    return shorten(text, limit)


def to_json(value: Any) -> Any:
    """Return a value as JSON that every reader takes.

    A pickle is the object that stands for it in the store, ``{"__pickled__": bytes, "__type__": name}``, which no other
    value can be taken for; a number that JSON does not have is its name as a text.
    """
    if isinstance(value, PickledValue):
        return {_PICKLED: value.size, _TYPE: value.type_name}
    if isinstance(value, dict):
        return {name: to_json(child) for name, child in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, list):
        return [to_json(child) for child in cast("Sequence[Any]", value)]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"
    return value


def is_deeper(value: Any, levels: int) -> bool:
    """Return whether dicts and lists nest deeper than so many levels; all else here goes as deep as they do."""
    level: list[Any] = [value]
    for _ in range(levels + 1):
        level = [child for one in level for child in _children(one)]
    return bool(level)


def _children(value: Any) -> Collection[Any]:
    if isinstance(value, dict):
        return cast("dict[str, Any]", value).values()
    return cast("Collection[Any]", value) if isinstance(value, list) else ()


@dataclasses.dataclass(frozen=True, slots=True)
class Plain:
    """A restored value as dicts, lists, texts and numbers.

    Attributes:
        value: It.
        whole: Whether all of it is there; of what is more than a budget allows only the types are.
    """

    value: Any
    whole: bool


def plain(value: Any, budget: int = _MOST) -> Plain:
    """Return a restored value as dicts, lists, texts and numbers; an object has its type beside its attributes.

    What is deeper than a hundred levels, or cannot be looked into, is only its type. So is what contains the place
    where it stands, with how far up it is. Objects that are in several places are shown in each: a state of some bytes
    can have more values than anybody has time for, so there is a budget.

    Args:
        value: What `load` gave.
        budget: So many values are looked at.
    """
    looking = _Looking(budget)
    found = looking.at(value, 0)
    return Plain(found, looking.left > 0)


class _Looking:
    """Looks at values, one inside the other."""

    def __init__(self, budget: int) -> None:
        self.left = budget
        self._around: dict[int, int] = {}
        """By identity, how deep those are that the value stands in."""

    def at(self, value: Any, depth: int) -> Any:
        """Return a value, at a depth, as dicts, lists, texts and numbers."""
        self.left -= 1
        if value is None or type(value) in {str, int, float, bool}:
            return value
        if id(value) in self._around:
            return f"<{_type_name(value)}, {counted(depth - self._around[id(value)], 'level')} up>"
        if depth >= _DEEPEST or self.left <= 0:
            return _named(value)
        self._around[id(value)] = depth
        try:
            return self._into(value, depth + 1)
        finally:
            del self._around[id(value)]

    def _into(self, value: Any, depth: int) -> Any:
        if isinstance(value, Mapping):
            return self._entries(cast("Mapping[object, Any]", value).items(), depth)
        if isinstance(value, (list, tuple, set, frozenset)):
            return [self.at(child, depth) for child in self._affordable(cast("Collection[Any]", value))]
        attributes = _attributes(value)
        return {_TYPE: _type_name(value)} | self._entries(attributes.items(), depth) if attributes else _named(value)

    def _entries(self, found: Iterable[tuple[object, Any]], depth: int) -> dict[str, Any]:
        shown: dict[str, Any] = {}
        for key, child in self._affordable(found):
            shown[_unlike(shown, _key(key))] = self.at(child, depth)
        return shown

    def _affordable(self, values: Iterable[_Value]) -> Iterator[_Value]:
        """Yield values as long as there is something left to look at them with."""
        for value in values:
            if self.left <= 0:
                return
            yield value


def _key(key: object) -> str:
    """Return a key as a text; one that is no text is told apart from all that are, as values are."""
    if isinstance(key, str):
        return str.__str__(key)
    return f"<{_told(key, 0)}>" if key is None or type(key) in {bool, int, float, bytes, tuple} else _named(key)


def _told(value: Any, depth: int) -> str:
    """Return what a key, or a part of one, says, with its type; no code of a type of the state is run."""
    if value is None or type(value) in {bool, str, bytes}:
        return repr(value)
    if type(value) in {int, float}:
        return f"{type(value).__name__} {value!r}"
    if not isinstance(value, tuple) or depth == _DEEPEST_KEY:
        return _named(value)
    return f"tuple {', '.join(_told(part, depth + 1) for part in cast('Iterable[object]', value))}"


def _unlike(shown: Mapping[str, Any], key: str) -> str:
    """Return a key, with a number where it would hide another one that is shown the same."""
    if key not in shown:
        return key
    return next(name for name in (f"{key} ({number})" for number in count(2)) if name not in shown)


def _named(value: Any) -> str:
    """Return the type of a value, and what it is where that is short and tells no more than a number would."""
    if isinstance(value, bytes):
        return f"<{counted(len(value), 'byte')}>"
    if isinstance(value, type):
        return f"<class {value.__module__}:{value.__qualname__}>"
    told = isinstance(value, (Enum, str, int, float, complex, date, time, timedelta, UUID, Decimal))
    return f"<{_type_name(value)} {value}>" if told else f"<{_type_name(value)}>"


def _attributes(value: Any) -> dict[str, Any]:
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name, None) for field in dataclasses.fields(value)}
    found = getattr(value, "__dict__", None)
    return dict(cast("Mapping[str, Any]", found)) if isinstance(found, dict) and not isinstance(value, Enum) else {}


def _type_name(value: Any) -> str:
    return f"{type(value).__module__}:{type(value).__qualname__}"
