"""What the framework's own encoding of a message leaves out without a word, so that it can be told.

Pure. ``Message.to_dict`` keeps what JSON has and what encodes itself; of other values, as tools and clients put into
``additional_properties`` and arguments, some vanish and some become text. Every store of the framework is like that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from agent_framework import Message

_OF_JSON: Final = (str, int, float, type(None))
_LEFT_OUT_ON_PURPOSE: Final = frozenset({"raw_representation", "exception"})
"""The answer of a service as its client knows it, and the text of errors."""


def types_left_out(message: Message) -> tuple[str, ...]:
    """Return ``module:qualname`` of the types of values that do not come back as they are, sorted."""
    found: set[str] = set()
    _look(message, found, set())
    return tuple(sorted(found))


def _look(value: Any, found: set[str], seen: set[int]) -> None:
    if isinstance(value, _OF_JSON) or id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, list):
        for child in cast("Sequence[Any]", value):
            _look(child, found, seen)
        return
    fields = _fields(value)
    if fields is None:
        found.add(f"{type(value).__module__}:{type(value).__qualname__}")
        return
    for name, child in fields.items():
        if str(name) not in _LEFT_OUT_ON_PURPOSE and not str(name).startswith("_"):
            _look(child, found, seen)


def _fields(value: Any) -> Mapping[object, Any] | None:
    """Return what is in a dict or in an object that encodes itself; None for anything else."""
    if isinstance(value, Mapping):
        return cast("Mapping[object, Any]", value)
    if callable(getattr(value, "to_dict", None)) and callable(getattr(value, "from_dict", None)):
        return cast("Mapping[object, Any]", getattr(value, "__dict__", {}))
    return None
