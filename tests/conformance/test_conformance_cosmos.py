"""The conformance kit on the framework's own storage in Cosmos DB, unchanged, on the embedded engine."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import ClassVar

import pytest
from agent_framework import CheckpointStorage
from agent_framework_azure_cosmos import CosmosCheckpointStorage
from azure.cosmos.aio import CosmosClient

from cosmos_workflow_state._embedded import open_embedded
from cosmos_workflow_state.testing import ALLOWED_TYPES, Capability, CheckpointStorageContract, Reopen


class TestCosmosCheckpointStorage(CheckpointStorageContract):
    """One item a checkpoint, partitioned by workflow."""

    unclaimed: ClassVar = {Capability.ISOLATION: "it has no owners"}

    @pytest.fixture
    async def reopen(self) -> AsyncIterator[Reopen]:
        """Yield what opens a client of one engine, and a storage of that."""
        async with AsyncExitStack() as stack:
            account = await open_embedded(None)
            stack.push_async_callback(account.close)

            async def opened() -> CheckpointStorage:
                client = CosmosClient(account.endpoint, account.key, transport=account.transport())
                return CosmosCheckpointStorage(
                    cosmos_client=await stack.enter_async_context(client),
                    database_name="state",
                    container_name="checkpoints",
                    allowed_checkpoint_types=[*ALLOWED_TYPES],
                )

            yield opened

    @pytest.fixture
    async def storage(self, reopen: Reopen) -> CheckpointStorage:
        """Return the first one."""
        return await reopen()
