"""Writers that go on from one checkpoint at once: both branches are kept, whole, and whoever looks sees the fork."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from cosmos_workflow_state.typing import CheckpointSummary
from support.engines import moved_account
from support.forking_writers import go_on, grown
from support.references import missing, unreferenced
from support.states import WORKFLOW
from support.writers import start


def ids(summaries: Sequence[CheckpointSummary]) -> list[str]:
    """Return which checkpoints they are about."""
    return [one.checkpoint_id for one in summaries]


async def test_two_processes_fork_a_lineage_and_it_is_seen(tmp_path: Path, full_size: bool) -> None:
    """Demand 24: nothing of either branch is lost or mixed up, and the parent has two children."""
    path, count = tmp_path / "state.db", 40 if full_size else 8
    async with moved_account(path) as account, account.factory() as factory:
        storage = factory.for_tenant("contoso").checkpoints
        await storage.save(grown("root", None, 1))
        await storage.save(grown("parent", "root", 2))

    writers = [start(go_on, path, "parent", branch, count) for branch in ("left", "right")]
    for process, reports in writers:
        assert reports.recv() is None
        process.join()
        reports.close()

    async with moved_account(path) as account, account.factory() as factory:
        storage = factory.for_tenant("contoso").checkpoints
        assert sorted(ids(await storage.list_children("parent"))) == ["left-0", "right-0"]
        assert ids(await storage.list_children("root")) == ["parent"]
        for branch in ("left", "right"):
            chain = [f"{branch}-{number}" for number in range(count)]
            assert ids(await storage.lineage(chain[-1])) == ["root", "parent", *chain]
            parents = ["parent", *chain]
            for number, checkpoint_id in enumerate(chain):
                assert await storage.load(checkpoint_id) == grown(checkpoint_id, parents[number], 10 + number)
                assert ids(await storage.list_children(checkpoint_id)) == chain[number + 1 : number + 2]
        assert len(await storage.list_checkpoint_ids(workflow_name=WORKFLOW)) == 2 + 2 * count
        items = await account.items()
    assert unreferenced(items) == missing(items) == set()


@pytest.mark.parametrize("how", ["load", "get_latest"])
async def test_both_branches_are_differences_to_what_they_have_in_common(how: str) -> None:
    """Demands 24 and 29: two factories that resume from the same checkpoint share its keyframe and nothing else."""
    async with moved_account() as account:
        async with account.factory() as factory:
            await factory.for_tenant("contoso").checkpoints.save(grown("parent", None, 1))
        async with account.factory() as one, account.factory() as other:
            left, right = (factory.for_tenant("contoso").checkpoints for factory in (one, other))
            for storage in (left, right):
                resumed = storage.load("parent") if how == "load" else storage.get_latest(workflow_name=WORKFLOW)
                assert await resumed == grown("parent", None, 1)
            await left.save(grown("left", "parent", 5))
            await right.save(grown("right", "parent", 6))
            for storage in (left, right):
                assert ids(await storage.list_children("parent")) == ["left", "right"]
                assert await storage.load("left") == grown("left", "parent", 5)
                assert await storage.get_latest(workflow_name=WORKFLOW) == grown("right", "parent", 6)

        items = await account.items()
        (keyframe,) = [item["keyframe_id"] for item in items if item["type"] == "keyframe"]
        assert [item["payload"]["keyframe"] for item in items if item["type"] == "checkpoint"] == [keyframe] * 3


async def test_the_older_branch_goes_on_after_the_younger_is_deleted() -> None:
    """Demand 24: deleting one branch, and sweeping, takes nothing from the other, which goes on."""
    async with moved_account() as account, account.factory() as factory:
        storage = factory.for_tenant("contoso").checkpoints
        await storage.save(grown("parent", None, 1))
        for number, branch in enumerate(("left", "right"), start=2):
            await storage.save(grown(branch, "parent", number))
        account.clock.advance(25 * 3600)
        assert await storage.delete("right")
        await storage.sweep()
        await storage.save(grown("left-1", "left", 9))

        assert ids(await storage.list_children("parent")) == ["left"]
        assert ids(await storage.lineage("left-1")) == ["parent", "left", "left-1"]
        for checkpoint_id, parent, second in (("parent", None, 1), ("left", "parent", 2), ("left-1", "left", 9)):
            assert await storage.load(checkpoint_id) == grown(checkpoint_id, parent, second)
        items = await account.items()
    assert unreferenced(items) == missing(items) == set()
