"""Partition keys: hashes against published values and the client's own arithmetic, ranges, encoding."""

from __future__ import annotations

import struct

import pytest
from azure.cosmos.partition_key import PartitionKey as ClientKey
from hypothesis import given
from hypothesis import strategies as st

from cosmos_workflow_state.emulator._ordering import UNDEFINED
from cosmos_workflow_state.emulator._partition import (
    EVERYTHING,
    Component,
    KeyRange,
    Kind,
    PartitionKey,
    encode,
    murmur3_32,
    murmur3_128,
)
from support.strategies import quick

TWO_LEVELS = PartitionKey((("tenant",), ("workflow",)), Kind.MULTI_HASH, 2)
SINGLE = PartitionKey((("tenant",),), Kind.HASH, 2)
SINGLE_V1 = PartitionKey((("tenant",),), Kind.HASH, 1)

TEXTS = st.text(alphabet=st.characters(exclude_categories=["Cs"]))
COMPONENTS = st.one_of(TEXTS, st.floats(allow_nan=False, allow_infinity=False), st.booleans(), st.none())


def typed(component: Component) -> tuple[type, object]:
    """Tell 1.0 from True, and 0.0 from -0.0, which Python takes for equal."""
    return type(component), struct.pack("<d", component) if isinstance(component, float) else component


def in_client(key: ClientKey, value: object) -> bytes:
    """Give the effective partition key as the azure-cosmos client computes it."""
    return bytes.fromhex(str(key._get_epk_range_for_partition_key(value).min))


@pytest.mark.parametrize(
    ("components", "expected"),
    [
        (["t1"], "3D48BB14DA9D090D22112C96695028B6"),
        (["t1", "w1"], "3D48BB14DA9D090D22112C96695028B620BCB6A2F569500234199E2063D9A943"),
        (["", ""], "32E9366E637A71B4E710384B2F4970A0" * 2),
        ([None, "x"], "378867E4430E67857ACE5C908374FE1611E3F358618BE9AA5BAFF4C7C74F0716"),
    ],
    ids=["prefix", "full", "empty", "null"],
)
def test_hierarchical_vectors(components: list[Component], expected: str) -> None:
    """Hierarchical keys hash to the values the service is known to use."""
    assert TWO_LEVELS.effective(components).hex().upper() == expected


def test_single_vector() -> None:
    """A single key of version 2 hashes to the value the service is known to use."""
    assert SINGLE.effective(["a"]).hex().upper() == "3A5381E1114EB8D3FCC90795045B49B7"


@quick
@given(COMPONENTS, COMPONENTS)
def test_hierarchical_keys_hash_as_in_the_client(first: Component, second: Component) -> None:
    """Any two levels hash as the client computes them for the ranges it asks for."""
    assert TWO_LEVELS.effective([first, second]) == in_client(ClientKey(["/a", "/b"]), [first, second])


@quick
@given(COMPONENTS)
def test_single_keys_hash_as_in_the_client(component: Component) -> None:
    """Any single key of version 2 hashes as the client computes it."""
    assert SINGLE.effective([component]) == in_client(ClientKey("/a"), component)


@quick
@given(st.one_of(TEXTS, st.text("aé漢😀", min_size=20, max_size=140), st.floats(0, 1e300), st.booleans()))
def test_version_1_keys_hash_as_in_the_client(component: Component) -> None:
    """Any single key of version 1, long texts and numbers included, is what the client computes."""
    assert SINGLE_V1.effective([component]) == in_client(ClientKey("/a", version=1), component)


def test_version_1_null_and_undefined_differ() -> None:
    """Version 1 tells null from a property that is not there."""
    assert SINGLE_V1.effective([None]) != SINGLE_V1.effective([UNDEFINED])


