"""Throttling, dropped connections and races, injected between the real client and the engine."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from cosmos_workflow_state import CosmosStateFactory, CosmosStateSettings, TenantCheckpointStorage, errors
from support.faults import (
    Fault,
    FaultyTransport,
    drop_after,
    drop_before,
    each_transient,
    faulty_client,
    let_pass,
    refused,
    status,
    then,
)
from support.states import ALLOWED_TYPES, WORKFLOW, checkpoint

TRIES = 6


@pytest.fixture
def settings() -> CosmosStateSettings:
    """Return settings of the embedded engine, whatever other tests run against: faults need a transport of ours."""
    return CosmosStateSettings(endpoint="embedded:", allowed_checkpoint_types=ALLOWED_TYPES)


@pytest.fixture
async def wire(
    settings: CosmosStateSettings, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[TenantCheckpointStorage, FaultyTransport]]:
    """Yield a storage whose container is open and holds cp-0, and the transport under it; waits are cut short."""
    monkeypatch.setattr("cosmos_workflow_state._gateway._FIRST_DELAY", 0.0)
    async with faulty_client() as (client, transport), CosmosStateFactory(settings, client=client) as factory:
        storage = factory.for_tenant("contoso").checkpoints
        await storage.save(checkpoint("cp-0"))
        transport.sent.clear()
        yield storage, transport


@each_transient
async def test_every_operation_outlives_a_transient_fault(
    wire: tuple[TenantCheckpointStorage, FaultyTransport], fault: Fault
) -> None:
    """Demand 21: one fault at the first request of each operation is repaired, whether it was applied or not."""
    storage, transport = wire
    one = checkpoint("cp-1")

    transport.faults = [fault]
    assert await storage.save(one) == "cp-1"
    for read in (
        lambda: storage.load("cp-1"),
        lambda: storage.get_latest(workflow_name=WORKFLOW),
    ):
        transport.faults = [fault]
        assert await read() == one
    transport.faults = [fault]
    assert await storage.list_checkpoint_ids(workflow_name=WORKFLOW) == ["cp-0", "cp-1"]
    transport.faults = [fault]
    assert len(await storage.list_checkpoints(workflow_name=WORKFLOW)) == 2
    transport.faults = [fault]
    assert await storage.delete("cp-1") is True
    assert transport.faults == []


async def test_a_delete_whose_answer_was_lost_is_true(wire: tuple[TenantCheckpointStorage, FaultyTransport]) -> None:
    """The repeated delete meets its own work as 404; that is not "there was none"."""
    storage, transport = wire
    transport.faults = [let_pass, drop_after]

    assert await storage.delete("cp-0") is True
    assert transport.faults == []
    assert await storage.delete("cp-0") is False


async def test_a_replace_whose_answer_was_lost_is_done_once(
    wire: tuple[TenantCheckpointStorage, FaultyTransport],
) -> None:
    """The repeated batch meets its own work as 412, and the truth is read before anything is said."""
    storage, transport = wire
    changed = checkpoint("cp-0", state={"total": 1})
    transport.faults = [let_pass, let_pass, drop_after]

    await storage.save(changed)

    assert transport.sent == ["POST", "GET", "POST", "POST", "GET"]
    assert await storage.load("cp-0") == changed


async def test_a_save_whose_answers_were_lost_finds_itself(
    wire: tuple[TenantCheckpointStorage, FaultyTransport],
) -> None:
    """Demand 21: when no answer to the batch comes the truth is read, and what was stored is no failure."""
    storage, transport = wire
    transport.faults = [drop_after] * TRIES
    one = checkpoint("cp-1")

    assert await storage.save(one) == "cp-1"

    assert transport.sent == ["POST"] * TRIES + ["GET"]
    assert await storage.load("cp-1") == one


async def test_a_save_that_was_lost_says_so(wire: tuple[TenantCheckpointStorage, FaultyTransport]) -> None:
    """Demand 21: when no request comes through, nothing is there, and the error does not claim to know."""
    storage, transport = wire
    transport.faults = [drop_before] * TRIES
    with pytest.raises(errors.ServiceUnavailableError) as caught:
        await storage.save(checkpoint("cp-1"))
    assert caught.value.outcome_unknown
    assert await storage.list_checkpoint_ids(workflow_name=WORKFLOW) == ["cp-0"]
    assert await storage.save(checkpoint("cp-1")) == "cp-1"


async def test_throttling_that_does_not_end(wire: tuple[TenantCheckpointStorage, FaultyTransport]) -> None:
    """Demand 21: a bounded number of requests, then an error that says how long to wait."""
    storage, transport = wire
    for operation in (lambda: storage.save(checkpoint("cp-1")), lambda: storage.get_latest(workflow_name=WORKFLOW)):
        transport.sent.clear()
        transport.faults = [status(429, 3200, x_ms_retry_after_ms="2", x_ms_activity_id="a-1")] * TRIES
        with pytest.raises(errors.ThrottledError) as caught:
            await operation()
        assert len(transport.sent) == TRIES
        assert caught.value.retryable
        assert not caught.value.outcome_unknown
        assert (caught.value.retry_after, caught.value.activity_id) == (0.002, "a-1")
        assert (caught.value.status_code, caught.value.sub_status) == (429, 3200)


async def test_an_outage_says_that_the_outcome_is_unknown(
    wire: tuple[TenantCheckpointStorage, FaultyTransport],
) -> None:
    """A save whose every answer was lost, the truth's too, may have been applied; a plain repeat succeeds."""
    storage, transport = wire
    transport.faults = [drop_after] * 2 * TRIES
    with pytest.raises(errors.ServiceUnavailableError) as caught:
        await storage.save(checkpoint("cp-1"))
    assert caught.value.outcome_unknown
    assert caught.value.retryable
    assert caught.value.__cause__ is not None

    await storage.save(checkpoint("cp-1", state={"again": True}))
    assert (await storage.load("cp-1")).state == {"again": True}


