"""A workflow with a fork and two pending approvals, always the same, to be looked at on the command line."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from agent_framework import WorkflowCheckpoint, WorkflowEvent

from cosmos_workflow_state import CosmosStateFactory, CosmosStateSettings
from support.states import ALLOWED_TYPES, WORKFLOW, Invoice

TENANT = "contoso"
_START = datetime(2026, 11, 29, 10, tzinfo=UTC)


def approvals(length: int = 100) -> list[WorkflowCheckpoint]:
    """Return checkpoints of which the one at two fifths has two children, and both branches end waiting."""
    fork, end = length * 2 // 5, length * 3 // 5
    made: list[WorkflowCheckpoint] = []
    for number in range(length):
        parent = None if number == 0 else f"cp-{(fork if number == end else number - 1):03}"
        asks = (f"approve-{number}",) if number in {end - 1, length - 1} else ()
        made.append(_checkpoint(number, parent, asks))
    return made


def store(endpoint: str, checkpoints: list[WorkflowCheckpoint], **settings: Any) -> None:
    """Save checkpoints for one tenant."""

    async def save() -> None:
        given = {"_env_file": None, "endpoint": endpoint, "allowed_checkpoint_types": ALLOWED_TYPES, **settings}
        async with CosmosStateFactory(CosmosStateSettings(**given)) as factory:
            for checkpoint in checkpoints:
                await factory.for_tenant(TENANT).checkpoints.save(checkpoint)

    asyncio.run(save())


def state_file(directory: Path, checkpoints: list[WorkflowCheckpoint]) -> str:
    """Save checkpoints into a state file of a directory; return its endpoint."""
    endpoint = f"embedded:{directory / 'state.db'}"
    store(endpoint, checkpoints)
    return endpoint


def _checkpoint(number: int, parent: str | None, asks: tuple[str, ...]) -> WorkflowCheckpoint:
    return WorkflowCheckpoint(
        workflow_name=WORKFLOW,
        graph_signature_hash="0" * 16,
        checkpoint_id=f"cp-{number:03}",
        previous_checkpoint_id=parent,
        timestamp=(_START + number * timedelta(seconds=7)).isoformat(),
        iteration_count=number,
        state={
            "invoice": Invoice(2041, ["paper"] * (1 + number // 10)),
            "totals": {"net": 1250 + number},
            "log": [f"step {step}" for step in range(number % 4)],
        },
        pending_request_info_events={
            one: WorkflowEvent.request_info(
                request_id=one, source_executor_id="approval", request_data="Pay?", response_type=str
            )
            for one in asks
        },
    )
