"""MAF's own Cosmos checkpoint storage, unchanged, on the embedded engine: single key, default indexing policy."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from agent_framework import WorkflowCheckpoint
from agent_framework.exceptions import WorkflowCheckpointException
from agent_framework_azure_cosmos import CosmosCheckpointStorage
from azure.cosmos.aio import CosmosClient

from cosmos_workflow_state._embedded import open_embedded


def checkpoint(number: int, workflow: str = "invoices") -> WorkflowCheckpoint:
    """Make a checkpoint with a state of several kinds."""
    return WorkflowCheckpoint(
        workflow_name=workflow,
        graph_signature_hash="hash",
        checkpoint_id=f"{workflow}-{number}",
        timestamp=f"2026-11-29T10:00:{number:02}+00:00",
        state={"number": number, "nested": {"text": "é", "list": [1, 2.5, None], "tuple": (1, "a")}},
        iteration_count=number,
    )


@pytest.fixture
async def storage(tmp_path: Path) -> AsyncIterator[CosmosCheckpointStorage]:
    """Yield MAF's storage over a client of an engine on a file."""
    account = await open_embedded(tmp_path / "state.db")
    async with CosmosClient(account.endpoint, account.key, transport=account.transport()) as client:
        yield CosmosCheckpointStorage(cosmos_client=client, database_name="db", container_name="checkpoints")
    await account.close()


async def test_save_and_load(storage: CosmosCheckpointStorage) -> None:
    """What is saved is loaded, equal, and saving again replaces it."""
    saved = checkpoint(1)
    assert await storage.save(saved) == saved.checkpoint_id
    assert await storage.load(saved.checkpoint_id) == saved
    saved.state["number"] = 2
    await storage.save(saved)
    assert await storage.load(saved.checkpoint_id) == saved
    with pytest.raises(WorkflowCheckpointException):
        await storage.load("nothing")


async def test_lists_and_latest_in_order(storage: CosmosCheckpointStorage) -> None:
    """Lists are in the order of timestamps, of one workflow only, and the latest is the last of them."""
    for number in (3, 1, 2):
        await storage.save(checkpoint(number))
        await storage.save(checkpoint(number + 10, "orders"))
    assert await storage.list_checkpoints(workflow_name="invoices") == [checkpoint(number) for number in (1, 2, 3)]
    assert await storage.list_checkpoint_ids(workflow_name="orders") == ["orders-11", "orders-12", "orders-13"]
    assert await storage.get_latest(workflow_name="invoices") == checkpoint(3)
    assert await storage.get_latest(workflow_name="nothing") is None


async def test_delete(storage: CosmosCheckpointStorage) -> None:
    """A deleted checkpoint is gone, and deleting it again says so."""
    await storage.save(checkpoint(1))
    assert await storage.delete("invoices-1") is True
    assert await storage.delete("invoices-1") is False
    assert await storage.list_checkpoint_ids(workflow_name="invoices") == []
