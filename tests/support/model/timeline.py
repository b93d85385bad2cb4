"""What was stored when: the checkpoints at each moment, and who may have changed them from one to the next."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from .store import Store
from .truth import CheckpointId, Held, checkpoints, unreadable


class ViolationError(AssertionError):
    """Something happened that must never happen."""


@dataclass(slots=True, eq=False)
class Right:
    """What an operation may do to checkpoints, and has done.

    Attributes:
        tenant: Whose.
        scope: In which scope.
        removes: The ids that it may remove; None for all.
        stores: The id that it may store, None for none.
        digest: Of the state that it may store.
        changed: Which it has changed.
    """

    tenant: str
    scope: str
    removes: frozenset[str] | None = frozenset()
    stores: str | None = None
    digest: str = ""
    changed: list[CheckpointId] = field(default_factory=list[CheckpointId])

    def allows(self, which: CheckpointId, new: Held | None) -> bool:
        """Return whether the operation may have made this change."""
        if (which.tenant, which.scope) != (self.tenant, self.scope):
            return False
        if new is None:
            return self.removes is None or which.checkpoint_id in self.removes
        return which.checkpoint_id == self.stores and new.digest == self.digest


class Timeline:
    """All moments of a store, one after each write and each move of the clock.

    Attributes:
        violations: What must not have happened.
    """

    def __init__(self, store: Store) -> None:
        """Start with an empty store."""
        self._store = store
        self._moments: list[dict[CheckpointId, Held]] = [{}]
        self.violations: list[str] = []
        store.remember(0)

    @property
    def now(self) -> int:
        """The present moment."""
        return len(self._moments) - 1

    @property
    def present(self) -> dict[CheckpointId, Held]:
        """What is stored now."""
        return self._moments[-1]

    def observe(self, right: Right | None) -> None:
        """Look at the store after a write, or after the clock was moved, and compare with what may have happened.

        Args:
            right: Of the operation that wrote; None for the clock.
        """
        items = self._store.items()
        before, after = self.present, checkpoints(items)
        self._moments.append(after)
        self._store.remember(self.now)
        for which in before.keys() | after.keys():
            if before.get(which) != after.get(which):
                self._check_change(which, before.get(which), after.get(which), right)
        self.violations += unreadable(items)

    def _check_change(self, which: CheckpointId, old: Held | None, new: Held | None, right: Right | None) -> None:
        if right is None:
            if new is not None:
                self.violations.append(f"{which} appeared by itself")
            return
        right.changed.append(which)
        if not right.allows(which, new):
            self.violations.append(
                f"{which} was {'removed' if new is None else 'stored'} by who has no business with it"
            )
        if old is not None and new is not None and old.sort_key != new.sort_key:
            self.violations.append(f"{which} lost its place in the order when it was replaced")

    def moments(self, since: int) -> Iterator[dict[CheckpointId, Held]]:
        """Yield what was stored at each moment from one on, as it was, and as it looks by the clock of now.

        A replica that is behind may still have what was replaced; it does not show what has expired.
        """
        clock = self._store.clock()
        for moment in self._moments[since:]:
            yield moment
            yield {which: held for which, held in moment.items() if held.expires > int(clock)}

    def versions(self, which: CheckpointId, since: int) -> set[str | None]:
        """Return the digests that a checkpoint has had since a moment; None among them when it was not there."""
        found = (moment.get(which) for moment in self.moments(since))
        return {None if held is None else held.digest for held in found}

    def newest(self, tenant: str, scope: str, since: int) -> set[CheckpointId | None]:
        """Return the checkpoints that were the newest since a moment; None among them when there was none."""
        found: set[CheckpointId | None] = set()
        for moment in self.moments(since):
            own = [(held.sort_key, which) for which, held in moment.items() if _in(which, tenant, scope)]
            found.add(max(own, key=lambda pair: pair[0])[1] if own else None)
        return found

    def always(self, tenant: str, scope: str, since: int) -> set[CheckpointId]:
        """Return the checkpoints that were there at each moment since one."""
        found = set(self.present)
        for moment in self.moments(since):
            found &= moment.keys()
        return {which for which in found if _in(which, tenant, scope)}


def _in(which: CheckpointId, tenant: str, scope: str) -> bool:
    return (which.tenant, which.scope) == (tenant, scope)
