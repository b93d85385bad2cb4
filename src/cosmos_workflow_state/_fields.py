"""Reading the fields of an item strictly: there and of the right kind, or an error that names the field alone."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar, cast

from ._records import UnreadableError

_Kind = TypeVar("_Kind")
_NAME: Final = re.compile(r"[A-Za-z0-9_~:-][A-Za-z0-9._~:-]{0,1022}")


def field(item: Mapping[str, Any], name: str, kind: type[_Kind]) -> _Kind:
    """Return the value of a field.

    Raises:
        UnreadableError: It is missing, null or of another kind.
    """
    value = item.get(name)
    if not isinstance(value, kind) or isinstance(value, bool):  # a bool is an int to Python, not to JSON
        raise UnreadableError(f"field {name} of the item is missing or not {kind.__name__}")
    return value


def name(item: Mapping[str, Any], field_name: str) -> str:
    """Return a field that is, or is part of, the id of another item; such ids become part of URLs.

    Raises:
        UnreadableError: It is missing, of another kind, or nothing that this package has ever called an item.
    """
    text = field(item, field_name, str)
    if _NAME.fullmatch(text) is None:
        raise UnreadableError(f"field {field_name} of the item is no name of an item")
    return text


def optional(item: Mapping[str, Any], name: str, kind: type[_Kind]) -> _Kind | None:
    """Return the value of a field, None when it is left out.

    Raises:
        UnreadableError: It is null or of another kind.
    """
    return field(item, name, kind) if name in item else None


def texts(item: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Return the texts in a field.

    Raises:
        UnreadableError: It is missing, or no list of texts.
    """
    values = cast("Sequence[Any]", field(item, name, list))
    if not all(isinstance(value, str) for value in values):
        raise UnreadableError(f"field {name} of the item does not hold texts")
    return tuple(values)
