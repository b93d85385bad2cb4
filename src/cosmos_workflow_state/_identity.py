"""Who owns an item and what it is called: tenant ids, scopes, sessions, item ids and partition keys.

Everything that builds a key takes a `TenantId`, never a ``str``: a `TenantId` exists only when the tenant rule matched.
Item ids are written here and never parsed back; the fields of an item are the truth.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Final

from .errors import InvalidIdentifierError

MAX_NAME_BYTES: Final = 1024
"""UTF-8 bytes of a workflow name or scope. Both go into a partition key or an index term; the service takes 2,048
bytes for a partition key value (https://learn.microsoft.com/azure/cosmos-db/concepts-limits)."""

MAX_CHECKPOINT_ID_BYTES: Final = 8192
"""UTF-8 bytes of a checkpoint id: every event and every header holds it."""

_MAX_SCOPE_BYTES: Final = 200
_MAX_CHECKPOINT_ID_BYTES: Final = 600
"""Encoded bytes of the parts of an item id before they are hashed; an id has at most 1,023 bytes (same page)."""

_PLAIN: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")
_ESCAPES: Final = tuple(chr(byte) if byte in _PLAIN else f"~{byte:02X}" for byte in range(256))


@dataclass(frozen=True, slots=True)
class TenantId:
    """A tenant id that its rule accepted. Never normalised or case-folded."""

    value: str


@dataclass(frozen=True, slots=True)
class TenantRule:
    """Which tenant ids are accepted.

    Attributes:
        pattern: Matched against the whole id.
        max_length: Characters.
    """

    pattern: re.Pattern[str]
    max_length: int

    def accept(self, tenant_id: str) -> TenantId:
        """Return the tenant id as a `TenantId`.

        Raises:
            InvalidIdentifierError: It is not a str, too long, or does not match the pattern whole.
        """
        text = _text("tenant_id", tenant_id)
        if len(text) > self.max_length or self.pattern.fullmatch(text) is None:
            raise InvalidIdentifierError(
                f"tenant_id ({len(text)} characters) is refused: it must match {self.pattern.pattern!r} as a whole "
                f"and have at most {self.max_length} characters (settings tenant_id_pattern, tenant_id_max_length)"
            )
        if len(text.encode()) > MAX_NAME_BYTES:
            raise InvalidIdentifierError(f"tenant_id must have at most {MAX_NAME_BYTES} UTF-8 bytes")
        return TenantId(text)


@dataclass(frozen=True, slots=True)
class Scope:
    """A session or conversation inside a tenant; ``""`` is a scope of its own, not "all"."""

    value: str

    @classmethod
    def accept(cls, scope: str) -> Scope:
        """Return the scope as a `Scope`.

        Raises:
            InvalidIdentifierError: It is not a str, has NUL or a lone surrogate, or is over 1,024 UTF-8 bytes.
        """
        return cls(_bounded("scope", scope, MAX_NAME_BYTES))


def accept_workflow_name(name: str) -> str:
    """Return the workflow name unchanged.

    Raises:
        InvalidIdentifierError: It is not a str, empty, has NUL or a lone surrogate, or is over 1,024 UTF-8 bytes.
    """
    return _filled("workflow_name", name, MAX_NAME_BYTES)


def accept_checkpoint_id(checkpoint_id: str) -> str:
    """Return the checkpoint id unchanged.

    Raises:
        InvalidIdentifierError: It is not a str, empty, has NUL or a lone surrogate, or is over 8,192 UTF-8 bytes.
    """
    return _filled("checkpoint_id", checkpoint_id, MAX_CHECKPOINT_ID_BYTES)


def accept_session_id(session_id: str) -> str:
    """Return the session id unchanged.

    Raises:
        InvalidIdentifierError: It is not a str, empty, has NUL or a lone surrogate, or is over 1,024 UTF-8 bytes.
    """
    return _filled("session_id", session_id, MAX_NAME_BYTES)


def accept_source_id(source_id: str) -> str:
    """Return the source id of a history unchanged.

    Raises:
        InvalidIdentifierError: It is not a str, empty, has NUL or a lone surrogate, or is over 1,024 UTF-8 bytes.
    """
    return _filled("source_id", source_id, MAX_NAME_BYTES)


def possible_checkpoint_id(checkpoint_id: str) -> str | None:
    """Return the checkpoint id unchanged, None when no checkpoint of this id can have been saved.

    Raises:
        InvalidIdentifierError: It is not a str.
    """
    if not isinstance(checkpoint_id, str):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may be untyped
        raise InvalidIdentifierError(f"checkpoint_id must be a str, not {type(checkpoint_id).__name__}")
    try:
        return accept_checkpoint_id(checkpoint_id)
    except InvalidIdentifierError:
        return None


def checkpoint_item_id(scope: Scope, checkpoint_id: str) -> str:
    """Return the id of the item of a checkpoint: injective in both arguments, safe in a URL, at most 1,023 bytes."""
    encoded_scope = encode_component(scope.value, _MAX_SCOPE_BYTES)
    return f"cp:{encoded_scope}:{encode_component(checkpoint_id, _MAX_CHECKPOINT_ID_BYTES)}"


def keyframe_item_id(keyframe_id: str) -> str:
    """Return the id of the item of a keyframe."""
    return f"kf:{keyframe_id}"


def keyframe_guard_id(keyframe_id: str) -> str:
    """Return the id of the guard of a keyframe: while it is there, new checkpoints may refer to the keyframe."""
    return f"kg:{keyframe_id}"


def part_item_id(write_id: str, number: int) -> str:
    """Return the id of one part of an upload."""
    return f"pt:{write_id}:{number:04d}"


def upload_guard_id(write_id: str) -> str:
    """Return the id of the guard of an upload: while it is there, the upload may still be committed."""
    return f"pg:{write_id}"


def encode_component(text: str, max_bytes: int) -> str:
    """Encode one part of an item id, injectively and without the separator ``:``.

    ``A-Z a-z 0-9 . _ -`` stay, every other UTF-8 byte becomes ``~XX``. What would be longer than ``max_bytes`` becomes
    ``~~`` and its SHA-256: no encoded text starts with ``~~``, so the two forms cannot meet.
    """
    raw = text.encode()
    encoded = "".join(_ESCAPES[byte] for byte in raw)
    return encoded if len(encoded) <= max_bytes else f"~~{hashlib.sha256(raw).hexdigest()}"


def full_key(tenant: TenantId, name: str) -> list[str]:
    """Return the partition key of one logical partition: of a workflow by its name, or of a session by its id."""
    return [tenant.value, name]


def tenant_prefix(tenant: TenantId) -> list[str]:
    """Return the partition key prefix of everything a tenant has."""
    return [tenant.value]


def _filled(name: str, value: str, max_bytes: int) -> str:
    text = _bounded(name, value, max_bytes)
    if not text:
        raise InvalidIdentifierError(f"{name} must not be empty")
    return text


def _bounded(name: str, value: str, max_bytes: int) -> str:
    text = _text(name, value)
    size = len(text.encode())
    if size > max_bytes:
        raise InvalidIdentifierError(f"{name} has {size} UTF-8 bytes; it must have at most {max_bytes}")
    return text


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise InvalidIdentifierError(f"{name} must be a str, not {type(value).__name__}")
    # A subclass may say one thing to a comparison and another to an encoder: what goes on is the text itself.
    text = str.__str__(value)
    if "\0" in text:
        raise InvalidIdentifierError(f"{name} must not contain NUL")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise InvalidIdentifierError(f"{name} must not contain a lone surrogate")
    return text
