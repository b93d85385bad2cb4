"""The codecs in order: what is applied on the way in is undone, backwards and checked, on the way out."""

from __future__ import annotations

import hashlib
from typing import Final

from cosmos_workflow_state._records import EncodedPayload, Keyframe, UnreadableError

from . import _zstd

MAX_WHOLE_BYTES: Final = 2 * 1024
"""Bytes after compression up to which a payload stands alone: below, a keyframe with its guard costs more than its
differences save. Conversations of 15 turns take 14 times less than whole states with 8 KiB, 24 times less with 2 KiB;
without the limit no less, but a workflow that is small for good would pay for a keyframe."""

_DIGEST: Final = "sha256"
_CODECS: Final = ("zstd",)


def encode_whole(raw: bytes, *, payload_format: str) -> EncodedPayload:
    """Compress bytes and say what they were.

    Args:
        raw: The bytes before the codecs.
        payload_format: What they mean.
    """
    return EncodedPayload(
        format=payload_format, codecs=_CODECS, digest=digest(raw), size=len(raw), data=_zstd.compress(raw)
    )


def encode_difference(raw: bytes, keyframe: Keyframe, *, spent: int, payload_format: str) -> EncodedPayload:
    """Compress bytes as what they differ in from a keyframe.

    Args:
        raw: The bytes before the codecs.
        keyframe: What they are compared with.
        spent: Bytes of the differences along the lineage since the keyframe, before this one.
        payload_format: What the bytes mean.

    Raises:
        UnreadableError: The keyframe is damaged.
    """
    data = _zstd.compress(raw, prefix=keyframe_bytes(keyframe))
    return EncodedPayload(
        format=payload_format,
        codecs=_CODECS,
        digest=digest(raw),
        size=len(raw),
        data=data,
        keyframe_id=keyframe.id,
        spent=spent + len(data),
    )


def decode_payload(payload: EncodedPayload, keyframe: Keyframe | None = None) -> bytes:
    """Return the bytes before the codecs, exactly as long and exactly those that were encoded.

    The recorded size bounds what is expanded: 16 KB of zstd can expand to 512 MB. Whoever calls this has compared that
    size with what it is ready to hold.

    Args:
        payload: What was encoded.
        keyframe: The one that it is a difference against, None when it stands alone.

    Raises:
        UnreadableError: Unknown codec or digest, damaged data, wrong size or wrong digest.
    """
    if payload.codecs != _CODECS:
        raise UnreadableError("the payload uses codecs that this version does not know")
    prefix = b"" if keyframe is None else keyframe_bytes(keyframe)
    raw = _zstd.decompress(payload.data, size=payload.size, prefix=prefix)
    if digest(raw) != payload.digest:
        raise UnreadableError("the payload does not have the digest recorded for it")
    return raw


def keyframe_bytes(keyframe: Keyframe) -> bytes:
    """Return what a keyframe holds, before compression; the frame's own checksum is checked.

    Raises:
        UnreadableError: It is damaged.
    """
    return _zstd.decompress(keyframe.data, size=keyframe.size)


def digest(data: bytes) -> str:
    """Return the digest of bytes as it is stored: ``sha256:`` and hex."""
    return f"{_DIGEST}:{hashlib.sha256(data).hexdigest()}"
