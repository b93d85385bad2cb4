"""Another account key in the middle of operations: nothing of what was written, read or left in doubt is forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from cosmos_workflow_state import CosmosStateSettings
from cosmos_workflow_state._clients import CLIENT_OPTIONS
from cosmos_workflow_state._connection import CosmosConnection
from cosmos_workflow_state._definitions import CHECKPOINTS
from cosmos_workflow_state._gateway import Delete, Gateway, Meter, Upsert
from cosmos_workflow_state._logging import get_logger
from cosmos_workflow_state.errors import AccessDeniedError, ServiceUnavailableError
from unit.support.jumping import jumping
from unit.support.operations import OPERATIONS, RESULTS, WORKS
from unit.support.wire import KEY, Wire, done, failed, item, wire, written

each_operation = pytest.mark.parametrize("name", OPERATIONS)
READS = ("read", "query", "prefix query", "batch")


@asynccontextmanager
async def with_two_keys(
    monkeypatch: pytest.MonkeyPatch, *, consistency: str = "Session"
) -> AsyncIterator[tuple[Wire, Gateway]]:
    """Yield an account, and a gateway whose connection has a key and a secondary one."""
    async with wire(consistency=consistency) as on:
        monkeypatch.setitem(CLIENT_OPTIONS, "transport", on.transport)
        settings = CosmosStateSettings(
            endpoint=on.endpoint,
            database="state",
            checkpoint_container="checkpoints",
            auth={"key": "b25l", "secondary_key": "b3RoZXI="},
            provisioning="skip",
            _env_file=None,
        )
        connection = CosmosConnection(settings, get_logger(), client=None, credential=None)
        try:
            yield on, Gateway(connection.to(CHECKPOINTS))
        finally:
            await connection.close()


@each_operation
@jumping
async def test_a_key_that_is_refused(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Sent once more with the other key, at once; both answers are counted, and nothing is in doubt."""
    async with with_two_keys(monkeypatch) as (on, gateway):
        on.answers = [failed(401), WORKS[name]()]
        meter = Meter()
        assert await OPERATIONS[name](gateway, meter) == RESULTS[name]
        assert (len(on.sent), meter.requests, meter.request_charge) == (2, 2, 3.0)
        assert meter.unknown_outcomes == 0
        assert on.waits == [0.0]
        assert on.sent[0].headers["authorization"] != on.sent[1].headers["authorization"]


@each_operation
@jumping
async def test_both_keys_are_refused(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Each key is tried once, whatever the other one's fate; the refusal says what to do."""
    async with with_two_keys(monkeypatch) as (on, gateway):
        on.answers = [failed(401)] * 20
        with pytest.raises(AccessDeniedError) as caught:
            await OPERATIONS[name](gateway, Meter())
        assert (len(on.sent), caught.value.outcome_unknown) == (2, False)
        assert "COSMOS_WORKFLOW_STATE_KEY" in caught.value.remedy


@pytest.mark.parametrize("read", READS)
@jumping
async def test_what_was_written_with_one_key_is_read_with_the_other(monkeypatch: pytest.MonkeyPatch, read: str) -> None:
    """The other key's client reads in the session of the one before."""
    async with with_two_keys(monkeypatch) as (on, gateway):
        on.answers = [written(41), failed(401), WORKS[read]()]
        await OPERATIONS["create"](gateway, Meter())
        assert await OPERATIONS[read](gateway, Meter()) == RESULTS[read]
        assert [one.session for one in on.sent[1:]] == ["0:-1#41"] * 2


@jumping
async def test_a_guard_that_was_deleted_with_the_key_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """The collecting of keyframes rests on this: the query behind its batch sees all before it with either key."""
    async with with_two_keys(monkeypatch) as (on, gateway):
        on.answers = [done(201, 204, lsn=77), failed(401), WORKS["query"]()]
        assert await gateway.batch(KEY, [Upsert(item("g")), Delete("g")], Meter()) is None
        assert await OPERATIONS["query"](gateway, Meter()) == RESULTS["query"]
        assert on.sent[-1].session == "0:-1#77"


@jumping
async def test_a_write_that_is_answered_after_the_key_was_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the client before still hears counts for what is read afterwards."""
    async with with_two_keys(monkeypatch) as (on, gateway):

        async def late(_request: httpx.Request) -> httpx.Response:
            await asyncio.sleep(3)
            return written(50)

        on.answers = [late, failed(401), WORKS["read"](), WORKS["read"]()]
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(OPERATIONS["create"](gateway, Meter()))
            await asyncio.sleep(1)
            await OPERATIONS["read"](gateway, Meter())
        await OPERATIONS["read"](gateway, Meter())
        assert on.sent[-1].session == "0:-1#50"


@jumping
async def test_an_account_without_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is nothing to take over, and no session begins with the other key either."""
    async with with_two_keys(monkeypatch, consistency="Eventual") as (on, gateway):
        on.answers = [written(41), failed(401), WORKS["read"]()]
        await OPERATIONS["create"](gateway, Meter())
        assert await OPERATIONS["read"](gateway, Meter()) == RESULTS["read"]
        assert on.sent[-1].session is None
        assert await gateway.is_sequential() is False


@jumping
async def test_a_delete_that_finds_its_own_work_with_the_other_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an earlier try left in doubt is remembered over the change."""
    async with with_two_keys(monkeypatch) as (on, gateway):
        on.answers = [httpx.ReadError("reset"), failed(401), failed(404)]
        assert await gateway.delete(KEY, "a", Meter()) is True


@pytest.mark.parametrize("before", [[], [httpx.ReadError("reset")]], ids=["nothing", "an answer was lost"])
@pytest.mark.parametrize(
    ("status", "kind"), [(401, AccessDeniedError), (500, ServiceUnavailableError)], ids=["refused", "not reached"]
)
@jumping
async def test_the_other_key_opens_nothing(
    monkeypatch: pytest.MonkeyPatch, status: int, kind: type[Exception], before: list[Exception]
) -> None:
    """Whether a write may have been done is what its tries say, not what became of opening another client."""
    async with with_two_keys(monkeypatch) as (on, gateway):
        assert await gateway.is_sequential()
        on.answers = [*before, failed(401)]
        on.account.respond(status)
        meter = Meter()
        with pytest.raises(kind) as caught:
            await gateway.create(item("a"), meter)
        assert vars(caught.value)["outcome_unknown"] is bool(before)
        assert meter.unknown_outcomes == len(before)
