"""Rows out of candidates: filter, order, project, drop duplicates, skip and stop.

Owns the run of a plan over a source, and resuming it. Everything is lazy: no candidate is read that no row needs,
except by orders over several properties, which read one value of the first property ahead, and groups.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby, takewhile

from cosmos_workflow_state.emulator._ordering import UNDEFINED, complement, term
from cosmos_workflow_state.emulator._query._groups import Grouping
from cosmos_workflow_state.emulator._query._operators import Evaluate
from cosmos_workflow_state.emulator._query._position import START, Position, encode
from cosmos_workflow_state.emulator._query._source import Candidate, ItemSource, Seek
from cosmos_workflow_state.emulator._values import Json

__all__ = ["Row", "Run"]


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a result.

    Attributes:
        value: The row; it may share parts with the item it came from and is not to be changed.
        position: Opaque; the query resumes behind this row from here.
    """

    value: Json
    position: bytes


@dataclass(frozen=True, slots=True)
class _Match:
    """A row before the window is applied, with the candidate it came from (its own name within the run)."""

    value: Json
    candidate: bytes
    position: Position


@dataclass(frozen=True, slots=True)
class Run:
    """One plan over one source.

    Attributes:
        source: The items.
        seek: The index range to read.
        where: The condition, None when there is none.
        order: ORDER BY of several properties, each with whether it descends; empty when the scan's order will do.
        project: One item to its row.
        grouping: What makes rows of groups of items; None if each item has a row of its own.
        distinct: Whether equal rows are given once.
        offset: How many rows to leave out first.
        limit: How many rows to give at most, None for all.
    """

    source: ItemSource
    seek: Seek | None
    where: Evaluate | None
    order: tuple[tuple[Evaluate, bool], ...]
    project: Evaluate
    grouping: Grouping | None
    distinct: bool
    offset: int
    limit: int | None

    def rows(self, start: Position) -> Iterator[Row]:
        """Give the rows behind a position."""
        end = None if self.limit is None else self.offset + self.limit
        consumed = start.consumed
        if end is not None and consumed >= end:
            return
        for match in self._matches(start):
            consumed += 1
            if consumed > self.offset:
                yield Row(match.value, encode(replace(match.position, consumed=consumed)))
            if consumed == end:
                return

    def _matches(self, start: Position) -> Iterator[_Match]:
        return self._distinct(start) if self.distinct else self._projected(start)

    def _distinct(self, start: Position) -> Iterator[_Match]:
        seen: set[bytes] = set()
        for match in self._projected(start):
            if not seen and start != START:
                seen = self._seen_before(match)
            key = term(match.value)
            if key not in seen:
                seen.add(key)
                yield match

    def _seen_before(self, first: _Match) -> set[bytes]:
        """Read again what came before the first match of a resumed run: cheaper to carry than the rows seen."""
        before = takewhile(lambda match: match.candidate != first.candidate, self._projected(START))
        return {term(match.value) for match in before}

    def _projected(self, start: Position) -> Iterator[_Match]:
        return self._of_items(start) if self.grouping is None else self._of_groups(self.grouping, start.key)

    def _of_groups(self, grouping: Grouping, done: bytes | None) -> Iterator[_Match]:
        """Gather all groups again on each page: their keys tell which ones are left."""
        for key, value in grouping.rows(candidate.item for candidate, _ in self._filtered(START)):
            if value is not UNDEFINED and (done is None or key > done):
                yield _Match(value, key, Position(0, None, key))

    def _of_items(self, start: Position) -> Iterator[_Match]:
        for candidate, position in self._ordered(start) if self.order else self._filtered(start):
            value = self.project(candidate.item)
            if value is not UNDEFINED:
                yield _Match(value, candidate.position, position)

    def _filtered(self, start: Position) -> Iterator[tuple[Candidate, Position]]:
        for candidate in self.source.scan(self.seek, start.scan):
            if self._accepts(candidate):
                yield candidate, Position(0, candidate.position)

    def _ordered(self, start: Position) -> Iterator[tuple[Candidate, Position]]:
        """Sort candidates that the scan leaves tied in the first property, one such group at a time."""
        behind = start.scan
        done = (start.key or b"", start.tie or b"")
        for _, tied in groupby(self.source.scan(self.seek, start.scan), self._scan_key):
            group = list(tied)
            accepted = [(self._sort_key(each), each.position, each) for each in group if self._accepts(each)]
            for key, tie, candidate in sorted(accepted, key=lambda entry: entry[:2]):
                if (key, tie) > done:
                    yield candidate, Position(0, behind, key, tie)
            behind = group[-1].position

    def _accepts(self, candidate: Candidate) -> bool:
        return self.where is None or self.where(candidate.item) is True

    def _scan_key(self, candidate: Candidate) -> bytes:
        # Without a seek the scan is in no order of ours: everything is one group.
        return b"" if self.seek is None else term(self.order[0][0](candidate.item))

    def _sort_key(self, candidate: Candidate) -> bytes:
        terms = ((term(evaluate(candidate.item)), descending) for evaluate, descending in self.order)
        return b"".join(complement(encoded) if descending else encoded for encoded, descending in terms)
