"""A workflow behind a real AG-UI endpoint: paused, rebuilt and resumed, for its own tenant, user and thread only."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import httpx
import pytest
from agent_framework import WorkflowCheckpoint
from agent_framework_ag_ui import AgentFrameworkWorkflow, add_agent_framework_fastapi_endpoint
from fastapi import FastAPI, Header, HTTPException, Request, Response

from cosmos_workflow_state import CosmosStateFactory
from cosmos_workflow_state.errors import CheckpointNotFoundError, InvalidIdentifierError
from cosmos_workflow_state.hosts.ag_ui import Caller, TenantsOfCallers
from support.hosting import client_of, events_of, settings_in
from support.trips import WORKFLOW, build_workflow

ADA = {"tenant": "contoso", "user": "ada"}
ASK = {"threadId": "t1", "messages": [{"id": "m1", "role": "user", "content": "Oslo"}]}


async def caller(tenant: Annotated[str, Header()] = "", user: Annotated[str, Header()] = "") -> Caller | None:
    """Stand for the application's authentication: nobody, or whom the headers name."""
    if tenant == "bad-token":
        raise HTTPException(401, "the token is not valid")
    return Caller(tenant, user) if tenant or user else None


def app_of(factory: CosmosStateFactory, who: Any = caller, **options: Any) -> FastAPI:
    """Return an app with the workflow behind an endpoint, which has seen no request yet."""
    app, tenants = FastAPI(), TenantsOfCallers(factory, who)
    add_agent_framework_fastapi_endpoint(
        app,
        AgentFrameworkWorkflow(workflow_factory=lambda _thread_id: build_workflow()),
        "/trips",
        checkpoint_storage=tenants.checkpoint_storage,
        authorization_scope_resolver=tenants.authorization_scope,
        **options,
    )
    return app


@asynccontextmanager
async def served(directory: Path, **options: Any) -> AsyncGenerator[httpx.AsyncClient]:
    """Start a process: a factory of its own on the state file, and an app that knows nothing."""
    async with (
        CosmosStateFactory(settings_in(directory)) as factory,
        client_of(app_of(factory, **options)) as client,
    ):
        yield client


async def post(directory: Path, who: dict[str, str], body: dict[str, Any], **options: Any) -> list[dict[str, Any]]:
    """Send one request to a process of its own, and return the events it answers with."""
    async with served(directory, **options) as client:
        response = await client.post("/trips", json=body, headers=who)
    assert response.status_code == 200, response.text
    return events_of(response)


