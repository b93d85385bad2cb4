"""Partition keys: their encoding, the effective partition key and the ranges of prefixes.

Owns what decides where an item lives. Must not know of items, of containers' names or of storage.

An effective partition key is kept as bytes; the wire's form is their upper-case hexadecimal text, which sorts the
same way. Version 2 hashes with MurmurHash3 x64 128, version 1 with MurmurHash3 x86 32 followed by the values.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Final, TypeAlias

from cosmos_workflow_state.emulator._ordering import UNDEFINED, Undefined

__all__ = [
    "EVERYTHING",
    "MAX_LEVELS",
    "Component",
    "KeyRange",
    "Kind",
    "PartitionKey",
    "encode",
    "murmur3_32",
    "murmur3_128",
]

Component: TypeAlias = str | float | bool | Undefined | None
"""One level of a partition key; `UNDEFINED` where an item lacks the property."""

MAX_LEVELS: Final = 3
"""Levels a hierarchical key may have: https://learn.microsoft.com/azure/cosmos-db/hierarchical-partition-keys."""

_BYTES_OF_LEVEL = 16
_PAST_EVERY_HASH = b"\xff"
_V1_CHARACTERS = 100
_MASK_32 = (1 << 32) - 1
_MASK_64 = (1 << 64) - 1
_SIGN = 1 << 63
_HASHES = 1 << 126
"""One more than the highest hash: its two top bits are clear."""
_HASHES_V1 = 1 << 32


class Kind(Enum):
    """How the paths of a partition key make one value."""

    HASH = "Hash"
    MULTI_HASH = "MultiHash"


@dataclass(frozen=True, slots=True)
class KeyRange:
    """A range of effective partition keys, and the one key in it if only one is asked for.

    Attributes:
        start: The lowest effective partition key, inclusive.
        end: Where the range ends, exclusive.
        key: The encoded full key, when the range stands for exactly one; keys whose effective partition keys
            collide are told apart by it.
    """

    start: bytes
    end: bytes
    key: bytes | None = None

    @property
    def levels(self) -> int:
        """Number of leading hashed levels that all keys of this range share; 0 when it is no prefix."""
        whole = len(self.start) % _BYTES_OF_LEVEL == 0 and self.end == self.start + _PAST_EVERY_HASH
        return len(self.start) // _BYTES_OF_LEVEL if whole else 0

    @property
    def is_wide(self) -> bool:
        """Whether a good part of all keys is in this range, as in a physical partition and never in a prefix."""
        first, last = (int.from_bytes(edge[:4].ljust(4, b"\x00"), "big") for edge in (self.start, self.end))
        return last - first > 1

    def overlap(self, other: KeyRange) -> KeyRange | None:
        """Give the keys that are in both of two ranges, None when there are none."""
        start, end = max(self.start, other.start), min(self.end, other.end)
        return KeyRange(start, end, self.key or other.key) if start < end else None


EVERYTHING: Final = KeyRange(b"", _PAST_EVERY_HASH)
"""All keys of a container."""


@dataclass(frozen=True, slots=True)
class PartitionKey:
    """A container's partition key definition.

    Attributes:
        paths: Property names from the item's root downwards, one tuple a level.
        kind: `HASH` has one path, `MULTI_HASH` up to `MAX_LEVELS`.
        version: 1 or 2.
    """

    paths: tuple[tuple[str, ...], ...]
    kind: Kind
    version: int

    def effective(self, components: Sequence[Component]) -> bytes:
        """Hash a key, or for hierarchical keys a prefix of one.

        Args:
            components: One value a level.

        Returns:
            The effective partition key: 16 bytes a level for `MULTI_HASH`, 16 for `HASH` version 2.
        """
        if self.kind is Kind.HASH and self.version == 1:
            return _effective_v1(components)
        if self.kind is Kind.HASH:
            return _hashed(encode(components))
        return b"".join(_hashed(encode((component,))) for component in components)

    def key_range(self, components: Sequence[Component]) -> KeyRange:
        """Give the range of one full key or of all keys with a prefix.

        Args:
            components: As many values as there are paths, or fewer for a prefix.

        Returns:
            The range; with its `key` set for a full key.
        """
        start = self.effective(components)
        if len(components) == len(self.paths):
            return KeyRange(start, start + b"\x00", encode(components))
        return KeyRange(start, start + _PAST_EVERY_HASH)

    def split(self, count: int) -> tuple[KeyRange, ...]:
        """Cut all keys into ranges that hold about equally many hashes each: a container's physical partitions.

        Args:
            count: How many ranges, 1 or more.

        Returns:
            The ranges in order, without gaps.
        """
        return _split(count, short=self.kind is Kind.HASH and self.version == 1)


def encode(components: Iterable[Component]) -> bytes:
    """Encode values as version 2 hashes them; different keys have different bytes.

    Args:
        components: One value a level.

    Returns:
        For each value a type byte and its payload; strings end in 0xFF, which UTF-8 never contains.
    """
    return b"".join(_encoded(component, b"\xff") for component in components)


