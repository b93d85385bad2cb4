"""Saves of what is stored already, by whom and as long as it lives: nothing is there twice, and nothing is missing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from cosmos_workflow_state import errors
from support.chat_wires import HEAD, SESSION, SOURCE, TENANT, Wire, open_wire
from support.chats import said, texts, turn
from support.engines import moved_account
from support.faults import drop_after, drop_before, let_pass

TRIES = 6
MANY = [said(str(number), ("user", "assistant")[number % 2]) for number in range(250)]
"""Three batches."""


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut waits short."""
    monkeypatch.setattr("cosmos_workflow_state._gateway._FIRST_DELAY", 0.0)
    monkeypatch.setattr("cosmos_workflow_state._appending._FIRST_DELAY", 0.0)


@pytest.fixture
async def wire() -> AsyncIterator[Wire]:
    """Yield a history of one turn."""
    async with open_wire() as opened:
        yield opened


@pytest.mark.parametrize("batch", [0, 1, 2])
@pytest.mark.parametrize("by", ["a refusal", "the head"])
async def test_a_replay_behind_a_batch_whose_answer_was_lost(wire: Wire, batch: int, by: str) -> None:
    """Another process replays all of a save of several batches: what it has added of the rest is not added again.

    That the batch was done is learned from the refusal of its repeat, or from the head when no answer comes at all.
    """
    replay = wire.meanwhile(lambda: wire.other.save_messages(SESSION, MANY))
    lost = [drop_after, replay] if by == "a refusal" else [drop_after, *[drop_before] * (TRIES - 1), replay]
    wire.transport.faults = [*[let_pass] * batch, *lost]
    await wire.history.save_messages(SESSION, MANY, state=wire.state)
    assert texts(await wire.other.get_messages(SESSION)) == texts([*turn(0), *MANY])
    await wire.history.save_messages(SESSION, [said("end")], state=wire.state)
    assert texts(await wire.other.get_messages(SESSION)) == [*texts([*turn(0), *MANY]), "end"]


async def test_another_save_behind_a_batch_whose_answer_was_lost(wire: Wire) -> None:
    """What is not the same is no replay: the rest is added behind it."""
    other = wire.meanwhile(lambda: wire.other.save_messages(SESSION, turn(1)))
    wire.transport.faults = [drop_after, other]
    await wire.history.save_messages(SESSION, MANY, state=wire.state)
    found = texts(await wire.other.get_messages(SESSION))
    assert [text for text in found if text not in texts(turn(1))] == texts([*turn(0), *MANY])
    assert len(found) == 2 + 250 + 2


async def test_what_has_expired_is_not_stored_any_more() -> None:
    """A message that outlives newer ones keeps what is known of them: said again, they are stored again."""
    async with moved_account() as account, account.factory() as factory:
        lasting, short = (factory.for_tenant(TENANT).history(SOURCE, ttl=ttl) for ttl in (None, 10))
        state: dict[str, Any] = {}
        await lasting.save_messages(SESSION, [said("a")], state=state)
        answers = [said("b", "assistant"), said("c", "assistant")]
        await short.save_messages(SESSION, answers, state=state)
        await short.save_messages(SESSION, answers, state=state)
        assert await short.count(SESSION) == 3
        account.clock.advance(11)
        assert texts(await short.get_messages(SESSION)) == ["a"]
        await short.save_messages(SESSION, [said("c", "assistant")], state=state)
        assert texts(await short.get_messages(SESSION)) == ["a", "c"]


async def test_a_state_that_counts_what_is_not_there(wire: Wire) -> None:
    """Edited by hand, but of the right version: nothing is missed in silence, and no number is too large to compare."""
    (key,) = wire.state
    wire.state[key] |= {"next": wire.began + 20_000_000, "recent": ["u" + "a" * 22] * 32}
    await wire.history.save_messages(SESSION, [said("a")], state=wire.state)
    with pytest.raises(errors.StateCorruptError):
        await wire.history.get_messages(SESSION)
    await wire.history.clear(SESSION)
    await wire.history.save_messages(SESSION, [said("b")])
    assert texts(await wire.history.get_messages(SESSION)) == ["b"]


async def test_a_history_without_numbers(wire: Wire) -> None:
    """One that is numbered as high as none ever is takes no message more, until it is cleared."""
    await wire.change(HEAD, next=10**15 - 1, recent=["u" + "a" * 22] * 32)
    with pytest.raises(errors.StateCorruptError, match="numbered"):
        await wire.history.save_messages(SESSION, turn(1))
    await wire.history.clear(SESSION)
    await wire.history.save_messages(SESSION, turn(1))
    assert texts(await wire.history.get_messages(SESSION)) == texts(turn(1))
    assert len(await wire.items()) == 3
