"""What a history costs in requests: counted at the transport, and the same in the event that tells of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, MutableMapping
from typing import Any, Final

import pytest
from agent_framework import Agent, AgentSession
from azure.core.pipeline.transport import HttpRequest

from cosmos_workflow_state import CosmosStateFactory, TenantHistoryProvider
from cosmos_workflow_state.testing._workflows import Echo
from support.chats import incompressible, said, turn
from support.engines import moved_account

SESSION: Final = "s-1"
PLAIN: Final = {"POST": "create", "GET": "read", "PUT": "replace", "DELETE": "delete"}
KINDS: Final = {"x-ms-cosmos-is-batch-request": "batch", "x-ms-documentdb-isquery": "query"}

Events = list[MutableMapping[str, Any]]


class Watched:
    """A history, and what it has sent since somebody looked.

    Attributes:
        history: A provider.
        factory: What it is from.
    """

    def __init__(self, events: Events) -> None:
        self.history: TenantHistoryProvider
        self.factory: CosmosStateFactory
        self._sent: list[str] = []
        self._events = events

    def watch(self, request: HttpRequest) -> None:
        """Note a request for items."""
        given = [kind for header, kind in KINDS.items() if str(request.headers.get(header)).lower() == "true"]
        self._sent.append((given or [PLAIN[request.method]])[0])

    async def sent(self, operation: Awaitable[object]) -> list[str]:
        """Return what an operation sends; its events say as much."""
        self._sent.clear()
        self._events.clear()
        await operation
        told = [event["requests"] for event in self._events if "requests" in event]
        assert sum(told) == len(self._sent)
        return list(self._sent)


@pytest.fixture
async def watched(events: Events) -> AsyncIterator[Watched]:
    """Yield a history whose container is open."""
    watched = Watched(events)
    async with moved_account() as account, account.factory(watched.watch) as factory:
        watched.factory, watched.history = factory, factory.for_tenant("contoso").history()
        await watched.history.count("another")
        yield watched


async def test_a_turn_is_one_query_and_one_batch(watched: Watched) -> None:
    """From the first turn of a session on, however long it gets."""
    state: dict[str, Any] = {}
    for number in range(50):
        assert await watched.sent(watched.history.get_messages(SESSION, state=state)) == ["query"]
        assert await watched.sent(watched.history.save_messages(SESSION, turn(number), state=state)) == ["batch"]


async def test_a_turn_of_an_agent_is_one_query_and_one_batch(watched: Watched) -> None:
    """What the framework asks of a provider in a run; one that only stores sends nothing but batches."""
    audit = watched.factory.for_tenant("contoso").history("audit", load_messages=False)
    session, audited = AgentSession(session_id=SESSION), AgentSession(session_id="s-2")
    agent, recorder = (Agent(Echo(), context_providers=[provider]) for provider in (watched.history, audit))
    assert await watched.sent(recorder.run("say 0", session=audited)) == ["read", "query", "batch"]
    for number in range(1, 20):
        assert await watched.sent(agent.run(f"say {number}", session=session)) == ["query", "batch"]
        assert await watched.sent(recorder.run(f"say {number}", session=audited)) == ["batch"]


async def test_a_save_without_state_reads_the_head(watched: Watched) -> None:
    """One small read more; one with nothing new is that read alone, and where there is no head, there is no message."""
    for expected in (["read", "query", "batch"], ["read"], ["read"]):
        assert await watched.sent(watched.history.save_messages(SESSION, turn(0))) == expected
    assert await watched.sent(watched.history.save_messages(SESSION, turn(1))) == ["read", "batch"]
    assert await watched.sent(watched.history.save_messages(SESSION, [])) == []


async def test_a_replay_asks_for_no_more_than_it_needs(watched: Watched) -> None:
    """Up to 31 messages the head knows; beyond that the identities alone are asked for."""
    messages = [said(str(number), "assistant") for number in range(200)]
    state: dict[str, Any] = {}
    await watched.history.save_messages(SESSION, messages, state=state)
    short = watched.history.save_messages(SESSION, [*messages[-30:], said("a")], state=state)
    assert await watched.sent(short) == ["batch"]
    long = watched.history.save_messages(SESSION, [*messages, said("a"), said("b")], state=state)
    assert await watched.sent(long) == ["query", "batch"]
    again = watched.history.save_messages(SESSION, [*messages, said("a"), said("b")], state=state)
    assert await watched.sent(again) == ["query", "read"]


async def test_what_is_too_much_for_a_batch(watched: Watched) -> None:
    """By a hundred steps, the head's included, and by bytes; a message of parts is its guard, its parts and a batch."""
    assert await watched.sent(watched.history.save_messages("many", [said(str(one)) for one in range(250)])) == [
        "read",
        "query",
        *["batch"] * 3,
    ]
    wide = [said(incompressible(280_000, seed=one)) for one in range(8)]
    assert await watched.sent(watched.history.save_messages("wide", wide)) == ["read", "query", *["batch"] * 3]
    large = [said("a"), said(incompressible(700_000)), said("b")]
    parts = ["read", "query", *["create"] * 4, "batch"]
    assert await watched.sent(watched.history.save_messages("large", large)) == parts
    assert await watched.sent(watched.history.get_messages("large")) == ["query", *["read"] * 3]


async def test_everything_else(watched: Watched) -> None:
    """Counting reads the head; clearing is a read, a query, a write and what it deletes, a hundred at a time."""
    await watched.history.save_messages(SESSION, [said(str(one)) for one in range(150)])
    assert await watched.sent(watched.history.count(SESSION)) == ["read"]
    assert await watched.sent(watched.history.list_sessions()) == ["query"]
    assert await watched.sent(watched.history.clear(SESSION)) == ["read", "query", *["batch"] * 3]
    assert await watched.sent(watched.history.clear(SESSION)) == ["read", "query"]
    assert await watched.sent(watched.history.clear("none")) == ["read", "query"]
    assert await watched.sent(watched.history.delete_session(SESSION)) == ["query", "read", "query", "batch", "query"]
    assert await watched.sent(watched.history.delete_session("none")) == ["query", "query"]
