"""Throttling, lost answers and other writers: no message of a history is ever lost or there twice."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial

import pytest

from cosmos_workflow_state import errors
from cosmos_workflow_state._gateway import Gateway
from support.chat_wires import SESSION, Wire, open_wire, refused_at
from support.chats import incompressible, said, texts, turn
from support.faults import Fault, drop_after, drop_before, each_transient, let_pass, status

TRIES = 6
LARGE = incompressible(400_000)
"""A message of two parts."""


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


async def _assert_holds(wire: Wire, *turns: int) -> None:
    """Check that a session holds these turns, once and in order, and nothing else is left lying."""
    assert texts(await wire.other.get_messages(SESSION)) == [text for one in turns for text in texts(turn(one))]
    assert await wire.types() <= {"history_head", "message"}


@each_transient
@pytest.mark.parametrize("known", [True, False], ids=["with state", "without"])
async def test_every_operation_outlives_a_transient_fault(wire: Wire, fault: Fault, *, known: bool) -> None:
    """Demand 21: one fault at each request of each operation is repaired, whether it was applied or not."""
    history, transport = wire.history, wire.transport
    state = wire.state if known else None

    async def with_fault(operation: Callable[[], Awaitable[object]], at: int) -> object:
        transport.faults = [*[let_pass] * at, fault]
        result = await operation()
        transport.faults = []
        return result

    for number in (1, 2):
        await with_fault(lambda number=number: history.save_messages(SESSION, turn(number), state=state), number - 1)
    assert len(await with_fault(lambda: history.get_messages(SESSION, state=state), 0)) == 6  # type: ignore[arg-type]
    await _assert_holds(wire, 0, 1, 2)
    assert await with_fault(lambda: history.count(SESSION), 0) == 6
    assert await with_fault(history.list_sessions, 0) == [SESSION]
    for at in range(4):
        await with_fault(lambda: history.clear(SESSION), at)
        await _assert_holds(wire)
        await history.save_messages(SESSION, turn(0), state=state)
    for at in range(8):
        await with_fault(lambda: history.delete_session(SESSION), at)
        assert await wire.items() == []
        await history.save_messages(SESSION, turn(0), state=state)


async def test_a_save_whose_answer_was_lost_is_done_once(wire: Wire) -> None:
    """The repeated batch meets its own work as 412, and the head says whose it is."""
    wire.transport.faults = [drop_after]
    await wire.history.save_messages(SESSION, turn(1), state=wire.state)
    assert wire.transport.sent == ["POST", "POST", "GET"]
    await wire.history.save_messages(SESSION, turn(2), state=wire.state)
    assert wire.transport.sent == ["POST", "POST", "GET", "POST"]
    await _assert_holds(wire, 0, 1, 2)


async def test_a_lost_answer_and_another_writer_behind_it(wire: Wire) -> None:
    """The head is another's by then: the message under the first number says whose it is."""
    wire.transport.faults = [drop_after, wire.meanwhile(lambda: wire.other.save_messages(SESSION, turn(2)))]
    await wire.history.save_messages(SESSION, turn(1), state=wire.state)
    await wire.history.save_messages(SESSION, turn(3), state=wire.state)
    await _assert_holds(wire, 0, 1, 2, 3)


async def test_a_lost_request_and_another_writer_before_it(wire: Wire) -> None:
    """The message under the first number is another's: nothing was done, and it is tried again."""
    wire.transport.faults = [drop_before, wire.meanwhile(lambda: wire.other.save_messages(SESSION, turn(2)))]
    await wire.history.save_messages(SESSION, turn(1), state=wire.state)
    await _assert_holds(wire, 0, 2, 1)


async def test_a_lost_request_and_a_session_that_was_deleted(wire: Wire) -> None:
    """There is no message under the first number: the save begins the session anew."""
    wire.transport.faults = [drop_before, wire.meanwhile(lambda: wire.other.delete_session(SESSION))]
    await wire.history.save_messages(SESSION, turn(1), state=wire.state)
    await _assert_holds(wire, 1)


async def test_a_save_whose_answers_were_all_lost_finds_itself(wire: Wire) -> None:
    """Demand 21: when no answer comes the truth is read, and what was stored is no failure."""
    wire.transport.faults = [drop_after] * TRIES
    await wire.history.save_messages(SESSION, turn(1), state=wire.state)
    assert wire.transport.sent == ["POST"] * TRIES + ["GET"]
    await wire.history.save_messages(SESSION, turn(2), state=wire.state)
    await _assert_holds(wire, 0, 1, 2)


