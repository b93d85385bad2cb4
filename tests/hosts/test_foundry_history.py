"""Agents in the real Foundry hosts, built for each request with their tenant's history."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from agent_framework import Agent
from agent_framework_foundry_hosting import InvocationsHostServer, ResponsesHostServer
from azure.ai.agentserver.core import FoundryAgentRequestContext, get_request_context

from cosmos_workflow_state import CosmosStateFactory
from cosmos_workflow_state.hosts.foundry_sessions import TenantSessionStoreProvider
from support.hosting import client_of, settings_in
from support.models import Recalling

TENANTS = {"ada": "contoso", "bob": "contoso", "eve": "fabrikam"}
SANDBOX = "0" * 32


@pytest.fixture(autouse=True)
def _platform_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep what the hosts store themselves beside the state file."""
    monkeypatch.setenv("AGENTSERVER_STATE_ROOT", str(tmp_path / "platform"))


@pytest.fixture
def _hosted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the hosts believe that they are on the platform."""
    monkeypatch.setenv("FOUNDRY_HOSTING_ENVIRONMENT", "container")
    monkeypatch.setenv("FOUNDRY_AGENT_SESSION_ID", SANDBOX)


def tenant_of(request: FoundryAgentRequestContext) -> str | None:
    """Return the tenant of a request's user."""
    return TENANTS.get(request.user_id or "")


def build(factory: CosmosStateFactory) -> Callable[[], Agent[Any]]:
    """Return what builds the agent of a request."""

    def agent() -> Agent[Any]:
        tenant = factory.for_tenant(tenant_of(get_request_context()) or "")
        return Agent(Recalling(), context_providers=[tenant.history()])

    return agent


async def post(directory: Path, path: str, body: dict[str, Any], user: str) -> Any:
    """Send one request to a process of its own."""
    async with CosmosStateFactory(settings_in(directory)) as factory:
        sessions = TenantSessionStoreProvider(factory, tenant=tenant_of)
        options: dict[str, Any] = {"agent_session_store_provider": sessions, "configure_observability": None}
        app = (
            ResponsesHostServer(build(factory), history_source="agent", **options)
            if path == "/responses"
            else InvocationsHostServer(build(factory), **options)
        )
        async with client_of(app) as client:
            response: httpx.Response = await client.post(
                path, json=body, headers={"x-agent-user-id": user, "x-agent-foundry-call-id": "call-1"}
            )
        return response.json()


def said(told: Any) -> str:
    """Return the text of a response, or why there is none."""
    if told["status"] != "completed":
        return str(told["error"]["message"])
    [text] = [content["text"] for item in told["output"] for content in item["content"]]
    return str(text)


async def test_what_was_said_is_the_users_own(tmp_path: Path) -> None:
    """Two tenants and two users in conversations of the same id, each turn in a process of its own."""
    for turn in (1, 2, 3):
        for user in TENANTS:
            body = {"model": "m", "input": f"{user} {turn}", "conversation": "c1"}
            answer = said(await post(tmp_path, "/responses", body, user))
            assert answer == f"I was told {', '.join(f'{user} {each}' for each in range(1, turn + 1))}"

    async with CosmosStateFactory(settings_in(tmp_path)) as factory:
        for tenant, users in (("contoso", 2), ("fabrikam", 1)):
            history = factory.for_tenant(tenant).history()
            assert [await history.count(session) for session in await history.list_sessions()] == [6] * users


async def test_without_a_tenant_there_is_no_agent(tmp_path: Path) -> None:
    """The response fails, and nothing is stored for anybody."""
    body = {"model": "m", "input": "hello", "conversation": "c1"}

    assert (await post(tmp_path, "/responses", body, "mallory"))["status"] == "failed"
    async with CosmosStateFactory(settings_in(tmp_path)) as factory:
        for tenant in set(TENANTS.values()):
            assert await factory.for_tenant(tenant).history().list_sessions() == []


async def test_a_fork_goes_on_with_all_that_was_said(tmp_path: Path) -> None:
    """Why the how-to warns: both forks of a response have its session's id, so its history too."""
    body = {"model": "m", "input": "one"}
    first = await post(tmp_path, "/responses", body, "ada")
    forks = [
        said(await post(tmp_path, "/responses", body | {"input": text, "previous_response_id": first["id"]}, "ada"))
        for text in ("two", "another two")
    ]

    assert forks == ["I was told one, two", "I was told one, two, another two"]


@pytest.mark.usefixtures("_hosted")
async def test_invocations_on_the_platform_are_the_users_own(tmp_path: Path) -> None:
    """There the session's id has the user in it, whom the platform vouches for."""
    answers = [
        (await post(tmp_path, f"/invocations?agent_session_id={SANDBOX}", {"message": f"{user} {turn}"}, user))
        for turn in (1, 2)
        for user in TENANTS
    ]

    wanted = [", ".join(f"{user} {each}" for each in range(1, turn + 1)) for turn in (1, 2) for user in TENANTS]
    assert [answer["response"] for answer in answers] == [f"I was told {text}" for text in wanted]


async def test_invocations_off_the_platform_are_the_tenants(tmp_path: Path) -> None:
    """Why the how-to warns: there the session's id is the client's, and users of one tenant may name the same."""
    answers = [
        (await post(tmp_path, "/invocations?agent_session_id=s1", {"message": user}, user))["response"]
        for user in TENANTS
    ]

    assert answers == ["I was told ada", "I was told ada, bob", "I was told eve"]
