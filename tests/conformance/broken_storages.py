"""Storages with one fault each, and a sound one: what the kit has to catch. Run by test_kit.py, in a run of its own.

`CAUGHT_BY` says which test has to fail on which. The sound one has to pass them all.
"""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Iterable
from datetime import datetime
from typing import ClassVar, Final

import pytest
from agent_framework import CheckpointStorage, WorkflowCheckpoint, WorkflowCheckpointException

from cosmos_workflow_state.testing import Capability, CheckpointStorageContract, Reopen, StorageOf

Rows = dict[tuple[str, str], tuple[tuple[datetime, int], WorkflowCheckpoint]]


class Sound:
    """Keeps copies of checkpoints under owner and id, with a place in the order that is never before the parent's."""

    def __init__(self, rows: Rows, owner: str) -> None:
        """Share the rows with other storages."""
        self.rows = rows
        self.owner = owner

    def key(self, checkpoint_id: str) -> tuple[str, str]:
        """Return where a checkpoint is kept."""
        return self.owner, checkpoint_id

    def copied(self, checkpoint: WorkflowCheckpoint) -> WorkflowCheckpoint:
        """Return what is kept, or what is given out."""
        return copy.deepcopy(checkpoint)

    def in_order(self, workflow_name: str) -> list[WorkflowCheckpoint]:
        """Return what is kept of a workflow, the oldest first."""
        rows = [row for key, row in self.rows.items() if key[0] == self.owner]
        rows.sort(key=lambda row: row[0])
        return [checkpoint for _, checkpoint in rows if checkpoint.workflow_name == workflow_name]

    async def save(self, checkpoint: WorkflowCheckpoint) -> str:
        """Keep a copy."""
        own = self.copied(checkpoint)
        time = datetime.fromisoformat(own.timestamp)
        parent = self.rows.get(self.key(own.previous_checkpoint_id or ""))
        self.keep(own, max(time, parent[0][0]) if parent else time)
        return own.checkpoint_id

    def keep(self, own: WorkflowCheckpoint, time: datetime) -> None:
        """Keep it; an equal one that is there keeps its place."""
        there = self.rows.get(self.key(own.checkpoint_id))
        turn = there[0][1] if there else len(self.rows)
        self.rows[self.key(own.checkpoint_id)] = ((time, turn), own)

    async def load(self, checkpoint_id: str) -> WorkflowCheckpoint:
        """Return a copy."""
        if self.key(checkpoint_id) not in self.rows:
            raise WorkflowCheckpointException("no such checkpoint")
        return self.copied(self.rows[self.key(checkpoint_id)][1])

    async def list_checkpoints(self, *, workflow_name: str) -> list[WorkflowCheckpoint]:
        """Return copies, the oldest first."""
        return [self.copied(one) for one in self.in_order(workflow_name)]

    async def delete(self, checkpoint_id: str) -> bool:
        """Forget it."""
        return self.rows.pop(self.key(checkpoint_id), None) is not None

    async def get_latest(self, *, workflow_name: str) -> WorkflowCheckpoint | None:
        """Return a copy of the newest."""
        return next((self.copied(one) for one in reversed(self.in_order(workflow_name))), None)

    async def list_checkpoint_ids(self, *, workflow_name: str) -> list[str]:
        """Return ids, the oldest first."""
        return [one.checkpoint_id for one in self.in_order(workflow_name)]


class Contract(CheckpointStorageContract):
    """The kit on one kind of storage; quick."""

    kind: ClassVar[type[Sound]] = Sound
    unclaimed: ClassVar = {Capability.ALLOW_LIST: "it keeps objects"}
    large_state_bytes: ClassVar[int] = 100_000
    huge_state_bytes: ClassVar[int] = 200_000

    @pytest.fixture
    def rows(self) -> Rows:
        """Return the store."""
        return {}

    @pytest.fixture
    def storage(self, rows: Rows) -> CheckpointStorage:
        """Return a storage of it."""
        return self.kind(rows, "contoso")

    @pytest.fixture
    def reopen(self, rows: Rows) -> Reopen:
        """Return what makes another."""

        async def opened() -> CheckpointStorage:
            return self.kind(rows, "contoso")

        return opened

    @pytest.fixture
    def storage_of(self, rows: Rows) -> StorageOf:
        """Return what makes that of an owner."""

        async def opened(owner: str) -> CheckpointStorage:
            return self.kind(rows, owner)

        return opened


