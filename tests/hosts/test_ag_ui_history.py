"""One agent of many tenants behind a real AG-UI endpoint: what was said is its tenant's and user's only."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import httpx
import pytest
from agent_framework import Agent, AgentSession, Message
from agent_framework_ag_ui import AgentFrameworkAgent, add_agent_framework_fastapi_endpoint
from fastapi import FastAPI, Header

from cosmos_workflow_state import CosmosStateFactory
from cosmos_workflow_state.errors import InvalidArgumentError, InvalidIdentifierError
from cosmos_workflow_state.hosts.ag_ui import Caller, TenantsOfCallers
from cosmos_workflow_state.typing import HistoryOptions
from support.hosting import client_of, events_of, settings_in
from support.models import Recalling

ADA, BOB = {"tenant": "contoso", "user": "ada"}, {"tenant": "contoso", "user": "bob"}
ADA_OF_FABRIKAM = {"tenant": "fabrikam", "user": "ada"}
EVERYBODY = [ADA, BOB, ADA_OF_FABRIKAM]


async def caller(tenant: Annotated[str, Header()] = "", user: Annotated[str, Header()] = "") -> Caller | None:
    """Stand for the application's authentication."""
    return Caller(tenant, user) if tenant and user else None


@pytest.fixture(params=["scoped sessions", "threads as sessions"])
def by_thread(request: pytest.FixtureRequest) -> bool:
    """Return whether the endpoint takes the client's thread id as the session's, as its older versions all do."""
    return request.param == "threads as sessions"


def app_of(
    factory: CosmosStateFactory, *, by_thread: bool = False, meet: asyncio.Barrier | None = None, **options: Any
) -> FastAPI:
    """Return an app with one agent, which has seen no request yet."""
    app, tenants = FastAPI(), TenantsOfCallers(factory, caller)
    agent = Agent(Recalling(meet), context_providers=[tenants.history()])
    add_agent_framework_fastapi_endpoint(
        app,
        AgentFrameworkAgent(agent, legacy_session_id_from_thread_id=by_thread),
        "/chat",
        authorization_scope_resolver=tenants.authorization_scope,
        **options,
    )
    return app


@asynccontextmanager
async def served(directory: Path, **options: Any) -> AsyncGenerator[httpx.AsyncClient]:
    """Start a process: a factory of its own on the state file, and an app that knows nothing."""
    async with CosmosStateFactory(settings_in(directory)) as factory, client_of(app_of(factory, **options)) as client:
        yield client


async def told(client: httpx.AsyncClient, who: dict[str, str], text: str, thread: str = "t1") -> str:
    """Say something in a thread, and return what the agent answers that it was told."""
    body = {"threadId": thread, "messages": [{"id": f"{who}{text}", "role": "user", "content": text}]}
    response = await client.post("/chat", json=body, headers=who)
    assert response.status_code == 200, response.text
    deltas = [event["delta"] for event in events_of(response) if event["type"] == "TEXT_MESSAGE_CONTENT"]
    assert deltas[0] == "I was told "  # it streams
    return "".join(deltas[1:])


@pytest.mark.filterwarnings("ignore:legacy_session_id_from_thread_id:DeprecationWarning")
async def test_nobody_is_told_what_another_one_said(by_thread: bool, tmp_path: Path) -> None:
    """Two tenants and two users in threads of the same id, each turn in a process of its own."""
    for turn in ("one", "two", "three"):
        for number, who in enumerate(EVERYBODY):
            async with served(tmp_path, by_thread=by_thread) as client:
                answer = await told(client, who, f"{turn} of {number}")
            said = ["one", "two", "three"][: ["one", "two", "three"].index(turn) + 1]
            assert answer == ", ".join(f"{each} of {number}" for each in said)

    async with CosmosStateFactory(settings_in(tmp_path)) as factory:
        for tenant, users in (("contoso", ["ada", "bob"]), ("fabrikam", ["ada"])):
            history = factory.for_tenant(tenant).history()
            sessions = await history.list_sessions()
            assert [session.split(",")[0] for session in sessions] == [f'ag-ui:["{user}"' for user in users]
            assert [await history.count(session) for session in sessions] == [6] * len(users)


