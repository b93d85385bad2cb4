"""Cancelling, closing and failing at awkward moments: nothing leaks, and every error is one of ours."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any, NoReturn

import pytest
import structlog

from cosmos_workflow_state import CosmosStateFactory, CosmosStateSettings, errors
from cosmos_workflow_state._embedded import _Handover
from support.states import ALLOWED_TYPES, WORKFLOW, chain, checkpoint


@pytest.fixture
def settings() -> CosmosStateSettings:
    """Return settings of the embedded engine, whatever other tests run against: its threads are looked at."""
    return CosmosStateSettings(endpoint="embedded:", allowed_checkpoint_types=ALLOWED_TYPES)


@pytest.fixture
def file_settings(tmp_path: Path) -> CosmosStateSettings:
    """Return the same on a file."""
    return CosmosStateSettings(endpoint=f"embedded:{tmp_path / 'state.db'}", allowed_checkpoint_types=ALLOWED_TYPES)


def _engine_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith("embedded-")}


async def _nothing_was_left_open(before: set[threading.Thread]) -> None:
    """Wait for what still runs in threads, and check that every engine opened since is closed."""
    await asyncio.get_running_loop().shutdown_default_executor()
    assert _engine_threads() <= before


@pytest.mark.parametrize("steps", [*range(12), 15, 20, 30, 50])
async def test_a_first_operation_that_is_cancelled_leaks_nothing(
    file_settings: CosmosStateSettings, steps: int
) -> None:
    """Wherever the first operation is cancelled, the factory goes on working and closes everything."""
    before = _engine_threads()
    async with CosmosStateFactory(file_settings) as factory:
        storage = factory.for_tenant("contoso").checkpoints
        saving = asyncio.create_task(storage.save(checkpoint("cp-1")))
        for _ in range(steps):
            await asyncio.sleep(0)
        saving.cancel()
        await asyncio.wait([saving])
        await storage.save(checkpoint("cp-2"))
        assert "cp-2" in await storage.list_checkpoint_ids(workflow_name=WORKFLOW)
    await _nothing_was_left_open(before)


async def test_opening_is_cancelled_while_the_file_is_opened(tmp_path: Path) -> None:
    """A time-out during the very first opening does not leave an engine that nobody knows of."""
    before = _engine_threads()
    settings = CosmosStateSettings(endpoint=f"embedded:{tmp_path / 'state.db'}", _env_file=None)
    factory = CosmosStateFactory(settings)
    for _ in range(5):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await factory.for_tenant("contoso").checkpoints.load("cp-1")
    await factory.close()
    await _nothing_was_left_open(before)


@pytest.mark.parametrize("abandoned_first", [True, False])
def test_whoever_comes_second_closes_the_engine(*, abandoned_first: bool) -> None:
    """An engine that was opened for nobody is closed, whether it or the cancellation came first."""
    before = _engine_threads()
    handover = _Handover()
    if abandoned_first:
        handover.abandon()
        handover.open(None)
    else:
        handover.open(None)
        handover.abandon()
    assert _engine_threads() == before


async def test_a_close_that_is_cancelled_still_closes(file_settings: CosmosStateSettings) -> None:
    """Cancelling close() stops the waiting, not the closing; a later close() waits for it or does nothing."""
    before = _engine_threads()
    factory = CosmosStateFactory(file_settings)
    await factory.for_tenant("contoso").checkpoints.save(checkpoint("cp-1"))
    closing = asyncio.create_task(factory.close())
    await asyncio.sleep(0)
    closing.cancel()
    await asyncio.wait([closing])
    await asyncio.gather(factory.close(), factory.close())
    await factory.close()
    assert _engine_threads() == before


async def test_operations_during_a_close_end_in_our_errors(file_settings: CosmosStateSettings) -> None:
    """Whatever is under way when the factory closes either succeeds or says that the factory is closed."""
    factory = CosmosStateFactory(file_settings)
    storage = factory.for_tenant("contoso").checkpoints
    await storage.save(checkpoint("cp-0"))
    running = [asyncio.create_task(storage.save(one)) for one in chain(30)]
    running += [asyncio.create_task(storage.load("cp-0")) for _ in range(30)]  # type: ignore[misc]
    await asyncio.sleep(0)
    await factory.close()
    for outcome in await asyncio.gather(*running, return_exceptions=True):
        assert not isinstance(outcome, BaseException) or isinstance(outcome, errors.FactoryClosedError)


def test_a_failed_opening_does_not_bind_to_its_loop(tmp_path: Path) -> None:
    """What could not be opened can be tried again on another event loop."""
    directory = tmp_path / "later"
    settings = CosmosStateSettings(endpoint=f"embedded:{directory / 'state.db'}", _env_file=None)
    factory = CosmosStateFactory(settings)

    async def use() -> None:
        await factory.for_tenant("contoso").checkpoints.list_checkpoint_ids(workflow_name=WORKFLOW)

    with pytest.raises(errors.ProvisioningError):
        asyncio.run(use())
    directory.mkdir()

    async def use_and_close() -> None:
        await use()
        await factory.close()

    asyncio.run(use_and_close())


async def test_a_fork_after_opening_is_refused(settings: CosmosStateSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    """A child process has the memory but not the threads and sockets of an open factory."""
    async with CosmosStateFactory(settings) as factory:
        storage = factory.for_tenant("contoso").checkpoints
        await storage.save(checkpoint("cp-1"))
        with monkeypatch.context() as child:
            child.setattr(os, "getpid", lambda: -1)
            with pytest.raises(errors.FactoryClosedError, match="fork"):
                await storage.load("cp-1")


def _raise(*_: object) -> NoReturn:
    raise RuntimeError("the log is full")


async def test_a_log_that_fails_does_not_fail_what_was_done(settings: CosmosStateSettings) -> None:
    """An application's broken log processor turns no operation into a failure, and hides no error."""
    before = _engine_threads()
    structlog.configure(processors=[_raise])
    try:
        async with CosmosStateFactory(settings) as factory:
            storage = factory.for_tenant("contoso").checkpoints
            name = "WorkflowBuilder-00000000-0000-4000-8000-000000000000"
            assert await storage.save(checkpoint("cp-1", workflow=name)) == "cp-1"
            with pytest.raises(errors.CheckpointNotFoundError):
                await storage.load("nope")
    finally:
        structlog.reset_defaults()
    assert _engine_threads() == before


