"""Agents in the real Foundry hosts, whose sessions are kept by our store."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
from agent_framework import (
    Agent,
    AgentSession,
    BaseChatClient,
    ChatResponse,
    ChatResponseUpdate,
    InMemoryHistoryProvider,
    Message,
    SessionStore,
)
from agent_framework_foundry_hosting import InvocationsHostServer, ResponsesHostServer, StoreProvider
from azure.ai.agentserver.core import AgentConfig, FoundryAgentRequestContext

from cosmos_workflow_state import CosmosStateFactory
from cosmos_workflow_state.errors import ServiceUnavailableError
from cosmos_workflow_state.hosts.foundry_sessions import TenantSessionStoreProvider
from support.faults import Fault, drop_after, let_pass, then
from support.hosting import client_of, settings_in
from support.sessions import Process, account_of_sessions

ADA, BOB, EVE = ({"x-agent-user-id": name} for name in ("ada", "bob", "eve"))
TENANTS = {"ada": "contoso", "bob": "contoso", "eve": "fabrikam"}

Turn = Callable[[], Any]


@pytest.fixture(autouse=True)
def _platform_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep what the hosts store themselves beside the state file."""
    monkeypatch.setenv("AGENTSERVER_STATE_ROOT", str(tmp_path / "platform"))


def provider_of(factory: CosmosStateFactory) -> StoreProvider[SessionStore]:
    """Return the provider, which knows the tenant of each user."""
    return TenantSessionStoreProvider(factory, tenant=lambda request: TENANTS.get(request.user_id or ""))


class Counting(BaseChatClient[Any]):
    """A model that says how many messages it was sent, when it is let."""

    def __init__(self, wait: Turn | None = None) -> None:
        """Set what a turn waits for."""
        super().__init__()
        self._wait = wait

    def _inner_get_response(self, *, messages: Any, stream: bool, **_: Any) -> Any:
        return self._build_response_stream(self._updates(messages)) if stream else self._answer(messages)

    async def _answer(self, messages: Sequence[Message]) -> ChatResponse[Any]:
        if self._wait is not None:
            await self._wait()
        return ChatResponse(messages=[Message("assistant", [f"{len(messages)} messages"])])

    async def _updates(self, messages: Sequence[Message]) -> AsyncIterator[ChatResponseUpdate]:
        answer = await self._answer(messages)
        yield ChatResponseUpdate(role="assistant", contents=answer.messages[0].contents)


def responses_host(factory: CosmosStateFactory, wait: Turn | None = None) -> ResponsesHostServer:
    """Build a host of the Responses protocol, whose agent keeps its history in the session."""
    agent = Agent(Counting(wait), context_providers=[InMemoryHistoryProvider()])
    return ResponsesHostServer(
        agent,
        history_source="agent",
        agent_session_store_provider=provider_of(factory),
        configure_observability=None,
    )


def invocations_host(factory: CosmosStateFactory) -> InvocationsHostServer:
    """Build a host of the Invocations protocol."""
    agent = Agent(Counting(), context_providers=[InMemoryHistoryProvider()])
    return InvocationsHostServer(agent, agent_session_store_provider=provider_of(factory), configure_observability=None)


def said(response: httpx.Response) -> str:
    """Return the text of a response, or why there is none."""
    assert response.status_code == 200, response.text
    body = response.json()
    if body["status"] != "completed":
        return str(body["error"]["message"])
    [text] = [content["text"] for item in body["output"] for content in item["content"]]
    return str(text)


async def ask(client: httpx.AsyncClient, headers: dict[str, str] = ADA, **fields: Any) -> httpx.Response:
    """Send one turn of a conversation."""
    body = {"model": "m", "input": "hello", "conversation": "conv_1"} | fields
    return await client.post("/responses", json={name: value for name, value in body.items() if value}, headers=headers)


