"""Checkpoints and state types that several tests use; importable, so that another process can restore them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from agent_framework import WorkflowCheckpoint

WORKFLOW = "invoice-approval"


@dataclass
class Invoice:
    """A state value of an application."""

    number: int
    lines: list[str] = field(default_factory=list)


class Unregistered:
    """A state value that no allow-list names."""

    def __init__(self, secret: str) -> None:
        self.secret = secret


ALLOWED_TYPES = ("support.states:Invoice",)


def checkpoint(checkpoint_id: str | None = None, *, workflow: str = WORKFLOW, **fields: Any) -> WorkflowCheckpoint:
    """Return a checkpoint with some state."""
    if checkpoint_id is not None:
        fields["checkpoint_id"] = checkpoint_id
    fields.setdefault("state", {"invoice": Invoice(7, ["paper"]), "total": 2**70})
    return WorkflowCheckpoint(workflow_name=workflow, graph_signature_hash="0" * 64, **fields)


def chain(length: int, *, step: timedelta = timedelta(seconds=1), **fields: Any) -> list[WorkflowCheckpoint]:
    """Return a lineage, each checkpoint one step after its parent."""
    start = datetime(2026, 11, 29, 10, tzinfo=UTC)
    made: list[WorkflowCheckpoint] = []
    for number in range(length):
        parent = made[-1].checkpoint_id if made else None
        timestamp = (start + number * step).isoformat()
        made.append(checkpoint(f"cp-{number:03}", previous_checkpoint_id=parent, timestamp=timestamp, **fields))
    return made
