"""Tests of the allow-list: what is not on it is refused when it is saved, not when it is needed."""

from __future__ import annotations

import os
from typing import Any, Final

import pytest
from agent_framework import (
    CheckpointStorage,
    WorkflowCheckpointException,
    WorkflowEvent,
    WorkflowMessage,
    register_checkpoint_type,
)

from ._capabilities import Capability, covers
from ._claims import Claims
from ._making import WORKFLOW, checkpoint
from ._values import EXPENSE, Expense, Items, Registered, Unlisted, same

HIDDEN: Final = {
    "itself": Unlisted(),
    "in-a-list": [Unlisted()],
    "in-a-tuple": ((Unlisted(),),),
    "in-a-dict": {"a": {"b": Unlisted()}},
    "in-a-dataclass": Expense("an allowed type", EXPENSE.total, [], Unlisted()),
    "in-a-subclass": Items([Unlisted()]),
    "as-a-class": Unlisted,
    "a-function": os.getcwd,
}
"""State that holds what nobody allows, by where it is."""


class AllowListTests(Claims):
    """Only listed types are restored, and ``save`` refuses what ``load`` would."""

    @covers(Capability.ALLOW_LIST)
    @pytest.mark.parametrize("where", HIDDEN)
    async def test_save_refuses_what_load_would(self, storage: CheckpointStorage, where: str) -> None:
        """With `WorkflowCheckpointException`, and nothing is stored."""
        with pytest.raises(WorkflowCheckpointException):
            await storage.save(checkpoint(state={"value": HIDDEN[where]}))
        await _assert_empty(storage)

    @covers(Capability.ALLOW_LIST)
    @pytest.mark.parametrize(
        "fields",
        [
            pytest.param({"messages": {"desk": [WorkflowMessage(Unlisted(), source_id="desk")]}}, id="messages"),
            pytest.param({"metadata": {"a": Unlisted()}}, id="metadata"),
            pytest.param(
                {"pending_request_info_events": {"r": WorkflowEvent.request_info("r", "desk", Unlisted(), bool)}},
                id="requests",
            ),
        ],
    )
    async def test_save_refuses_it_everywhere(self, storage: CheckpointStorage, fields: dict[str, Any]) -> None:
        """Not in the state alone: every field of a checkpoint is restored."""
        with pytest.raises(WorkflowCheckpointException):
            await storage.save(checkpoint(**fields))
        await _assert_empty(storage)

    @covers(Capability.ALLOW_LIST)
    async def test_a_refused_save_leaves_what_was_there(self, storage: CheckpointStorage) -> None:
        """Neither the latest nor the checkpoint of the same id is touched."""
        saved = checkpoint()
        await storage.save(saved)
        for own in ("cp-1", "cp-2"):
            with pytest.raises(WorkflowCheckpointException):
                await storage.save(checkpoint(own, state={"value": Unlisted()}))
        assert await storage.list_checkpoints(workflow_name=WORKFLOW) == [saved]
        assert await storage.get_latest(workflow_name=WORKFLOW) == saved

    @covers(Capability.ALLOW_LIST)
    async def test_registered_types_are_allowed(self, storage: CheckpointStorage) -> None:
        """What the application registers with the framework need not be listed, also after the storage was made."""
        register_checkpoint_type(Registered)
        state = {"value": [Registered(1)]}
        await storage.save(checkpoint(state=state))
        assert same((await storage.load("cp-1")).state, state)


async def _assert_empty(storage: CheckpointStorage) -> None:
    assert await storage.list_checkpoint_ids(workflow_name=WORKFLOW) == []
    assert await storage.get_latest(workflow_name=WORKFLOW) is None