class TestSound(Contract):
    """Without a fault."""


class _Falsy(Sound):
    def __len__(self) -> int:
        return len(self.rows)


class _KeepsTheObject(Sound):
    async def save(self, checkpoint: WorkflowCheckpoint) -> str:
        self.keep(checkpoint, datetime.fromisoformat(checkpoint.timestamp))
        return checkpoint.checkpoint_id


class _GivesTheObject(Sound):
    async def load(self, checkpoint_id: str) -> WorkflowCheckpoint:
        await super().load(checkpoint_id)
        return self.rows[self.key(checkpoint_id)][1]


class _RaisesAnother(Sound):
    async def load(self, checkpoint_id: str) -> WorkflowCheckpoint:
        return self.copied(self.rows[self.key(checkpoint_id)][1])


class _DeletesWithoutLooking(Sound):
    async def delete(self, checkpoint_id: str) -> bool:
        await super().delete(checkpoint_id)
        return True


class _MixesWorkflows(Sound):
    def in_order(self, workflow_name: str) -> list[WorkflowCheckpoint]:
        names: Iterable[str] = {one.workflow_name for _, one in self.rows.values()}
        return [
            one
            for name in names
            if name.startswith(workflow_name)
            for one in super(_MixesWorkflows, self).in_order(name)
        ]


class _KeepsJson(Sound):
    def copied(self, checkpoint: WorkflowCheckpoint) -> WorkflowCheckpoint:
        own = super().copied(checkpoint)
        own.state = json.loads(json.dumps(own.state, default=str, skipkeys=True))
        return own


class _JoinsOwnerAndId(Sound):
    def key(self, checkpoint_id: str) -> tuple[str, str]:
        return "", f"{self.owner}/{checkpoint_id}"


class _FoldsOwners(Sound):
    def __init__(self, rows: Rows, owner: str) -> None:
        super().__init__(rows, owner.casefold())


class _FoldsCase(Sound):
    def key(self, checkpoint_id: str) -> tuple[str, str]:
        return self.owner, checkpoint_id.casefold()


class _CutsIds(Sound):
    def key(self, checkpoint_id: str) -> tuple[str, str]:
        return self.owner, checkpoint_id[:255]


class _NewestFirst(Sound):
    async def list_checkpoint_ids(self, *, workflow_name: str) -> list[str]:
        return list(reversed(await super().list_checkpoint_ids(workflow_name=workflow_name)))


class _IgnoresParents(Sound):
    async def save(self, checkpoint: WorkflowCheckpoint) -> str:
        own = self.copied(checkpoint)
        self.keep(own, datetime.fromisoformat(own.timestamp))
        return own.checkpoint_id


class _CopiesLate(Sound):
    async def save(self, checkpoint: WorkflowCheckpoint) -> str:
        await asyncio.sleep(0)
        return await super().save(checkpoint)


class _SavesInTwoSteps(Sound):
    async def save(self, checkpoint: WorkflowCheckpoint) -> str:
        own = self.copied(checkpoint)
        empty = copy.copy(own)
        empty.state = {}
        await super().save(empty)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return await super().save(own)


class _LosesUpdates(Sound):
    async def save(self, checkpoint: WorkflowCheckpoint) -> str:
        own, seen = self.copied(checkpoint), dict(self.rows)
        await asyncio.sleep(0)
        self.rows.clear()
        self.rows.update(seen)
        return await super().save(own)


class _RefusesARepeat(Sound):
    async def save(self, checkpoint: WorkflowCheckpoint) -> str:
        if self.key(checkpoint.checkpoint_id) in self.rows:
            raise WorkflowCheckpointException("it is there already")
        return await super().save(checkpoint)


