"""Messages as bytes: everything the framework can write comes back, and nothing that is not this history's is read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from agent_framework import Content, Message

from cosmos_workflow_state._identity import TenantId
from cosmos_workflow_state._messages import deserialize, entry, identity_of
from cosmos_workflow_state._records import RefusedTypesError, SessionPlace, UnreadableError
from support.chats import CONTENT_TYPES, CONTENTS, written

PLACE = SessionPlace(TenantId("contoso"), "s-1")
SOURCE = "chat"


def test_there_is_a_content_of_every_type() -> None:
    """A new version of the framework with another type fails here."""
    assert set(CONTENTS) == set(CONTENT_TYPES)


@pytest.mark.parametrize("kind", CONTENT_TYPES)
def test_every_content_comes_back(kind: str) -> None:
    """Equal to what was written, and told from others by the same identity."""
    message = Message("assistant", [CONTENTS[kind]], author_name="ann", message_id=None)
    made = entry(message, PLACE, SOURCE)
    restored = deserialize(made.raw, PLACE, SOURCE)
    assert written([restored]) == written([message])
    assert made.given == made.stored == identity_of(restored) == identity_of(message)


@pytest.mark.parametrize(
    "value",
    [
        2**53 + 1,
        -(2**70),
        0.1 + 0.2,
        float("inf"),
        float("nan"),
        "\ud800",
        "\ud83d\ude00",
        "\0",
        [],
        {},
        None,
        {"": [[]]},
    ],
    ids=repr,
)
def test_values_come_back(value: Any) -> None:
    """Also those that the service itself would change or refuse."""
    content = Content.from_function_result("call-1", result=value)
    content.additional_properties["value"] = value
    message = Message("tool", [content], additional_properties={"value": value})
    restored = deserialize(entry(message, PLACE, SOURCE).raw, PLACE, SOURCE)
    assert written([restored]) == written([message])


def test_an_identity_is_of_what_is_read_back() -> None:
    """Where reading back changes a message, a replay of what was read is recognised, as the framework does it."""
    message = Message("user", [Content("function_approval_response", id="1", approved=None)])
    made = entry(message, PLACE, SOURCE)
    assert made.given == identity_of(message)
    assert made.stored == identity_of(deserialize(made.raw, PLACE, SOURCE))
    assert made.given != made.stored


def test_deep_nesting_is_refused_and_not_crashed_on() -> None:
    """Demand 3, also for what has no end."""
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    endless: list[Any] = []
    endless.append(endless)
    for value in (deep, endless):
        with pytest.raises(RefusedTypesError):
            entry(Message("user", ["a"], additional_properties={"value": value}), PLACE, SOURCE)


def _raw(**changes: Any) -> bytes:
    fields = {"tenant": "contoso", "session": "s-1", "source": "chat", "message": Message("user", ["a"]).to_dict()}
    return json.dumps({**fields, **changes}).encode()


BAD: dict[str, bytes] = {
    "no JSON": b"{",
    "no UTF-8": b"\xff",
    "too deep": b"[" * 100_000,
    "no object": b"[]",
    "no message": b"{}",
    "one field more": _raw(more=1),
    "another tenant": _raw(tenant="t2"),
    "another session": _raw(session="s-2"),
    "another source": _raw(source="audit"),
    "a message of another kind": _raw(message={"type": "chat_message"}),
    "a content of no kind": _raw(message={"type": "chat_message", "role": "user", "contents": [{}]}),
    "a message that is none": _raw(message=7),
}


@pytest.mark.parametrize("raw", BAD.values(), ids=list(BAD))
def test_what_is_no_message_of_this_history(raw: bytes) -> None:
    """Refused, and the error quotes nothing of it."""
    assert deserialize(_raw(), PLACE, SOURCE).text == "a"
    with pytest.raises(UnreadableError) as caught:
        deserialize(raw, PLACE, SOURCE)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert "assistant" not in repr(entry(Message("assistant", ["a"]), PLACE, SOURCE))
    assert "t2" not in str(caught.value)
