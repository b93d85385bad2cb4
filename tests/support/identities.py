"""Settings that authenticate in one way, an identity for this process, and a use of a storage that needs all rights."""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest
from aiohttp import web

from cosmos_workflow_state import CosmosStateFactory, CosmosStateSettings, errors
from cosmos_workflow_state.emulator import CosmosEmulator
from support.states import ALLOWED_TYPES, WORKFLOW, checkpoint

APP_SERVICE: Final = "app_service_environment"
MACHINE: Final = "virtual_machine_environment"
_VARIABLES: Final = (
    "AZURE_CLIENT_ID",
    "AZURE_TENANT_ID",
    "AZURE_FEDERATED_TOKEN_FILE",
    "AZURE_TOKEN_CREDENTIALS",
    "IDENTITY_ENDPOINT",
    "IDENTITY_HEADER",
    "AZURE_POD_IDENTITY_AUTHORITY_HOST",
)


def without_identities(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take away the identities that the process has of its surroundings."""
    for name in _VARIABLES:
        monkeypatch.delenv(name, raising=False)


@asynccontextmanager
async def provisioned_emulator() -> AsyncGenerator[CosmosEmulator]:
    """Run an emulator over TLS whose container is there: no token may create it."""
    async with CosmosEmulator(tls=True) as opened:
        async with CosmosStateFactory(opened.settings()) as factory:
            await factory.for_tenant("contoso").checkpoints.get_latest(workflow_name=WORKFLOW)
        yield opened


@asynccontextmanager
async def identity(
    emulator: CosmosEmulator, monkeypatch: pytest.MonkeyPatch, shape: str = APP_SERVICE, **endpoint: Any
) -> AsyncGenerator[list[dict[str, str]]]:
    """Let this process have an identity for as long as the context is open; yield what its endpoint is asked."""
    opened = emulator.identity_endpoint(**endpoint)
    respond, asked = opened._respond, list[dict[str, str]]()

    async def remember(received: web.BaseRequest) -> web.Response:
        asked.append(dict(received.query))
        return await respond(received)

    monkeypatch.setattr(opened, "_respond", remember)
    async with opened:
        for name, value in getattr(opened, shape).items():
            monkeypatch.setenv(name, value)
        yield asked


def by(emulator: CosmosEmulator, **auth: Any) -> CosmosStateSettings:
    """Return settings that authenticate in one way, and change nothing about the container."""
    return emulator.settings(auth=auth, provisioning="verify", allowed_checkpoint_types=ALLOWED_TYPES)


async def use(settings: CosmosStateSettings, **arguments: Any) -> str:
    """Do everything a storage does once, and return the id that was stored and found."""
    async with CosmosStateFactory(settings, **arguments) as factory:
        storage = factory.for_tenant("contoso").checkpoints
        stored = await storage.save(checkpoint("cp-1"))
        changed = checkpoint("cp-1")
        changed.state["changed"] = True
        await storage.save(changed)
        latest = await storage.get_latest(workflow_name=WORKFLOW)
        assert latest is not None
        assert latest.checkpoint_id == (await storage.load(stored)).checkpoint_id
        assert await storage.list_checkpoint_ids(workflow_name=WORKFLOW) == [stored]
        large = await storage.save(checkpoint("cp-2", state={"noise": random.Random(0).randbytes(2_000_000)}))
        assert await storage.delete(stored)
        assert await storage.delete(large)
        assert (await storage.erase()).keyframes == 1
        return latest.checkpoint_id


async def refused(settings: CosmosStateSettings, **arguments: Any) -> errors.AccessDeniedError:
    """Return the error with which the use of a storage is refused."""
    with pytest.raises(errors.AccessDeniedError) as caught:
        await use(settings, **arguments)
    assert caught.value.remedy in str(caught.value)
    return caught.value