@pytest.mark.parametrize("fault", [drop_before, drop_after], ids=["lost", "done"])
async def test_a_save_that_nobody_can_know_of(wire: Wire, fault: Fault) -> None:
    """When neither an answer nor the truth comes through, the error says so, and the same save again ends well."""
    wire.transport.faults = [*[fault] * TRIES, *[drop_before] * TRIES]
    with pytest.raises(errors.ServiceUnavailableError) as caught:
        await wire.history.save_messages(SESSION, turn(1), state=wire.state)
    assert caught.value.outcome_unknown
    assert wire.transport.faults == []
    await wire.history.save_messages(SESSION, turn(1), state=wire.state)
    await _assert_holds(wire, 0, 1)


async def test_a_save_that_was_lost_says_so(wire: Wire) -> None:
    """Demand 21: when no request comes through, nothing is there, and the error does not claim to know."""
    wire.transport.faults = [drop_before] * TRIES
    with pytest.raises(errors.ServiceUnavailableError) as caught:
        await wire.history.save_messages(SESSION, turn(1), state=wire.state)
    assert caught.value.outcome_unknown
    assert wire.transport.sent[-1] == "GET"
    await _assert_holds(wire, 0)


async def test_the_truth_that_does_not_come_after_a_refusal(wire: Wire) -> None:
    """A refusal after a lost answer may be of this save's own work: without the truth the outcome is unknown."""
    wire.transport.faults = [drop_after, let_pass, *[drop_before] * TRIES]
    with pytest.raises(errors.ServiceUnavailableError) as caught:
        await wire.history.save_messages(SESSION, turn(1), state=wire.state)
    assert caught.value.outcome_unknown
    await wire.history.save_messages(SESSION, turn(1), state=wire.state)
    await _assert_holds(wire, 0, 1)


async def test_throttling_that_does_not_end(wire: Wire) -> None:
    """Demand 21: a bounded number of requests, an error that says how long to wait, nothing stored."""
    for operation in (
        lambda: wire.history.save_messages(SESSION, turn(1), state=wire.state),
        lambda: wire.history.get_messages(SESSION),
        lambda: wire.history.clear(SESSION),
    ):
        wire.transport.sent.clear()
        wire.transport.faults = [status(429, 3200, x_ms_retry_after_ms="2")] * TRIES
        with pytest.raises(errors.ThrottledError) as caught:
            await operation()
        assert len(wire.transport.sent) == TRIES
        assert caught.value.retryable
        assert not caught.value.outcome_unknown
    await _assert_holds(wire, 0)


async def test_another_writer_was_first(wire: Wire) -> None:
    """Demand 16: refused by the head's version, a save goes on behind what the other one has added."""
    wire.transport.faults = [wire.meanwhile(lambda: wire.other.save_messages(SESSION, turn(2)))]
    await wire.history.save_messages(SESSION, turn(1), state=wire.state)
    assert wire.transport.sent[-3:] == ["POST", "GET", "POST"]
    await _assert_holds(wire, 0, 2, 1)


async def test_another_writer_began_the_session(wire: Wire) -> None:
    """Two first saves of one session: both are there."""
    wire.transport.faults = [let_pass, wire.meanwhile(lambda: wire.other.save_messages("new", turn(2)))]
    await wire.history.save_messages("new", turn(1))
    assert texts(await wire.history.get_messages("new")) == texts([*turn(2), *turn(1)])


async def test_another_writer_saved_the_same(wire: Wire) -> None:
    """Two processes replay one conversation: what the other one has stored meanwhile is not stored again."""
    messages = [*turn(0), *turn(1), said("end")]
    wire.transport.faults = [wire.meanwhile(lambda: wire.other.save_messages(SESSION, [*turn(0), *turn(1)]))]
    await wire.history.save_messages(SESSION, messages, state=wire.state)
    assert texts(await wire.other.get_messages(SESSION)) == texts(messages)


async def test_another_writer_saved_the_same_between_two_batches(wire: Wire) -> None:
    """Also where it overtakes in the middle of a save of several batches."""
    messages = [said(str(number), "assistant") for number in range(220)]
    wire.transport.faults = [let_pass, wire.meanwhile(lambda: wire.other.save_messages(SESSION, messages[:150]))]
    await wire.history.save_messages(SESSION, messages, state=wire.state)
    assert texts(await wire.other.get_messages(SESSION)) == texts([*turn(0), *messages])


