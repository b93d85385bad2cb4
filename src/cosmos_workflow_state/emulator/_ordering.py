"""Order-preserving binary form of JSON values: the terms of the index and the order of ORDER BY.

Owns the order of values across types (undefined, null, false, true, numbers, strings, arrays, objects) and
its byte encoding. Must not know of items, paths, queries or storage.

Terms are prefix-free, so that a concatenation of terms sorts as the tuple of their values does.
"""

from __future__ import annotations

import hashlib
import math
import struct
from enum import Enum
from typing import Final, TypeAlias

from cosmos_workflow_state.emulator._values import Json

__all__ = ["UNDEFINED", "Undefined", "Value", "complement", "double", "prefix_range", "term", "type_range"]


class Undefined(Enum):
    """The type of `UNDEFINED`: an enumeration of one member, so that type checkers narrow on `is`."""

    UNDEFINED = "undefined"


UNDEFINED: Final = Undefined.UNDEFINED
"""What a property that is not there evaluates to; distinct from null."""

Value: TypeAlias = "Json | Undefined"
"""What an expression evaluates to."""

_FALSE = b"\x30"
_TRUE = b"\x31"
_NUMBER = b"\x40"
_STRING = b"\x50"
_ARRAY = b"\x60"
_OBJECT = b"\x70"
_CONSTANTS = {UNDEFINED: b"\x10", None: b"\x20", False: _FALSE, True: _TRUE}

# A NUL in a string is followed by 0xFF, the end of a string is a NUL followed by a smaller byte: "a" sorts
# before "a\0", and no string's term is a prefix of another's. UTF-8 itself never contains 0xFF.
_ESCAPED_NUL = b"\x00\xff"
_END_OF_STRING = b"\x00\x00"
_PAST_EVERY_CHARACTER = b"\xff"

_SIGN = 1 << 63
_ALL_BITS = (1 << 64) - 1
_INVERTED = bytes(255 - byte for byte in range(256))


def term(value: Value) -> bytes:
    """Encode a value so that the bytes sort as the values do.

    Numbers are IEEE 754 doubles, as in the service: 1 and 1.0 have one term, integers beyond 2**53 that of
    their nearest double. Arrays and objects are told apart but not ordered: their term is a digest, in which
    the order of an object's properties does not count.

    Args:
        value: A JSON value or `UNDEFINED`.

    Returns:
        The term: 1 byte for undefined, null and booleans, 9 for numbers, 33 for arrays and objects, and the
        UTF-8 length plus 3 (plus one for each NUL) for strings.

    Raises:
        ValueError: The value is or contains NaN, which JSON does not have.
        RecursionError: The value is nested deeper than Python's recursion limit; the service's limit is 128.
    """
    if isinstance(value, str):
        return _string_head(value) + _END_OF_STRING
    if value is UNDEFINED or value is None or isinstance(value, bool):
        return _CONSTANTS[value]
    if isinstance(value, (int, float)):
        return _NUMBER + _number(value)
    if isinstance(value, dict):
        return _OBJECT + _digest(b"".join(term(name) + term(value[name]) for name in sorted(value)))
    return _ARRAY + _digest(b"".join(map(term, value)))


def double(number: float) -> float:
    """Give the double that stands for a number; beyond the range of doubles, an infinity.

    Args:
        number: An integer of any size or a float.

    Returns:
        The nearest double.

    Raises:
        ValueError: The number is NaN, which JSON does not have.
    """
    try:
        nearest = float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf
    if math.isnan(nearest):
        raise ValueError("NaN is no JSON value and has no place in the order of numbers.")
    return nearest


def type_range(value: Value) -> tuple[bytes, bytes]:
    """Give the range of terms that hold every value of one value's type.

    Args:
        value: Any value of the type asked for.

    Returns:
        The lowest term, inclusive, and the end, exclusive.
    """
    kind = term(value)[0] & 0xF0
    return bytes([kind]), bytes([kind + 0x10])


def prefix_range(prefix: str) -> tuple[bytes, bytes]:
    """Give the range of terms that hold every string with a prefix.

    Args:
        prefix: The text the strings start with; the empty text stands for all strings.

    Returns:
        The lowest term, inclusive, and the end, exclusive.
    """
    head = _string_head(prefix)
    return head, head + _PAST_EVERY_CHARACTER


def complement(encoded: bytes) -> bytes:
    """Turn a term into one that sorts the other way round, for descending orders.

    Args:
        encoded: A term, or a concatenation of terms.

    Returns:
        Bytes of the same length; they invert the order because terms are prefix-free.
    """
    return encoded.translate(_INVERTED)


def _string_head(text: str) -> bytes:
    return _STRING + text.encode("utf-8", "surrogatepass").replace(b"\x00", _ESCAPED_NUL)


def _number(number: float) -> bytes:
    # Adding 0.0 makes 0.0 of -0.0: they are equal, so they have one term.
    bits = int.from_bytes(struct.pack(">d", double(number) + 0.0), "big")
    return (bits ^ _ALL_BITS if bits & _SIGN else bits | _SIGN).to_bytes(8, "big")


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()
