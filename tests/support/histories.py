"""What several processes have done to checkpoints at once, and what may therefore be read.

A write takes effect at one moment between its begin and its end; it need not when it is not certain, and does not when
it has failed. Requests that are still on their way may make it take effect later, too. So a read finds what was not
certainly overwritten before the read began: anything else was lost, or came back.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from dataclasses import dataclass, field

from agent_framework import WorkflowCheckpoint

_NEVER_THERE = -1.0


@dataclass(slots=True, eq=False)
class Write:
    """A save or a deletion.

    Attributes:
        value: What it stores, None for a deletion.
        begun: When it began.
        done: When it had certainly taken effect; infinite where that is not certain.
        spent: When nothing of it was under way any more; infinite before.
        failed: Whether it has said that it did nothing.
    """

    value: WorkflowCheckpoint | None
    begun: float
    done: float = math.inf
    spent: float = math.inf
    failed: bool = False


@dataclass(slots=True)
class History:
    """All writes so far. Moments are numbers, each later than the one before.

    Attributes:
        writes: The writes of each checkpoint's id.
        erasures: Deletions of all ids, of those to come as well.
    """

    writes: defaultdict[str, list[Write]] = field(default_factory=lambda: defaultdict(list))
    erasures: list[Write] = field(
        default_factory=lambda: [Write(None, _NEVER_THERE, done=_NEVER_THERE, spent=_NEVER_THERE)]
    )
    _moments: itertools.count[int] = field(default_factory=itertools.count)

    def now(self) -> float:
        """Return this moment."""
        return float(next(self._moments))

    def save(self, checkpoint: WorkflowCheckpoint) -> Write:
        """Note that a save begins."""
        return self._begin(self.writes[checkpoint.checkpoint_id], checkpoint)

    def delete(self, checkpoint_id: str) -> Write:
        """Note that a deletion begins."""
        return self._begin(self.writes[checkpoint_id], None)

    def erase(self) -> Write:
        """Note that a deletion of everything begins."""
        return self._begin(self.erasures, None)

    def possible(self, checkpoint_id: str, since: float) -> list[WorkflowCheckpoint | None]:
        """Return what may be read of this id by who began at a moment and ends now."""
        writes = [write for write in (*self.erasures, *self.writes[checkpoint_id]) if not write.failed]
        return [
            write.value
            for write in writes
            if not any(write.spent < other.begun and other.done < since for other in writes)
        ]

    def _begin(self, writes: list[Write], value: WorkflowCheckpoint | None) -> Write:
        write = Write(value, self.now())
        writes.append(write)
        return write
