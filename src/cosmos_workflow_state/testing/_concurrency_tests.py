"""Tests of many calls at once, of calls that are cut off, of calls that are repeated, and of a second process."""

from __future__ import annotations

import asyncio
import copy
from contextlib import suppress

import pytest
from agent_framework import CheckpointStorage, WorkflowCheckpoint, WorkflowCheckpointException

from ._capabilities import Capability, covers
from ._claims import Claims, Reopen
from ._making import WORKFLOW, by_id, chain, checkpoint, noise


class ConcurrencyTests(Claims):
    """Many calls at once, by one storage and by two, and cancelled ones."""

    @covers(Capability.CONCURRENCY)
    async def test_many_first_calls_at_once(self, storage: CheckpointStorage) -> None:
        """A storage that opens or creates something with its first call does so once."""
        made = chain(5)
        await asyncio.gather(*map(storage.save, made), storage.get_latest(workflow_name="another"))
        for one in made:
            assert await storage.load(one.checkpoint_id) == one

    @covers(Capability.CONCURRENCY)
    async def test_many_saves_at_once(self, storage: CheckpointStorage) -> None:
        """All are there, and each is its own."""
        await _use(storage)
        made = chain(50)
        await asyncio.gather(*map(storage.save, made))
        for one in made:
            assert await storage.load(one.checkpoint_id) == one
        assert len(await storage.list_checkpoint_ids(workflow_name=WORKFLOW)) == len(made)

    @covers(Capability.CONCURRENCY)
    async def test_many_saves_of_one_id(self, storage: CheckpointStorage) -> None:
        """One of them is what is stored, whole; a save may be refused, and then it is not that one."""
        await _use(storage)
        versions = [checkpoint(state={"version": number, "noise": noise(5000, number)}) for number in range(12)]
        outcomes = await asyncio.gather(*map(storage.save, versions), return_exceptions=True)
        refused = [outcome for outcome in outcomes if outcome != "cp-1"]
        assert all(isinstance(outcome, WorkflowCheckpointException) for outcome in refused)
        saved = [one for one, outcome in zip(versions, outcomes, strict=True) if outcome == "cp-1"]
        assert await storage.load("cp-1") in saved
        assert await storage.list_checkpoint_ids(workflow_name=WORKFLOW) == ["cp-1"]

    @covers(Capability.CONCURRENCY)
    async def test_many_deletes_of_one_id(self, storage: CheckpointStorage) -> None:
        """Exactly one of them has deleted it."""
        await storage.save(checkpoint())
        outcomes = await asyncio.gather(*(storage.delete("cp-1") for _ in range(8)))
        assert sorted(outcomes) == [False] * 7 + [True]

    @covers(Capability.CONCURRENCY)
    async def test_reads_while_others_write(self, storage: CheckpointStorage) -> None:
        """What a read finds is whole; what it misses is missing, and nothing else is raised."""
        made = chain(16)
        await storage.save(made[0])
        reads = [self._read(storage, made) for _ in range(4)]
        deletes = (storage.delete(one.checkpoint_id) for one in made[:4])
        await asyncio.gather(*map(storage.save, made[1:]), *reads, *deletes)

    @covers(Capability.CONCURRENCY, Capability.LIFECYCLE)
    async def test_two_storages_save_at_once(self, storage: CheckpointStorage, reopen: Reopen) -> None:
        """Two processes on one store lose nothing of each other's."""
        storages = (storage, await reopen())
        for opened in storages:
            await _use(opened)
        made = chain(30)
        await asyncio.gather(*(storages[number % 2].save(one) for number, one in enumerate(made)))
        for one in made:
            assert await storages[0].load(one.checkpoint_id) == one
        assert len(await storages[1].list_checkpoint_ids(workflow_name=WORKFLOW)) == len(made)

    @covers(Capability.CONCURRENCY)
    async def test_state_that_changes_while_it_is_saved(self, storage: CheckpointStorage) -> None:
        """A save stores the state as it was when it began: agents go on while the store is slow."""
        live = checkpoint(state={"list": [1], "dict": {"a": 1}, "noise": noise(50_000)})
        expected = copy.deepcopy(live)
        await _change_while_saving(storage, live)
        assert await storage.load("cp-1") == expected

    @covers(Capability.CONCURRENCY)
    async def test_state_that_changes_while_a_replacement_is_saved(self, storage: CheckpointStorage) -> None:
        """The same when the store was used before, and the id is there already."""
        await storage.save(checkpoint())
        live = checkpoint(state={"list": [1], "dict": {"a": 1}, "noise": noise(50_000)})
        expected = copy.deepcopy(live)
        await _change_while_saving(storage, live)
        assert await storage.load("cp-1") == expected

    @covers(Capability.CONCURRENCY)
    @pytest.mark.parametrize("turns", [1, 2, 3, 5, 8, 13])
    async def test_a_cancelled_save(self, storage: CheckpointStorage, turns: int) -> None:
        """It has stored all or nothing, what was there stays, and the storage works as before."""
        before, cut_off = chain(2, state={"noise": noise(50_000)})
        await storage.save(before)
        save = asyncio.create_task(storage.save(cut_off))
        for _ in range(turns):
            await asyncio.sleep(0)
        save.cancel()
        with suppress(asyncio.CancelledError):
            await save
        assert by_id(await storage.list_checkpoints(workflow_name=WORKFLOW)) in ([before], [before, cut_off])
        await storage.save(cut_off)
        assert by_id(await storage.list_checkpoints(workflow_name=WORKFLOW)) == [before, cut_off]

    async def _read(self, storage: CheckpointStorage, made: list[WorkflowCheckpoint]) -> None:
        for one in made:
            with suppress(WorkflowCheckpointException):
                assert await storage.load(one.checkpoint_id) == one
            assert all(listed in made for listed in await storage.list_checkpoints(workflow_name=WORKFLOW))
            assert await storage.get_latest(workflow_name=WORKFLOW) in [*made, None]


