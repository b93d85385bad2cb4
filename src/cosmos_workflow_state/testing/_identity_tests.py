"""Tests of what tells checkpoints apart: hostile ids and names, and owners."""

from __future__ import annotations

from typing import Final

import pytest
from agent_framework import CheckpointStorage, WorkflowCheckpointException

from ._capabilities import Capability, covers
from ._claims import Claims, StorageOf
from ._making import WORKFLOW, checkpoint

HOSTILE: Final = {
    "slash": "a/b",
    "backslash": "a\\b",
    "question-mark": "a?b",
    "hash": "a#b",
    "percent": "a%2Fb",
    "colon": "a:b",
    "pipe": "a|b",
    "star": "a*b",
    "quotes": "a'b\"c",
    "angles": "<a>",
    "dot": ".",
    "two-dots": "..",
    "up": "../a",
    "absolute": "/a",
    "hidden": ".a",
    "space": " ",
    "space-at-the-end": "a ",
    "dot-at-the-end": "a.",
    "tab-and-newline": "a\tb\n",
    "device-of-windows": "CON",
    "umlaut": "\u00fc",
    "umlaut-decomposed": "u\u0308",
    "emoji": "\U0001f600",
    "right-to-left": "\u202ea",
    "query": "a' OR '1'='1",
    "json": '{"id": "a"}',
    "as-long-as-a-file-name": "x" * 255,
    "as-long-as-an-item-id": "x" * 1024,
    "long-and-not-ascii": "\u00fc" * 400,
}
"""Texts that somebody's store has stumbled over, by what is special about them."""

IMPOSSIBLE: Final = {"nul": "a\0b", "surrogate": "a\ud800"}
OWNERS: Final = ("t1", "t10", "T1", "t")


class HostileIdTests(Claims):
    """Checkpoint ids and workflow names may be any text."""

    @covers(Capability.HOSTILE_IDS)
    @pytest.mark.parametrize("special", HOSTILE)
    async def test_a_hostile_id(self, storage: CheckpointStorage, special: str) -> None:
        """What was saved under it can be loaded, listed and deleted."""
        hostile = HOSTILE[special]
        saved = checkpoint(hostile)
        assert await storage.save(saved) == hostile
        assert await storage.load(hostile) == saved
        assert await storage.list_checkpoint_ids(workflow_name=WORKFLOW) == [hostile]
        assert await storage.delete(hostile) is True
        assert await storage.delete(hostile) is False

    @covers(Capability.HOSTILE_IDS)
    @pytest.mark.parametrize("special", HOSTILE)
    async def test_a_hostile_workflow_name(self, storage: CheckpointStorage, special: str) -> None:
        """What was saved under it is found by it."""
        hostile = HOSTILE[special]
        saved = checkpoint(workflow=hostile)
        await storage.save(saved)
        assert await storage.load("cp-1") == saved
        assert await storage.get_latest(workflow_name=hostile) == saved
        assert await storage.list_checkpoint_ids(workflow_name=hostile) == ["cp-1"]
        assert await storage.delete("cp-1") is True

    @covers(Capability.HOSTILE_IDS)
    @pytest.mark.parametrize(
        ("one", "other"),
        [
            pytest.param("a/b", "a\\b", id="slashes"),
            pytest.param("a/b", "a%2Fb", id="percent"),
            pytest.param("a:b", "a_b", id="underscore"),
            pytest.param("a", "A", id="case"),
            pytest.param("a", "a ", id="space"),
            pytest.param("\u00fc", "u\u0308", id="normal-forms"),
            pytest.param("x" * 300, "x" * 301, id="length"),
            pytest.param("a", "a.json", id="suffix"),
        ],
    )
    async def test_ids_that_look_alike(self, storage: CheckpointStorage, one: str, other: str) -> None:
        """They are two: neither replaces the other, nor is deleted with it."""
        for own in (one, other):
            await storage.save(checkpoint(own))
        for own in (one, other):
            assert (await storage.load(own)).checkpoint_id == own
        assert await storage.delete(one) is True
        assert await storage.list_checkpoint_ids(workflow_name=WORKFLOW) == [other]

    @covers(Capability.HOSTILE_IDS)
    @pytest.mark.parametrize("special", IMPOSSIBLE)
    async def test_ids_that_cannot_exist(self, storage: CheckpointStorage, special: str) -> None:
        """What many services refuse may be refused by save; to load and delete it is one more id that is not there."""
        with pytest.raises(WorkflowCheckpointException):
            await storage.load(IMPOSSIBLE[special])
        assert await storage.delete(IMPOSSIBLE[special]) is False

    @covers(Capability.HOSTILE_IDS)
    async def test_names_and_ids_that_are_the_same_when_joined(self, storage: CheckpointStorage) -> None:
        """A key is not made by joining texts."""
        pairs = [(f"a{separator}b", "c") for separator in "_:/|-."] + [
            ("a", f"b{separator}c") for separator in "_:/|-."
        ]
        pairs = [(workflow, f"{own}{number}") for number, (workflow, own) in enumerate(pairs)]
        for workflow, own in pairs:
            await storage.save(checkpoint(own, workflow=workflow))
        for workflow, own in pairs:
            assert own in await storage.list_checkpoint_ids(workflow_name=workflow)
            assert (await storage.load(own)).workflow_name == workflow


