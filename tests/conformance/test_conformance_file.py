"""The conformance kit on the framework's storage in files."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pytest
from agent_framework import CheckpointStorage, FileCheckpointStorage

from cosmos_workflow_state.testing import ALLOWED_TYPES, Capability, CheckpointStorageContract, Reopen


class TestFileCheckpointStorage(CheckpointStorageContract):
    """One JSON file a checkpoint, in one directory."""

    unclaimed: ClassVar = {Capability.ISOLATION: "it has no owners"}

    @pytest.fixture
    def storage(self, tmp_path: Path) -> CheckpointStorage:
        """Return one of an empty directory."""
        return FileCheckpointStorage(tmp_path, allowed_checkpoint_types=[*ALLOWED_TYPES])

    @pytest.fixture
    def reopen(self, tmp_path: Path) -> Reopen:
        """Return what makes another one of the same directory."""

        async def opened() -> CheckpointStorage:
            return FileCheckpointStorage(tmp_path, allowed_checkpoint_types=[*ALLOWED_TYPES])

        return opened