@pytest.mark.parametrize("replaced", [False, True])
async def test_a_state_file_that_is_taken_away(tmp_path: Path, *, replaced: bool) -> None:
    """What is saved into a deleted or replaced file would be lost: it is an error instead."""
    path = tmp_path / "state.db"
    async with CosmosStateFactory(CosmosStateSettings(endpoint=f"embedded:{path}", _env_file=None)) as factory:
        storage = factory.for_tenant("contoso").checkpoints
        await storage.list_checkpoint_ids(workflow_name=WORKFLOW)
        path.unlink()
        if replaced:
            path.write_bytes(b"")
        with pytest.raises(errors.ServiceError, match="state file of the embedded engine") as caught:
            await storage.save(checkpoint("cp-1", state={}))
        assert not caught.value.retryable
        assert not caught.value.outcome_unknown


async def test_the_id_that_was_saved_is_returned(settings: CosmosStateSettings) -> None:
    """Demand 15: a checkpoint renamed while its save is under way was saved under the name it had."""
    async with CosmosStateFactory(settings) as factory:
        storage = factory.for_tenant("contoso").checkpoints
        live = checkpoint("cp-1")
        saving = asyncio.create_task(storage.save(live))
        await asyncio.sleep(0)
        live.checkpoint_id = "renamed"
        assert await saving == "cp-1"
        assert (await storage.load("cp-1")).checkpoint_id == "cp-1"


async def test_errors_carry_no_state_in_their_context(
    settings: CosmosStateSettings, events: list[MutableMapping[str, Any]]
) -> None:
    """What an error tracker can reach from our error holds nothing that the state's own code has said."""

    class Quoting:
        def __reduce__(self) -> NoReturn:
            raise ValueError("hunter2")

    async with CosmosStateFactory(settings) as factory:
        with pytest.raises(errors.CheckpointNotRestorableError) as caught:
            await factory.for_tenant("contoso").checkpoints.save(checkpoint("cp-1", state={"value": Quoting()}))
    error: BaseException | None = caught.value
    while error is not None:
        assert "hunter2" not in repr(error)
        error = error.__cause__ or error.__context__
    assert "hunter2" not in repr(events)
