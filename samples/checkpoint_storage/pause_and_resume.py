"""Pause a workflow in one process, resume it in another.

    python pause_and_resume.py pause                 runs to the human's approval, prints the checkpoint's id and ends
    python pause_and_resume.py resume ID             is a new process: answers "yes" and finishes
    python pause_and_resume.py resume ID fabrikam    is another tenant: not found

Needs no account: state is kept in ./pause_and_resume.db. Against an account, set COSMOS_WORKFLOW_STATE_ENDPOINT and
COSMOS_WORKFLOW_STATE_KEY, and COSMOS_WORKFLOW_STATE_PROVISIONING=create the first time; nothing here changes.
"""

import asyncio
import os
import sys
from dataclasses import dataclass
from typing import Never

from agent_framework import Executor, Workflow, WorkflowBuilder, WorkflowContext, handler, response_handler

from cosmos_workflow_state import CosmosStateFactory, CosmosStateSettings, TenantCheckpointStorage
from cosmos_workflow_state.errors import CheckpointNotFoundError

NAME = "pause-and-resume"  # a fixed name: a process finds only checkpoints of workflows it can name


@dataclass
class Trip:
    """What has to be approved."""

    destination: str
    days: int


class Approval(Executor):
    """Asks a human and goes on with the answer."""

    @handler
    async def ask(self, trip: Trip, context: WorkflowContext[Never, str]) -> None:
        """Ask; the workflow pauses here."""
        await context.request_info(trip, str)

    @response_handler
    async def answered(self, trip: Trip, answer: str, context: WorkflowContext[Never, str]) -> None:
        """Finish with the answer, perhaps days later and in another process."""
        await context.yield_output(f"{trip.days} days in {trip.destination}: {answer}")


def build() -> Workflow:
    """Return the workflow, the same in every process."""
    approval = Approval("approval")
    return WorkflowBuilder(name=NAME, start_executor=approval, output_from=[approval]).build()


async def pause(storage: TenantCheckpointStorage) -> None:
    """Run to the approval and print the id of the newest checkpoint."""
    await build().run(Trip("Oslo", 3), checkpoint_storage=storage)
    latest = await storage.get_latest(workflow_name=NAME)
    print(latest.checkpoint_id if latest else "nothing was saved")


async def resume(storage: TenantCheckpointStorage, checkpoint_id: str) -> None:
    """Load the checkpoint, answer what it waits for, and finish."""
    paused = await storage.load(checkpoint_id)
    answers = dict.fromkeys(paused.pending_request_info_events, "yes")
    result = await build().run(responses=answers, checkpoint_id=checkpoint_id, checkpoint_storage=storage)
    print(*result.get_outputs())


async def main(checkpoint_id: str | None = None, tenant: str = "contoso") -> None:
    """Open the factory; pause, or resume a checkpoint."""
    os.environ.setdefault("COSMOS_WORKFLOW_STATE_ENDPOINT", "embedded:pause_and_resume.db")
    # Only this script can restore `__main__:Trip`. An application has Trip in a module of its own: `trips:Trip`.
    settings = CosmosStateSettings(allowed_checkpoint_types=[f"{__name__}:Trip"])
    async with CosmosStateFactory(settings) as factory:
        storage = factory.for_tenant(tenant).checkpoints
        try:
            await (resume(storage, checkpoint_id) if checkpoint_id else pause(storage))
        except CheckpointNotFoundError:
            print(f"{tenant} has no checkpoint {checkpoint_id}")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["pause"]:
            asyncio.run(main())
        case ["resume", _] | ["resume", _, _]:
            asyncio.run(main(*sys.argv[2:]))
        case _:
            print(__doc__, file=sys.stderr)
            sys.exit(2)