async def test_a_conversation_goes_on_in_a_host_that_is_built_anew(tmp_path: Path) -> None:
    """Each turn in a process of its own: the model is sent what was said before."""
    answers: list[str] = []
    for _ in range(3):
        async with CosmosStateFactory(settings_in(tmp_path)) as factory, client_of(responses_host(factory)) as client:
            answers.append(said(await ask(client)))
    assert answers == ["1 messages", "3 messages", "5 messages"]


async def test_a_response_is_continued(tmp_path: Path) -> None:
    """By its own id, without a conversation; a fork of it goes its own way."""
    async with CosmosStateFactory(settings_in(tmp_path)) as factory, client_of(responses_host(factory)) as client:
        first = again = await ask(client, conversation=None)
        for _ in range(2):
            again = await ask(client, conversation=None, previous_response_id=first.json()["id"])
            assert said(again) == "3 messages"
        third = await ask(client, conversation=None, previous_response_id=again.json()["id"])
        assert said(third) == "5 messages"


@pytest.mark.parametrize("headers", [BOB, EVE], ids=["another user", "another tenant"])
async def test_nobody_else_goes_on_with_it(tmp_path: Path, headers: dict[str, str]) -> None:
    """Whoever learns the id of a conversation or response begins at the beginning, and its owner goes on."""
    async with CosmosStateFactory(settings_in(tmp_path)) as factory, client_of(responses_host(factory)) as client:
        first = await ask(client)
        assert said(await ask(client, headers)) == "1 messages"
        stolen = await ask(client, headers, conversation=None, previous_response_id=first.json()["id"])
        assert stolen.status_code == 404 or "Cannot find" in said(stolen)
        assert said(await ask(client)) == "3 messages"


async def test_of_two_turns_at_once_one_is_told(tmp_path: Path) -> None:
    """The second to claim the conversation is refused before its model is asked; nothing of the first is lost."""
    async with CosmosStateFactory(settings_in(tmp_path)) as factory, CosmosStateFactory(settings_in(tmp_path)) as cold:
        second: list[str] = []

        async def meet() -> None:
            async with client_of(responses_host(cold)) as other:
                second.append(said(await ask(other)))

        async with client_of(responses_host(factory, meet)) as client:
            assert said(await ask(client)) == "1 messages"
        [refused] = second
        assert "in-flight turn" in refused
        async with client_of(responses_host(factory)) as client:
            assert said(await ask(client)) == "3 messages"


async def test_invocations_go_on_in_a_host_that_is_built_anew(tmp_path: Path) -> None:
    """The same for the other protocol, where a session is all there is."""
    answers: list[str] = []
    for session in ("s1", "s1", "s2", "s1"):
        async with CosmosStateFactory(settings_in(tmp_path)) as factory, client_of(invocations_host(factory)) as client:
            url = f"/invocations?agent_session_id={session}"
            response = await client.post(url, json={"message": "hello"}, headers=ADA)
            answers.append(response.json()["response"])
    assert answers == ["1 messages", "3 messages", "1 messages", "5 messages"]


@pytest.fixture
async def pair(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Process, Process]]:
    """Yield two processes, whose sessions remember no more than one write."""
    monkeypatch.setattr("cosmos_workflow_state._session_items.MAX_WRITES", 1)
    monkeypatch.setattr("cosmos_workflow_state._gateway._FIRST_DELAY", 0.0)
    async with account_of_sessions() as account, account.process() as one, account.process() as other:
        yield one, other


def overtaken(by: Process, session_id: str) -> list[Fault]:
    """Return the faults of a set that is done, and of which nobody can tell afterwards: another one has come since."""

    async def go_on() -> None:
        store = provider_of(by.factory).get_store(config=AgentConfig.from_env(), platform_context=context("ada"))
        await store.get(session_id)
        await store.set(session_id, AgentSession(session_id="newer"))

    return [drop_after, then(go_on)]


