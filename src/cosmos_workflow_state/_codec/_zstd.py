"""Zstandard in one shot: content size and checksum in the frame, bounded on the way back."""

from __future__ import annotations

import sys
from typing import Final

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

from cosmos_workflow_state._records import UnreadableError

_LEVEL: Final = 3
"""zstd's default: at 600 KB it takes half a millisecond; the framework's own encoding takes ten times that."""

_MIN_PREFIX_BYTES: Final = 8
_MIN_WINDOW_LOG: Final = 10
_MAX_WINDOW_LOG: Final = 27
"""Bounds of zstd's window (2**27 = 128 MiB): a window that spans prefix and payload finds repetitions at any distance.
60 MB against a prefix that it hardly differs from take 9 MB with a window of 2**24, and 10 KB with 2**27."""


def compress(raw: bytes, *, prefix: bytes = b"") -> bytes:
    """Return one frame that holds all of ``raw``.

    Args:
        raw: The bytes.
        prefix: Bytes that will be there again at decompression, so that what repeats in them need not be stored.
    """
    window_log = min(max((len(prefix) + len(raw)).bit_length(), _MIN_WINDOW_LOG), _MAX_WINDOW_LOG)
    options: dict[int, int] = {
        zstd.CompressionParameter.compression_level: _LEVEL,
        zstd.CompressionParameter.window_log: window_log,
        zstd.CompressionParameter.enable_long_distance_matching: 1,
        zstd.CompressionParameter.content_size_flag: 1,
        zstd.CompressionParameter.checksum_flag: 1,
    }
    return zstd.compress(raw, options=options, zstd_dict=_dictionary(prefix))


def decompress(data: bytes, *, size: int, prefix: bytes = b"") -> bytes:
    """Return the ``size`` bytes in one frame, never holding more than one byte above that.

    Raises:
        UnreadableError: Damaged, cut short, followed by other bytes, or of another size (a negative one included).
    """
    if size < 0:  # zstd takes a negative limit for none
        raise UnreadableError("the size recorded for the payload is negative")
    options: dict[int, int] = {zstd.DecompressionParameter.window_log_max: _MAX_WINDOW_LOG}
    decompressor = zstd.ZstdDecompressor(zstd_dict=_dictionary(prefix), options=options)
    try:
        raw = decompressor.decompress(data, max_length=size + 1)
    except zstd.ZstdError:
        raise UnreadableError("the compressed payload is damaged") from None
    if len(raw) != size or not decompressor.eof or decompressor.unused_data:
        raise UnreadableError("the compressed payload does not have the size recorded for it")
    return raw


def _dictionary(prefix: bytes) -> tuple[zstd.ZstdDict, int] | None:
    """Return a prefix as zstd takes it; it refuses those under 8 bytes, in which nothing could be found anyway."""
    return zstd.ZstdDict(prefix, is_raw=True).as_prefix if len(prefix) >= _MIN_PREFIX_BYTES else None
