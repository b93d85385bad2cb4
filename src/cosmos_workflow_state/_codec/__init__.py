"""Bytes to `EncodedPayload` and back: compression, differences and integrity. No I/O, no clock, no framework."""

from ._pipeline import MAX_WHOLE_BYTES, decode_payload, digest, encode_difference, encode_whole

__all__ = ["MAX_WHOLE_BYTES", "decode_payload", "digest", "encode_difference", "encode_whole"]
