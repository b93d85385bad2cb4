"""Tests of large states and of long histories.

Large values are compared before they are asserted: pytest would take minutes to show how two of them differ.
"""

from __future__ import annotations

import pytest
from agent_framework import CheckpointStorage

from ._capabilities import Capability, covers
from ._claims import Claims, Reopen
from ._making import WORKFLOW, by_id, chain, checkpoint, noise


class LargeTests(Claims):
    """States of several megabytes, and long histories."""

    @covers(Capability.LARGE)
    @pytest.mark.parametrize("kind", ["noise", "text"])
    async def test_a_large_state(self, storage: CheckpointStorage, reopen: Reopen, kind: str) -> None:
        """`large_state_bytes` of what does not compress, and of what does."""
        await _assert_comes_back(storage, reopen, _state(kind, self.large_state_bytes))

    @covers(Capability.LARGE)
    @pytest.mark.parametrize("kind", ["noise", "text"])
    async def test_a_huge_state(self, storage: CheckpointStorage, reopen: Reopen, kind: str) -> None:
        """`huge_state_bytes` of the same."""
        await _assert_comes_back(storage, reopen, _state(kind, self.huge_state_bytes))

    @covers(Capability.LARGE)
    async def test_a_large_state_is_replaced_and_deleted(self, storage: CheckpointStorage) -> None:
        """By another large one, by a small one, and for good."""
        for seed, size in ((1, self.large_state_bytes), (2, self.large_state_bytes), (3, 10)):
            saved = checkpoint(state={"noise": noise(size, seed)})
            await storage.save(saved)
            equal = await storage.load("cp-1") == saved
            assert equal
            assert await storage.list_checkpoint_ids(workflow_name=WORKFLOW) == ["cp-1"]
        assert await storage.delete("cp-1") is True
        assert await storage.get_latest(workflow_name=WORKFLOW) is None

    @covers(Capability.LARGE)
    async def test_large_states_side_by_side(self, storage: CheckpointStorage) -> None:
        """Three of them in one list, more than most services give in one page."""
        made = chain(3)
        for seed, one in enumerate(made):
            one.state = {"noise": noise(self.large_state_bytes, seed)}
            await storage.save(one)
        equal = by_id(await storage.list_checkpoints(workflow_name=WORKFLOW)) == made
        assert equal
        latest = await storage.get_latest(workflow_name=WORKFLOW)
        assert latest is not None
        assert latest.checkpoint_id == made[-1].checkpoint_id

    @covers(Capability.LARGE)
    async def test_a_history_that_grows(self, storage: CheckpointStorage, reopen: Reopen) -> None:
        """Each checkpoint holds all of the one before it: each comes back as it was, also when others are deleted."""
        made = chain(40)
        for number, one in enumerate(made):
            one.state = {"turns": [noise(2000, turn).hex() for turn in range(number + 1)], "number": number}
            await storage.save(one)
        for one in made[::3]:
            assert await storage.delete(one.checkpoint_id) is True
        kept = [one for number, one in enumerate(made) if number % 3]
        again = await reopen()
        for one in kept:
            assert await again.load(one.checkpoint_id) == one
        assert await again.get_latest(workflow_name=WORKFLOW) == kept[-1]
        assert sorted(await again.list_checkpoint_ids(workflow_name=WORKFLOW)) == [one.checkpoint_id for one in kept]

    @covers(Capability.LARGE)
    async def test_many_checkpoints(self, storage: CheckpointStorage) -> None:
        """More than most services give in one page of a list."""
        made = chain(150)
        for one in made:
            await storage.save(one)
        assert sorted(await storage.list_checkpoint_ids(workflow_name=WORKFLOW)) == [one.checkpoint_id for one in made]
        assert by_id(await storage.list_checkpoints(workflow_name=WORKFLOW)) == made


def _state(kind: str, size: int) -> dict[str, object]:
    if kind == "noise":
        return {"noise": noise(size), "number": 1}
    text = "Gr\u00fc\u00dfe, and the invoice of last week. " * 50
    return {"turns": [f"{number}: {text}" for number in range(size // len(text))], "number": 1}


async def _assert_comes_back(storage: CheckpointStorage, reopen: Reopen, state: dict[str, object]) -> None:
    saved = checkpoint(state=state)
    await storage.save(saved)
    again = await reopen()
    for back in (await again.load("cp-1"), await again.get_latest(workflow_name=WORKFLOW)):
        assert back is not None
        equal = back.state == state
        assert equal
    assert await again.list_checkpoint_ids(workflow_name=WORKFLOW) == ["cp-1"]
