"""Workflows in the real Foundry hosts: paused, rebuilt and resumed, for their own tenant, user and context only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from agent_framework import WorkflowAgent, WorkflowCheckpoint
from agent_framework_foundry_hosting import (
    CheckpointStoreProvider,
    FoundryRequestScope,
    HostedResponseRequest,
    InvocationsHostServer,
    ResponsesHostServer,
    WorkflowTurn,
)
from azure.ai.agentserver.core import AgentConfig, FoundryAgentRequestContext
from starlette.requests import Request

from cosmos_workflow_state import CosmosStateFactory
from cosmos_workflow_state.errors import (
    CheckpointNotFoundError,
    CheckpointNotRestorableError,
    FactoryClosedError,
    InvalidIdentifierError,
)
from cosmos_workflow_state.hosts.foundry import TenantCheckpointStoreProvider, TenantOfRequest
from support.engines import moved_account
from support.hosting import client_of, events_of, settings_in
from support.trips import WORKFLOW, Trip, build_workflow

Tenants = Mapping[str | None, str | None]

ADA = {"x-agent-user-id": "ada"}
CONTOSO: Tenants = {"ada": "contoso", "bob": "contoso"}
ASK = {"model": "m", "input": "Oslo", "conversation": "conv_1"}


@pytest.fixture(autouse=True)
def _platform_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep what the hosts store themselves, on a platform in the platform's own storage, beside the state file."""
    monkeypatch.setenv("AGENTSERVER_STATE_ROOT", str(tmp_path / "platform"))


def by_user(tenants: Tenants) -> TenantOfRequest:
    """Return what tells the tenant of a request by its user, as the application's directory would."""
    return lambda context: tenants.get(context.user_id)


async def turn_of(request: HostedResponseRequest) -> WorkflowTurn[Trip]:
    """Take a request for an answer to what the workflow waits for, or for a new trip."""
    if any(item.get("type") == "function_call_output" for item in await request.get_input_items()):
        return WorkflowTurn(responses=await request.get_workflow_responses())
    return WorkflowTurn(input=Trip(await request.get_input_text() or ""))


async def respond(
    directory: Path,
    body: dict[str, Any],
    headers: dict[str, str] = ADA,
    *,
    tenants: Tenants = CONTOSO,
    agent: Callable[[], WorkflowAgent] | None = None,
    **settings: Any,
) -> dict[str, Any]:
    """Send one request to a host that is built for it, on the state file; return the response."""
    async with CosmosStateFactory(settings_in(directory, **settings)) as factory:
        provider = TenantCheckpointStoreProvider(factory, tenant=by_user(tenants))
        common: dict[str, Any] = {"checkpoint_store_provider": provider, "configure_observability": None}
        app = (
            ResponsesHostServer(workflow=lambda _request: build_workflow(), parse_response=turn_of, **common)
            if agent is None
            else ResponsesHostServer(agent, **common)
        )
        async with client_of(app) as client:
            response = await client.post("/responses", json=body, headers=headers)
    assert response.status_code == 200, response.text
    if body.get("stream"):
        return dict(events_of(response)[-1]["response"])
    return dict(response.json())


