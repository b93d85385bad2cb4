"""MAF's own Cosmos stores, unchanged, on what ``--against`` names: single key, default indexing policy."""

from __future__ import annotations

import pytest
from agent_framework import Message, WorkflowCheckpoint
from agent_framework.exceptions import WorkflowCheckpointException
from agent_framework_azure_cosmos import CosmosCheckpointStorage, CosmosHistoryProvider
from azure.cosmos.aio import CosmosClient

from support.targets import Target


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
async def storage(client: CosmosClient, target: Target | None) -> CosmosCheckpointStorage:
    """Return MAF's checkpoint storage; it creates what it needs, except where a token may not."""
    if target is None:
        return CosmosCheckpointStorage(cosmos_client=client, database_name="db", container_name="checkpoints")
    name = await target.create_container("/workflow_name")
    return CosmosCheckpointStorage(cosmos_client=client, database_name=target.database, container_name=name)


@pytest.fixture
async def history(client: CosmosClient, target: Target | None) -> CosmosHistoryProvider:
    """Return MAF's history store; the database has to be there for it."""
    if target is None:
        await client.create_database("db")
        return CosmosHistoryProvider(cosmos_client=client, database_name="db", container_name="history")
    name = await target.create_container("/session_id")
    return CosmosHistoryProvider(cosmos_client=client, database_name=target.database, container_name=name)


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


async def test_history(history: CosmosHistoryProvider) -> None:
    """Messages come back in order, of one session only, until they are cleared."""
    for session in ("one", "two"):
        await history.save_messages(session, [Message("user", [f"hello {session}"]), Message("assistant", ["hi"])])
    await history.save_messages("one", [Message("user", ["bye"])])
    assert [message.text for message in await history.get_messages("one")] == ["hello one", "hi", "bye"]
    await history.clear("one")
    assert await history.get_messages("one") == []
    assert len(await history.get_messages("two")) == 2
