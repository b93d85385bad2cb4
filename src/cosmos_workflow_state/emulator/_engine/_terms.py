"""The index: which term rows stand for an item.

Owns the rows of the index and the numbers of paths. Must not know how queries use them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from cosmos_workflow_state.emulator._engine._json import dump, parse_object
from cosmos_workflow_state.emulator._engine._policy import IndexingPolicy, Path
from cosmos_workflow_state.emulator._engine._transaction import Transaction
from cosmos_workflow_state.emulator._values import JsonObject

__all__ = ["IndexEntry", "Term", "item_terms", "path_number", "remove_terms", "renew_terms", "write_terms"]

Term = tuple[int, bytes]
"""A path's number and the term of the value there."""


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """The item that index rows point to.

    Attributes:
        container: The container's number.
        number: The item's number.
        epk: The item's effective partition key.
    """

    container: int
    number: int
    epk: bytes


@lru_cache(maxsize=4096)
def path_number(path: Path) -> int:
    """Give the number that stands for a path in the index.

    A digest needs no table of paths. Should two paths ever share one, queries still evaluate their whole condition
    over every candidate.

    Args:
        path: Property names from the root downwards.

    Returns:
        A positive 63-bit number.
    """
    return int.from_bytes(hashlib.sha256(dump(list(path))).digest()[:8], "big") >> 1


def item_terms(policy: IndexingPolicy, item: JsonObject) -> set[Term]:
    """Give the terms of an item.

    Args:
        policy: The container's.
        item: The item with its system properties, no deeper than items may be.

    Returns:
        One term for each indexed path that has a value.
    """
    return {(path_number(path), term) for path, term in policy.terms(item)}


def write_terms(transaction: Transaction, entry: IndexEntry, old: set[Term], new: set[Term]) -> None:
    """Change the index for one item.

    Args:
        transaction: A writing one.
        entry: The item.
        old: The terms it had.
        new: Those it has now; what is in both is not touched.
    """
    for statement, changed in (
        ("DELETE FROM terms WHERE container = ? AND path = ? AND epk = ? AND term = ? AND item = ?", old - new),
        ("INSERT INTO terms VALUES (?, ?, ?, ?, ?)", new - old),
    ):
        rows = [(entry.container, path, entry.epk, term, entry.number) for path, term in changed]
        transaction.connection.executemany(statement, rows)


def remove_terms(transaction: Transaction, entry: IndexEntry, policy: IndexingPolicy, body: bytes) -> None:
    """Take an item out of the index.

    Args:
        transaction: A writing one.
        entry: The item.
        policy: Its container's, as it was when the item was written.
        body: The item as it is stored.
    """
    write_terms(transaction, entry, item_terms(policy, parse_object(body)), set())


def renew_terms(transaction: Transaction, container: int, policy: IndexingPolicy) -> None:
    """Build the index of a container anew, for a new policy."""
    connection = transaction.connection
    connection.execute("DELETE FROM terms WHERE container = ?", (container,))
    items: Iterable[tuple[int, bytes, bytes]] = connection.execute(
        "SELECT number, epk, body FROM items WHERE container = ?", (container,)
    )
    for number, epk, body in items:
        terms = item_terms(policy, parse_object(body))
        write_terms(transaction, IndexEntry(container, number, epk), set(), terms)
