"""Which keyframe a payload is stored against, and what is remembered of keyframes."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosmos_workflow_state._codec import MAX_WHOLE_BYTES, decode_payload, encode_whole
from cosmos_workflow_state._identity import Scope, TenantId
from cosmos_workflow_state._keyframes import Base, Encoding, KeyframeMemory, encode
from cosmos_workflow_state._records import CheckpointKey, Keyframe, Place
from support.strategies import quick

KEY = CheckpointKey(TenantId("contoso"), Scope("s"), "w", "cp-1")
OTHERS = [
    replace(KEY, tenant=TenantId("contoso1")),
    replace(KEY, scope=Scope("")),
    replace(KEY, workflow_name="w2"),
]


def noise(size: int, seed: int = 0) -> bytes:
    """Return bytes that do not compress."""
    return random.Random(seed).randbytes(size)


def encoded(raw: bytes, base: Base | None = None, *, ttl: int | None = None, keyframe_id: str = "new") -> Encoding:
    """Encode as a save does."""
    return encode(raw, base, ttl=ttl, keyframe_id=keyframe_id, payload_format="maf/1")


def keyframe(name: str, size: int = 10) -> Keyframe:
    """Return a keyframe of so many compressed bytes."""
    return Keyframe(name, 2 * size, bytes(size), serves_ttl=None)


def decoded(encoding: Encoding) -> bytes:
    """Undo an encoding."""
    return decode_payload(encoding.payload, None if encoding.base is None else encoding.base.keyframe)


# --- choosing -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, MAX_WHOLE_BYTES - 100])
def test_small_payload_stands_alone(size: int) -> None:
    """A keyframe with its guard would cost more than it saves."""
    encoding = encoded(noise(size))
    assert (encoding.base, encoding.is_new, encoding.payload.keyframe_id) == (None, False, None)
    assert decoded(encoding) == noise(size)


def test_first_large_payload_brings_its_keyframe() -> None:
    """The keyframe holds it all, the payload's own data is next to nothing."""
    encoding = encoded(noise(10_000))
    assert encoding.is_new
    assert encoding.base is not None
    assert encoding.base.keyframe.id == encoding.payload.keyframe_id == "new"
    assert len(encoding.payload.data) < 100
    assert len(encoding.base.keyframe.data) >= 10_000
    assert decoded(encoding) == noise(10_000)


def test_next_payload_is_the_difference() -> None:
    """What the keyframe has is not stored again; what the lineage has spent is summed up."""
    first = encoded(noise(10_000))
    second = encoded(noise(10_000) + noise(300, 1), first.base, keyframe_id="unused")
    assert (second.is_new, second.payload.keyframe_id) == (False, "new")
    assert 300 <= len(second.payload.data) < 400
    assert first.base is not None
    assert second.base == Base(first.base.keyframe, first.base.spent + len(second.payload.data))
    assert decoded(second) == noise(10_000) + noise(300, 1)


def test_small_payload_of_a_known_lineage_is_a_difference_if_that_is_worth_it() -> None:
    """A state that has shrunk to nothing stands alone again."""
    base = encoded(noise(10_000)).base
    assert encoded(b"tiny", base).base is None
    assert encoded(noise(10_000)[:5_000], base).payload.keyframe_id == "new"


@pytest.mark.parametrize(("size", "refers"), [(2_499, False), (2_500, True)])
def test_state_that_has_shrunk_is_rid_of_its_keyframe(size: int, *, refers: bool) -> None:
    """A keyframe over four times as large as the payload would be read with it for nothing."""
    base = encoded(noise(10_000)).base
    assert (encoded(noise(10_000)[:size], base, keyframe_id="second").payload.keyframe_id == "new") is refers


def test_unrelated_payload_gets_a_keyframe_of_its_own() -> None:
    """A keyframe of another conversation of the same workflow does not fit, and is not used."""
    base = encoded(noise(50_000)).base
    encoding = encoded(noise(20_000, 1), base, keyframe_id="second")
    assert (encoding.is_new, encoding.payload.keyframe_id) == (True, "second")


@pytest.mark.parametrize("growth", [50, 500, 5_000])
def test_differences_cost_no_more_than_their_keyframe(growth: int) -> None:
    """However fast a state grows, the differences since a keyframe never pass its size: then comes the next one."""
    base, raw, keyframes = None, noise(5_000), 0
    for step in range(200):
        raw += noise(growth, step)
        encoding = encoded(raw, base, keyframe_id=f"k-{step}")
        assert decoded(encoding) == raw
        base = encoding.base
        assert base is not None
        assert base.spent <= len(base.keyframe.data) or encoding.is_new
        keyframes += encoding.is_new
    assert 1 < keyframes < 100