def answer(events: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the request that answers the interrupt a run ended with."""
    [interrupt] = events[-1]["outcome"]["interrupts"]
    return {
        "threadId": "t1",
        "messages": [],
        "forwardedProps": {"checkpoint_id": interrupt["metadata"]["agent_framework"]["checkpoint_id"]},
        "resume": [{"interruptId": interrupt["id"], "status": "resolved", "payload": "yes"}],
    }


def said(events: list[dict[str, Any]]) -> str:
    """Return the text that a run has put out."""
    return "".join(event["delta"] for event in events if event["type"] == "TEXT_MESSAGE_CONTENT")


@pytest.mark.parametrize("options", [{}, {"detached_runs": True}, {"keepalive_seconds": None}], ids=str)
async def test_a_paused_workflow_is_resumed_by_an_app_that_is_built_anew(
    options: dict[str, Any], tmp_path: Path
) -> None:
    """The first process pauses for the human, a second one brings the workflow to its end."""
    paused = await post(tmp_path, ADA, ASK, **options)
    resumed = await post(tmp_path, ADA, answer(paused), **options)

    assert said(paused) == ""
    assert (said(resumed), resumed[-1]["type"]) == ("Oslo: yes", "RUN_FINISHED")


@pytest.mark.parametrize(
    "who",
    [
        pytest.param({"tenant": "fabrikam", "user": "ada"}, id="tenant"),
        pytest.param({"tenant": "contoso", "user": "bob"}, id="user"),
    ],
)
async def test_another_tenant_or_user_finds_nothing(who: dict[str, str], tmp_path: Path) -> None:
    """Whoever learns the ids of a pause is told what he is told of ids that nobody has; its owner resumes it still."""
    body = answer(await post(tmp_path, ADA, ASK))
    unknown = body | {"forwardedProps": {"checkpoint_id": "nobody-has-it"}}
    told, told_of_unknown = await post(tmp_path, who, body), await post(tmp_path, who, unknown)

    assert told[-1]["code"] == told_of_unknown[-1]["code"] == "WORKFLOW_CHECKPOINT_LOAD_FAILED"
    assert told[-1]["message"].endswith("': no checkpoint with this id in this tenant and scope")
    assert told_of_unknown[-1]["message"].endswith("': no checkpoint with this id in this tenant and scope")
    assert said(await post(tmp_path, ADA, body)) == "Oslo: yes"


async def test_another_thread_of_the_user_cannot_resume(tmp_path: Path) -> None:
    """The endpoint's own wrapper keeps threads of one user apart: it stamps them into each checkpoint."""
    body = answer(await post(tmp_path, ADA, ASK))

    assert (await post(tmp_path, ADA, body | {"threadId": "t2"}))[-1]["code"] == "WORKFLOW_RESUME_NOT_FOUND"


@pytest.mark.parametrize(
    ("who", "status"),
    [
        pytest.param({}, 403, id="nobody"),
        pytest.param({"user": "ada"}, 403, id="no tenant"),
        pytest.param({"tenant": "contoso"}, 403, id="no user"),
        pytest.param({"tenant": "con/toso", "user": "ada"}, 403, id="refused tenant"),
        pytest.param({"tenant": "bad-token", "user": "ada"}, 401, id="the application's own refusal"),
    ],
)
async def test_requests_without_a_tenant_are_refused(who: dict[str, str], status: int, tmp_path: Path) -> None:
    """They reach neither the workflow nor a storage, also right after a request of somebody else."""
    async with served(tmp_path) as client:
        assert (await client.post("/trips", json=ASK, headers=ADA)).status_code == 200
        refused = await client.post("/trips", json=ASK, headers=who)

    assert refused.status_code == status
    assert "Oslo" not in refused.text


async def test_a_dependency_that_returns_no_caller_is_told_so(tmp_path: Path) -> None:
    """A mistake of the application is named as what it is: neither let in nor blamed on the client."""
    async with (
        CosmosStateFactory(settings_in(tmp_path)) as factory,
        client_of(app_of(factory, lambda: "ada")) as client,
    ):
        with pytest.raises(TypeError, match="who calls must return a Caller or None, not str"):
            await client.post("/trips", json=ASK)


async def test_callers_are_told_apart_in_one_app(tmp_path: Path) -> None:
    """Two tenants on the same endpoint and thread id: each resumes its own pause."""
    other = {"tenant": "fabrikam", "user": "ada"}
    async with served(tmp_path) as client:
        paused = [events_of(await client.post("/trips", json=ASK, headers=who)) for who in (ADA, other)]
    async with served(tmp_path) as client:
        crossed = await client.post("/trips", json=answer(paused[0]), headers=other)
        resumed = [
            events_of(await client.post("/trips", json=answer(events), headers=who))
            for events, who in zip(paused, (ADA, other), strict=True)
        ]

    assert events_of(crossed)[-1]["code"] == "WORKFLOW_CHECKPOINT_LOAD_FAILED"
    assert [said(events) for events in resumed] == ["Oslo: yes"] * 2


async def test_a_middleware_changes_nothing(tmp_path: Path) -> None:
    """A middleware that has the app run in a task of its own does not lose the caller."""
    async with CosmosStateFactory(settings_in(tmp_path)) as factory:
        app = app_of(factory)

        @app.middleware("http")
        async def pass_on(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
            return await call_next(request)

        async with client_of(app) as client:
            paused = events_of(await client.post("/trips", json=ASK, headers=ADA))

    assert said(await post(tmp_path, ADA, answer(paused))) == "Oslo: yes"


async def test_outside_of_a_request_everything_is_refused(tmp_path: Path) -> None:
    """Where no caller is known there is no storage to fall back to."""
    async with CosmosStateFactory(settings_in(tmp_path)) as factory:
        storage = TenantsOfCallers(factory, caller).checkpoint_storage
        checkpoint = WorkflowCheckpoint(workflow_name=WORKFLOW, graph_signature_hash="1")
        calls: list[Callable[[], Awaitable[object]]] = [
            lambda: storage.save(checkpoint),
            lambda: storage.load("1"),
            lambda: storage.delete("1"),
            lambda: storage.get_latest(workflow_name=WORKFLOW),
            lambda: storage.list_checkpoints(workflow_name=WORKFLOW),
            lambda: storage.list_checkpoint_ids(workflow_name=WORKFLOW),
        ]
        assert storage
        for call in calls:
            with pytest.raises(InvalidIdentifierError, match="there is no request with a tenant"):
                await call()


async def test_within_a_request_everything_is_the_callers(tmp_path: Path) -> None:
    """Each method reaches the storage of the tenant and user, and what they raise is that storage's."""
    async with CosmosStateFactory(settings_in(tmp_path)) as factory:
        tenants = TenantsOfCallers(factory, caller)
        storage = tenants.checkpoint_storage
        scopes: list[str] = []
        async for scope in tenants.authorization_scope(Caller("contoso", "ada")):
            scopes.append(scope)
            saved = await storage.save(WorkflowCheckpoint(workflow_name=WORKFLOW, graph_signature_hash="1"))
            latest = await storage.get_latest(workflow_name=WORKFLOW)
            assert latest == await storage.load(saved)
            assert await storage.list_checkpoints(workflow_name=WORKFLOW) == [latest]
            assert await storage.list_checkpoint_ids(workflow_name=WORKFLOW) == [saved]
            own = factory.for_tenant("contoso").checkpoints.scoped('ag-ui:["ada"]')
            assert await own.list_checkpoint_ids(workflow_name=WORKFLOW) == [saved]
            assert await storage.delete(saved)
            with pytest.raises(CheckpointNotFoundError):
                await storage.load(saved)

        assert scopes == ['ag-ui:["contoso","ada"]']
        with pytest.raises(InvalidIdentifierError):
            await storage.load(saved)


async def test_an_endpoint_of_one_tenant_needs_no_adapter(tmp_path: Path) -> None:
    """A tenant's own storage goes to the endpoint as it is, and is found true there although it holds nothing yet."""

    async def post_to_contoso(body: dict[str, Any]) -> list[dict[str, Any]]:
        async with CosmosStateFactory(settings_in(tmp_path)) as factory:
            app = FastAPI()
            add_agent_framework_fastapi_endpoint(
                app,
                AgentFrameworkWorkflow(workflow_factory=lambda _thread_id: build_workflow()),
                "/trips",
                checkpoint_storage=factory.for_tenant("contoso").checkpoints,
                authorization_scope_resolver=lambda: "ada",
            )
            async with client_of(app) as client:
                return events_of(await client.post("/trips", json=body))

    assert said(await post_to_contoso(answer(await post_to_contoso(ASK)))) == "Oslo: yes"


async def test_the_endpoints_wrapper_orders_by_the_text_of_timestamps(tmp_path: Path) -> None:
    """Why the how-to warns: behind the wrapper ``get_latest`` is not the storage's, and a wrong clock misleads it."""
    from agent_framework_ag_ui._workflow import _OwnedWorkflowCheckpointStorage  # noqa: PLC0415 - private, only here

    async with CosmosStateFactory(settings_in(tmp_path)) as factory:
        storage = factory.for_tenant("contoso").checkpoints
        wrapped = _OwnedWorkflowCheckpointStorage(storage, ("scope", "t1"))
        first, second = (
            WorkflowCheckpoint(
                workflow_name=WORKFLOW, graph_signature_hash="1", previous_checkpoint_id=parent, timestamp=timestamp
            )
            for parent, timestamp in ((None, "2026-11-30T10:00:00+00:00"), ("first", "2026-11-30T09:00:00+00:00"))
        )
        first.checkpoint_id = "first"
        await wrapped.save(first)
        await wrapped.save(second)

        found = [await each.get_latest(workflow_name=WORKFLOW) for each in (storage, wrapped)]

    assert [checkpoint and checkpoint.checkpoint_id for checkpoint in found] == [second.checkpoint_id, "first"]