async def test_other_writers_that_never_stop(wire: Wire) -> None:
    """Demand 16: refused at every try, a save says so, and nothing of it is stored."""
    wire.transport.faults = [refused_at(0, 412), let_pass] * 30
    with pytest.raises(errors.StateConflictError) as caught:
        await wire.history.save_messages(SESSION, turn(1), state=wire.state)
    assert caught.value.retryable
    assert (caught.value.tenant_id, caught.value.session_id) == ("contoso", SESSION)
    assert wire.transport.faults == []
    await _assert_holds(wire, 0)


async def test_a_clearing_that_overtakes_a_save(wire: Wire) -> None:
    """The save goes on behind the clearing; what it took for stored already, and is gone, is stored."""
    wire.transport.faults = [wire.meanwhile(lambda: wire.other.clear(SESSION))]
    await wire.history.save_messages(SESSION, [*turn(0), *turn(1)], state=wire.state)
    await _assert_holds(wire, 0, 1)


async def test_a_save_that_overtakes_a_clearing(wire: Wire) -> None:
    """The clearing is refused by the head's version and clears that as well."""
    wire.transport.faults = [let_pass, let_pass, wire.meanwhile(lambda: wire.other.save_messages(SESSION, turn(1)))]
    await wire.history.clear(SESSION)
    await _assert_holds(wire)


async def test_a_save_behind_a_clearing(wire: Wire) -> None:
    """What is saved while the cleared messages are being deleted stays, under any state."""
    save = wire.meanwhile(lambda: wire.history.save_messages(SESSION, turn(0), state=wire.state))
    wire.transport.faults = [let_pass, let_pass, let_pass, save]
    await wire.other.clear(SESSION)
    await _assert_holds(wire, 0)


async def test_a_clearing_that_never_comes_first(wire: Wire) -> None:
    """It says so, and has cleared nothing."""
    wire.transport.faults = [let_pass, let_pass, refused_at(0, 412)] * 20
    with pytest.raises(errors.StateConflictError):
        await wire.history.clear(SESSION)
    await _assert_holds(wire, 0)


async def test_a_clearing_that_was_interrupted(wire: Wire) -> None:
    """Its write is done: the messages do not count, whatever of them is left, and the next one deletes them."""
    wire.transport.faults = [*[let_pass] * 3, *[drop_before] * TRIES]
    with pytest.raises(errors.ServiceUnavailableError):
        await wire.history.clear(SESSION)
    assert len(await wire.items()) == 3
    assert await wire.history.get_messages(SESSION, state=wire.state) == []
    await wire.history.save_messages(SESSION, turn(1), state=wire.state)
    await _assert_holds(wire, 1)
    await wire.history.clear(SESSION)
    assert len(await wire.items()) == 1


async def test_two_clearings_at_once(wire: Wire) -> None:
    """What the one has deleted already the other one does not miss."""
    wire.transport.faults = [let_pass, let_pass, let_pass, wire.meanwhile(lambda: wire.other.clear(SESSION))]
    await wire.history.clear(SESSION)
    await _assert_holds(wire)


async def test_a_save_that_overtakes_the_end_of_a_session(wire: Wire) -> None:
    """What is saved while a session is deleted stays, with its head."""
    save = wire.meanwhile(lambda: wire.other.save_messages(SESSION, turn(1)))
    wire.transport.faults = [*[let_pass] * 5, save]
    await wire.history.delete_session(SESSION)
    await _assert_holds(wire, 1)


async def test_two_ends_of_a_session_at_once(wire: Wire) -> None:
    """What the other one has deleted meanwhile is no failure, and nothing of it comes back."""
    wire.transport.faults = [let_pass, wire.meanwhile(lambda: wire.other.delete_session(SESSION))]
    assert await wire.history.delete_session(SESSION) is True
    assert await wire.items() == []


async def test_a_history_that_is_cleared_while_it_is_read(wire: Wire) -> None:
    """Its parts are gone when they are asked for: it is read again, and is empty."""
    await wire.history.save_messages(SESSION, [said(LARGE)], state=wire.state)
    wire.transport.faults = [let_pass, wire.meanwhile(lambda: wire.other.clear(SESSION))]
    assert await wire.history.get_messages(SESSION) == []


