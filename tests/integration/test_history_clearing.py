"""Clearing and deleting a history beside whoever saves, reads or takes away as well, however late a request arrives."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator

import pytest
from azure.core.exceptions import ServiceRequestError
from azure.core.pipeline.transport import HttpRequest

from cosmos_workflow_state import TenantHistoryProvider, errors
from cosmos_workflow_state._definitions import HISTORY
from support.chat_wires import HEAD, SESSION, SOURCE, TENANT, Wire, open_wire, refused_at
from support.chats import said, texts, turn
from support.engines import moved_account
from support.faults import Late, drop_after, let_pass

NEW = [said("new"), said("new answer", "assistant"), said("newer")]
OPERATIONS = ["clear", "delete_session"]
BEFORE_DELETING = {"clear": 3, "delete_session": 4}
"""Requests of an operation before it deletes messages."""
REQUESTS = [("clear", at) for at in range(4)] + [("delete_session", at) for at in range(7)]
"""Each request of each operation."""


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut waits short."""
    monkeypatch.setattr("cosmos_workflow_state._gateway._FIRST_DELAY", 0.0)
    monkeypatch.setattr("cosmos_workflow_state._appending._FIRST_DELAY", 0.0)
    monkeypatch.setattr("cosmos_workflow_state._conversations._DELAYS", (0.0, 0.0))


@pytest.fixture
async def wire() -> AsyncIterator[Wire]:
    """Yield a history of one turn."""
    async with open_wire() as opened:
        yield opened


async def _begin_anew(wire: Wire, history: TenantHistoryProvider) -> None:
    assert await history.delete_session(SESSION) is True
    await history.save_messages(SESSION, NEW)
    assert texts(await history.get_messages(SESSION)) == texts(NEW)
    wire.state.clear()


async def _assert_holds(wire: Wire, *expected: str) -> None:
    assert texts(await wire.other.get_messages(SESSION)) == list(expected)
    assert await wire.types() <= {"history_head", "message"}


async def test_numbers_do_not_come_back(wire: Wire) -> None:
    """Whatever is still under way for a deleted conversation names numbers that the next one does not have."""
    before = {item["id"] for item in await wire.items()} - {HEAD}
    await _begin_anew(wire, wire.other)
    after = {item["id"] for item in await wire.items()} - {HEAD}
    assert len(before) + len(after) == len(before | after) == 5


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("numbers", ["others", "the same"])
async def test_deletes_do_not_reach_the_next_conversation(
    wire: Wire, monkeypatch: pytest.MonkeyPatch, operation: str, numbers: str
) -> None:
    """Stalled before its deletes, an operation goes on when the session was deleted and begun anew by another one."""
    if numbers == "the same":
        monkeypatch.setattr(secrets, "randbelow", lambda _end: wire.began)
    begin = wire.meanwhile(lambda: _begin_anew(wire, wire.other))
    wire.transport.faults = [*[let_pass] * BEFORE_DELETING[operation], begin]
    await getattr(wire.history, operation)(SESSION)
    await _assert_holds(wire, *texts(NEW))


@pytest.mark.parametrize(("operation", "at"), REQUESTS)
@pytest.mark.parametrize("numbers", ["others", "the same"])
async def test_requests_that_arrive_late(
    wire: Wire, monkeypatch: pytest.MonkeyPatch, operation: str, at: int, numbers: str
) -> None:
    """Given up and repeated, a request of an operation arrives once more in the next conversation."""
    if numbers == "the same":
        monkeypatch.setattr(secrets, "randbelow", lambda _end: wire.began)
    late = Late()
    wire.transport.faults = [*[let_pass] * at, late]
    await getattr(wire.history, operation)(SESSION)
    assert wire.transport.faults == []
    await wire.other.save_messages(SESSION, turn(0))
    await _begin_anew(wire, wire.other)
    await late.arrive()
    await _assert_holds(wire, *texts(NEW))


