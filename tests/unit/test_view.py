"""What every operation goes through: its deadline, and the events about one checkpoint."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from structlog.testing import LogCapture

from cosmos_workflow_state import CosmosStateFactory, CosmosStateSettings
from cosmos_workflow_state._gateway import Meter
from cosmos_workflow_state._logging import CHECKPOINT_DELETE, CHECKPOINT_LOAD, Operation
from cosmos_workflow_state._view import CheckpointView
from cosmos_workflow_state.errors import CheckpointCorruptError, OperationTimeoutError


def view_with(**settings: Any) -> CheckpointView:
    """Return the view of a storage that has sent nothing yet."""
    factory = CosmosStateFactory(CosmosStateSettings(endpoint="embedded:", _env_file=None, **settings))
    return factory.for_tenant("contoso").checkpoints.scoped("s-1")._view


@pytest.fixture
def log() -> Iterator[LogCapture]:
    """Configure structlog as an application does, and yield what is logged."""
    capture = LogCapture()
    structlog.configure(processors=[capture])
    yield capture
    structlog.reset_defaults()


@pytest.fixture
def hurried() -> CheckpointView:
    """Return a view whose operations have hardly any time."""
    return view_with(operation_timeout=0.001)


@pytest.mark.parametrize(
    ("names", "unknown"),
    [pytest.param(CHECKPOINT_LOAD, False, id="read"), pytest.param(CHECKPOINT_DELETE, True, id="write")],
)
async def test_what_takes_too_long_is_given_up(hurried: CheckpointView, names: Operation, *, unknown: bool) -> None:
    """The error names the setting and its seconds, and says whether something may have been changed."""
    with pytest.raises(OperationTimeoutError, match=r"0\.001 seconds \(setting operation_timeout\)") as caught:
        async with hurried.operation(names, Meter()):
            await asyncio.Event().wait()
    assert (caught.value.timeout, caught.value.outcome_unknown, caught.value.retryable) == (0.001, unknown, True)


async def test_the_deadline_of_the_retries_is_that_of_the_operation() -> None:
    """No further try is begun when the operation would be given up during it."""
    view, meter = view_with(operation_timeout=20), Meter()
    before = asyncio.get_running_loop().time()
    async with view.operation(CHECKPOINT_LOAD, meter):
        assert meter.deadline is not None
        assert before + 20 <= meter.deadline <= asyncio.get_running_loop().time() + 20


async def test_a_timeout_of_somebody_else_stays_his() -> None:
    """A TimeoutError that comes from within is no word about our deadline."""
    view = view_with()
    with pytest.raises(TimeoutError, match="a socket") as caught:
        async with view.operation(CHECKPOINT_LOAD, Meter()):
            raise TimeoutError("a socket")
    assert not isinstance(caught.value, OperationTimeoutError)


async def test_the_callers_own_timeout_stays_his() -> None:
    """Who bounds our operation by less than its own deadline gets his own TimeoutError."""
    view = view_with()
    with pytest.raises(TimeoutError) as caught:
        async with asyncio.timeout(0), view.operation(CHECKPOINT_LOAD, Meter()):
            await asyncio.Event().wait()
    assert not isinstance(caught.value, OperationTimeoutError)


async def test_a_cancellation_from_outside_stays_one(hurried: CheckpointView) -> None:
    """A task that is cancelled while its operation is given up as well is cancelled."""

    async def operate() -> None:
        async with hurried.operation(CHECKPOINT_LOAD, Meter()):
            await asyncio.Event().wait()

    task = asyncio.create_task(operate())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()


def test_large_states_are_a_warning(log: LogCapture) -> None:
    """Demand 1: above the threshold, and not at it, there is one event with both numbers."""
    view = view_with(warn_bytes=100)
    key = view.key("invoices", "cp-1")
    view.warn_if_large(100, key)
    view.warn_if_large(101, key)
    assert log.entries == [
        {
            "event": "checkpoint.large",
            "log_level": "warning",
            "tenant_id": "contoso",
            "scope": "s-1",
            "workflow_name": "invoices",
            "checkpoint_id": "cp-1",
            "raw_bytes": 101,
            "warn_bytes": 100,
        }
    ]


@pytest.mark.parametrize("setting", ["skip", "raise"])
def test_what_cannot_be_read_is_skipped_with_one_event(log: LogCapture, setting: str) -> None:
    """Demand 4: leaving a checkpoint out is a setting, and is seen."""
    view = view_with(on_undecodable=setting)
    error = CheckpointCorruptError("damaged", **view.which("invoices", "cp-1"))
    assert view.skips(error) is (setting == "skip")
    assert [(one["event"], one["error_type"]) for one in log.entries] == [
        ("checkpoint.undecodable", "CheckpointCorruptError")
    ] * (setting == "skip")