class IsolationTests(Claims):
    """Two owners of one store never meet."""

    @covers(Capability.ISOLATION)
    @pytest.mark.parametrize("other", OWNERS[1:])
    async def test_owners_do_not_see_each_other(self, storage_of: StorageOf, other: str) -> None:
        """In none of the six methods, with names that begin alike or differ in case, either way round."""
        for mine, theirs in ((OWNERS[0], other), (other, OWNERS[0])):
            await _assert_sees_nothing(await storage_of(mine), await storage_of(theirs))

    @covers(Capability.ISOLATION)
    async def test_owners_share_ids(self, storage_of: StorageOf) -> None:
        """Each has its own checkpoint of one id, and saves, replaces and deletes that one only."""
        storages = {owner: await storage_of(owner) for owner in OWNERS}
        for owner, storage in storages.items():
            await storage.save(checkpoint(state={"owner": owner}))
        for owner, storage in storages.items():
            assert (await storage.load("cp-1")).state == {"owner": owner}
            assert [one.state for one in await storage.list_checkpoints(workflow_name=WORKFLOW)] == [{"owner": owner}]
        for storage in storages.values():
            assert await storage.delete("cp-1") is True

    @covers(Capability.ISOLATION)
    @pytest.mark.parametrize("separator", ["/", "\\", ":", "_", "|", "~", "../", "..\\"])
    async def test_an_id_cannot_reach_another_owner(self, storage_of: StorageOf, separator: str) -> None:
        """Not by naming the owner in front of it."""
        mine, theirs = await storage_of("t1"), await storage_of("t2")
        await theirs.save(checkpoint("secret"))
        for guess in (f"t2{separator}secret", f"{separator}t2{separator}secret", f"..{separator}t2{separator}secret"):
            with pytest.raises(WorkflowCheckpointException):
                await mine.load(guess)
            assert await mine.delete(guess) is False
        assert await theirs.list_checkpoint_ids(workflow_name=WORKFLOW) == ["secret"]


async def _assert_sees_nothing(mine: CheckpointStorage, other: CheckpointStorage) -> None:
    theirs = checkpoint("theirs")
    await other.save(theirs)
    with pytest.raises(WorkflowCheckpointException):
        await mine.load("theirs")
    assert await mine.delete("theirs") is False
    assert await mine.get_latest(workflow_name=WORKFLOW) is None
    assert await mine.list_checkpoints(workflow_name=WORKFLOW) == []
    assert await mine.list_checkpoint_ids(workflow_name=WORKFLOW) == []
    assert await other.load("theirs") == theirs
    assert await other.delete("theirs") is True