async def _use(storage: CheckpointStorage) -> None:
    """Use a storage before a test that is not about its first call."""
    await storage.save(checkpoint("first", workflow="first"))


async def _change_while_saving(storage: CheckpointStorage, live: WorkflowCheckpoint) -> None:
    save = asyncio.create_task(storage.save(live))
    # The save runs up to where it waits for the first time; until then the caller does not run.
    await asyncio.sleep(0)
    live.state["list"].append(2)
    live.state["dict"]["b"] = 2
    live.state["more"] = True
    live.iteration_count = 99
    live.metadata["changed"] = True
    assert await save == "cp-1"


class RetryTests(Claims):
    """A save or delete that is repeated does no harm."""

    @covers(Capability.IDEMPOTENT_RETRY)
    async def test_saving_again(self, storage: CheckpointStorage) -> None:
        """One checkpoint, and its place in the order stays."""
        made = chain(2)
        for one in (*made, *made, made[0]):
            assert await storage.save(one) == one.checkpoint_id
        assert by_id(await storage.list_checkpoints(workflow_name=WORKFLOW)) == made
        assert await storage.get_latest(workflow_name=WORKFLOW) == made[1]

    @covers(Capability.IDEMPOTENT_RETRY)
    async def test_saving_another_under_the_same_id(self, storage: CheckpointStorage) -> None:
        """It replaces the one that was there, in every method."""
        await storage.save(checkpoint())
        other = checkpoint(state={"other": True}, iteration_count=2, metadata={"a": 1})
        await storage.save(other)
        assert await storage.load("cp-1") == other
        assert await storage.list_checkpoints(workflow_name=WORKFLOW) == [other]
        assert await storage.get_latest(workflow_name=WORKFLOW) == other

    @covers(Capability.IDEMPOTENT_RETRY)
    async def test_a_replacement_with_a_later_time_is_the_latest(self, storage: CheckpointStorage) -> None:
        """Where it goes in the order is the store's to say, unless it says nothing at all."""
        made = chain(2)
        for one in made:
            await storage.save(one)
        replaced = checkpoint("cp-001", timestamp="2026-11-30T00:00:00+00:00", state={"replaced": True})
        await storage.save(replaced)
        assert await storage.get_latest(workflow_name=WORKFLOW) == replaced

    @covers(Capability.IDEMPOTENT_RETRY)
    async def test_saving_what_was_deleted(self, storage: CheckpointStorage) -> None:
        """It is there again."""
        saved = checkpoint()
        for _ in range(2):
            await storage.save(saved)
            assert await storage.load("cp-1") == saved
            assert await storage.delete("cp-1") is True
        await storage.save(saved)
        assert await storage.list_checkpoints(workflow_name=WORKFLOW) == [saved]

    @covers(Capability.IDEMPOTENT_RETRY)
    async def test_the_same_save_twice_at_once(self, storage: CheckpointStorage) -> None:
        """A retry may overtake what it repeats."""
        await _use(storage)
        saved = checkpoint()
        await asyncio.gather(*(storage.save(saved) for _ in range(4)))
        assert await storage.list_checkpoints(workflow_name=WORKFLOW) == [saved]

    @covers(Capability.IDEMPOTENT_RETRY, Capability.LIFECYCLE)
    async def test_the_same_save_by_another_process(self, storage: CheckpointStorage, reopen: Reopen) -> None:
        """After a crash nobody knows whether the save before it was done: it is done again."""
        made = chain(2)
        for one in made:
            await storage.save(one)
        again = await reopen()
        for one in reversed(made):
            assert await again.save(one) == one.checkpoint_id
        assert by_id(await again.list_checkpoints(workflow_name=WORKFLOW)) == made


