"""States of workflows, tiny but of all kinds: alone, against a keyframe, in parts, or both."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Final

from agent_framework import WorkflowCheckpoint

WORKFLOW: Final = "model"
MAX_WHOLE_BYTES: Final = 450
"""Bytes of a state that stands alone, in place of 2 KiB."""
PART_BYTES: Final = 800
"""Bytes of a part, in place of 290,000."""

_BLOCK: Final = 300
_LARGE: Final = 12
"""Blocks of a state whose keyframe needs parts; with `_PART_OF_LARGE` of them changed, the difference does, too."""
_PART_OF_LARGE: Final = 5
_START: Final = datetime(2027, 1, 15, 8, tzinfo=UTC)


class Change(Enum):
    """What becomes of a state from one checkpoint to the next."""

    SMALL = "small"
    NEXT = "next"
    MEDIUM = "medium"
    LARGE = "large"
    PARTLY = "partly"


@dataclass(frozen=True, slots=True)
class State:
    """A state: blocks that have nothing in common and do not shrink.

    Attributes:
        blocks: The seed of each.
    """

    blocks: tuple[int, ...] = ()

    def changed(self, change: Change, serial: int) -> State:
        """Return what follows it.

        Args:
            change: How it changes.
            serial: A number that no other state has.
        """
        fresh = tuple(serial * 100 + number for number in range(_LARGE))
        if change is Change.NEXT:
            return self
        if change is Change.PARTLY:
            return State(fresh[:_PART_OF_LARGE] + self.blocks[_PART_OF_LARGE:])
        return State(fresh[: {Change.SMALL: 0, Change.MEDIUM: 2, Change.LARGE: _LARGE}[change]])


def checkpoint(checkpoint_id: str, parent: str | None, state: State, serial: int) -> WorkflowCheckpoint:
    """Return a checkpoint that differs from all others, and is later in the order than those with lower numbers."""
    return WorkflowCheckpoint(
        workflow_name=WORKFLOW,
        graph_signature_hash="0" * 8,
        checkpoint_id=checkpoint_id,
        previous_checkpoint_id=parent,
        timestamp=(_START + timedelta(seconds=serial)).isoformat(),
        state={"serial": serial, "blocks": [_text(seed) for seed in state.blocks]},
    )


def _text(seed: int) -> str:
    return random.Random(seed).randbytes(_BLOCK // 2).hex()
