"""One event an operation, with what it cost; silence where the application has not configured logging."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

import pytest

from cosmos_workflow_state import CosmosStateSettings, errors
from support.states import WORKFLOW, Unregistered, checkpoint
from support.targets import factory_of


async def test_one_event_an_operation(settings: CosmosStateSettings, events: list[MutableMapping[str, Any]]) -> None:
    """Demand 34: each of the six methods emits one event with tenant, scope, charge, duration and sizes."""
    async with factory_of(settings) as factory:
        storage = factory.for_tenant("contoso").checkpoints.scoped("s-1")
        await storage.save(checkpoint("cp-1"))
        await storage.load("cp-1")
        await storage.get_latest(workflow_name=WORKFLOW)
        await storage.list_checkpoints(workflow_name=WORKFLOW)
        await storage.list_checkpoint_ids(workflow_name=WORKFLOW)
        await storage.delete("cp-1")

    operations = [event for event in events if event["event"].startswith("checkpoint.")]
    assert [event["event"] for event in operations] == [
        "checkpoint.saved",
        "checkpoint.loaded",
        "checkpoint.latest_read",
        "checkpoint.listed",
        "checkpoint.ids_listed",
        "checkpoint.deleted",
    ]
    for event in operations:
        assert (event["tenant_id"], event["scope"], event["log_level"]) == ("contoso", "s-1", "info")
        assert event["request_charge"] > 0
        assert event["requests"] >= 1
        assert event["duration_ms"] > 0
    assert operations[0]["raw_bytes"] > 0
    assert operations[0]["stored_bytes"] > 0
    assert {event.get("workflow_name") for event in operations[:5]} == {WORKFLOW}
    assert [event.get("checkpoint_id") for event in operations[:3]] == ["cp-1"] * 3


async def test_a_failed_operation_is_one_error_event_without_content(
    settings: CosmosStateSettings, events: list[MutableMapping[str, Any]]
) -> None:
    """Demand 2: the failure of a save is seen although the framework swallows it; nothing of the state is in it."""
    async with factory_of(settings) as factory:
        storage = factory.for_tenant("contoso").checkpoints
        with pytest.raises(errors.CheckpointNotRestorableError):
            await storage.save(checkpoint("cp-1", state={"value": Unregistered("hunter2")}))

    (failed,) = [event for event in events if event["event"] == "checkpoint.save_failed"]
    assert (failed["log_level"], failed["error_type"]) == ("error", "CheckpointNotRestorableError")
    assert "hunter2" not in repr(events)


async def test_an_unstable_workflow_name_is_one_warning(
    settings: CosmosStateSettings, events: list[MutableMapping[str, Any]]
) -> None:
    """Demand 13: the framework's default names are new in every process; said once, with the remedy."""
    async with factory_of(settings) as factory:
        storage = factory.for_tenant("contoso").checkpoints
        for number in range(3):
            name = f"WorkflowBuilder-0000000{number}-0000-4000-8000-000000000000"
            await storage.save(checkpoint("cp-1", workflow=name))

    (warning,) = [event for event in events if event["event"] == "workflow.unstable_name"]
    assert warning["log_level"] == "warning"
    assert "name the workflow" in warning["remedy"]


async def test_silence_without_configuration(settings: CosmosStateSettings, capfd: pytest.CaptureFixture[str]) -> None:
    """An application that has not configured structlog sees nothing of ours on its outputs."""
    async with factory_of(settings) as factory:
        storage = factory.for_tenant("contoso").checkpoints
        await storage.save(checkpoint("cp-1"))
        with pytest.raises(errors.CheckpointNotFoundError):
            await storage.load("nope")

    assert capfd.readouterr() == ("", "")