@pytest.mark.parametrize("options", [{}, {"detached_runs": True}, {"keepalive_seconds": None}], ids=str)
@pytest.mark.filterwarnings("ignore:legacy_session_id_from_thread_id:DeprecationWarning")
async def test_requests_that_run_at_once_do_not_meet(options: dict[str, Any], by_thread: bool, tmp_path: Path) -> None:
    """All of them load before one is answered, and are saved after that: each in its own place."""
    meet = asyncio.Barrier(len(EVERYBODY))
    async with served(tmp_path, by_thread=by_thread, meet=meet, **options) as client:
        for said in (["one"], ["one", "two"]):
            answers = await asyncio.gather(
                *[told(client, who, f"{said[-1]} of {number}") for number, who in enumerate(EVERYBODY)]
            )
            wanted = [", ".join(f"{each} of {number}" for each in said) for number in range(len(EVERYBODY))]
            assert answers == wanted


async def test_a_users_threads_are_apart(tmp_path: Path) -> None:
    """The agent of one thread is not told of another one."""
    async with served(tmp_path) as client:
        await told(client, ADA, "one")
        assert await told(client, ADA, "two", thread="t2") == "two"


async def test_a_request_of_nobody_is_refused(tmp_path: Path) -> None:
    """Before the agent is asked, also right after a request of somebody."""
    async with served(tmp_path) as client:
        await told(client, ADA, "one")
        refused = await client.post("/chat", json={"threadId": "t1", "messages": []})

    assert refused.status_code == 403


async def test_outside_of_a_request_it_refuses(tmp_path: Path) -> None:
    """An agent that is run by something else has no tenant to fall back to, and neither has the provider."""
    async with CosmosStateFactory(settings_in(tmp_path)) as factory:
        history = TenantsOfCallers(factory, caller).history()
        with pytest.raises(InvalidIdentifierError, match="there is no request with a tenant"):
            await Agent(Recalling(), context_providers=[history]).run("hello", session=AgentSession())
        with pytest.raises(InvalidIdentifierError, match="there is no request with a tenant"):
            await history.save_messages("t1", [Message("user", ["hello"])])


async def test_within_a_request_it_is_the_callers(tmp_path: Path) -> None:
    """What it is told of sources, limits and expiry is what the tenant's own provider is told."""
    async with CosmosStateFactory(settings_in(tmp_path)) as factory:
        tenants = TenantsOfCallers(factory, caller)
        history = tenants.history("notes", max_messages=1, ttl=60, store_inputs=False)
        everything = tenants.history("notes", max_messages=None)
        assert (history.source_id, history.load_messages, history.store_inputs) == ("notes", True, False)
        async for _scope in tenants.authorization_scope(Caller("contoso", "ada")):
            await history.save_messages("t1", [Message("user", ["one"]), Message("user", ["two"])])
            assert [message.text for message in await history.get_messages("t1")] == ["two"]
            assert len(await everything.get_messages("t1")) == 2
            for session_id in (None, ""):
                with pytest.raises(InvalidIdentifierError):
                    await history.get_messages(session_id)
        own = factory.for_tenant("contoso").history("notes")
        assert await own.list_sessions() == ['ag-ui:["ada","t1"]']


async def test_what_it_refuses_it_refuses_at_once(tmp_path: Path) -> None:
    """A mistake shows when the endpoint is put together, not with the first request."""
    async with CosmosStateFactory(settings_in(tmp_path)) as factory:
        tenants = TenantsOfCallers(factory, caller)
        wrong: list[HistoryOptions] = [{"max_messages": -1}, {"ttl": 0}]
        for options in wrong:
            with pytest.raises(InvalidArgumentError):
                tenants.history(**options)
        with pytest.raises(InvalidIdentifierError):
            tenants.history("")
        unknown: Any = {"max_message": 1}
        with pytest.raises(TypeError, match="max_message"):
            tenants.history(**unknown)
