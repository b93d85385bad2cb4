"""The codecs in order: what is applied on the way in is undone, backwards and checked, on the way out."""

from __future__ import annotations

import hashlib
from typing import Final

from cosmos_workflow_state._records import EncodedPayload, UnreadableError

from . import _zstd

_DIGEST: Final = "sha256"
_CODECS: Final = ("zstd",)


def encode_payload(raw: bytes, *, payload_format: str) -> EncodedPayload:
    """Compress bytes and say what they were.

    Args:
        raw: The bytes before the codecs.
        payload_format: What they mean.
    """
    return EncodedPayload(
        format=payload_format, codecs=_CODECS, digest=_digest(raw), size=len(raw), data=_zstd.compress(raw)
    )


def decode_payload(payload: EncodedPayload) -> bytes:
    """Return the bytes before the codecs, exactly as long and exactly those that were encoded.

    The recorded size bounds what is expanded: 16 KB of zstd can expand to 512 MB. Whoever calls this has compared that
    size with what it is ready to hold.

    Raises:
        UnreadableError: Unknown codec or digest, damaged data, wrong size or wrong digest.
    """
    if payload.codecs != _CODECS:
        raise UnreadableError("the payload uses codecs that this version does not know")
    raw = _zstd.decompress(payload.data, size=payload.size)
    if _digest(raw) != payload.digest:
        raise UnreadableError("the payload does not have the digest recorded for it")
    return raw


def _digest(raw: bytes) -> str:
    return f"{_DIGEST}:{hashlib.sha256(raw).hexdigest()}"
