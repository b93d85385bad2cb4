"""Checkpoints for the tests of the kit."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from agent_framework import WorkflowCheckpoint

WORKFLOW: Final = "expense-approval"
START: Final = datetime(2026, 11, 29, 10, tzinfo=UTC)


def checkpoint(checkpoint_id: str = "cp-1", *, workflow: str = WORKFLOW, **fields: Any) -> WorkflowCheckpoint:
    """Return a checkpoint; its state holds its id, unless another state is given.

    Args:
        checkpoint_id: Its id.
        workflow: The name of its workflow.
        fields: Other fields of the checkpoint.
    """
    values: dict[str, Any] = {"timestamp": START.isoformat(), "state": {"id": checkpoint_id, "list": [1, 2]}}
    return WorkflowCheckpoint(workflow, "0" * 64, checkpoint_id, **(values | fields))


def chain(length: int, *, step: timedelta = timedelta(seconds=1), **fields: Any) -> list[WorkflowCheckpoint]:
    """Return a lineage, each checkpoint a step after its parent.

    Args:
        length: How many.
        step: Time from one to the next; may be zero or negative.
        fields: Other fields of all of them.
    """
    ids = [f"cp-{number:03}" for number in range(length)]
    return [
        checkpoint(own, previous_checkpoint_id=parent, timestamp=(START + number * step).isoformat(), **fields)
        for number, (own, parent) in enumerate(zip(ids, [None, *ids], strict=False))
    ]


def noise(size: int, seed: int = 0) -> bytes:
    """Return bytes that do not compress, the same in every run."""
    return random.Random(seed).randbytes(size)  # noqa: S311 - no secret, only bytes that look like nothing


def by_id(checkpoints: list[WorkflowCheckpoint]) -> list[WorkflowCheckpoint]:
    """Return checkpoints in the order of their ids: for tests that are not about the order."""
    return sorted(checkpoints, key=lambda one: one.checkpoint_id)
