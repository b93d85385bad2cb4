"""Which incoming messages are new: exactly what the framework says, from no more than a few identities."""

from __future__ import annotations

import random

import pytest
from agent_framework import Content, Message
from agent_framework._sessions import filter_new_messages, get_message_identity

from cosmos_workflow_state._identities import first_new, identity, is_identity, needed
from cosmos_workflow_state._messages import identity_of
from support.chats import CONTENTS


def _new(existing: list[Message], incoming: list[Message]) -> list[Message]:
    """Return what is new as a history finds it: from the newest identities alone."""
    count = needed(len(existing), len(incoming))
    newest = [identity_of(message) for message in existing[len(existing) - count :]]
    return incoming[first_new(newest, [identity_of(message) for message in incoming]) :]


def _message(chance: random.Random) -> Message:
    text, role = chance.choice("aab"), chance.choice(["user", "user", "assistant", "tool"])
    return Message(role, [text], message_id=chance.choice([None, None, None, "1", "2"]))


def _incoming(chance: random.Random, existing: list[Message]) -> list[Message]:
    """Return a replay of some part, perhaps with something before and after it, or anything."""
    start, end = sorted(chance.choices(range(len(existing) + 1), k=2))
    replayed = existing[chance.choice([0, start]) : chance.choice([end, len(existing)])]
    before = [_message(chance) for _ in range(chance.choice([0, 0, 0, 1, 2]))]
    return [*before, *replayed, *(_message(chance) for _ in range(chance.choice([0, 1, 2, 4])))]


def test_it_is_the_framework_s_rule(full_size: bool) -> None:
    """Replays, replays of a part, repeated inputs, with and without ids: never another answer than the framework's."""
    chance = random.Random(2026)
    for _ in range(20_000 if full_size else 1_500):
        existing = [_message(chance) for _ in range(chance.randrange(8))]
        incoming = _incoming(chance, existing)
        assert _new(existing, incoming) == filter_new_messages(existing, incoming)


@pytest.mark.parametrize("size", [1, 2, 63, 64, 65, 200])
def test_a_long_history_is_judged_by_its_end(size: int) -> None:
    """A whole conversation again, and one that goes on, from one identity more than there are messages."""
    existing = [Message("assistant" if number % 2 else "user", [f"{number}"]) for number in range(size)]
    more = [Message("user", ["more"])]
    for start in range(0, size, 7):
        incoming = existing[start:] + more
        assert _new(existing, incoming) == filter_new_messages(existing, incoming)
    assert needed(size, 3) <= 4


@pytest.mark.parametrize("kind", CONTENTS)
def test_identities_are_equal_when_the_framework_s_are(kind: str) -> None:
    """Of every kind of content, by role, by id and by content; and they are of one width."""
    contents: list[list[Content]] = [[CONTENTS[kind]], [CONTENTS[kind], Content.from_text("b")], []]
    messages = [Message(role, one) for role in ("user", "assistant") for one in contents]
    messages += [Message("user", contents[0], message_id=one) for one in ("", "1", "\ud800")]
    for one in messages:
        assert is_identity(identity_of(one))
        for other in messages:
            same = get_message_identity(one) == get_message_identity(other)
            assert (identity_of(one) == identity_of(other)) is same


def test_parts_are_not_run_together() -> None:
    """Two identities whose parts are the same text, cut elsewhere, differ."""
    assert identity("c", ["ab", "c"]) != identity("c", ["a", "bc"])


@pytest.mark.parametrize("text", ["", "c", "x" * 23, "c" + "!" * 22, "c" + "a" * 23, "ca"])
def test_what_is_no_identity(text: str) -> None:
    """What is stored is checked: another width, another beginning, another alphabet."""
    assert not is_identity(text)