def murmur3_128(data: bytes) -> bytes:
    """Hash with MurmurHash3 x64 128, seed 0.

    Args:
        data: Any bytes.

    Returns:
        16 bytes, both halves in little-endian order.
    """
    first = second = 0
    blocks = len(data) // 16 * 16
    for low, high in struct.iter_unpack("<QQ", data[:blocks]):
        first ^= _mixed_low(low)
        first = ((_rotated(first, 27) + second) * 5 + 0x52DCE729) & _MASK_64
        second ^= _mixed_high(high)
        second = ((_rotated(second, 31) + first) * 5 + 0x38495AB5) & _MASK_64
    low, high = struct.unpack("<QQ", data[blocks:].ljust(16, b"\x00"))
    first ^= _mixed_low(low) ^ len(data)
    second ^= _mixed_high(high) ^ len(data)
    first = (first + second) & _MASK_64
    second = (first + second) & _MASK_64
    first, second = _finished(first), _finished(second)
    first = (first + second) & _MASK_64
    return struct.pack("<QQ", first, (first + second) & _MASK_64)


def murmur3_32(data: bytes) -> int:
    """Hash with MurmurHash3 x86 32, seed 0.

    Args:
        data: Any bytes.

    Returns:
        An unsigned 32-bit number.
    """
    state = 0
    blocks = len(data) // 4 * 4
    for (block,) in struct.iter_unpack("<I", data[:blocks]):
        state = (_rotated_32(state ^ _mixed_32(block), 13) * 5 + 0xE6546B64) & _MASK_32
    state ^= _mixed_32(int.from_bytes(data[blocks:], "little")) ^ len(data)
    state = ((state ^ state >> 16) * 0x85EBCA6B) & _MASK_32
    state = ((state ^ state >> 13) * 0xC2B2AE35) & _MASK_32
    return state ^ state >> 16


@lru_cache(maxsize=256)
def _split(count: int, *, short: bool) -> tuple[KeyRange, ...]:
    """Cut the hashes of version 1 (short) or 2 into equal ranges."""
    parts = range(1, count)
    if short:
        cuts = [_sortable_v1(float(_HASHES_V1 * part // count)) for part in parts]
    else:
        cuts = [(_HASHES * part // count).to_bytes(_BYTES_OF_LEVEL, "big") for part in parts]
    return tuple(map(KeyRange, (b"", *cuts), (*cuts, _PAST_EVERY_HASH)))


@lru_cache(maxsize=4096)
def _hashed(encoded: bytes) -> bytes:
    digest = murmur3_128(encoded)[::-1]
    # The two top bits are cleared so that no key reaches "FF", the end of all ranges.
    return bytes([digest[0] & 0x3F]) + digest[1:]


def _encoded(component: Component, end_of_string: bytes) -> bytes:
    if isinstance(component, str):
        return b"\x08" + component.encode("utf-8", "surrogatepass") + end_of_string
    if component is UNDEFINED:
        return b"\x00"
    if component is None:
        return b"\x01"
    if isinstance(component, bool):
        return b"\x03" if component else b"\x02"
    return b"\x05" + struct.pack("<d", component)


def _effective_v1(components: Sequence[Component]) -> bytes:
    short = [part[:_V1_CHARACTERS] if isinstance(part, str) else part for part in components]
    number = float(murmur3_32(b"".join(_encoded(part, b"\x00") for part in short)))
    return b"".join(map(_sortable_v1, (number, *short)))


def _sortable_v1(component: Component) -> bytes:
    """Encode one value of a version 1 key so that it sorts as the service sorts it."""
    if isinstance(component, str):
        text = component.encode("utf-8", "surrogatepass")
        if len(text) <= _V1_CHARACTERS:
            return b"\x08" + bytes(byte + 1 for byte in text) + b"\x00"
        return b"\x08" + bytes(byte + 1 for byte in text[: _V1_CHARACTERS + 1])
    if isinstance(component, (int, float)) and not isinstance(component, bool):
        return b"\x05" + bytes(_chunks_v1(component))
    return _encoded(component, b"")


def _chunks_v1(number: float) -> Iterator[int]:
    """Cut a double into 8 bits and then groups of 7 whose lowest bit says whether another one follows."""
    (bits,) = struct.unpack(">Q", struct.pack(">d", number))
    payload = bits ^ _SIGN if bits < _SIGN else _MASK_64 + 1 - bits
    yield payload >> 56
    payload = payload << 8 & _MASK_64
    while True:
        rest = payload << 7 & _MASK_64
        yield payload >> 56 & 0xFE | (1 if rest else 0)
        if not rest:
            return
        payload = rest


def _mixed_low(block: int) -> int:
    return _rotated(block * 0x87C37B91114253D5 & _MASK_64, 31) * 0x4CF5AD432745937F & _MASK_64


def _mixed_high(block: int) -> int:
    return _rotated(block * 0x4CF5AD432745937F & _MASK_64, 33) * 0x87C37B91114253D5 & _MASK_64


def _mixed_32(block: int) -> int:
    return _rotated_32(block * 0xCC9E2D51 & _MASK_32, 15) * 0x1B873593 & _MASK_32


def _finished(state: int) -> int:
    state = ((state ^ state >> 33) * 0xFF51AFD7ED558CCD) & _MASK_64
    state = ((state ^ state >> 33) * 0xC4CEB9FE1A85EC53) & _MASK_64
    return state ^ state >> 33


def _rotated(value: int, by: int) -> int:
    return (value << by | value >> (64 - by)) & _MASK_64


def _rotated_32(value: int, by: int) -> int:
    return (value << by | value >> (32 - by)) & _MASK_32
