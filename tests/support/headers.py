"""Headers of checkpoints that exist nowhere, for what only shows them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from cosmos_workflow_state.typing import CheckpointSummary
from support.states import WORKFLOW

_START = datetime(2026, 11, 29, 10, tzinfo=UTC)


def header(checkpoint_id: str, parent: str | None = None, *, number: int = 0, **fields: Any) -> CheckpointSummary:
    """Return the header of the checkpoint with a number in its workflow."""
    pending: tuple[str, ...] = fields.pop("pending", ())
    given: dict[str, Any] = {
        "workflow_name": WORKFLOW,
        "timestamp": (_START + number * timedelta(seconds=7)).isoformat(),
        "iteration_count": number,
        "pending_request_ids": pending,
        "pending_request_count": len(pending),
        "raw_bytes": 1000 + number,
        "stored_bytes": 500,
        "expires": None,
    }
    return CheckpointSummary(checkpoint_id=checkpoint_id, previous_checkpoint_id=parent, **(given | fields))


def headers(*parents: tuple[str, str | None], waiting: Iterable[str] = ()) -> list[CheckpointSummary]:
    """Return headers, oldest first, given ids and their parents."""
    asked = {one: (f"request-of-{one}",) for one in waiting}
    return [
        header(one, parent, number=number, pending=asked.get(one, ())) for number, (one, parent) in enumerate(parents)
    ]


def forked_workflow() -> list[CheckpointSummary]:
    """Return 100 checkpoints with one fork, of which two wait for answers."""
    chain = [(f"cp-{number:03}", f"cp-{number - 1:03}" if number else None) for number in range(100)]
    chain[60] = ("cp-060", "cp-040")
    return headers(*chain, waiting=("cp-059", "cp-099"))
