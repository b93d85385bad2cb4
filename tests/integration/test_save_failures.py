"""A save that fails is seen, also where the framework passes over it: event, counter and hook, once each."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, MutableMapping
from typing import Any, Never, NoReturn

import pytest
from agent_framework import (
    Executor,
    FunctionalWorkflow,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    handler,
    step,
    workflow,
)

from cosmos_workflow_state import CosmosStateFactory, CosmosStateSettings, TenantCheckpointStorage, errors
from cosmos_workflow_state.typing import SaveFailure, SaveFailures
from support.faults import faulty_client, status
from support.states import ALLOWED_TYPES, WORKFLOW, Unregistered, checkpoint

Events = list[MutableMapping[str, Any]]
SMALL = 2_000


@pytest.fixture
def told() -> list[SaveFailure]:
    """Return what the hook of the factory is told."""
    return []


@pytest.fixture
def settings() -> CosmosStateSettings:
    """Return settings of the embedded engine, whatever other tests run against: these are about saves."""
    return CosmosStateSettings(endpoint="embedded:", allowed_checkpoint_types=ALLOWED_TYPES, max_payload_bytes=SMALL)


@pytest.fixture
async def factory(
    settings: CosmosStateSettings, events: Events, told: list[SaveFailure]
) -> AsyncIterator[CosmosStateFactory]:
    """Yield a factory with a hook, whose events are captured."""
    del events
    async with CosmosStateFactory(settings, on_save_failed=told.append) as opened:
        yield opened


@pytest.fixture
def storage(factory: CosmosStateFactory) -> TenantCheckpointStorage:
    """Return the storage of one session."""
    return factory.for_tenant("contoso").checkpoints.scoped("s-1")


def failed(events: Events) -> list[str]:
    """Return the error of each failed save that was logged."""
    return [event["error_type"] for event in events if event["event"] == "checkpoint.save_failed"]


class Clerk(Executor):
    """Keeps what it is given in the state, and says so."""

    @handler
    async def keep(self, value: str, context: WorkflowContext[Never, str]) -> None:
        """Keep a value: text of a length, or of a class that no allow-list names."""
        context.set_state("value", Unregistered(value) if value == "refused" else value)
        await context.yield_output("kept")


def graph() -> Workflow:
    """Return a graph workflow."""
    clerk = Clerk("clerk")
    return WorkflowBuilder(name=WORKFLOW, start_executor=clerk, output_from=[clerk]).build()


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        pytest.param("x" * SMALL, errors.CheckpointTooLargeError, id="too large"),
        pytest.param("refused", errors.CheckpointNotRestorableError, id="not allowed"),
    ],
)
async def test_a_graph_workflow_goes_on_and_its_failure_is_seen(
    storage: TenantCheckpointStorage, events: Events, told: list[SaveFailure], value: str, kind: type[Exception]
) -> None:
    """Demands 1, 2 and 3: the run ends as if nothing had happened; event, counter and hook each tell it once a save."""
    result = await graph().run(value, checkpoint_storage=storage)
    assert result.get_outputs() == ["kept"]

    count = storage.failures.count
    assert count >= 1
    assert type(storage.failures.last_error) is kind
    assert failed(events) == [kind.__name__] * count
    assert [(one.tenant_id, one.scope, one.workflow_name) for one in told] == [("contoso", "s-1", WORKFLOW)] * count
    assert [type(one.error) for one in told] == [kind] * count
    stored = await storage.list_checkpoint_ids(workflow_name=WORKFLOW)
    assert {one.checkpoint_id for one in told}.isdisjoint(stored)


async def test_a_run_that_is_saved_has_no_failures(
    storage: TenantCheckpointStorage, events: Events, told: list[SaveFailure]
) -> None:
    """What is seen of failures is nothing when there are none."""
    await graph().run("paper", checkpoint_storage=storage)
    assert storage.failures == SaveFailures()
    assert failed(events) == told == []


def functional(storage: TenantCheckpointStorage) -> FunctionalWorkflow:
    """Return a functional workflow of one step, which saves what the step returns."""

    @step
    async def keep(value: str) -> str:
        return value

    @workflow(name="kept")
    async def kept(value: str) -> str:
        return await keep(value)

    return kept.build(checkpoint_storage=storage)


@pytest.mark.filterwarnings("ignore:.FUNCTIONAL_WORKFLOWS")
async def test_a_functional_workflow_raises(
    storage: TenantCheckpointStorage, events: Events, told: list[SaveFailure]
) -> None:
    """Demand 2: where the framework lets the error through it is ours, unwrapped, and is seen in the same ways."""
    with pytest.raises(errors.CheckpointTooLargeError) as caught:
        await functional(storage).run("x" * SMALL)
    assert caught.value.retryable is False
    assert storage.failures.count == len(told) == len(failed(events)) >= 1
    assert told[-1].error is caught.value


async def test_each_storage_counts_for_itself(storage: TenantCheckpointStorage, factory: CosmosStateFactory) -> None:
    """A narrowed or second storage starts at none: another run's failures are not this one's."""
    refused = checkpoint("cp-1", state={"value": Unregistered("x")})
    for _ in range(2):
        with pytest.raises(errors.CheckpointNotRestorableError):
            await storage.save(refused)
    with pytest.raises(errors.CheckpointNotRestorableError):
        await storage.for_workflow(WORKFLOW).save(refused)

    assert storage.failures.count == 2
    others = (storage.for_workflow(WORKFLOW), storage.scoped("s-1"), storage.with_ttl(5), factory.for_tenant("contoso"))
    assert [getattr(other, "checkpoints", other).failures.count for other in others] == [0] * 4


NAMELESS: Any = 7


@pytest.mark.parametrize(
    ("refused", "names"),
    [
        pytest.param("a text", (None, None), id="no checkpoint"),
        pytest.param(checkpoint("cp-1", workflow=NAMELESS), (None, "cp-1"), id="no workflow"),
        pytest.param(checkpoint(""), (WORKFLOW, ""), id="no id"),
    ],
)
async def test_whatever_save_raises_is_seen(
    storage: TenantCheckpointStorage, events: Events, told: list[SaveFailure], refused: Any, names: tuple[str, str]
) -> None:
    """Also what is refused before it is looked into is one event and one call, with what can be said of it."""
    with pytest.raises(errors.CosmosStateError) as caught:
        await storage.save(refused)
    assert failed(events) == [type(caught.value).__name__]
    assert told == [SaveFailure("contoso", "s-1", *names, caught.value)]


async def test_a_hook_that_raises_changes_nothing(settings: CosmosStateSettings, events: Events) -> None:
    """``save`` raises what it would have raised, and the hook's fault is an event of its own."""

    def hook(failure: SaveFailure, /) -> NoReturn:
        raise LookupError(failure)

    async with CosmosStateFactory(settings, on_save_failed=hook) as factory:
        storage = factory.for_tenant("contoso").checkpoints
        with pytest.raises(errors.CheckpointNotRestorableError) as caught:
            await storage.save(checkpoint("cp-1", state={"value": Unregistered("hunter2")}))
    assert not isinstance(caught.value.__context__, LookupError)
    assert storage.failures.count == 1
    assert [event["error_type"] for event in events if event["event"] == "hook.failed"] == ["LookupError"]
    assert "hunter2" not in repr(events)


