"""Messages to bytes and back, and what tells one message from another: the framework's own encoding and rule.

The bytes say whose they are, so that a payload copied under another's item is recognised. The only place beside `_maf`
that knows a private name of the framework.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final, cast

from agent_framework import Message
from agent_framework._sessions import get_message_identity

from ._identities import BY_CONTENT, BY_ID, BY_INPUT, identity
from ._records import RefusedTypesError, SessionPlace, UnreadableError

FORMAT: Final = "maf-message/1"
"""JSON in UTF-8 of whose message it is, and of what the framework's ``Message.to_dict`` returns."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A message that is to be saved.

    Attributes:
        raw: Its bytes.
        given: Its identity as it was given.
        stored: Its identity as it is read back: what a replay of the history is compared with.
    """

    raw: bytes
    given: str
    stored: str


def entry(message: Message, place: SessionPlace, source_id: str) -> Entry:
    """Copy a message, which may go on changing, into bytes that `deserialize` takes.

    Raises:
        RefusedTypesError: It holds what JSON cannot hold, or would not be accepted back.
    """
    try:
        fields = {**_owner(place, source_id), "message": message.to_dict()}
        raw = json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    except (TypeError, ValueError, RecursionError) as error:
        raise RefusedTypesError(f"a message cannot be written as JSON ({type(error).__name__})") from None
    try:
        restored = deserialize(raw, place, source_id)
    except UnreadableError:
        raise RefusedTypesError("a message would not be accepted back as it is written") from None
    return Entry(raw, identity_of(message), identity_of(restored))


def deserialize(raw: bytes, place: SessionPlace, source_id: str) -> Message:
    """Return the message in bytes of this session and source.

    Raises:
        UnreadableError: They are not what `entry` writes, or are another's.
    """
    try:
        fields: Any = json.loads(raw.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        raise UnreadableError("a message is not JSON") from None
    owner = _owner(place, source_id)
    values = cast("dict[str, Any]", fields if isinstance(fields, dict) else {})
    if set(values) != {*owner, "message"}:
        raise UnreadableError("a message does not have the fields it must have")
    if any(values[name] != value for name, value in owner.items()):
        raise UnreadableError("a message and its item disagree on whose it is")
    return _restored(values["message"])


def identity_of(message: Message) -> str:
    """Return what tells a message from others, as the framework has it."""
    parts = get_message_identity(message)
    if parts[0] == "id":
        return identity(BY_ID, parts)
    return identity(BY_INPUT if message.role == "user" else BY_CONTENT, parts)


def _owner(place: SessionPlace, source_id: str) -> dict[str, str]:
    return {"tenant": place.tenant.value, "session": place.session_id, "source": source_id}


def _restored(fields: Any) -> Message:
    try:
        return Message.from_dict(fields)
    except Exception:  # noqa: BLE001 - whatever the framework raises about what is stored, it may quote it
        raise UnreadableError("a message is not what the framework writes") from None
