"""A whole factory on a client of the application's, answered on the wire: time that runs out, and sessions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from cosmos_workflow_state import CosmosStateFactory, CosmosStateSettings, TenantCheckpointStorage
from cosmos_workflow_state.errors import OperationTimeoutError, ProvisioningError, ThrottledError
from cosmos_workflow_state.settings import KeyAuth
from support.states import ALLOWED_TYPES, WORKFLOW, checkpoint
from unit.support.jumping import jumping
from unit.support.wire import Wire, done, failed, page, wire

TIMEOUT = 5.0


@asynccontextmanager
async def storage() -> AsyncIterator[tuple[TenantCheckpointStorage, Wire]]:
    """Yield the storage of a tenant, and what lies under it."""
    settings = CosmosStateSettings(
        endpoint="https://account.invalid",
        auth=KeyAuth(key="a2V5"),
        database="state",
        checkpoint_container="checkpoints",
        provisioning="skip",
        operation_timeout=TIMEOUT,
        allowed_checkpoint_types=ALLOWED_TYPES,
    )
    async with wire() as on, CosmosStateFactory(settings, client=on.client) as factory:
        yield factory.for_tenant("contoso").checkpoints, on


async def hang(_request: httpx.Request) -> httpx.Response:
    """Never answer."""
    return await asyncio.Future[httpx.Response]()


@jumping
async def test_a_save_that_would_have_to_wait_too_long() -> None:
    """Demand 21: told to wait for longer than an operation may take, it says so at once instead of waiting."""
    async with storage() as (checkpoints, on):
        on.answers = [failed(429, 3200, x_ms_retry_after_ms="60000")]
        with pytest.raises(ThrottledError) as caught:
            await checkpoints.save(checkpoint("cp-1"))
        assert caught.value.retry_after == 60.0
        assert not caught.value.outcome_unknown
        assert (len(on.sent), asyncio.get_running_loop().time()) == (1, 0.0)


@jumping
async def test_a_save_that_is_never_answered() -> None:
    """It ends with the operation's time, says that it may have been done, and the next one works."""
    async with storage() as (checkpoints, on):
        on.answers = [hang, done(201)]
        with pytest.raises(OperationTimeoutError) as caught:
            await checkpoints.save(checkpoint("cp-1"))
        assert (caught.value.timeout, caught.value.outcome_unknown) == (TIMEOUT, True)
        assert asyncio.get_running_loop().time() == TIMEOUT
        assert await checkpoints.save(checkpoint("cp-1")) == "cp-1"
        assert on.methods == ["POST", "POST"]


@jumping
async def test_a_read_that_is_never_answered() -> None:
    """It ends with the operation's time as well; there is no outcome that could be unknown."""
    async with storage() as (checkpoints, on):
        on.answers = [hang, page()]
        with pytest.raises(OperationTimeoutError) as caught:
            await checkpoints.get_latest(workflow_name=WORKFLOW)
        assert (caught.value.timeout, caught.value.outcome_unknown) == (TIMEOUT, False)
        assert await checkpoints.get_latest(workflow_name=WORKFLOW) is None


@jumping
async def test_what_was_saved_is_listed() -> None:
    """A save is one batch, and what is asked for next is asked as of that batch."""
    async with storage() as (checkpoints, on):
        on.answers = [done(201, lsn=99), page()]
        assert await checkpoints.save(checkpoint("cp-1")) == "cp-1"
        assert await checkpoints.list_checkpoint_ids(workflow_name=WORKFLOW) == []
        assert on.sent[0].headers["x-ms-cosmos-is-batch-request"] == "True"
        assert on.sent[1].session == "0:-1#99"


@jumping
async def test_a_container_that_vanished() -> None:
    """Demand 30: 404/1003 is about the container, in a save as in a load."""
    async with storage() as (checkpoints, on):
        on.answers = [failed(404, 1003), failed(404, 1003)]
        with pytest.raises(ProvisioningError):
            await checkpoints.save(checkpoint("cp-1"))
        with pytest.raises(ProvisioningError):
            await checkpoints.load("cp-1")
        assert len(on.sent) == 2
