"""An emulator build that ignores an incomplete partition key: the predicate keeps tenants apart all the same."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from cosmos_workflow_state import CosmosStateFactory
from cosmos_workflow_state.emulator import CosmosEmulator
from cosmos_workflow_state.errors import CheckpointNotFoundError
from support.states import ALLOWED_TYPES, WORKFLOW, checkpoint

STATE = {"noise": random.Random(0).randbytes(400_000)}


@pytest.fixture
def emulator() -> Iterator[CosmosEmulator]:
    """Yield an emulator with that fault."""
    with CosmosEmulator() as running:
        running.faults.ignore_partial_keys = True
        yield running


async def test_tenants_do_not_meet_where_partial_keys_are_ignored(emulator: CosmosEmulator) -> None:
    """Demand 20: whatever asks the whole of a tenant neither shows nor deletes anything of another."""
    settings = emulator.settings(allowed_checkpoint_types=ALLOWED_TYPES)
    async with CosmosStateFactory(settings) as factory, CosmosStateFactory(settings) as cold:
        mine, other = (factory.for_tenant(name).checkpoints for name in ("contoso", "fabrikam"))
        await other.save(checkpoint("cp-1", state=STATE))
        await other.save(checkpoint("cp-2", previous_checkpoint_id="cp-1", state=STATE))

        with pytest.raises(CheckpointNotFoundError):
            await mine.load("cp-1")
        assert await mine.list_workflows() == []
        assert await mine.list_children("cp-1") == []
        assert await mine.delete("cp-1") is False
        assert (await mine.sweep()).keyframes == 0
        assert (await mine.erase()).checkpoints == 0

        again = cold.for_tenant("fabrikam").checkpoints
        assert await again.list_checkpoint_ids(workflow_name=WORKFLOW) == ["cp-1", "cp-2"]
        assert (await again.load("cp-1")).state == (await again.load("cp-2")).state == STATE