@pytest.mark.parametrize(
    ("data", "expected"),
    [(b"", 0), (b"a", 0x3C2569B2), (b"abc", 0xB3DD93FA), (b"abcd", 0x43ED676A), (b"Hello, world!", 0xC0363E43)],
    ids=["empty", "tail", "three", "block", "both"],
)
def test_murmur3_32_vectors(data: bytes, expected: int) -> None:
    """The 32-bit hash gives the published values."""
    assert murmur3_32(data) == expected


def test_murmur3_128_vectors() -> None:
    """The 128-bit hash gives the published values, with and without a tail."""
    assert murmur3_128(b"") == bytes(16)
    assert murmur3_128(b"hello").hex() == "029bbd41b3a7d8cb191dae486a901e5b"
    assert murmur3_128(b"The quick brown fox jumps over the lazy dog").hex() == "6c1b07bc7bbc4be347939ac4a93c437a"


@quick
@given(st.lists(COMPONENTS, max_size=3), st.lists(COMPONENTS, max_size=3))
def test_encoding_is_injective(first: list[Component], second: list[Component]) -> None:
    """Two keys have the same encoding only if they are the same, type by type."""
    assert (encode(first) == encode(second)) == (list(map(typed, first)) == list(map(typed, second)))


def test_undefined_is_its_own_value() -> None:
    """A level that an item lacks is not null, and a lone surrogate has an encoding."""
    assert encode([UNDEFINED]) == b"\x00"
    assert encode([None]) == b"\x01"
    assert encode(["\ud800"]) == b"\x08\xed\xa0\x80\xff"


def test_range_of_a_full_key_is_one_key() -> None:
    """A full key's range has that key in it, names it and holds no longer key."""
    keys = TWO_LEVELS.key_range(["t1", "w1"])
    assert keys.start == TWO_LEVELS.effective(["t1", "w1"])
    assert keys.key == encode(["t1", "w1"])
    assert keys.start < keys.end < keys.start + b"\x01"
    assert keys.levels == 0


def test_range_of_a_prefix_holds_its_keys() -> None:
    """A prefix's range holds the keys that begin with it, and knows how many levels it fixes."""
    keys = TWO_LEVELS.key_range(["t1"])
    assert keys.start < TWO_LEVELS.effective(["t1", "w1"]) < keys.end
    assert not keys.start <= TWO_LEVELS.effective(["t10", "w1"]) < keys.end
    assert (keys.key, keys.levels) == (None, 1)


def test_everything_fixes_nothing() -> None:
    """The range of a whole container, and one that is no prefix, fix no level."""
    assert EVERYTHING.levels == 0
    assert KeyRange(b"\x01" * 16, b"\x02" * 16).levels == 0
    assert EVERYTHING.start <= TWO_LEVELS.effective(["t1", "w1"]) < EVERYTHING.end


@quick
@given(st.sampled_from([TWO_LEVELS, SINGLE, SINGLE_V1]), st.integers(1, 40), COMPONENTS)
def test_split_gives_every_key_one_home(key: PartitionKey, count: int, component: Component) -> None:
    """However many ranges there are, they touch one another, and a key is in exactly one of them."""
    parts = key.split(count)
    assert len(parts) == count
    assert [part.start for part in parts] == [b"", *(part.end for part in parts[:-1])]
    keys = key.key_range([component] * len(key.paths))
    assert [part.overlap(keys) for part in parts].count(None) == count - 1


@pytest.mark.parametrize("key", [TWO_LEVELS, SINGLE, SINGLE_V1], ids=["levels", "single", "version 1"])
def test_split_is_even(key: PartitionKey) -> None:
    """Ranges hold about equally many keys, and each is known as a good part of all, which no prefix is."""
    parts = key.split(4)
    homes = [
        number
        for value in range(400)
        for number, part in enumerate(parts)
        if part.overlap(key.key_range([f"{value}"] * len(key.paths)))
    ]
    assert all(60 < homes.count(number) < 140 for number in range(4))
    assert all(part.is_wide for part in parts)
    assert not key.key_range(["t1"]).is_wide