class LifecycleTests(Claims):
    """What is saved outlives the storage object."""

    @covers(Capability.LIFECYCLE)
    async def test_another_process_finds_it(self, storage: CheckpointStorage, reopen: Reopen) -> None:
        """By all methods that read."""
        made = chain(3)
        for one in made:
            await storage.save(one)
        again = await reopen()
        assert again is not storage
        assert await again.load("cp-001") == made[1]
        assert await again.get_latest(workflow_name=WORKFLOW) == made[-1]
        assert by_id(await again.list_checkpoints(workflow_name=WORKFLOW)) == made
        assert len(await again.list_checkpoint_ids(workflow_name=WORKFLOW)) == len(made)

    @covers(Capability.LIFECYCLE)
    async def test_what_another_process_deletes_is_gone(self, storage: CheckpointStorage, reopen: Reopen) -> None:
        """Also for one that has read it before."""
        made = chain(2)
        for one in made:
            await storage.save(one)
        assert await storage.load("cp-001") == made[1]
        assert await (await reopen()).delete("cp-001") is True
        with pytest.raises(WorkflowCheckpointException):
            await storage.load("cp-001")
        assert await storage.get_latest(workflow_name=WORKFLOW) == made[0]
        assert await storage.delete("cp-001") is False

    @covers(Capability.LIFECYCLE)
    async def test_what_another_process_replaces_is_replaced(self, storage: CheckpointStorage, reopen: Reopen) -> None:
        """Nothing stale is read."""
        await storage.save(checkpoint())
        assert await storage.load("cp-1") == checkpoint()
        other = checkpoint(state={"other": True})
        await (await reopen()).save(other)
        assert await storage.load("cp-1") == other
        assert await storage.get_latest(workflow_name=WORKFLOW) == other

    @covers(Capability.LIFECYCLE)
    async def test_it_goes_on_in_a_third(self, storage: CheckpointStorage, reopen: Reopen) -> None:
        """Each process adds to what the ones before it have left."""
        made = chain(4)
        await storage.save(made[0])
        for one in made[1:]:
            opened = await reopen()
            latest = await opened.get_latest(workflow_name=WORKFLOW)
            assert latest is not None
            assert latest.checkpoint_id == one.previous_checkpoint_id
            await opened.save(one)
        assert await storage.get_latest(workflow_name=WORKFLOW) == made[-1]
