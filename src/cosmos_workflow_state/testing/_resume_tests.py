"""Tests that real workflows pause on the storage and go on from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest
from agent_framework import (
    CheckpointStorage,
    Content,
    Message,
    Workflow,
    WorkflowCheckpoint,
    WorkflowEvent,
    WorkflowRunState,
)

from ._capabilities import Capability, covers
from ._claims import Claims, Reopen
from ._values import EXPENSE, Question
from ._workflows import (
    AGENT,
    BOOKED,
    FUNCTIONAL,
    GRAPH,
    OUTER,
    PAID,
    build_agent,
    build_functional,
    build_graph,
    build_outer,
)

# The framework says so once in a process, whoever asks first.
_EXPERIMENTAL: Final = pytest.mark.filterwarnings("ignore:.*FUNCTIONAL_WORKFLOWS:FutureWarning")


class ResumeTests(Claims):
    """Workflows pause for a human and go on in a new instance, from the storage opened again."""

    @covers(Capability.GRAPH_RESUME)
    async def test_a_graph(self, storage: CheckpointStorage, reopen: Reopen) -> None:
        """With an answer of two in the buffer of a fan-in, state of an executor, and the state of the workflow."""
        assert await _paused_and_resumed(build_graph, GRAPH, storage, await reopen()) == [BOOKED]

    @covers(Capability.GRAPH_RESUME)
    async def test_a_graph_resumed_twice(self, storage: CheckpointStorage, reopen: Reopen) -> None:
        """The checkpoint of the pause is not used up: the same answer leads to the same end."""
        await build_graph().run(EXPENSE, checkpoint_storage=storage)
        paused = await _latest(storage, GRAPH)
        again = await reopen()
        for _ in range(2):
            assert await _resumed(build_graph(), paused, again) == [BOOKED]

    @covers(Capability.GRAPH_RESUME)
    async def test_the_lineage_of_a_graph(self, storage: CheckpointStorage, reopen: Reopen) -> None:
        """Every checkpoint of a run and of its resume names the one before it, and all are there."""
        await _paused_and_resumed(build_graph, GRAPH, storage, await reopen())
        made = {one.checkpoint_id: one for one in await storage.list_checkpoints(workflow_name=GRAPH)}
        walked: list[str] = []
        last: str | None = (await _latest(storage, GRAPH)).checkpoint_id
        while last is not None:
            walked.append(last)
            last = made[last].previous_checkpoint_id
        assert len(walked) == len(made) > 1

    @covers(Capability.SUB_WORKFLOW_RESUME)
    async def test_a_workflow_in_a_workflow(self, storage: CheckpointStorage, reopen: Reopen) -> None:
        """A whole checkpoint of the inner one is in the state of the outer one."""
        assert await _paused_and_resumed(build_outer, OUTER, storage, await reopen()) == [f"inner: {BOOKED}"]

    @covers(Capability.AGENT_RESUME)
    async def test_a_workflow_as_an_agent(self, storage: CheckpointStorage, reopen: Reopen) -> None:
        """The agent inside has its second turn after the pause, and remembers the first."""
        paused = await build_agent().run("hello", checkpoint_storage=storage)
        assert [content.type for message in paused.messages for content in message.contents] == ["function_call"]
        again = await reopen()
        checkpoint = await _latest(again, AGENT)
        asked = _question(checkpoint)
        assert asked.data == "turn 1: hello"
        answer = Message("tool", [Content.from_function_result(asked.request_id, result="go on")])
        done = await build_agent().run([answer], checkpoint_id=checkpoint.checkpoint_id, checkpoint_storage=again)
        assert done.text == "turn 2: go on"

    @_EXPERIMENTAL
    @covers(Capability.FUNCTIONAL_RESUME)
    async def test_a_functional_workflow(self, storage: CheckpointStorage, reopen: Reopen) -> None:
        """The step before the pause does not run again: its result is in the checkpoint."""
        ran: list[str] = []
        paused = await build_functional(ran).run(EXPENSE, checkpoint_storage=storage)
        assert paused.get_final_state() == WorkflowRunState.IDLE_WITH_PENDING_REQUESTS
        again = await reopen()
        checkpoint = await _latest(again, FUNCTIONAL)
        asked = _question(checkpoint)
        assert asked.data == Question(EXPENSE)
        done = await build_functional(ran).run(
            checkpoint_id=checkpoint.checkpoint_id, responses={asked.request_id: True}, checkpoint_storage=again
        )
        assert (done.get_outputs(), ran) == ([PAID], ["draft", "book"])


async def _paused_and_resumed(
    build: Callable[[], Workflow], name: str, storage: CheckpointStorage, again: CheckpointStorage
) -> list[object]:
    """Run a workflow up to its question, and another instance on from there; return what that puts out."""
    paused = await build().run(EXPENSE, checkpoint_storage=storage)
    assert paused.get_final_state() == WorkflowRunState.IDLE_WITH_PENDING_REQUESTS
    checkpoint = await _latest(again, name)
    assert _question(checkpoint).data == Question(EXPENSE)
    return await _resumed(build(), checkpoint, again)


async def _resumed(workflow: Workflow, paused: WorkflowCheckpoint, storage: CheckpointStorage) -> list[object]:
    answers = {_question(paused).request_id: True}
    done = await workflow.run(checkpoint_id=paused.checkpoint_id, responses=answers, checkpoint_storage=storage)
    assert done.get_final_state() == WorkflowRunState.IDLE
    return done.get_outputs()


async def _latest(storage: CheckpointStorage, name: str) -> WorkflowCheckpoint:
    latest = await storage.get_latest(workflow_name=name)
    assert latest is not None
    return latest


def _question(checkpoint: WorkflowCheckpoint) -> WorkflowEvent[object]:
    [asked] = checkpoint.pending_request_info_events.values()
    return asked
