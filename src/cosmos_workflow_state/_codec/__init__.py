"""Bytes to `EncodedPayload` and back: compression and integrity. No I/O, no clock, nothing of the framework."""

from ._pipeline import decode_payload, encode_payload

__all__ = ["decode_payload", "encode_payload"]
