"""What this process has seen and done: where an id lives and when it was, what was swept. Bounded; only ever a hint.

It saves `load` a query (the workflow of an id is known) and keeps a child after its parent on a node whose clock is
behind. Forgetting costs a request or falls back to the timestamp, never a wrong answer: each key is a whole identity.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import Final, TypeVar

from ._identity import Scope, TenantId
from ._records import CheckpointKey

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")

_REMEMBERED: Final = 20_000
_SECONDS_BETWEEN_SWEEPS: Final = 3600.0
_SEVERAL: Final = ""  # no workflow name is empty


class LineageMemory:
    """Times and workflows of the checkpoints last seen by this process, of all tenants."""

    def __init__(self) -> None:
        """Start knowing nothing."""
        self._times: OrderedDict[CheckpointKey, int] = OrderedDict()
        self._workflows: OrderedDict[tuple[TenantId, Scope, str], str] = OrderedDict()

    def remember(self, key: CheckpointKey, time: int) -> None:
        """Note a checkpoint that was saved, or read from what is stored.

        Args:
            key: Which one.
            time: Microseconds since 0001-01-01 UTC, as in its sort key.
        """
        place = (key.tenant, key.scope, key.checkpoint_id)
        known = self._workflows.get(place, key.workflow_name)
        _put(self._workflows, place, key.workflow_name if known == key.workflow_name else _SEVERAL)
        _put(self._times, key, time)

    def time_of(self, key: CheckpointKey) -> int | None:
        """Return the time of a checkpoint, None when this process has not seen it."""
        return self._times.get(key)

    def workflow_of(self, tenant: TenantId, scope: Scope, checkpoint_id: str) -> str | None:
        """Return the workflow of an id, None when this process has seen it in none or in several."""
        return self._workflows.get((tenant, scope, checkpoint_id)) or None


class SweepSchedule:
    """Which logical partitions this process has swept in the last hour."""

    def __init__(self) -> None:
        """Start with none."""
        self._swept: OrderedDict[tuple[TenantId, str], float] = OrderedDict()

    def take(self, tenant: TenantId, workflow_name: str) -> bool:
        """Return whether a logical partition is due; then it is not again for an hour."""
        now, partition = time.monotonic(), (tenant, workflow_name)
        last = self._swept.get(partition)
        if last is not None and now < last + _SECONDS_BETWEEN_SWEEPS:
            return False
        _put(self._swept, partition, now)
        return True

    def give_back(self, tenant: TenantId, workflow_name: str) -> None:
        """Make a logical partition due again: it was not swept to the end."""
        self._swept.pop((tenant, workflow_name), None)


def _put(memory: OrderedDict[_Key, _Value], key: _Key, value: _Value) -> None:
    memory[key] = value
    memory.move_to_end(key)
    if len(memory) > _REMEMBERED:
        memory.popitem(last=False)