@pytest.mark.parametrize(
    ("serves", "ttl", "fits"),
    [(None, None, True), (None, 60, True), (60, None, False), (60, 60, True), (60, 61, False), (60, 1, True)],
)
def test_keyframe_is_only_used_by_what_it_outlives(serves: int | None, ttl: int | None, *, fits: bool) -> None:
    """A checkpoint that lives longer than the keyframe would be lost with it; it brings a keyframe of its own."""
    base = encoded(noise(10_000), ttl=serves).base
    encoding = encoded(noise(10_000), base, ttl=ttl, keyframe_id="second")
    assert encoding.is_new is not fits
    assert encoding.base is not None
    assert encoding.base.keyframe.serves_ttl == (serves if fits else ttl)


@quick
@given(st.lists(st.binary(max_size=4_000), min_size=1, max_size=6))
def test_any_lineage_comes_back(states: list[bytes]) -> None:
    """Whatever the states of a lineage are, each comes back from its payload and keyframe."""
    base = None
    for step, raw in enumerate(states):
        encoding = encoded(raw * 3, base, keyframe_id=f"k-{step}")
        assert decoded(encoding) == raw * 3
        base = encoding.base or base


# --- remembering --------------------------------------------------------------------------------------------------


def test_what_is_remembered_of_a_checkpoint() -> None:
    """The keyframe of its lineage and what that has spent; nothing of an unknown one."""
    memory = KeyframeMemory()
    assert memory.base_of(KEY) is memory.last_of(KEY.place) is memory.get(KEY.place, "k") is None
    memory.remember(KEY, Base(keyframe("k"), 5))
    assert memory.base_of(KEY) == memory.last_of(KEY.place) == Base(keyframe("k"), 5)
    assert memory.get(KEY.place, "k") == keyframe("k")
    child = replace(KEY, checkpoint_id="cp-2")
    memory.remember(child, Base(keyframe("k"), 9))
    assert (memory.base_of(KEY), memory.last_of(KEY.place)) == (Base(keyframe("k"), 5), Base(keyframe("k"), 9))


@pytest.mark.parametrize("other", OTHERS, ids=["tenant", "scope", "workflow"])
def test_nothing_is_remembered_for_others(other: CheckpointKey) -> None:
    """A keyframe is one tenant's, in one scope of one workflow, also when ids are the same."""
    memory = KeyframeMemory()
    memory.remember(KEY, Base(keyframe("k"), 5))
    assert memory.base_of(other) is memory.last_of(other.place) is memory.get(other.place, "k") is None
    memory.forget(other.place, "k")
    assert memory.get(KEY.place, "k") is not None


def test_forgotten_keyframe_is_no_base() -> None:
    """Whose keyframe is gone starts anew."""
    memory = KeyframeMemory()
    memory.remember(KEY, Base(keyframe("k"), 5))
    memory.forget(KEY.place, "k")
    memory.forget(KEY.place, "k")
    assert memory.base_of(KEY) is memory.last_of(KEY.place) is None


def test_memory_is_bounded_in_bytes() -> None:
    """The keyframe used longest ago goes first; using one keeps it; one larger than the bound is not kept."""
    memory = KeyframeMemory(max_bytes=100)
    keys = [replace(KEY, checkpoint_id=f"cp-{number}") for number in range(4)]
    for key in keys[:3]:
        memory.remember(key, Base(keyframe(key.checkpoint_id, 33), 0))
    assert memory.base_of(keys[0]) is not None
    memory.remember(keys[3], Base(keyframe("cp-3", 33), 0))
    assert [memory.base_of(key) is not None for key in keys] == [True, False, True, True]
    memory.remember(KEY, Base(keyframe("huge", 101), 0))
    assert memory.base_of(KEY) is None
    assert memory.base_of(keys[3]) is not None


def test_remembering_again_does_not_count_twice() -> None:
    """A lineage remembers the same keyframe at each save."""
    memory = KeyframeMemory(max_bytes=100)
    for number in range(50):
        memory.remember(replace(KEY, checkpoint_id=f"cp-{number}"), Base(keyframe("k", 60), number))
    assert memory.get(KEY.place, "k") is not None


def test_memory_of_lineages_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkpoints are forgotten in the order in which they were seen."""
    monkeypatch.setattr("cosmos_workflow_state._keyframes._MAX_HEADS", 3)
    memory = KeyframeMemory()
    keys = [replace(KEY, checkpoint_id=f"cp-{number}") for number in range(4)]
    for key in keys:
        memory.remember(key, Base(keyframe("k"), 0))
    assert [memory.base_of(key) is not None for key in keys] == [False, False, True, True]
    assert memory.last_of(KEY.place) is not None


def test_whole_and_difference_have_the_same_digest() -> None:
    """How a payload is stored does not change what it is: a repeated save is recognised across both."""
    raw = noise(10_000)
    assert encoded(raw).payload.digest == encode_whole(raw, payload_format="maf/1").digest
    digests = [encoded(raw + bytes([step])).payload.digest for step in range(3)]
    assert all(one != other for one, other in pairwise(digests))


PLACE = Place(TenantId("contoso"), Scope("s"), "w")


def test_place_of_a_key() -> None:
    """The logical partition and the scope of a checkpoint."""
    assert KEY.place == PLACE