class _Forgets(Sound):
    def __init__(self, _rows: Rows, owner: str) -> None:
        super().__init__({}, owner)


class _ReadsStale(Sound):
    def __init__(self, rows: Rows, owner: str) -> None:
        super().__init__(rows, owner)
        self.seen: dict[str, WorkflowCheckpoint] = {}

    async def load(self, checkpoint_id: str) -> WorkflowCheckpoint:
        if checkpoint_id not in self.seen:
            self.seen[checkpoint_id] = await super().load(checkpoint_id)
        return self.copied(self.seen[checkpoint_id])


class _RefusesLarge(Sound):
    async def save(self, checkpoint: WorkflowCheckpoint) -> str:
        if len(repr(checkpoint.state)) > 90_000:
            raise WorkflowCheckpointException("it is too large")
        return await super().save(checkpoint)


class _ListsOnePage(Sound):
    async def list_checkpoint_ids(self, *, workflow_name: str) -> list[str]:
        return (await super().list_checkpoint_ids(workflow_name=workflow_name))[:100]


class _WithoutState(Sound):
    lost: ClassVar[str] = ""

    def copied(self, checkpoint: WorkflowCheckpoint) -> WorkflowCheckpoint:
        own = super().copied(checkpoint)
        own.state = {key: value for key, value in own.state.items() if key != self.lost}
        return own


class _LosesEdges(_WithoutState):
    lost: ClassVar[str] = "_edge_state"


class _LosesInnerState(Sound):
    def copied(self, checkpoint: WorkflowCheckpoint) -> WorkflowCheckpoint:
        own = super().copied(checkpoint)
        if inner := own.state.get("_executor_state", {}).get("inner"):
            inner.clear()
        return own


class _LosesExecutors(_WithoutState):
    lost: ClassVar[str] = "_executor_state"


class _LosesSteps(_WithoutState):
    lost: ClassVar[str] = "_step_cache"


CAUGHT_BY: Final[dict[type[Sound], str]] = {
    _Falsy: "test_a_storage_is_true",
    _KeepsTheObject: "test_what_is_saved_is_a_copy",
    _GivesTheObject: "test_what_is_read_is_a_copy",
    _RaisesAnother: "test_load_of_what_is_not_there",
    _DeletesWithoutLooking: "test_delete",
    _MixesWorkflows: "test_workflows_do_not_mix",
    _KeepsJson: "test_a_value_comes_back",
    _JoinsOwnerAndId: "test_an_id_cannot_reach_another_owner",
    _FoldsOwners: "test_owners_do_not_see_each_other",
    _FoldsCase: "test_ids_that_look_alike",
    _CutsIds: "test_ids_that_look_alike",
    _NewestFirst: "test_the_order_is_that_of_time",
    _IgnoresParents: "test_a_child_with_an_earlier_clock",
    _CopiesLate: "test_state_that_changes_while_it_is_saved",
    _SavesInTwoSteps: "test_a_cancelled_save",
    _LosesUpdates: "test_many_saves_at_once",
    _RefusesARepeat: "test_saving_again",
    _Forgets: "test_another_process_finds_it",
    _ReadsStale: "test_what_another_process_replaces_is_replaced",
    _RefusesLarge: "test_a_large_state",
    _ListsOnePage: "test_many_checkpoints",
    _LosesEdges: "test_a_graph",
    _LosesInnerState: "test_a_workflow_in_a_workflow",
    _LosesExecutors: "test_a_workflow_as_an_agent",
    _LosesSteps: "test_a_functional_workflow",
}
"""Which test, by name, has to fail on which of them."""


def _contract(kind: type[Sound]) -> type[Contract]:
    return type(f"Test{kind.__name__}", (Contract,), {"kind": kind, "__module__": __name__})


globals().update({f"Test{kind.__name__}": _contract(kind) for kind in CAUGHT_BY})