@pytest.mark.parametrize("away", [-100, 100], ids=["lower", "higher"])
async def test_a_history_that_was_cleared_and_begins_anew(
    wire: Wire, monkeypatch: pytest.MonkeyPatch, away: int
) -> None:
    """A clearing that has found nothing to clear, and then messages of another conversation, clears that as a whole."""
    await wire.history.clear(SESSION)
    monkeypatch.setattr(secrets, "randbelow", lambda _end: wire.began + away)
    wire.transport.faults = [let_pass, wire.meanwhile(lambda: _begin_anew(wire, wire.other))]
    await wire.history.clear(SESSION)
    await _assert_holds(wire)
    assert await wire.history.count(SESSION) == 0


async def test_a_clearing_whose_answer_was_lost(wire: Wire) -> None:
    """It finds its own write and does not clear again."""
    wire.transport.faults = [let_pass, let_pass, drop_after]
    await wire.history.clear(SESSION)
    assert wire.transport.sent == ["GET", "POST", "POST", "POST", "GET", "POST"]
    await _assert_holds(wire)


async def test_a_clearing_whose_answer_was_lost_and_a_save_behind_it(wire: Wire) -> None:
    """What was saved behind its write stays, however often the write is repeated; what it has cleared is deleted."""
    save = wire.meanwhile(lambda: wire.other.save_messages(SESSION, NEW))
    wire.transport.faults = [let_pass, let_pass, drop_after, save]
    await wire.history.clear(SESSION)
    await _assert_holds(wire, *texts(NEW))
    assert len(await wire.items()) == 4


async def test_an_end_whose_answer_was_lost_and_a_save_behind_it(wire: Wire) -> None:
    """The head that counts what was saved behind it is not deleted."""
    save = wire.meanwhile(lambda: wire.other.save_messages(SESSION, NEW))
    wire.transport.faults = [*[let_pass] * 3, drop_after, save]
    assert await wire.history.delete_session(SESSION) is True
    await _assert_holds(wire, *texts(NEW))


async def test_what_another_clearing_has_cleared(wire: Wire) -> None:
    """Refused by a clearing that was first, it has nothing more to do: what was saved behind that one stays."""

    async def clear_and_save() -> None:
        await wire.other.clear(SESSION)
        await wire.other.save_messages(SESSION, NEW)

    wire.transport.faults = [let_pass, let_pass, wire.meanwhile(clear_and_save)]
    await wire.history.clear(SESSION)
    await _assert_holds(wire, *texts(NEW))


@pytest.mark.parametrize("head", ["lost", "damaged"])
async def test_a_head_that_is_repaired_while_it_is(wire: Wire, head: str) -> None:
    """A head that cannot be read does not count as cleared; another one's repair does."""
    if head == "lost":
        await wire.delete(HEAD)
    else:
        await wire.change(HEAD, next=-1)
    wire.transport.faults = [let_pass, let_pass, refused_at(0, 412)]
    await wire.history.clear(SESSION)
    assert await wire.history.get_messages(SESSION) == []
    await wire.change(HEAD, next=-1)
    wire.transport.faults = [let_pass, let_pass, wire.meanwhile(lambda: wire.other.clear(SESSION))]
    await wire.history.clear(SESSION)
    await _assert_holds(wire)


