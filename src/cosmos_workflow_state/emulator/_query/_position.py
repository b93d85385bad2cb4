"""Where a query stands between two rows, as bytes that a client keeps and gives back.

Owns the encoding of positions. Must not know what they are used for.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from cosmos_workflow_state.emulator._query._errors import PositionError

__all__ = ["START", "Position", "decode", "encode"]

_VERSION = b"\x01"
_CONSUMED = struct.Struct(">Q")
_LENGTH = struct.Struct(">I")
_ABSENT = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Position:
    """A place behind one row of a query.

    Attributes:
        consumed: How many rows have passed, those before OFFSET included.
        scan: The candidate to continue the scan behind, None for the scan's beginning.
        key: In an order over several properties, the sort key of the last row: rows up to here are done.
        tie: The same row's candidate, which orders rows of one sort key.
    """

    consumed: int
    scan: bytes | None = None
    key: bytes | None = None
    tie: bytes | None = None


START = Position(0)
"""Before the first row."""


def encode(position: Position) -> bytes:
    """Make bytes of a position; their length follows the indexed values' length."""
    parts = (position.scan, position.key, position.tie)
    return _VERSION + _CONSUMED.pack(position.consumed) + b"".join(map(_pack, parts))


def decode(encoded: bytes) -> Position:
    """Read a position.

    Raises:
        PositionError: These bytes are no position.
    """
    if encoded[:1] != _VERSION:
        raise PositionError("the position is of no known version")
    try:
        (consumed,) = _CONSUMED.unpack_from(encoded, 1)
        scan, offset = _unpack(encoded, 1 + _CONSUMED.size)
        key, offset = _unpack(encoded, offset)
        tie, offset = _unpack(encoded, offset)
    except struct.error as error:
        raise PositionError("the position is cut short") from error
    if offset != len(encoded):
        raise PositionError("the position has the wrong length")
    return Position(consumed, scan, key, tie)


def _pack(part: bytes | None) -> bytes:
    return _LENGTH.pack(_ABSENT) if part is None else _LENGTH.pack(len(part)) + part


def _unpack(encoded: bytes, offset: int) -> tuple[bytes | None, int]:
    (length,) = _LENGTH.unpack_from(encoded, offset)
    start = offset + _LENGTH.size
    if length == _ABSENT:
        return None, start
    return encoded[start : start + length], start + length
