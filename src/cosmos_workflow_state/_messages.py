"""Messages to bytes and back, and what tells one message from another: the framework's own encoding and rule.

The bytes say whose they are, so that a payload copied under another's item is recognised. The only place beside `_maf`
that knows a private name of the framework.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
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

    raw: bytes = field(repr=False)
    given: str
    stored: str


def entry(message: Message, place: SessionPlace, source_id: str) -> Entry:
    """Copy a message, which may go on changing, into bytes that `deserialize` takes.

    Raises:
        RefusedTypesError: It holds what JSON cannot hold, or would not be accepted back.
    """
    made = _entry(message, _owner(place, source_id))
    if isinstance(made, str):
        raise RefusedTypesError(made)
    return made


def deserialize(raw: bytes, place: SessionPlace, source_id: str) -> Message:
    """Return the message in bytes of this session and source.

    Raises:
        UnreadableError: They are not what `entry` writes, or are another's.
    """
    found = _read(raw, _owner(place, source_id))
    if isinstance(found, str):
        raise UnreadableError(found)
    return found


def identity_of(message: Message) -> str:
    """Return what tells a message from others, as the framework has it."""
    parts = get_message_identity(message)
    if parts[0] == "id":
        return identity(BY_ID, parts)
    return identity(BY_INPUT if message.role == "user" else BY_CONTENT, parts)


def _owner(place: SessionPlace, source_id: str) -> dict[str, str]:
    return {"tenant": place.tenant.value, "session": place.session_id, "source": source_id}


def _entry(message: Message, owner: dict[str, str]) -> Entry | str:
    """Return a message as bytes, or why it cannot be: an error raised here would carry its text, as variables."""
    try:
        fields = {**owner, "message": message.to_dict()}
        raw = json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
        given = identity_of(message)
    except Exception as error:  # noqa: BLE001 - a message may be of any class, and what it raises may quote it
        return f"a message cannot be written as JSON ({type(error).__name__})"
    restored = _read(raw, owner)
    if isinstance(restored, str):
        return "a message would not be accepted back as it is written"
    return Entry(raw, given, identity_of(restored))


def _read(raw: bytes, owner: dict[str, str]) -> Message | str:
    """Return the message in bytes, or why there is none; as for `_entry`."""
    try:
        fields: Any = json.loads(raw.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        return "a message is not JSON"
    values = cast("dict[str, Any]", fields if isinstance(fields, dict) else {})
    if set(values) != {*owner, "message"}:
        return "a message does not have the fields it must have"
    if any(values[name] != value for name, value in owner.items()):
        return "a message and its item disagree on whose it is"
    try:
        return Message.from_dict(values["message"])
    except Exception:  # noqa: BLE001 - whatever the framework raises about what is stored, it may quote it
        return "a message is not what the framework writes"
