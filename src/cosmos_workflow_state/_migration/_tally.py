"""What a migration has come to, item by item: counts that add up, and why each item that failed did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

Report = Callable[[int, int | None], object]
"""Told how many items are dealt with, and of how many."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One item that was not migrated.

    Attributes:
        item_id: Its id in the source.
        place: Its workflow, or its session; ``""`` where it says none.
        source_id: Which history of the session; None for a checkpoint, and where it says none.
        tenant_id: Whose it would have become, None where that is not known.
        reason: Why; nothing of what is in it.
        remedy: What to do about it, as far as that is about this one; ``""`` where there is nothing to add.
        newest: Whether it is the newest of its workflow or history, so that what is there now ends before it.
    """

    item_id: str
    place: str
    tenant_id: str | None
    reason: str
    source_id: str | None = None
    remedy: str = ""
    newest: bool = False


@dataclass(slots=True)
class TenantCounts:
    """How many items of one tenant were written, were there already, and failed."""

    written: int = 0
    already_there: int = 0
    failed: int = 0


@dataclass(slots=True)
class Tally:
    """Counts of one migration; in a dry run, of what it would have come to.

    Attributes:
        report: Told of every step.
        found: Items in the source.
        sources: How many messages there are of each source id.
        failures: Those that were not migrated.
        tenants: The counts of each tenant by its id.
    """

    report: Report
    found: int = 0
    sources: Counter[str] = field(default_factory=Counter[str])
    failures: list[Failure] = field(default_factory=list[Failure])
    tenants: dict[str, TenantCounts] = field(default_factory=dict[str, TenantCounts])

    @property
    def written(self) -> int:
        """Items that were written, and read back equal."""
        return sum(counts.written for counts in self.tenants.values())

    @property
    def already_there(self) -> int:
        """Items that an earlier run had written."""
        return sum(counts.already_there for counts in self.tenants.values())

    def find(self) -> None:
        """Count an item of the source."""
        self.found += 1
        self.report(self.found, None)

    def write(self, tenant_id: str, number: int = 1) -> None:
        """Count items that were written."""
        self._of(tenant_id).written += number
        self._tell()

    def skip(self, tenant_id: str, number: int = 1) -> None:
        """Count items that were there already."""
        self._of(tenant_id).already_there += number
        self._tell()

    def fail(self, failure: Failure) -> None:
        """Keep an item that failed."""
        self.failures.append(failure)
        if failure.tenant_id is not None:
            self._of(failure.tenant_id).failed += 1
        self._tell()

    def _of(self, tenant_id: str) -> TenantCounts:
        return self.tenants.setdefault(tenant_id, TenantCounts())

    def _tell(self) -> None:
        self.report(self.written + self.already_there + len(self.failures), self.found)