def answer(paused: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Return the request that answers what a response has left open."""
    [call] = [item for item in paused["output"] if item["type"] == "function_call"]
    output = {"type": "function_call_output", "call_id": call["call_id"], "output": "true"}
    return {"model": "m", "input": [output], "conversation": "conv_1"} | changes


def said(response: dict[str, Any]) -> list[str]:
    """Return the texts in a response."""
    messages = [item["content"] for item in response["output"] if item["type"] == "message"]
    return [content["text"] for contents in messages for content in contents]


@pytest.mark.parametrize("changes", [{}, {"stream": True}, {"background": False}], ids=str)
async def test_a_paused_workflow_is_resumed_by_a_host_that_is_built_anew(
    changes: dict[str, Any], tmp_path: Path
) -> None:
    """The first process pauses for the human, a second one brings the workflow to its end. Demand 19."""
    paused = await respond(tmp_path, ASK | changes)
    resumed = await respond(tmp_path, answer(paused, **changes))

    assert said(paused) == []
    assert (resumed["status"], said(resumed)) == ("completed", ["Oslo: yes"])


async def test_a_response_is_continued_without_a_conversation(tmp_path: Path) -> None:
    """A chain of responses is a context as good as a conversation."""
    session = {"agent_session_id": "s1"}
    paused = await respond(tmp_path, {"model": "m", "input": "Oslo"} | session)
    reply = {"model": "m", "input": answer(paused)["input"], "previous_response_id": paused["id"]}

    assert said(await respond(tmp_path, reply | session)) == ["Oslo: yes"]
    assert (await respond(tmp_path, reply | {"agent_session_id": "s2"}))["status"] == "failed"


@pytest.mark.parametrize(
    ("headers", "tenants", "changes"),
    [
        pytest.param(ADA, {"ada": "fabrikam"}, {}, id="tenant"),
        pytest.param({"x-agent-user-id": "bob"}, CONTOSO, {}, id="user"),
        pytest.param({}, {None: "contoso"}, {}, id="no user"),
        pytest.param(ADA, CONTOSO, {"conversation": "conv_2"}, id="context"),
        pytest.param(ADA, {}, {}, id="no tenant"),
    ],
)
async def test_nobody_else_resumes(
    headers: dict[str, str], tenants: Tenants, changes: dict[str, Any], tmp_path: Path
) -> None:
    """Whoever learns the ids of a pause gets nothing by them, and its owner resumes it still."""
    paused = await respond(tmp_path, ASK)
    stolen = await respond(tmp_path, answer(paused, **changes), headers, tenants=tenants)

    assert (stolen["status"], said(stolen)) == ("failed", [])
    assert "Oslo" not in str(stolen)
    assert said(await respond(tmp_path, answer(paused))) == ["Oslo: yes"]


async def test_a_request_without_a_tenant_starts_nothing(tmp_path: Path) -> None:
    """It fails before the workflow runs, and nothing is stored for anybody."""
    refused = await respond(tmp_path, ASK, tenants={})

    assert (refused["status"], refused["output"]) == ("failed", [])
    async with CosmosStateFactory(settings_in(tmp_path)) as factory:
        assert await factory.for_tenant("contoso").checkpoints.list_workflows() == []


async def test_an_input_that_loading_refuses_starts_nothing(tmp_path: Path) -> None:
    """The host asks our allow-list before it claims the turn."""
    refused = await respond(tmp_path, ASK, allowed_checkpoint_types=[])

    assert refused["status"] == "failed"
    assert "not checkpoint-allowlisted" in refused["error"]["message"]


@pytest.mark.filterwarnings("ignore:Hosting WorkflowAgent through:DeprecationWarning")
async def test_an_agent_that_wraps_a_workflow_is_resumed(tmp_path: Path) -> None:
    """The host's older way asks for the storage of the conversation itself, and for its latest checkpoint."""

    def agent() -> WorkflowAgent:
        return build_workflow().as_agent(name="trips")

    paused = await respond(tmp_path, ASK, agent=agent)
    reply = answer(paused)
    reply["input"][0]["output"] = "yes"
    stolen = await respond(tmp_path, reply, agent=agent, tenants={"ada": "fabrikam"})
    resumed = await respond(tmp_path, reply, agent=agent)

    # For the other tenant there is no such conversation, so the host begins one.
    assert (said(stolen), "Oslo" in str(stolen)) == ([], False)
    assert said(resumed) == ["Oslo: yes"]
    async with CosmosStateFactory(settings_in(tmp_path)) as factory:
        own = factory.for_tenant("contoso").checkpoints.scoped('foundry:["ada",null,"conv_1"]')
        assert await own.list_workflows() == [WORKFLOW]


async def invoke(directory: Path, body: dict[str, Any], headers: dict[str, str], session: str) -> Any:
    """Send one invocation to a host that is built for it, on the state file; return the frames, or the error."""

    async def turn(request: Request) -> WorkflowTurn[Trip]:
        given = await request.json()
        return WorkflowTurn(responses=given["answers"]) if "answers" in given else WorkflowTurn(Trip(given["city"]))

    async with CosmosStateFactory(settings_in(directory)) as factory:
        app = InvocationsHostServer(
            workflow=lambda _request: build_workflow(),
            parse_request=turn,
            checkpoint_store_provider=TenantCheckpointStoreProvider(factory, tenant="contoso"),
            configure_observability=None,
        )
        async with client_of(app) as client:
            found = await client.post(f"/invocations?agent_session_id={session}", json=body, headers=headers)
    return found.json()


async def test_an_invocation_is_resumed_by_a_host_that_is_built_anew(tmp_path: Path) -> None:
    """The other protocol: one tenant for the whole host, users and sessions apart; what is over is cleared away."""
    [asked] = (await invoke(tmp_path, {"city": "Oslo"}, ADA, "s1"))["output"]
    reply = {"answers": {asked["request_id"]: True}}
    of_bob = await invoke(tmp_path, reply, {"x-agent-user-id": "bob"}, "s1")
    of_another_session = await invoke(tmp_path, reply, ADA, "s2")

    assert "output" not in of_bob
    assert "output" not in of_another_session
    [told] = (await invoke(tmp_path, reply, ADA, "s1"))["output"]
    assert told["data"] == "Oslo: yes"


def context_of(user_id: str | None = "ada", session_id: str | None = None) -> FoundryAgentRequestContext:
    """Return what the platform says about a request."""
    return FoundryAgentRequestContext(call_id="call", user_id=user_id, session_id=session_id)


def scope(user_id: str | None = "ada", session_id: str = "s1") -> FoundryRequestScope:
    """Return the scope that a host has resolved."""
    return FoundryRequestScope(session_id, user_id, "call", is_hosted=True)


@pytest.fixture
def hosted(monkeypatch: pytest.MonkeyPatch) -> AgentConfig:
    """Return a host's configuration as it is on the platform."""
    monkeypatch.setenv("FOUNDRY_HOSTING_ENVIRONMENT", "1")
    monkeypatch.setenv("FOUNDRY_AGENT_SESSION_ID", "s1")
    return AgentConfig.from_env()


async def test_on_the_platform_the_user_and_the_session_are_part_of_the_scope(
    hosted: AgentConfig, tmp_path: Path
) -> None:
    """Both ways of the host lead to the same storage there."""
    async with CosmosStateFactory(settings_in(tmp_path)) as factory:
        provider = TenantCheckpointStoreProvider(factory, tenant="contoso")
        found = provider.get_store(config=hosted, context_id="conv_1", platform_context=context_of())
        again = provider.get_store_for_scope(scope=scope(), context_id="conv_1", platform_context=context_of())

    assert isinstance(provider, CheckpointStoreProvider)
    assert (found.tenant_id, found.scope) == ("contoso", 'foundry:["ada","s1","conv_1"]')
    assert (again.tenant_id, again.scope) == (found.tenant_id, found.scope)


@pytest.mark.parametrize(
    "context", [context_of(user_id=None), context_of(session_id="s2")], ids=["no user", "another session"]
)
async def test_on_the_platform_a_request_without_an_identity_is_refused(
    hosted: AgentConfig, context: FoundryAgentRequestContext, tmp_path: Path
) -> None:
    """A caller's own word for his session or no word for the user is no identity."""
    async with CosmosStateFactory(settings_in(tmp_path)) as factory:
        provider = TenantCheckpointStoreProvider(factory, tenant="contoso")
        with pytest.raises(InvalidIdentifierError, match="the request has no identity on the platform"):
            provider.get_store(config=hosted, context_id="conv_1", platform_context=context)


@pytest.mark.parametrize("tenant", [None, "", "con/toso"])
async def test_a_tenant_that_is_none_is_refused(tenant: str | None, tmp_path: Path) -> None:
    """Whatever the application says that is no tenant id: there is no default to fall back to."""
    async with CosmosStateFactory(settings_in(tmp_path)) as factory:
        provider = TenantCheckpointStoreProvider(factory, tenant=lambda _context: tenant)
        with pytest.raises(InvalidIdentifierError):
            provider.get_store_for_scope(scope=None, context_id="conv_1", platform_context=context_of())


async def test_a_context_that_is_none_is_refused(tmp_path: Path) -> None:
    """Without a context all of a user's runs would share their checkpoints."""
    async with CosmosStateFactory(settings_in(tmp_path)) as factory:
        provider = TenantCheckpointStoreProvider(factory, tenant="contoso")
        with pytest.raises(InvalidIdentifierError, match="context_id must not be empty"):
            provider.get_store_for_scope(scope=None, context_id="", platform_context=context_of())


async def test_what_cannot_tell_a_tenant_is_refused_at_once(tmp_path: Path) -> None:
    """A mistake in how the host is put together shows when it is, not with the first request."""

    async def later(_context: FoundryAgentRequestContext) -> str:
        return "contoso"

    class Later:
        async def __call__(self, _context: FoundryAgentRequestContext) -> str:
            return "contoso"

    async with CosmosStateFactory(settings_in(tmp_path)) as factory:
        function = "a coroutine function"
        wrong: list[tuple[Any, str]] = [(later, function), (Later(), function), (None, "NoneType"), (7, "int")]
        for tenant, told in wrong:
            with pytest.raises(TypeError, match=f"tenant must be a tenant id or an ordinary function, not {told}$"):
                TenantCheckpointStoreProvider(factory, tenant=tenant)
        with pytest.raises(InvalidIdentifierError):
            TenantCheckpointStoreProvider(factory, tenant="con/toso")
    with pytest.raises(FactoryClosedError):
        TenantCheckpointStoreProvider(factory, tenant="contoso")


class Unlisted:
    """A type that no test allows."""


@pytest.mark.parametrize("value", [None, "Oslo", 7, {"a": [1, {2: "b"}]}, Trip("Oslo"), [Trip("Oslo")]], ids=repr)
async def test_a_value_that_loading_gives_back_is_valid(value: object, tmp_path: Path) -> None:
    """The host is told yes to what this package restores."""
    async with CosmosStateFactory(settings_in(tmp_path)) as factory:
        TenantCheckpointStoreProvider(factory, tenant="contoso").validate_checkpoint_value(value)


async def test_a_value_that_loading_refuses_is_not_valid(tmp_path: Path) -> None:
    """The error names the type and quotes nothing."""
    async with CosmosStateFactory(settings_in(tmp_path)) as factory:
        provider = TenantCheckpointStoreProvider(factory, tenant="contoso")
        with pytest.raises(CheckpointNotRestorableError) as refused:
            provider.validate_checkpoint_value({"trip": Trip("Oslo"), "other": Unlisted()})

    assert refused.value.types == (f"{__name__}:Unlisted",)
    assert refused.value.__cause__ is None
    assert "Oslo" not in str(refused.value)


async def test_the_hash_is_the_digest_that_is_stored() -> None:
    """Of a whole state and of one that is a difference: another process is told the same, and nothing is encoded."""
    async with moved_account() as account:
        async with account.factory() as factory:
            storage = factory.for_tenant("contoso").checkpoints.scoped('foundry:["ada",null,"conv_1"]')
            state = {"log": [f"{number}-{number**7}" for number in range(2000)]}
            first = WorkflowCheckpoint(workflow_name=WORKFLOW, graph_signature_hash="1", state=state)
            second = WorkflowCheckpoint(
                workflow_name=WORKFLOW,
                graph_signature_hash="1",
                previous_checkpoint_id=first.checkpoint_id,
                state=state | {"trip": "Oslo"},
            )
            for checkpoint in (first, second):
                await storage.save(checkpoint)
        items = await account.items("SELECT * FROM c WHERE c.type = 'checkpoint'")
        stored = {item["checkpoint_id"]: item["payload"]["digest"] for item in items}
        assert [item["checkpoint_id"] for item in items if "keyframe" in item["payload"]]

        for _ in range(2):
            async with account.factory() as factory:
                provider = TenantCheckpointStoreProvider(factory, tenant="contoso")
                found = provider.get_store_for_scope(scope=None, context_id="conv_1", platform_context=context_of())
                for checkpoint in (first, second):
                    assert await found.load_with_hash(checkpoint.checkpoint_id) == (
                        checkpoint,
                        stored[checkpoint.checkpoint_id],
                    )


@pytest.mark.parametrize(
    ("tenant", "user_id", "session_id", "context_id"),
    [
        ("fabrikam", "ada", "s1", "conv_1"),
        ("contoso", "bob", "s1", "conv_1"),
        ("contoso", None, "s1", "conv_1"),
        ("contoso", "ada", "s2", "conv_1"),
        ("contoso", "ada", "s1", "conv_2"),
    ],
)
async def test_a_checkpoint_is_nobody_elses(
    tenant: str, user_id: str | None, session_id: str, context_id: str, tmp_path: Path
) -> None:
    """It reads as one that nobody has when the tenant, the user, the session or the context is another one."""
    async with CosmosStateFactory(settings_in(tmp_path)) as factory:
        own = TenantCheckpointStoreProvider(factory, tenant="contoso").get_store_for_scope(
            scope=scope(), context_id="conv_1", platform_context=context_of()
        )
        other = TenantCheckpointStoreProvider(factory, tenant=tenant).get_store_for_scope(
            scope=scope(user_id, session_id), context_id=context_id, platform_context=context_of(user_id)
        )
        saved = await own.save(WorkflowCheckpoint(workflow_name=WORKFLOW, graph_signature_hash="1"))
        for checkpoint_id in (saved, "nobody-has-it"):
            for load in (other.load, other.load_with_hash):
                with pytest.raises(
                    CheckpointNotFoundError, match="no checkpoint with this id in this tenant and scope"
                ):
                    await load(checkpoint_id)
        assert await other.get_latest(workflow_name=WORKFLOW) is None
        assert (await own.load_with_hash(saved))[0].checkpoint_id == saved