async def test_a_cancelled_save_has_not_failed(
    storage: TenantCheckpointStorage, events: Events, told: list[SaveFailure]
) -> None:
    """Who cancels a save knows it: no failure is counted, and its event is a warning."""
    await storage.save(checkpoint("cp-0"))
    saving = asyncio.create_task(storage.save(checkpoint("cp-1")))
    await asyncio.sleep(0)
    saving.cancel()
    await asyncio.wait([saving])
    assert saving.cancelled()
    assert (storage.failures.count, told) == (0, [])
    (event,) = [event for event in events if event["event"] == "checkpoint.save_failed"]
    assert (event["log_level"], event["error_type"]) == ("warning", "CancelledError")


async def _never(*_: object) -> NoReturn:
    """Do not answer."""
    await asyncio.Event().wait()
    raise AssertionError


async def test_a_save_that_is_given_up_is_a_failure(settings: CosmosStateSettings, told: list[SaveFailure]) -> None:
    """Demand 2: past ``operation_timeout`` a save says that it may have been stored, a load that it read nothing."""
    async with faulty_client() as (client, transport):
        hurried = settings.model_copy(update={"operation_timeout": 0.05})
        async with CosmosStateFactory(settings, client=client) as factory:
            await factory.for_tenant("contoso").checkpoints.save(checkpoint("cp-0"))
        async with CosmosStateFactory(hurried, client=client, on_save_failed=told.append) as factory:
            storage = factory.for_tenant("contoso").checkpoints
            transport.faults = [_never]
            with pytest.raises(errors.OperationTimeoutError) as caught:
                await storage.save(checkpoint("cp-1"))
            assert (caught.value.outcome_unknown, storage.failures.count) == (True, 1)
            transport.faults = [_never]
            with pytest.raises(errors.OperationTimeoutError) as caught:
                await storage.load("cp-0")
            assert caught.value.outcome_unknown is False
    assert [type(one.error) for one in told] == [errors.OperationTimeoutError]


async def test_no_try_is_begun_past_the_deadline(settings: CosmosStateSettings) -> None:
    """Demand 21: who asks for more time than there is gets its answer at once, not after the deadline."""
    async with faulty_client() as (client, transport), CosmosStateFactory(settings, client=client) as factory:
        storage = factory.for_tenant("contoso").checkpoints
        await storage.save(checkpoint("cp-0"))
        transport.faults = [status(429, 3200, x_ms_retry_after_ms="120000")]
        with pytest.raises(errors.ThrottledError) as caught:
            await storage.save(checkpoint("cp-1"))
    assert caught.value.retry_after == 120.0
    assert storage.failures.count == 1
