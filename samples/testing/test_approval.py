"""How an application tests its workflows: on the emulator, with the fixtures that the package brings to pytest.

    pip install pytest pytest-asyncio
    python -m pytest test_approval.py

Needs no account: the fixtures run an emulator in memory, and each test has a new and empty database in it. The client,
its requests and what they find are real; so is what the third and the fourth test make go wrong.
"""

from collections.abc import Callable
from typing import Never

import pytest
from agent_framework import Executor, Workflow, WorkflowBuilder, WorkflowContext, handler, response_handler

from cosmos_workflow_state import CosmosStateFactory, TenantCheckpointStorage
from cosmos_workflow_state.emulator import CosmosEmulator, Fault
from cosmos_workflow_state.errors import CheckpointNotFoundError

pytestmark = pytest.mark.asyncio

NAME = "approval"


class Approval(Executor):
    """Asks a human and goes on with the answer: what is tested here, in an application a module of its own."""

    @handler
    async def ask(self, trip: str, context: WorkflowContext[Never, str]) -> None:
        """Ask; the workflow pauses here."""
        await context.request_info(trip, str)

    @response_handler
    async def answered(self, trip: str, answer: str, context: WorkflowContext[Never, str]) -> None:
        """Finish with the answer."""
        await context.yield_output(f"{trip}: {answer}")


def build() -> Workflow:
    """Return the workflow."""
    approval = Approval("approval")
    return WorkflowBuilder(name=NAME, start_executor=approval, output_from=[approval]).build()


async def pause(storage: TenantCheckpointStorage) -> str:
    """Run to the approval; return the id of the checkpoint to go on from."""
    await build().run("Oslo", checkpoint_storage=storage)
    return (await storage.list_checkpoint_ids(workflow_name=NAME))[-1]


async def resume(storage: TenantCheckpointStorage, checkpoint_id: str) -> list[str]:
    """Answer "yes"; return what the workflow yields."""
    paused = await storage.load(checkpoint_id)
    answers = dict.fromkeys(paused.pending_request_info_events, "yes")
    result = await build().run(responses=answers, checkpoint_id=checkpoint_id, checkpoint_storage=storage)
    return result.get_outputs()


async def test_it_goes_on_after_a_restart(cosmos_state_factory: Callable[..., CosmosStateFactory]) -> None:
    """What one factory has stored, the next one finds: as when the process is another one."""
    async with cosmos_state_factory() as factory:
        checkpoint_id = await pause(factory.for_tenant("contoso").checkpoints)
    async with cosmos_state_factory() as factory:
        assert await resume(factory.for_tenant("contoso").checkpoints, checkpoint_id) == ["Oslo: yes"]


async def test_another_tenant_does_not_find_it(cosmos_state_factory: Callable[..., CosmosStateFactory]) -> None:
    """The same id, asked for as another tenant, is not found."""
    async with cosmos_state_factory() as factory:
        checkpoint_id = await pause(factory.for_tenant("contoso").checkpoints)
        with pytest.raises(CheckpointNotFoundError):
            await factory.for_tenant("fabrikam").checkpoints.load(checkpoint_id)


async def test_a_lost_answer_changes_nothing(
    cosmos_state_factory: Callable[..., CosmosStateFactory], cosmos_emulator: CosmosEmulator
) -> None:
    """The connection breaks after a write was done and before that is known; the workflow does not notice."""
    async with cosmos_state_factory() as factory:
        storage = factory.for_tenant("contoso").checkpoints
        cosmos_emulator.faults.add(Fault(operation="batch", drop="after"))
        assert await resume(storage, await pause(storage)) == ["Oslo: yes"]
        assert cosmos_emulator.faults.pending == ()  # it did break


async def test_it_expires(
    cosmos_state_factory: Callable[..., CosmosStateFactory], cosmos_emulator: CosmosEmulator
) -> None:
    """Nobody answers for an hour and a second, by the emulator's clock."""
    async with cosmos_state_factory(checkpoint_ttl=3600) as factory:
        storage = factory.for_tenant("contoso").checkpoints
        checkpoint_id = await pause(storage)
        cosmos_emulator.clock.advance(3601)
        with pytest.raises(CheckpointNotFoundError):
            await resume(storage, checkpoint_id)
