"""The conformance kit on our storage, on the embedded engine: it claims everything, and passes all of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from agent_framework import CheckpointStorage

from cosmos_workflow_state import CosmosStateFactory, CosmosStateSettings
from cosmos_workflow_state.testing import ALLOWED_TYPES, CheckpointStorageContract, Reopen, StorageOf


class TestTenantCheckpointStorage(CheckpointStorageContract):
    """The storage of a tenant; an owner is a tenant."""

    @pytest.fixture
    async def storage_of(self, tmp_path: Path) -> AsyncIterator[StorageOf]:
        """Yield what opens a factory on one state file, and the storage of a tenant of that."""
        settings = CosmosStateSettings(
            endpoint=f"embedded:{tmp_path / 'state.db'}", allowed_checkpoint_types=ALLOWED_TYPES, _env_file=None
        )
        async with AsyncExitStack() as stack:

            async def opened(owner: str) -> CheckpointStorage:
                factory = await stack.enter_async_context(CosmosStateFactory(settings))
                return factory.for_tenant(owner).checkpoints

            yield opened

    @pytest.fixture
    def reopen(self, storage_of: StorageOf) -> Reopen:
        """Return what opens the storage of one tenant, in a factory of its own."""

        async def opened() -> CheckpointStorage:
            return await storage_of("contoso")

        return opened

    @pytest.fixture
    async def storage(self, reopen: Reopen) -> CheckpointStorage:
        """Return the first one."""
        return await reopen()
