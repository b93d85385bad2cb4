"""What a query needs of the storage under it: the protocol and the values that cross it.

Owns the contract between the query part and the engine. Must not know how items are stored nor how a query is
written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from cosmos_workflow_state.emulator._values import JsonObject

__all__ = ["Bound", "Candidate", "ItemSource", "Path", "Seek"]

Path: TypeAlias = tuple[str, ...]
"""Property names from the item's root downwards; steps into arrays are never part of one."""


@dataclass(frozen=True, slots=True)
class Bound:
    """One end of a range of terms.

    Attributes:
        value: Bytes that terms are compared with; often a term itself, but not always (the end of all
            numbers, the end of all strings with a prefix).
        inclusive: Whether a term equal to `value` lies within.
    """

    value: bytes
    inclusive: bool


@dataclass(frozen=True, slots=True)
class Seek:
    """One range of the index over one path, in one direction.

    Attributes:
        path: The indexed path.
        low: Where the range starts, None for the beginning of the index.
        high: Where the range ends, None for the end of the index. An equality has two equal inclusive
            bounds; a range may be empty (low beyond high).
        descending: Whether candidates come from high to low.
    """

    path: Path
    low: Bound | None
    high: Bound | None
    descending: bool


@dataclass(frozen=True, slots=True)
class Candidate:
    """One item of a scan.

    Attributes:
        item: The item with its system properties. Never changed by the query part; rows may share its values.
        position: Where the scan stands behind this item; unique within the scan.
    """

    item: JsonObject
    position: bytes


class ItemSource(Protocol):
    """The unexpired items of one container and one range of partition keys (a full key, a prefix or all)."""

    def is_indexed(self, path: Path) -> bool:
        """Tell whether the indexing policy covers a path; `id` and `_ts` always, `_etag` never."""
        ...

    def is_fixed(self, path: Path) -> bool:
        """Tell whether this source's key range gives all its items one value at a path.

        True for the partition key paths that a full key or a prefix fixes: a seek over one narrows nothing.
        """
        ...

    def has_composite(self, order: tuple[tuple[Path, bool], ...]) -> bool:
        """Tell whether a composite index has these (path, descending) pairs or their exact inverse."""
        ...

    def scan(self, seek: Seek | None, after: bytes | None) -> Iterator[Candidate]:
        """Read the items of a range, lazily: the query part stops as soon as it has enough.

        Every item has exactly one term at every path: that of its value there, that of `UNDEFINED` when it
        has none. An item is a candidate if this term lies within the seek's bounds; so a seek without `low`
        also yields the items that lack the property, first (ascending) or last (descending).

        Args:
            seek: The range to read; None for all items, in an order that is the same every time.
            after: The position of a candidate of an earlier scan with an equal seek; continue behind it, even
                if its item is gone by now. None to start at the beginning.

        Yields:
            Candidates in the order of their terms, ties in an order that is the same every time.
        """
        ...
