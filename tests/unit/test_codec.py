"""Compression and integrity: what was put in comes out, or an error; never other bytes, never more of them."""

from __future__ import annotations

import hashlib
import sys
import threading
import tracemalloc
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosmos_workflow_state._codec import _zstd, decode_payload, encode_difference, encode_whole
from cosmos_workflow_state._records import EncodedPayload, Keyframe, UnreadableError
from cosmos_workflow_state._threads import off_loop
from support.strategies import quick

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

RAW = b"state of a workflow, " * 40
MIB = 1024 * 1024
_MAGIC = bytes.fromhex("28b52ffd")
_SKIPPABLE = bytes.fromhex("502a4d18") + (4).to_bytes(4, "little") + b"skip"


def encoded(raw: bytes = RAW, **changes: Any) -> EncodedPayload:
    """Return an encoded payload with some of its fields changed."""
    return replace(encode_whole(raw, payload_format="maf/1"), **changes)


def bomb(size: int) -> bytes:
    """Return a small frame that expands to a great many zeros and does not say so."""
    compressor = zstd.ZstdCompressor()
    chunks = [compressor.compress(bytes(MIB)) for _ in range(size // MIB)]
    return b"".join([*chunks, compressor.flush()])


def peak_of_refusing(payload: EncodedPayload) -> int:
    """Return the most bytes that Python held while a payload was refused."""
    tracemalloc.start()
    try:
        with pytest.raises(UnreadableError):
            decode_payload(payload)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@quick
@given(
    st.binary(max_size=5_000)
    | st.builds(lambda part, times: part * times, st.binary(max_size=50), st.integers(0, 5_000))
)
def test_any_bytes_come_back(raw: bytes) -> None:
    """Whatever the bytes are, repetitive or not, they come back and are described correctly."""
    payload = encoded(raw)
    assert decode_payload(payload) == raw
    assert (payload.format, payload.codecs, payload.size) == ("maf/1", ("zstd",), len(raw))


@pytest.mark.parametrize("size", [0, 1, 2**10 - 1, 2**10, 2**17 - 1, 2**17, 2**17 + 1, 3 * MIB])
def test_sizes_around_blocks_and_windows_come_back(size: int) -> None:
    """The one byte of slack on the way back meets no border of zstd's."""
    raw = bytes(range(256)) * (size // 256 + 1)
    assert decode_payload(encoded(raw[:size])) == raw[:size]


def test_repetitions_far_apart_are_found() -> None:
    """Two copies of the same megabyte, four megabytes apart, are stored about once."""
    noise = [zstd_noise(seed, MIB) for seed in range(5)]
    payload = encoded(b"".join([*noise, noise[0]]))
    assert len(payload.data) < 5.1 * MIB


def zstd_noise(seed: int, size: int) -> bytes:
    """Return bytes that do not compress, the same for the same seed."""
    return hashlib.shake_256(bytes([seed])).digest(size)


def test_frame_says_how_long_it_is_and_is_checksummed() -> None:
    """Other tools can check what is stored without us."""
    descriptor = encoded().data[4]
    assert descriptor & 0b100, "no checksum"
    assert zstd.get_frame_info(encoded().data).decompressed_size == len(RAW)


def test_every_truncation_is_unreadable() -> None:
    """A payload cut short anywhere is an error, also when only its checksum is missing."""
    payload = encoded()
    for length in range(len(payload.data)):
        with pytest.raises(UnreadableError):
            decode_payload(replace(payload, data=payload.data[:length]))


def test_flipped_bits_never_give_other_bytes() -> None:
    """Each bit flipped: an error, or (flags that a decoder ignores) exactly the bytes that were stored."""
    payload = encoded()
    for position in range(len(payload.data)):
        for bit in range(8):
            flipped = bytearray(payload.data)
            flipped[position] ^= 1 << bit
            try:
                assert decode_payload(replace(payload, data=bytes(flipped))) == RAW
            except UnreadableError:
                continue


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(encoded().data + b"\0", id="trailing byte"),
        pytest.param(encoded().data * 2, id="two frames"),
        pytest.param(encoded().data + encoded(b"").data, id="empty frame after"),
        pytest.param(encoded(b"").data + encoded().data, id="empty frame before"),
        pytest.param(encoded(RAW[:21]).data + encoded(RAW[21:]).data, id="several frames of the right size"),
        pytest.param(encoded().data + _SKIPPABLE, id="skippable frame after"),
        pytest.param(_SKIPPABLE + encoded().data, id="skippable frame before"),
        pytest.param(_SKIPPABLE, id="only a skippable frame"),
        pytest.param(b"", id="nothing"),
        pytest.param(RAW, id="not compressed"),
        pytest.param(_MAGIC, id="only the magic number"),
    ],
)
def test_anything_but_one_frame_is_unreadable(data: bytes) -> None:
    """Exactly one frame with nothing before or after it."""
    with pytest.raises(UnreadableError):
        decode_payload(encoded(data=data))


@pytest.mark.parametrize("size", [0, 1, len(RAW) - 1, len(RAW) + 1, 10 * len(RAW), -1, -2, -(2**40)])
def test_wrong_size_is_unreadable(size: int) -> None:
    """The recorded size must be exact."""
    with pytest.raises(UnreadableError, match="size"):
        decode_payload(encoded(size=size))


@pytest.mark.parametrize(
    "digest",
    [
        "",
        "sha256:",
        "sha256:" + "0" * 64,
        encoded().digest.upper(),
        encoded().digest[:-1],
        encoded().digest.removeprefix("sha256:"),
        encoded().digest.replace("sha256", "md5"),
        encoded(b"other").digest,
    ],
)
def test_wrong_digest_is_unreadable(digest: str) -> None:
    """Another digest, or one of another algorithm, is an error."""
    with pytest.raises(UnreadableError, match="digest"):
        decode_payload(encoded(digest=digest))


@pytest.mark.parametrize(
    "codecs", [(), ("gzip",), ("zstd", "zstd"), ("zstd", "aes-gcm"), ("aes-gcm", "zstd"), ("ZSTD",)]
)
def test_unknown_codecs_are_unreadable(codecs: tuple[str, ...]) -> None:
    """What a later version applied is not guessed at, and nothing is handed out half decoded."""
    with pytest.raises(UnreadableError, match="codecs that this version does not know"):
        decode_payload(encoded(codecs=codecs))


@pytest.mark.parametrize("size", [1000, -2], ids=["small size", "negative size"])
def test_bomb_is_refused_in_bounded_memory(size: int) -> None:
    """A few kilobytes that expand to 512 MiB cost no more than the size recorded for them."""
    data = bomb(512 * MIB)
    assert len(data) < 64 * 1024
    assert peak_of_refusing(encoded(data=data, size=size)) < MIB


def test_frame_that_claims_a_huge_window_is_refused_in_bounded_memory() -> None:
    """A frame of 12 bytes that claims 512 MiB in one segment would need a window of that size: it is refused."""
    claimed, block = 512 * MIB, 128 * 1024
    frame = _MAGIC + b"\xa0" + claimed.to_bytes(4, "little") + ((block << 3) | 0b011).to_bytes(3, "little") + b"\0"
    assert peak_of_refusing(encoded(data=frame, size=1000)) < MIB


def keyframe_of(raw: bytes) -> Keyframe:
    """Return a keyframe that holds these bytes."""
    return Keyframe("k-1", len(raw), encode_whole(raw, payload_format="maf/1").data, serves_ttl=None)


@quick
@given(st.binary(min_size=1, max_size=3_000), st.binary(max_size=3_000), st.integers(0, 3_000))
def test_any_difference_comes_back(before: bytes, new: bytes, position: int) -> None:
    """Whatever has changed, and however short the keyframe, the payload comes back from the two."""
    raw = before[:position] + new + before[position:]
    difference = encode_difference(raw, keyframe_of(before), spent=7, payload_format="maf/1")
    assert decode_payload(difference, keyframe_of(before)) == raw
    assert (difference.keyframe_id, difference.spent) == ("k-1", 7 + len(difference.data))


def test_difference_holds_only_what_is_new() -> None:
    """A megabyte that is in the keyframe already takes next to nothing, also when it has moved."""
    noise = zstd_noise(1, MIB)
    difference = encode_difference(b"new" + noise + b"newer", keyframe_of(noise), spent=0, payload_format="maf/1")
    assert len(difference.data) < 2_000


@pytest.mark.parametrize("other", [None, keyframe_of(RAW[1:]), keyframe_of(zstd_noise(2, 900))])
def test_difference_against_another_keyframe_is_unreadable(other: Keyframe | None) -> None:
    """A difference alone, or with other bytes than it was made against, gives an error and never other bytes."""
    noise = zstd_noise(3, 900)
    difference = encode_difference(noise + RAW, keyframe_of(noise), spent=0, payload_format="maf/1")
    with pytest.raises(UnreadableError):
        decode_payload(difference, other)


def test_damaged_keyframe_is_unreadable() -> None:
    """A keyframe has a checksum of its own: what a difference does not touch is checked as well."""
    keyframe = keyframe_of(zstd_noise(3, 900))
    difference = encode_difference(b"short", keyframe, spent=0, payload_format="maf/1")
    damaged = replace(keyframe, data=keyframe.data[:-10] + bytes(10))
    with pytest.raises(UnreadableError):
        decode_payload(difference, damaged)


def test_difference_of_sixty_megabytes_finds_the_whole_of_its_keyframe() -> None:
    """The window spans both: otherwise 60 MB that hardly changed would take 9 MB."""
    noise = zstd_noise(4, 60 * MIB)
    difference = encode_difference(noise[:-5], keyframe_of(noise), spent=0, payload_format="maf/1")
    assert len(difference.data) < 200_000


def test_compression_is_worth_it() -> None:
    """What repeats is not stored twice."""
    assert len(_zstd.compress(RAW)) < len(RAW) // 10


@pytest.mark.parametrize(("size", "elsewhere"), [(0, False), (256 * 1024 - 1, False), (256 * 1024, True)])
async def test_long_work_is_done_in_a_thread(size: int, *, elsewhere: bool) -> None:
    """Work on few bytes is done at once, on many it leaves the event loop free; its result comes back."""
    worker = await off_loop(size, threading.get_ident)
    assert (worker != threading.get_ident()) is elsewhere


async def test_failure_in_a_thread_comes_back() -> None:
    """An error of the work is the caller's, wherever it was done."""
    with pytest.raises(UnreadableError):
        await off_loop(MIB, lambda: decode_payload(encoded(size=1)))