@pytest.mark.parametrize(
    ("fault", "expected", "code"),
    [
        (status(401), errors.AccessDeniedError, 401),
        (status(403, 5301), errors.AccessDeniedError, 403),
        (status(400), errors.ServiceError, 400),
        (status(413), errors.ServiceError, 413),
    ],
    ids=["401", "403", "400", "413"],
)
async def test_refusals_are_not_repeated(
    wire: tuple[TenantCheckpointStorage, FaultyTransport], fault: Fault, expected: type[errors.ServiceError], code: int
) -> None:
    """What will not get better is sent once and raised as its own kind."""
    storage, transport = wire
    transport.faults = [fault]
    with pytest.raises(expected) as caught:
        await storage.load("cp-0")
    assert caught.value.status_code == code
    assert not caught.value.retryable
    assert transport.sent == ["GET"]


@pytest.mark.parametrize(
    ("date", "said"),
    [
        (None, "must not differ"),
        ("Thu, 01 Jan 1970 00:00:00 GMT", "ahead of the service's, and 15 are allowed"),
        ("Fri, 01 Jan 9999 00:00:00 GMT", "behind the service's, and 15 are allowed"),
        ("yesterday", "must not differ"),
        ("Thu, 01 Jan 99999 00:00:00 GMT", "must not differ"),
    ],
)
async def test_the_date_of_the_answer_is_compared(
    wire: tuple[TenantCheckpointStorage, FaultyTransport], date: str | None, said: str
) -> None:
    """Where the service tells its time in the answer, it is known whether the clock is to blame."""
    storage, transport = wire
    transport.faults = [status(401) if date is None else status(401, date=date)]
    with pytest.raises(errors.AccessDeniedError) as caught:
        await storage.load("cp-0")
    assert said in caught.value.remedy


async def test_a_container_that_vanished_is_no_missing_checkpoint(
    wire: tuple[TenantCheckpointStorage, FaultyTransport],
) -> None:
    """Demand 30: 404/1003 is about the container, never "no such checkpoint"; 404/1002 is a replica that lags."""
    storage, transport = wire
    transport.faults = [status(404, 1003)]
    with pytest.raises(errors.ProvisioningError):
        await storage.load("cp-0")
    # The client sends once more by itself on 1002, so two faults are one try.
    transport.faults = [status(404, 1002)] * 2
    assert await storage.load("cp-0")


async def test_deleted_between_create_and_read(wire: tuple[TenantCheckpointStorage, FaultyTransport]) -> None:
    """Demand 16: the id was taken at the create and free at the read: the save tries again and succeeds."""
    storage, transport = wire
    one = checkpoint("cp-0", state={"total": 2})

    async def delete() -> None:
        transport.faults.insert(0, let_pass)
        transport.faults.insert(0, let_pass)
        await storage.delete("cp-0")

    transport.faults = [let_pass, then(delete)]
    await storage.save(one)
    assert await storage.load("cp-0") == one


async def test_writers_that_never_stop(wire: tuple[TenantCheckpointStorage, FaultyTransport]) -> None:
    """Demand 16: when others replace the checkpoint at every try, the save says so and stores nothing."""
    storage, transport = wire
    transport.faults = [let_pass, let_pass, *[refused(412), let_pass] * 4]
    with pytest.raises(errors.CheckpointConflictError) as caught:
        await storage.save(checkpoint("cp-0", state={"total": 3}))
    assert caught.value.retryable
    assert (await storage.load("cp-0")).state != {"total": 3}


async def test_headers_that_are_no_numbers(wire: tuple[TenantCheckpointStorage, FaultyTransport]) -> None:
    """Something on the way that garbles headers does not turn into an error of another kind."""
    storage, transport = wire
    transport.faults = [status(429, 3200, x_ms_retry_after_ms="soon", x_ms_request_charge="cheap")]
    assert (await storage.load("cp-0")).checkpoint_id == "cp-0"


NOT_THE_SERVICE = [status(200), status(302), status(304)]


@pytest.mark.parametrize("fault", NOT_THE_SERVICE, ids=["200", "302", "304"])
async def test_answers_that_are_not_the_service_s(
    wire: tuple[TenantCheckpointStorage, FaultyTransport], fault: Fault
) -> None:
    """Demand 30: a proxy's page is neither a stored checkpoint nor a missing one."""
    storage, transport = wire
    for operation in (lambda: storage.save(checkpoint("cp-1")), lambda: storage.for_workflow(WORKFLOW).load("cp-0")):
        transport.faults = [fault] * TRIES
        with pytest.raises(errors.ServiceUnavailableError):
            await operation()
        transport.faults = []
    assert await storage.list_checkpoint_ids(workflow_name=WORKFLOW) == ["cp-0"]


async def test_outages_are_not_multiplied(wire: tuple[TenantCheckpointStorage, FaultyTransport]) -> None:
    """Demand 21: the client repeats a 503 by itself; with our tries that stays a dozen requests at most."""
    storage, transport = wire
    for operation in (
        lambda: storage.load("cp-0"),
        lambda: storage.save(checkpoint("cp-1")),
        lambda: storage.get_latest(workflow_name=WORKFLOW),
    ):
        transport.sent.clear()
        transport.faults = [status(503)] * 100
        with pytest.raises(errors.ServiceUnavailableError):
            await operation()
        assert len(transport.sent) <= 12
