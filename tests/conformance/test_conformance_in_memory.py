"""The conformance kit on the framework's storage in memory."""

from __future__ import annotations

from typing import ClassVar

import pytest
from agent_framework import CheckpointStorage, InMemoryCheckpointStorage

from cosmos_workflow_state.testing import Capability, CheckpointStorageContract


class TestInMemoryCheckpointStorage(CheckpointStorageContract):
    """Keeps copies of live objects: nothing is encoded, and nothing outlives it."""

    unclaimed: ClassVar = {
        Capability.ISOLATION: "it has no owners",
        Capability.ALLOW_LIST: "it keeps objects, so that nothing is ever restored",
        Capability.LIFECYCLE: "it is the memory of one process",
    }

    @pytest.fixture
    def storage(self) -> CheckpointStorage:
        """Return a new one."""
        return InMemoryCheckpointStorage()
