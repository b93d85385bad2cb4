"""Values of a state as short texts, as JSON and, once they are restored, as plain dicts and lists.

Of the code of the state's types only what attribute access, iteration and ``str`` of a number or time call is run.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Collection, Mapping, Sequence
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, Final, cast
from uuid import UUID

from cosmos_workflow_state._cli._output import printable
from cosmos_workflow_state.typing import PickledValue

from ._layout import counted, shorten

_DEEPEST: Final = 100
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


def plain(value: Any, depth: int = 0) -> Any:
    """Return a restored value as dicts, lists, texts and numbers; an object has its type beside its attributes.

    What is deeper than a hundred levels, or cannot be looked into, is only its type.
    """
    if value is None or type(value) in {str, int, float, bool}:
        return value
    if depth < _DEEPEST:
        if isinstance(value, Mapping):
            entries = cast("Mapping[object, Any]", value).items()
            return {_key(key): plain(child, depth + 1) for key, child in entries}
        if isinstance(value, (list, tuple, set, frozenset)):
            return [plain(child, depth + 1) for child in cast("Collection[Any]", value)]
        attributes = _attributes(value)
        if attributes:
            return {_TYPE: _type_name(value)} | {name: plain(child, depth + 1) for name, child in attributes.items()}
    return _named(value)


def _key(key: Any) -> str:
    return key if isinstance(key, str) else _named(key) if isinstance(key, (bytes, tuple)) else str(key)


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