async def test_a_response_of_which_nobody_knows_whether_it_was_stored(pair: tuple[Process, Process]) -> None:
    """The turn has failed, in words that claim nothing; what came after it stays, and the next turn goes on there."""
    host, other = pair
    async with client_of(responses_host(host.factory)) as client:
        assert said(await ask(client)) == "1 messages"
        # Read, claimed, the response's own session, and then the conversation's.
        host.transport.faults = [let_pass, let_pass, let_pass, *overtaken(other, "conv_1")]
        assert said(await ask(client)) == "An internal server error occurred."
        assert host.transport.faults == []
        assert said(await ask(client)) == "1 messages"


async def test_a_claim_of_which_nobody_knows_whether_it_was_made(pair: tuple[Process, Process]) -> None:
    """The model is not asked."""
    host, other = pair
    asked: list[str] = []

    async def note() -> None:
        asked.append("once")

    async with client_of(responses_host(host.factory, note)) as client:
        host.transport.faults = [let_pass, *overtaken(other, "conv_1")]
        assert said(await ask(client)) == "An internal server error occurred."
    assert host.transport.faults == []
    assert asked == []


async def test_an_invocation_of_which_nobody_knows_whether_it_was_stored(pair: tuple[Process, Process]) -> None:
    """It has failed, without a claim that another one came first; the next one goes on from what is there."""
    host, other = pair
    async with client_of(invocations_host(host.factory)) as client:
        url = "/invocations?agent_session_id=s1"
        host.transport.faults = [let_pass, *overtaken(other, "s1")]
        response = await client.post(url, json={"message": "hello"}, headers=ADA)
        assert host.transport.faults == []
        assert (response.status_code, response.json()) == (500, {"error": "Agent invocation failed."})
        again = await client.post(url, json={"message": "hello"}, headers=ADA)
        assert again.json()["response"] == "1 messages"


async def test_a_request_that_does_not_know_writes_over_nothing(pair: tuple[Process, Process]) -> None:
    """Whatever it still stores in that session is a lost race, as long as it has not read it anew."""
    host, other = pair
    store = provider_of(host.factory).get_store(config=AgentConfig.from_env(), platform_context=context("ada"))
    assert await store.get("k") is None
    await store.set("k", AgentSession(session_id="first"))
    host.transport.faults = overtaken(other, "k")
    with pytest.raises(ServiceUnavailableError) as caught:
        await store.set("k", AgentSession(session_id="mine"))
    assert caught.value.outcome_unknown
    with pytest.raises(RuntimeError, match=r"^Another request advanced this agent session; reload"):
        await store.set("k", AgentSession(session_id="mine"))
    found = await store.get("k")
    assert found is not None
    assert found.session_id == "newer"
    await store.set("k", AgentSession(session_id="mine"))


def context(user: str) -> FoundryAgentRequestContext:
    """Return what the platform says of a request."""
    return FoundryAgentRequestContext(user_id=user, session_id="", call_id="call-1")


async def test_what_the_hosts_rely_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One store a request: guarded by what it has read, or not read; told in the words that the host passes on."""
    monkeypatch.setenv("FOUNDRY_HOSTING_ENVIRONMENT", "container")
    monkeypatch.setenv("FOUNDRY_AGENT_SESSION_ID", "0" * 32)
    config = AgentConfig.from_env()
    assert config.is_hosted
    async with CosmosStateFactory(settings_in(tmp_path)) as factory:
        provider = provider_of(factory)
        first, second, third = (provider.get_store(config=config, platform_context=context("ada")) for _ in range(3))
        assert await first.get("k") is None
        assert await second.get("k") is None
        await first.set("k", AgentSession(session_id="one"))
        await first.set("k", AgentSession(session_id="two"))
        for late in (second, third):
            with pytest.raises(RuntimeError, match=r"^Another request advanced this agent session; reload"):
                await late.set("k", AgentSession(session_id="late"))
        found = await second.get("k")
        assert found is not None
        assert found.session_id == "two"
        await second.set("k", AgentSession(session_id="three"))
        await second.delete("k")
        await second.set("k", AgentSession(session_id="four"))
        other = provider.get_store(config=config, platform_context=context("bob"))
        assert await other.get("k") is None
