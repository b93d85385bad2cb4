"""What the demo's processes do, one function a process: real workflows on the public API, told as log events.

Run as ``python -m cosmos_workflow_state._cli._demo_steps STEP STATE_FILE …``. The events of the library itself
(``checkpoint.saved`` and so on) go the same way.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Final

import structlog
from agent_framework import WorkflowCheckpoint

from cosmos_workflow_state import CosmosStateFactory, CosmosStateSettings, TenantCheckpointStorage
from cosmos_workflow_state.errors import CheckpointNotFoundError, CosmosStateError

from ._demo_processes import FINISHED, FOUND, LISTED, NOT_FOUND, PAUSED, READY
from ._demo_workflow import CHECKPOINT_TYPES, WORKFLOW_NAME, build_workflow, invoice_of
from ._log import log_json_lines
from ._output import CommandError


async def pause(state_file: str, *tenant_ids: str) -> None:
    """Run each tenant's workflow until it waits for its human, and then wait to be killed."""
    async with _factory(state_file) as factory:
        for tenant_id in tenant_ids:
            storage = factory.for_tenant(tenant_id).checkpoints
            await build_workflow().run(invoice_of(tenant_id), checkpoint_storage=storage)
            paused = await _latest(storage)
            _tell(PAUSED, tenant_id, checkpoint_id=paused.checkpoint_id, question=_pending(paused)[1])
        structlog.get_logger().info(READY)
        # Ends when whoever started this process does, so that nothing is left behind.
        await asyncio.to_thread(sys.stdin.read)


async def resume(state_file: str, tenant_id: str, answer: str) -> None:
    """Find what a tenant's workflow waits for, knowing only the two names; answer, and finish it."""
    async with _factory(state_file) as factory:
        storage = factory.for_tenant(tenant_id).checkpoints
        paused = await _latest(storage)
        request_id, question = _pending(paused)
        _tell(FOUND, tenant_id, checkpoint_id=paused.checkpoint_id, question=question, answer=answer)
        result = await build_workflow().run(
            responses={request_id: answer}, checkpoint_id=paused.checkpoint_id, checkpoint_storage=storage
        )
        for output in result.get_outputs():
            _tell(FINISHED, tenant_id, outcome=output)
        for checkpoint in await storage.list_checkpoints(workflow_name=WORKFLOW_NAME):
            _tell(LISTED, tenant_id, checkpoint_id=checkpoint.checkpoint_id, iteration=checkpoint.iteration_count)


async def trespass(state_file: str, tenant_id: str, checkpoint_id: str) -> None:
    """Ask, as one tenant, for a checkpoint of another."""
    async with _factory(state_file) as factory:
        try:
            await factory.for_tenant(tenant_id).checkpoints.load(checkpoint_id)
        except CheckpointNotFoundError as error:
            _tell(NOT_FOUND, tenant_id, checkpoint_id=checkpoint_id, error=type(error).__name__)


def main(arguments: Sequence[str]) -> None:
    """Run one step.

    Args:
        arguments: The step, the state file, and what the step takes.

    Raises:
        SystemExit: The step failed; its message is what this process has to say last.
    """
    log_json_lines()
    step, *rest = arguments
    try:
        asyncio.run(_STEPS[step](*rest))
    except (CommandError, CosmosStateError, OSError) as error:
        sys.exit(str(error))


_STEPS: Final[Mapping[str, Callable[..., Coroutine[Any, Any, None]]]] = {
    "pause": pause,
    "resume": resume,
    "trespass": trespass,
}


def _factory(state_file: str) -> CosmosStateFactory:
    # What the user has configured for an account of theirs has no say in the demo.
    return CosmosStateFactory(
        CosmosStateSettings(
            _env_file=None, endpoint=f"embedded:{state_file}", allowed_checkpoint_types=CHECKPOINT_TYPES
        )
    )


async def _latest(storage: TenantCheckpointStorage) -> WorkflowCheckpoint:
    latest = await storage.get_latest(workflow_name=WORKFLOW_NAME)
    if latest is None:
        raise CommandError("no checkpoint was stored")
    return latest


def _pending(checkpoint: WorkflowCheckpoint) -> tuple[str, str]:
    """Return the id of the request that a checkpoint waits for, and its question."""
    for request_id, event in checkpoint.pending_request_info_events.items():
        return request_id, event.data.question
    raise CommandError("the newest checkpoint waits for nothing")


def _tell(event: str, tenant_id: str, **fields: str | int) -> None:
    structlog.get_logger().info(event, tenant_id=tenant_id, **fields)


if __name__ == "__main__":
    main(sys.argv[1:])
