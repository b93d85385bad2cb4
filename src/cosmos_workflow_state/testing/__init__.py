"""What a checkpoint storage has to do, as tests that run on any: subclass `CheckpointStorageContract`.

::

    import pytest
    from agent_framework import FileCheckpointStorage
    from cosmos_workflow_state.testing import ALLOWED_TYPES, Capability, CheckpointStorageContract


    class TestFileStorage(CheckpointStorageContract):
        unclaimed = {Capability.ISOLATION: "a directory has no owners"}

        @pytest.fixture
        def storage(self, tmp_path):
            return FileCheckpointStorage(tmp_path, allowed_checkpoint_types=[*ALLOWED_TYPES])

        @pytest.fixture
        def reopen(self, tmp_path):
            async def opened():
                return FileCheckpointStorage(tmp_path, allowed_checkpoint_types=[*ALLOWED_TYPES])

            return opened

You need pytest 8.3 or later and a plugin that runs coroutine functions on asyncio: pytest-asyncio with
``asyncio_mode = auto``, or ``@pytest.mark.asyncio`` or ``@pytest.mark.anyio`` on your class. The marks of the tests are
registered by the pytest plugin of this package, which pytest finds by itself.

This is the only module of the package that imports pytest, besides that plugin. It knows no storage, not ours either.
"""

from __future__ import annotations

from ._capabilities import Capability
from ._claims import Reopen, StorageOf
from ._contract import CheckpointStorageContract
from ._values import ALLOWED_TYPES

__all__ = ["ALLOWED_TYPES", "Capability", "CheckpointStorageContract", "Reopen", "StorageOf"]
