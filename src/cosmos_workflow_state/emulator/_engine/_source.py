"""Items as queries read them: one container, one range of keys, in the order of an index or of the keys.

Owns the choice of the SQL that reads a range. Must not know of query texts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from cosmos_workflow_state.emulator._engine._containers import Container
from cosmos_workflow_state.emulator._engine._errors import InvalidError
from cosmos_workflow_state.emulator._engine._expiry import LIVE
from cosmos_workflow_state.emulator._engine._json import parse_object
from cosmos_workflow_state.emulator._engine._policy import Order, Path
from cosmos_workflow_state.emulator._engine._terms import path_number
from cosmos_workflow_state.emulator._engine._transaction import Transaction, sql
from cosmos_workflow_state.emulator._ordering import UNDEFINED, term, type_range
from cosmos_workflow_state.emulator._partition import KeyRange
from cosmos_workflow_state.emulator._query import Bound, Candidate, Seek

__all__ = ["ContainerSource"]

_UNDEFINED: Final = term(UNDEFINED)
_UNORDERED: Final = (type_range([])[0], type_range({})[0])
_LIVE_BODY: Final = sql("SELECT key, body FROM items WHERE number = ? AND", LIVE)
_NUMBER_BYTES = 8
_LENGTH_BYTES = 4

_Entry = tuple[bytes, bytes, int]
"""One row of the index: term, effective partition key, number of the item."""


@dataclass(frozen=True, slots=True)
class ContainerSource:
    """The items of one container within one range of keys, as one transaction sees them."""

    transaction: Transaction
    container: Container
    keys: KeyRange

    def is_indexed(self, path: Path) -> bool:
        """Tell whether the indexing policy covers a path."""
        return self.container.definition.policy.covers(path)

    def is_fixed(self, path: Path) -> bool:
        """Tell whether the key range gives all its items one value at a path."""
        paths = self.container.definition.partition_key.paths
        return path in (paths if self.keys.key is not None else paths[: self.keys.levels])

    def has_composite(self, order: Order) -> bool:
        """Tell whether a composite index serves an order or its inverse."""
        inverse = tuple((path, not descending) for path, descending in order)
        composites = self.container.definition.policy.composites
        return order in composites or inverse in composites

    def scan(self, seek: Seek | None, after: bytes | None) -> Iterator[Candidate]:
        """Read items lazily; see `ItemSource.scan`."""
        return self._by_key(after) if seek is None else self._by_term(_coarse(seek), after)

    def _by_key(self, after: bytes | None) -> Iterator[Candidate]:
        where = _Where()
        where.add("container = ?", self.container.number)
        where.add("epk >= ? AND epk < ?", self.keys.start, self.keys.end)
        if self.keys.key is not None:
            where.add("key = ?", self.keys.key)
        where.add(LIVE, self.transaction.now)
        if after is not None:
            where.add("(epk, key, id) > (?, ?, ?)", *_unpacked(after, 3))
        rows = self.transaction.connection.execute(
            sql("SELECT epk, key, id, body FROM items WHERE", where.text, "ORDER BY epk, key, id"), where.values
        )
        for epk, key, name, body in rows:
            yield Candidate(parse_object(body), _packed(epk, key, name))

    def _by_term(self, seek: Seek, after: bytes | None) -> Iterator[Candidate]:
        behind = None if after is None else _entry_at(after)
        for entry in self._entries(seek, behind):
            body = self._live_body(entry[2])
            if body is not None:
                yield Candidate(parse_object(body), _position_of(entry))

    def _entries(self, seek: Seek, behind: _Entry | None) -> Iterator[_Entry]:
        """List the index rows of a seek, with those for items without the property where they belong: lowest."""
        lacking = _within(_UNDEFINED, seek)
        if lacking and not seek.descending and (behind is None or behind[0] == _UNDEFINED):
            yield from self._lacking(seek, behind)
            behind = None
        if behind is None or behind[0] != _UNDEFINED:
            yield from self._present(seek, behind)
            behind = None
        if lacking and seek.descending:
            yield from self._lacking(seek, behind)

    def _present(self, seek: Seek, behind: _Entry | None) -> Iterator[_Entry]:
        where = self._index_range(seek)
        direction = "DESC" if seek.descending else "ASC"
        if behind is not None:
            sign = "<" if seek.descending else ">"
            # The first comparison says nothing new, but lets SQLite start there.
            where.add(f"{where.term} {sign}= ?", behind[0])
            where.add(f"({where.term}, epk, item) {sign} (?, ?, ?)", *behind)
        yield from self.transaction.connection.execute(
            sql(
                "SELECT term, epk, item FROM terms",
                where.index,
                "WHERE",
                where.text,
                f"ORDER BY {where.term} {direction}, epk {direction}, item {direction}",
            ),
            where.values,
        )

    def _index_range(self, seek: Seek) -> _Where:
        """Choose the index: by key within one key, by term across keys.

        A prefix takes the one by key, so that other keys cost nothing, except for one term: that one is found across
        keys just as directly.
        """
        where = _Where()
        where.add("container = ? AND path = ?", self.container.number, path_number(seek.path))
        if self.keys.key is not None:
            where.add("epk = ?", self.keys.start)
        elif self.keys.is_wide or _is_equality(seek):
            where.index = "INDEXED BY terms_across_keys"
            where.add("epk >= ? AND epk < ?", self.keys.start, self.keys.end)
        else:
            # With the sign, SQLite does not take the index across keys for its order, nor for the bounds.
            where.term = "+term"
            where.add("epk >= ? AND epk < ?", self.keys.start, self.keys.end)
        for bound, sign in ((seek.low, ">"), (seek.high, "<")):
            if bound is not None:
                where.add(f"{where.term} {sign}{'=' * bound.inclusive} ?", bound.value)
        return where

    def _lacking(self, seek: Seek, behind: _Entry | None) -> Iterator[_Entry]:
        """List the items without the property, by key and number as if they had a row in the index."""
        direction, sign = ("DESC", "<") if seek.descending else ("ASC", ">")
        where = _Where()
        where.add("container = ?", self.container.number)
        where.add("epk >= ? AND epk < ?", self.keys.start, self.keys.end)
        if behind is not None:
            where.add(f"(epk, number) {sign} (?, ?)", *behind[1:])
        path = (self.container.number, path_number(seek.path), self.keys.start, self.keys.end)
        rows: Iterator[Any] = self.transaction.connection.execute(
            sql(
                "SELECT epk, number FROM items WHERE",
                where.text,
                "AND number NOT IN",
                "(SELECT item FROM terms WHERE container = ? AND path = ? AND epk >= ? AND epk < ?)",
                f"ORDER BY epk {direction}, number {direction}",
            ),
            (*where.values, *path),
        )
        for epk, number in rows:
            yield _UNDEFINED, epk, number

    def _live_body(self, number: int) -> bytes | None:
        """Read an item of this range by number; None when it has expired or only its hash is of this key."""
        rows: list[tuple[bytes, bytes]] = self.transaction.connection.execute(
            _LIVE_BODY, (number, self.transaction.now)
        ).fetchall()
        if not rows or self.keys.key not in (None, rows[0][0]):
            return None
        return rows[0][1]


class _Where:
    """A condition in the making, and the index it is made for."""

    def __init__(self) -> None:
        self._conditions: list[str] = []
        self.values: list[object] = []
        self.index = ""
        self.term = "term"

    def add(self, condition: str, *values: object) -> None:
        self._conditions.append(condition)
        self.values += values

    @property
    def text(self) -> str:
        return " AND ".join(self._conditions)


def _coarse(seek: Seek) -> Seek:
    """Widen bounds that are arrays or objects: the index knows their type only."""
    return Seek(seek.path, _coarse_bound(seek.low), _coarse_bound(seek.high), seek.descending)


def _coarse_bound(bound: Bound | None) -> Bound | None:
    if bound is None or bound.value[:1] not in _UNORDERED or len(bound.value) == 1:
        return bound
    return Bound(bound.value[:1], inclusive=True)


def _within(value: bytes, seek: Seek) -> bool:
    low, high = seek.low, seek.high
    if low is not None and (value < low.value or (value == low.value and not low.inclusive)):
        return False
    return high is None or value < high.value or (value == high.value and high.inclusive)


def _is_equality(seek: Seek) -> bool:
    return seek.low is not None and seek.low == seek.high


def _packed(*parts: bytes) -> bytes:
    return b"".join(len(part).to_bytes(_LENGTH_BYTES, "big") + part for part in parts)


def _unpacked(packed: bytes, count: int) -> list[bytes]:
    parts: list[bytes] = []
    rest = packed
    while len(rest) >= _LENGTH_BYTES:
        end = _LENGTH_BYTES + int.from_bytes(rest[:_LENGTH_BYTES], "big")
        parts.append(rest[_LENGTH_BYTES:end])
        rest = rest[end:]
    if len(parts) != count or _packed(*parts) != packed:
        raise InvalidError("The continuation does not belong to this query.")
    return parts


def _position_of(entry: _Entry) -> bytes:
    return _packed(entry[0], entry[1], entry[2].to_bytes(_NUMBER_BYTES, "big"))


def _entry_at(position: bytes) -> _Entry:
    value, epk, number = _unpacked(position, 3)
    return value, epk, int.from_bytes(number, "big")
