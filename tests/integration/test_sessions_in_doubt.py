"""A set whose answer was lost, and after which so much has happened that nobody can tell whether it was done."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final

import pytest
from azure.core.exceptions import ServiceResponseError
from azure.core.pipeline.transport import HttpRequest

from cosmos_workflow_state import TenantSessionStore, errors
from cosmos_workflow_state._embedded import EmbeddedResponse
from cosmos_workflow_state.emulator._values import Response
from support.faults import Fault, Send, drop_after, drop_before, let_pass, then
from support.sessions import Account, Process, noise, session

FEW: Final = 4
"""Writes that an item remembers here."""

Pair = tuple[Process, Process]
LOST: Final = [pytest.param(drop_after, id="done"), pytest.param(drop_before, id="not done")]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut all waits short."""
    monkeypatch.setattr("cosmos_workflow_state._gateway._FIRST_DELAY", 0.0)
    monkeypatch.setattr("cosmos_workflow_state._session_writing._FIRST_DELAY", 0.0)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an item remember few writes."""
    monkeypatch.setattr("cosmos_workflow_state._session_items.MAX_WRITES", FEW)


@pytest.fixture
async def pair(account: Account) -> AsyncIterator[Pair]:
    """Yield two processes that know the session k."""
    async with account.process() as process, account.process() as other:
        await process.store.set("k", session({"n": 0}))
        await other.store.get("k")
        yield process, other


def others(store: TenantSessionStore, count: int, session_id: str = "k") -> Callable[[], Awaitable[None]]:
    """Return what sets a session so many times; each finds the one before."""

    async def go_on() -> None:
        for n in range(count):
            found = await store.get_stored(session_id)
            await store.set(session_id, session({"n": f"other {n}"}), if_match="" if found is None else found.etag)

    return go_on


def deleting(store: TenantSessionStore, again: int) -> Callable[[], Awaitable[None]]:
    """Return what deletes the session and sets it anew so many times."""

    async def go_on() -> None:
        await store.delete("k")
        await others(store, again)()

    return go_on


async def number(process: Process, session_id: str = "k") -> Any:
    """Return the number that is there."""
    found = await process.store.get(session_id)
    return None if found is None else found.state["n"]


async def version(process: Process) -> str:
    """Return the version of the session k."""
    found = await process.store.get_stored("k")
    assert found is not None
    return found.etag


async def doubt(process: Process, session_id: str = "k", **how: Any) -> errors.ServiceUnavailableError:
    """Set a session, and return the error that does not claim to know."""
    with pytest.raises(errors.ServiceUnavailableError, match="nobody can say") as caught:
        await process.store.set(session_id, session({"n": "mine"}), **how)
    assert caught.value.outcome_unknown
    return caught.value


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("lost", LOST)
async def test_overtaken_by_more_than_are_remembered(pair: Pair, lost: Fault) -> None:
    """Done or not looks the same: it neither claims that nothing is stored, nor is it stored over the newer ones."""
    process, other = pair
    for guarded in (False, True):
        how = {"if_match": await version(process)} if guarded else {}
        process.transport.faults = [lost, then(others(other.store, FEW))]
        error = await doubt(process, **how)
        assert error.retryable != guarded, "what if_match names is gone, so the same call can only fail"
        assert await number(other) == f"other {FEW - 1}"
        # The repeat is a newer one, and knows what it replaces.
        await process.store.set("k", session({"n": "again"}))
        assert await number(other) == "again"


@pytest.mark.usefixtures("few")
async def test_overtaken_by_as_many_as_are_remembered(pair: Pair) -> None:
    """It is still known: done is no failure, and not done is a lost race or, without ``if_match``, done after all."""
    process, other = pair
    overtakes = then(others(other.store, FEW - 1))
    expected = await version(process)
    process.transport.faults = [drop_after, overtakes]
    await process.store.set("k", session({"n": "mine"}), if_match=expected)
    assert await number(other) == f"other {FEW - 2}"
    expected = await version(process)
    process.transport.faults = [drop_before, overtakes]
    with pytest.raises(errors.StateChangedError):
        await process.store.set("k", session({"n": "mine"}), if_match=expected)
    assert await number(other) == f"other {FEW - 2}"
    process.transport.faults = [drop_before, overtakes]
    await process.store.set("k", session({"n": "mine"}))
    assert await number(other) == "mine"


@pytest.mark.parametrize("lost", LOST)
@pytest.mark.parametrize("again", [0, 1])
@pytest.mark.parametrize("guarded", [True, False])
async def test_deleted_meanwhile(pair: Pair, lost: Fault, again: int, *, guarded: bool) -> None:
    """What was deleted remembers nothing, and is not brought back; nor is what was set anew replaced."""
    process, other = pair
    how = {"if_match": await version(process)} if guarded else {}
    process.transport.faults = [lost, then(deleting(other.store, again))]
    await doubt(process, **how)
    assert await number(other) == ("other 0" if again else None)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("lost", LOST)
async def test_a_first_set_that_is_overtaken(pair: Pair, lost: Fault) -> None:
    """What goes back to its creation tells whose that was; what does not, does not."""
    process, other = pair
    for session_id, how in (("new", {}), ("guarded", {"if_match": ""})):
        process.transport.faults = [lost, then(others(other.store, FEW, session_id))]
        await doubt(process, session_id, **how)
        assert await number(other, session_id) == f"other {FEW - 1}"
    process.transport.faults = [drop_before, then(others(other.store, 1, "short"))]
    with pytest.raises(errors.StateChangedError):
        await process.store.set("short", session({"n": "mine"}), if_match="")
    process.transport.faults = [drop_before, then(others(other.store, 1, "shorter"))]
    await process.store.set("shorter", session({"n": "mine"}))
    assert await number(other, "shorter") == "mine"


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("lost", LOST)
async def test_its_parts_are_removed(account: Account, pair: Pair, lost: Fault) -> None:
    """Nobody names them any more."""
    process, other = pair
    await process.store.set("large", session({"n": 0}))
    process.transport.faults = [*[let_pass] * 3, lost, then(others(other.store, FEW, "large"))]
    with pytest.raises(errors.ServiceUnavailableError, match="nobody can say"):
        await process.store.set("large", session(noise(700_000)))
    assert process.transport.faults == []
    assert {item["type"] for item in await account.items()} == {"session"}


@pytest.mark.usefixtures("few")
async def test_a_replica_that_is_behind(account: Account, pair: Pair) -> None:
    """It shows the version that was replaced: what was lost stays lost, also where the next try's answer comes."""
    process, other = pair
    expected = await version(process)
    [before] = [item for item in await account.items("session") if item["session_id"] == "k"]

    async def behind(request: HttpRequest, _: Send) -> EmbeddedResponse:
        return EmbeddedResponse(request, Response(200, {}, json.dumps(before).encode()))

    process.transport.faults = [drop_after, let_pass, behind, then(others(other.store, FEW))]
    await doubt(process, if_match=expected)


@pytest.mark.parametrize("seed", range(3))
async def test_forty_increments_are_forty(account: Account, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes, and every fifth answer is lost; they are fewer than are remembered, so none is unknown."""
    # Long enough for many others to go on before a repeat.
    monkeypatch.setattr("cosmos_workflow_state._gateway._FIRST_DELAY", 0.1)
    dice = random.Random(seed)

    async def flaky(request: HttpRequest, send: Send) -> EmbeddedResponse:
        answer = await send()
        if request.method == "POST" and dice.random() < 0.2:
            raise ServiceResponseError("lost")
        return answer

    async def increment(store: TenantSessionStore) -> None:
        while True:
            found = await store.get_stored("count")
            made, seen = (session({"n": 0}), "") if found is None else (found.session, found.etag)
            made.state["n"] += 1
            try:
                return await store.set("count", made, if_match=seen)
            except errors.StateChangedError:
                await asyncio.sleep(0)

    async with account.process() as process, account.process() as other:
        for one in (process, other):
            one.transport.faults = [flaky] * 10_000
        await asyncio.gather(*[increment(one.store) for one in (process, other) * 20])
        assert await number(process, "count") == 40
