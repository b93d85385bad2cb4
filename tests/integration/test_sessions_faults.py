"""Throttling, lost answers, late arrivals, races and cancellations of sessions: between the client and the engine."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import pytest
from azure.core.pipeline.transport import HttpRequest

from cosmos_workflow_state import TenantSessionStore, errors
from cosmos_workflow_state._embedded import EmbeddedResponse
from cosmos_workflow_state._session_items import MAX_WRITES
from cosmos_workflow_state.emulator._values import Response
from support.faults import Fault, Late, Send, drop_after, drop_before, each_transient, let_pass, status, then
from support.sessions import Account, Process, session

TRIES = 6
"""Of one request, by the gateway."""

Pair = tuple[Process, Process]


pytestmark = pytest.mark.usefixtures("quick_sessions")


def setting(store: TenantSessionStore, n: int, session_id: str = "k") -> Callable[[], Awaitable[None]]:
    """Return what sets the session to a number."""
    return lambda: store.set(session_id, session({"n": n}))


async def number(process: Process, session_id: str = "k") -> Any:
    """Return the number that is there."""
    found = await process.store.get(session_id)
    return None if found is None else found.state["n"]


@each_transient
async def test_every_operation_outlives_a_transient_fault(process: Process, fault: Fault) -> None:
    """One fault at each request of each operation is repaired, whether it was applied or not."""
    store, transport = process.store, process.transport
    for session_id in ("new", "k"):
        transport.faults = [fault]
        await store.set(session_id, session({"n": 1}))
        transport.faults = [fault]
        assert await number(process, session_id) == 1
    stored = await store.get_stored("k")
    assert stored is not None
    transport.faults = [fault]
    await store.set("k", session({"n": 2}), if_match=stored.etag)
    assert await number(process) == 2
    for faults in ([fault], [let_pass, fault]):
        await store.set("k", session({"n": 3}))
        transport.faults = faults
        await store.delete("k")
        assert transport.faults == []
        assert await number(process) is None


@pytest.mark.parametrize("session_id", ["k", "new"])
async def test_a_set_whose_answers_were_lost_finds_itself(process: Process, session_id: str) -> None:
    """When no answer comes the truth is read, and what was stored is no failure."""
    process.transport.faults = [drop_after] * TRIES
    await process.store.set(session_id, session({"n": 1}))
    assert process.sent() == ["POST"] * TRIES + ["GET"]
    assert await number(process, session_id) == 1


async def test_a_set_that_was_lost_says_so(process: Process) -> None:
    """When no request comes through nothing has changed, and the error does not claim to know."""
    process.transport.faults = [drop_before] * TRIES
    with pytest.raises(errors.ServiceUnavailableError) as caught:
        await process.store.set("k", session({"n": 1}))
    assert caught.value.outcome_unknown
    assert caught.value.retryable
    assert await number(process) == 0


async def test_a_set_after_which_nothing_can_be_read_says_so(process: Process) -> None:
    """The first failure is the one that is told, not that of the question about it."""
    process.transport.faults = [*[drop_after] * TRIES, *[status(429, 3200, x_ms_retry_after_ms="1")] * TRIES]
    with pytest.raises(errors.ServiceUnavailableError) as caught:
        await process.store.set("k", session({"n": 1}))
    assert caught.value.outcome_unknown


async def test_a_refused_set_after_which_nothing_can_be_read(process: Process) -> None:
    """A refusal that may be its own work, and no answer to the question: the outcome is unknown."""
    process.transport.faults = [drop_after, let_pass, *[status(429, 3200, x_ms_retry_after_ms="1")] * TRIES]
    with pytest.raises(errors.ThrottledError) as caught:
        await process.store.set("k", session({"n": 1}))
    assert caught.value.outcome_unknown


async def test_a_failure_that_is_known_asks_nothing(process: Process) -> None:
    """Throttled to the end: nothing was done, so nothing is read."""
    process.transport.faults = [status(429, 3200, x_ms_retry_after_ms="1")] * TRIES
    with pytest.raises(errors.ThrottledError) as caught:
        await process.store.set("k", session({"n": 1}))
    assert not caught.value.outcome_unknown
    assert process.sent() == ["POST"] * TRIES


async def test_a_guarded_set_whose_answer_was_lost_is_no_conflict(process: Process) -> None:
    """The repeat meets its own work, which is not another's."""
    for expected in (True, False):
        stored = await process.store.get_stored("k")
        assert stored is not None
        if not expected:
            await process.store.delete("k")
        process.transport.faults = [drop_after]
        await process.store.set("k", session({"n": 1}), if_match=stored.etag if expected else "")
        assert await number(process) == 1


async def test_a_set_that_was_done_and_replaced_since_is_not_done_again(pair: Pair) -> None:
    """Its answer was lost, another process has read its outcome and gone on from there: that stays."""
    process, other = pair

    async def go_on() -> None:
        for _ in range(MAX_WRITES - 1):
            found = await other.store.get_stored("k")
            assert found is not None
            found.session.state["n"] += 1
            await other.store.set("k", found.session, if_match=found.etag)

    process.transport.faults = [drop_after, then(go_on)]
    etag = await process.store.set_stored("k", session({"n": 10}))
    assert await number(process) == 10 + MAX_WRITES - 1
    with pytest.raises(errors.StateChangedError):
        await process.store.set("k", session({"n": 11}), if_match=etag)


async def test_a_set_that_arrives_late_changes_nothing(pair: Pair) -> None:
    """Given up with an error, overtaken by a newer one from here or elsewhere, and then it arrives."""
    for newer in pair:
        process, late = pair[0], Late()
        process.transport.faults = [late, *[drop_before] * (TRIES - 1)]
        with pytest.raises(errors.ServiceUnavailableError):
            await process.store.set("k", session({"n": 1}))
        await newer.store.set("k", session({"n": 2}))
        await late.arrive()
        assert await number(process) == 2
        assert await number(newer) == 2


async def test_the_first_set_that_arrives_late_changes_nothing(pair: Pair) -> None:
    """The same where there was no session before."""
    process, other = pair
    late = Late()
    process.transport.faults = [late, *[drop_before] * (TRIES - 1)]
    with pytest.raises(errors.ServiceUnavailableError):
        await process.store.set("new", session({"n": 1}))
    await other.store.set("new", session({"n": 2}))
    await late.arrive()
    assert await number(process, "new") == 2


async def test_a_set_that_arrives_before_its_repeat(process: Process) -> None:
    """The first try arrives while the second is on its way: it is done once."""
    late = Late()
    process.transport.faults = [late, then(late.arrive)]
    await process.store.set("k", session({"n": 1}))
    assert process.sent() == ["POST", "POST", "GET"]
    assert await number(process) == 1


async def test_a_set_that_arrives_late_brings_nothing_back(process: Process) -> None:
    """What replaces a version that was deleted since finds none."""
    late = Late()
    process.transport.faults = [late, *[drop_before] * (TRIES - 1)]
    with pytest.raises(errors.ServiceUnavailableError):
        await process.store.set("k", session({"n": 1}))
    await process.store.delete("k")
    await late.arrive()
    assert await number(process) is None


async def test_a_delete_that_arrives_late_deletes_nothing_newer(process: Process) -> None:
    """It names the version it means."""
    late = Late()
    process.transport.faults = [let_pass, late]
    await process.store.delete("k")
    await process.store.set("k", session({"n": 2}))
    await late.arrive()
    assert await number(process) == 2


async def test_the_last_writer_wins(pair: Pair) -> None:
    """Another process has set, deleted or first set the session since this one has seen it."""
    process, other = pair
    await other.store.set("k", session({"n": 1}))
    await process.store.set("k", session({"n": 2}))
    assert await number(other) == 2
    await other.store.delete("k")
    await process.store.set("k", session({"n": 3}))
    assert await number(other) == 3
    await other.store.set("new", session({"n": 4}))
    await process.store.set("new", session({"n": 5}))
    assert await number(other, "new") == 5


async def test_a_set_that_always_comes_too_late(pair: Pair) -> None:
    """Overtaken at every try: a conflict, which a repeat may well survive, and nothing of it is left behind."""
    process, other = pair
    process.transport.faults = [fault for n in range(1, 9) for fault in (then(setting(other.store, n)), let_pass)]
    with pytest.raises(errors.StateConflictError) as caught:
        await process.store.set("k", session({"n": -1}))
    assert caught.value.retryable
    assert process.transport.faults == []
    assert await number(process) == 8
    await process.store.set("k", session({"n": -1}))
    assert await number(other) == -1


async def test_a_delete_that_always_comes_too_late(pair: Pair) -> None:
    """As for a set."""
    process, other = pair
    process.transport.faults = [fault for n in range(1, 6) for fault in (let_pass, then(setting(other.store, n)))]
    with pytest.raises(errors.StateConflictError):
        await process.store.delete("k")
    assert await number(process) == 5


async def test_a_delete_meets_what_replaced_the_version_it_found(pair: Pair) -> None:
    """Read again, and deleted; or gone by then, which is as good."""
    process, other = pair
    process.transport.faults = [let_pass, then(setting(other.store, 1))]
    await process.store.delete("k")
    assert await number(other) is None
    await process.store.set("k", session({"n": 2}))
    process.transport.faults = [let_pass, then(lambda: other.store.delete("k"))]
    await process.store.delete("k")
    assert await number(other) is None


async def test_two_tasks_of_one_process(process: Process) -> None:
    """Each of many sets at once is one of the versions that were there, and the last of them stays."""
    store = process.store
    await asyncio.gather(*[store.set("k", session({"n": n})) for n in range(1, 5)])
    assert await number(process) in range(1, 5)


@pytest.mark.parametrize("goes_through", [True, False])
async def test_a_set_that_is_cancelled(process: Process, *, goes_through: bool) -> None:
    """Nobody knows what became of it; what is set afterwards is what stays, whatever arrives when."""
    under_way, late = asyncio.Event(), Late()

    async def hang(_: HttpRequest, send: Send) -> EmbeddedResponse:
        if goes_through:
            await send()
        late._send = send
        under_way.set()
        await asyncio.Event().wait()
        return await send()

    process.transport.faults = [hang]
    task = asyncio.create_task(process.store.set("k", session({"n": 1})))
    await under_way.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await process.store.set("k", session({"n": 2}))
    await late.arrive()
    assert await number(process) == 2


async def test_a_set_that_takes_too_long(account: Account) -> None:
    """Given up after ``operation_timeout``; the error does not claim to know."""

    async def hang(_: HttpRequest, send: Send) -> EmbeddedResponse:
        await asyncio.Event().wait()
        return await send()

    async with account.process(operation_timeout=0.1) as process:
        process.transport.faults = [hang]
        with pytest.raises(errors.OperationTimeoutError) as caught:
            await process.store.set("k", session({"n": 1}))
        assert caught.value.outcome_unknown
        process.transport.faults = [hang]
        with pytest.raises(errors.OperationTimeoutError) as caught:
            await process.store.get("k")
        assert not caught.value.outcome_unknown


async def test_a_set_whose_answer_names_no_version(process: Process) -> None:
    """It is done; without a version the next set asks for one, and never replaces without."""
    steps: list[str] = []

    async def without_version(request: HttpRequest, send: Send) -> EmbeddedResponse:
        await send()
        return EmbeddedResponse(request, Response(200, {}, b'[{"statusCode":200}]'))

    async def look(request: HttpRequest, send: Send) -> EmbeddedResponse:
        steps.extend(step["operationType"] for step in json.loads(request.data))
        return await send()

    process.transport.faults = [without_version, look]
    await process.store.set("k", session({"n": 1}))
    process.sent()
    await process.store.set("k", session({"n": 2}))
    assert process.sent() == ["POST", "GET", "POST"]
    assert steps == ["Create"]
    assert await number(process) == 2


async def test_a_delete_whose_answer_was_lost_has_deleted(
    account: Account, events: list[MutableMapping[str, Any]]
) -> None:
    """The repeat meets its own work as "no such item": that is told as deleted, and asks nothing more."""
    async with account.process() as process:
        await process.store.set("k", session({"n": 1}))
        process.sent()
        process.transport.faults = [let_pass, drop_after]
        await process.store.delete("k")
        assert process.sent() == ["POST"] * 3
    assert [event["deleted"] for event in events if event["event"] == "session.deleted"] == [True]