async def test_parts_whose_guard_is_gone_are_written_again(wire: Wire) -> None:
    """A session is deleted while a large message is on its way: the parts it found are not used, and do not stay."""
    delete = wire.meanwhile(lambda: wire.other.delete_session(SESSION))
    wire.transport.faults = [let_pass, let_pass, let_pass, delete]
    await wire.history.save_messages(SESSION, [said(LARGE), said("b")], state=wire.state)
    assert texts(await wire.history.get_messages(SESSION)) == [LARGE, "b"]
    types = [item["type"] for item in await wire.items()]
    assert sorted(types) == ["history_head", "message", "message", "part", "part"]


async def test_a_guard_that_expired(wire: Wire) -> None:
    """An upload that took longer than its guard lives is not named: it is written again."""

    async def expire() -> None:
        guards = [item for item in await wire.items() if item["type"] == "upload_guard"]
        for guard in guards:
            await wire.delete(guard["id"])

    wire.transport.faults = [let_pass, let_pass, let_pass, wire.meanwhile(expire)]
    await wire.history.save_messages(SESSION, [said("a"), said(LARGE)], state=wire.state)
    assert texts(await wire.history.get_messages(SESSION))[2:] == ["a", LARGE]
    assert [item["type"] for item in await wire.items()].count("part") == 2


async def test_parts_of_what_another_writer_has_stored(wire: Wire) -> None:
    """They were written for nothing and do not stay."""
    large = said(LARGE, "assistant", message_id="large")
    save = wire.meanwhile(lambda: wire.other.save_messages(SESSION, [large]))
    wire.transport.faults = [let_pass, let_pass, let_pass, save]
    await wire.history.save_messages(SESSION, [large, said("b")], state=wire.state)
    assert texts(await wire.history.get_messages(SESSION))[2:] == [LARGE, "b"]
    assert [item["type"] for item in await wire.items()].count("part") == 2


@pytest.mark.parametrize("at", ["the batch", "the parts"])
async def test_parts_of_a_save_that_failed(wire: Wire, at: str) -> None:
    """Demand 21: what was refused for good leaves nothing behind, and what is left goes with the session."""
    wire.transport.faults = [*[let_pass] * (3 if at == "the batch" else 1), status(400)]
    with pytest.raises(errors.ServiceError):
        await wire.history.save_messages(SESSION, [said(LARGE)], state=wire.state)
    if at == "the batch":
        await _assert_holds(wire, 0)
    await wire.history.delete_session(SESSION)
    assert await wire.items() == []


async def test_parts_of_a_save_that_failed_where_reads_are_not_ordered(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They may look unused and be in use: they stay."""

    async def never(_: Gateway) -> bool:
        return False

    monkeypatch.setattr(Gateway, "is_sequential", never)
    wire.transport.faults = [*[let_pass] * 3, status(400)]
    with pytest.raises(errors.ServiceError):
        await wire.history.save_messages(SESSION, [said(LARGE)], state=wire.state)
    assert await wire.types() == {"history_head", "message", "part", "upload_guard"}


async def test_parts_that_are_committed_after_all_stay(wire: Wire) -> None:
    """A save that could not know whether it was done does not delete what is named by then."""
    wire.transport.faults = [*[let_pass] * 3, *[drop_after] * TRIES, *[drop_before] * TRIES]
    with pytest.raises(errors.ServiceUnavailableError):
        await wire.history.save_messages(SESSION, [said(LARGE)], state=wire.state)
    assert texts(await wire.history.get_messages(SESSION))[2:] == [LARGE]


async def test_storms(full_size: bool) -> None:
    """Faults at random, two writers in turns, each save repeated until it succeeds: all messages once, in order."""
    chance = random.Random(6)
    kinds = [let_pass] * 8 + [drop_before, drop_after, status(429), status(449), refused_at(0, 412)]
    for _ in range(40 if full_size else 4):
        async with open_wire() as wire:
            expected = texts(turn(0))
            for number in range(1, 12):
                writer = chance.choice([wire.history, wire.other])
                state = wire.state if writer is wire.history else None
                messages = [said(f"{number}.{part}", message_id=f"{number}.{part}") for part in range(3)]
                save = partial(writer.save_messages, SESSION, messages, state=state)
                await _until_done(wire, chance.choices(kinds, k=30), save)
                expected += texts(messages)
            assert texts(await wire.other.get_messages(SESSION)) == expected


async def _until_done(wire: Wire, faults: list[Fault], save: Callable[[], Awaitable[object]]) -> None:
    wire.transport.faults = faults
    failures: list[errors.CosmosStateError] = []
    while True:
        try:
            await save()
        except errors.CosmosStateError as error:
            failures.append(error)
        else:
            break
    assert all(failure.retryable for failure in failures)
    wire.transport.faults = []
