"""JSON text to values and back, with the service's rules for numbers.

Owns parsing and serialising. Must not know what the values mean.
"""

from __future__ import annotations

import json
from typing import Final, NoReturn

from cosmos_workflow_state.emulator._engine._errors import InvalidError
from cosmos_workflow_state.emulator._values import Json, JsonObject

__all__ = ["MAX_NESTING", "check_nesting", "dump", "parse", "parse_object"]

MAX_NESTING: Final = 128
"""Objects and arrays within one another: https://learn.microsoft.com/azure/cosmos-db/concepts-limits."""

_EXACT_DIGITS = 15
_NOT_JSON = "The body is not valid JSON."


def _integer(text: str) -> int | float:
    """Read an integer as the service does: a double, which is exact only to 2**53."""
    if len(text) <= _EXACT_DIGITS:
        return int(text)
    number = float(text)
    return int(number) if abs(number) <= 1 << 53 else number


def _refuse_constant(name: str) -> NoReturn:
    raise InvalidError(f"{name} is no JSON value.")


_DECODER: Final = json.JSONDecoder(parse_int=_integer, parse_constant=_refuse_constant)
_COMPACT: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_ESCAPED: Final = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def parse(text: bytes | str) -> Json:
    """Read JSON.

    Args:
        text: The text, as UTF-8 when it is bytes.

    Returns:
        The value; integers beyond 2**53 as the nearest double.

    Raises:
        InvalidError: The text is not JSON (NaN and Infinity are not), or nested too deeply.
    """
    try:
        value: Json = _DECODER.decode(text if isinstance(text, str) else text.decode())
    except (ValueError, RecursionError) as error:
        raise InvalidError(_NOT_JSON) from error
    return value


def parse_object(text: bytes | str) -> JsonObject:
    """Read a JSON object.

    Args:
        text: The text, as UTF-8 when it is bytes.

    Returns:
        The object.

    Raises:
        InvalidError: The text is not JSON, or not an object.
    """
    value = parse(text)
    if not isinstance(value, dict):
        raise InvalidError("The body has to be a JSON object.")
    return value


def dump(value: Json) -> bytes:
    """Write JSON, compact and in UTF-8.

    Args:
        value: Any JSON value.

    Returns:
        The text. With a lone surrogate in it, which UTF-8 cannot hold, everything is escaped to ASCII.

    Raises:
        InvalidError: The value contains a number beyond a double's range, or is nested too deeply.
    """
    try:
        return _COMPACT.encode(value).encode()
    except UnicodeEncodeError:
        return _ESCAPED.encode(value).encode()
    except (ValueError, RecursionError) as error:
        raise InvalidError(_NOT_JSON) from error


def check_nesting(value: Json, text: bytes) -> None:
    """Refuse a value with too many objects and arrays within one another.

    Args:
        value: The value.
        text: The same as JSON; most values need no look beyond it.

    Raises:
        InvalidError: There are more than `MAX_NESTING`.
    """
    if text.count(b"{") + text.count(b"[") <= MAX_NESTING:
        return
    level = [value]
    for _ in range(MAX_NESTING):
        level = [inner for outer in level for inner in _contents(outer) if isinstance(inner, (dict, list))]
    if level:
        raise InvalidError(f"The item is nested too deeply: {MAX_NESTING} levels are allowed.")


def _contents(value: Json) -> list[Json]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []
