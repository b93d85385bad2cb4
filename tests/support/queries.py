"""Items in a list as a source of queries, with the index semantics a real engine has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from cosmos_workflow_state.emulator._ordering import UNDEFINED, term
from cosmos_workflow_state.emulator._query import Candidate, Path, Seek, parse

VALUE_OF = "SELECT VALUE {} FROM c"


@dataclass
class ListSource:
    """Items in a list; counts the candidates it gave."""

    items: Sequence[dict[str, Any]]
    indexed: frozenset[Path] = frozenset()
    fixed: frozenset[Path] = frozenset()
    composites: frozenset[tuple[tuple[Path, bool], ...]] = frozenset()
    given: int = 0
    seeks: list[Seek | None] = field(default_factory=list[Seek | None])

    def is_indexed(self, path: Path) -> bool:
        """As the policy says; system paths always or never."""
        return path in {("id",), ("_ts",)} or path in self.indexed

    def is_fixed(self, path: Path) -> bool:
        """As told."""
        return path in self.fixed

    def has_composite(self, order: tuple[tuple[Path, bool], ...]) -> bool:
        """As told, or inverted."""
        inverted = tuple((path, not descending) for path, descending in order)
        return order in self.composites or inverted in self.composites

    def scan(self, seek: Seek | None, after: bytes | None) -> Iterator[Candidate]:
        """Sort by term and place in the list; positions are opaque but carry both."""
        self.seeks.append(seek)
        entries = [
            (b"" if seek is None else term(value_at(item, seek.path)), number, item)
            for number, item in enumerate(self.items)
        ]
        entries.sort(key=lambda entry: entry[:2], reverse=seek is not None and seek.descending)
        reached = after is None
        for key, number, item in entries:
            position = key + number.to_bytes(4, "big")
            if reached and (seek is None or within(seek, key)):
                self.given += 1
                yield Candidate(item, position)
            reached = reached or position == after


def value_at(item: Any, path: Path) -> Any:
    """The value at a path, or UNDEFINED."""
    for name in path:
        item = item.get(name, UNDEFINED) if isinstance(item, dict) else UNDEFINED
    return item


def within(seek: Seek, key: bytes) -> bool:
    """Whether a term lies in a seek's bounds."""
    above = seek.low is None or key > seek.low.value or (seek.low.inclusive and key == seek.low.value)
    below = seek.high is None or key < seek.high.value or (seek.high.inclusive and key == seek.high.value)
    return above and below


def rows_of(text: str, items: Sequence[dict[str, Any]], /, **parameters: Any) -> list[Any]:
    """What a query answers over items without indexes; parameters without their @."""
    plan = parse(text).bind({f"@{name}": value for name, value in parameters.items()})
    return [row.value for row in plan.rows(ListSource(items))]


def value_of(expression: str, item: dict[str, Any], /, **parameters: Any) -> list[Any]:
    """What an expression is for an item: a list of one value, empty for undefined."""
    return rows_of(VALUE_OF.format(expression), [item], **parameters)