@pytest.mark.parametrize("numbers", ["lower", "higher"])
@pytest.mark.parametrize("ttl", [None, 1_000])
async def test_a_long_history_that_begins_anew_while_it_is_read(
    wire: Wire, monkeypatch: pytest.MonkeyPatch, numbers: str, ttl: int | None
) -> None:
    """A page of one conversation and a page of the next are never taken for one, nor is one page for all of it."""
    history = wire.factory.for_tenant(TENANT).history(SOURCE, ttl=ttl)
    await history.delete_session(SESSION)
    old, new = ([said(f"{kind} {number}") for number in range(1_400)] for kind in ("old", "new"))

    async def begin_anew() -> None:
        await history.delete_session(SESSION)
        monkeypatch.setattr(secrets, "randbelow", lambda _end: 10**13 if numbers == "lower" else 10**14 * 2)
        await history.save_messages(SESSION, new)

    monkeypatch.setattr(secrets, "randbelow", lambda _end: 10**14)
    await history.save_messages(SESSION, old)
    wire.transport.faults = [let_pass, wire.meanwhile(begin_anew)]
    assert texts(await history.get_messages(SESSION)) == texts(new)


@pytest.mark.parametrize("ttl", [None, 1_000])
async def test_a_long_history_that_is_cleared_while_it_is_read(wire: Wire, ttl: int | None) -> None:
    """It is empty, never its newest page; one that is left alone is whole."""
    history = wire.factory.for_tenant(TENANT).history(SOURCE, ttl=ttl)
    await history.clear(SESSION)
    messages = [said(str(number)) for number in range(1_400)]
    await history.save_messages(SESSION, messages)
    assert texts(await history.get_messages(SESSION)) == texts(messages)
    wire.transport.faults = [let_pass, wire.meanwhile(lambda: wire.other.clear(SESSION))]
    assert await history.get_messages(SESSION) == []


class Interruption:
    """Loses every request that deletes messages, as long as it is on."""

    on = False

    def __call__(self, request: HttpRequest) -> None:
        """Lose a request."""
        if self.on and '"Delete"' in str(request.data):
            raise ServiceRequestError("dropped")


@pytest.mark.parametrize("saved", [True, False], ids=["with a save", "without"])
async def test_a_head_lives_as_long_as_what_an_interrupted_clearing_has_left(*, saved: bool) -> None:
    """Messages that stay are cleared, and not deleted yet: whatever is saved behind that, they never count again."""
    interruption = Interruption()
    async with moved_account() as account, account.factory(interruption) as factory:
        lasting, short = (factory.for_tenant(TENANT).history(SOURCE, ttl=ttl) for ttl in (None, 40))
        await lasting.save_messages(SESSION, turn(0))
        interruption.on = True
        with pytest.raises(errors.ServiceUnavailableError):
            await short.clear(SESSION)
        interruption.on = False
        if saved:
            await short.save_messages(SESSION, turn(1))
        account.clock.advance(41)
        assert await lasting.get_messages(SESSION) == []
        await lasting.save_messages(SESSION, turn(2))
        assert texts(await lasting.get_messages(SESSION)) == texts(turn(2))
        await short.clear(SESSION)
        account.clock.advance(41)
        assert await account.items(definition=HISTORY) == []


async def test_an_interrupted_clearing_is_completed_by_the_next() -> None:
    """Also where all that is left to do is that the head lives no longer than it has to."""
    async with moved_account() as account, account.factory() as factory:
        lasting, short = (factory.for_tenant(TENANT).history(SOURCE, ttl=ttl) for ttl in (None, 40))
        await lasting.save_messages(SESSION, turn(0))
        await lasting.clear(SESSION)
        assert [item.get("ttl") for item in await account.items(definition=HISTORY)] == [None]
        await short.clear(SESSION)
        assert [item.get("ttl") for item in await account.items(definition=HISTORY)] == [40]


async def test_a_head_that_has_gone_on_since_is_not_shortened(wire: Wire) -> None:
    """What is saved behind a clearing before that has ended lives as long as it was to."""
    short = wire.factory.for_tenant(TENANT).history(SOURCE, ttl=40)
    save = wire.meanwhile(lambda: wire.other.save_messages(SESSION, NEW))
    wire.transport.faults = [*[let_pass] * 4, save]
    await short.clear(SESSION)
    assert ["ttl" in item for item in await wire.items()] == [False] * 4
    await _assert_holds(wire, *texts(NEW))
