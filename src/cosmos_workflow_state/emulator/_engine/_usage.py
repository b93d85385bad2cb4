"""How much is stored: items, bytes and partition keys of each physical partition.

Owns the counting, which reads all of a container. Must not know how clients are told.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from cosmos_workflow_state.emulator._engine._containers import Container
from cosmos_workflow_state.emulator._engine._expiry import LIVE
from cosmos_workflow_state.emulator._engine._transaction import Transaction, sql

__all__ = ["Usage", "usage_of"]

_COUNT: Final = sql(
    "SELECT count(*), coalesce(sum(length(body)), 0), count(DISTINCT key) FROM items"
    " WHERE container = ? AND epk >= ? AND epk < ? AND",
    LIVE,
)


@dataclass(frozen=True, slots=True)
class Usage:
    """What one physical partition holds.

    Attributes:
        items: How many items.
        size: Bytes of all items.
        keys: How many different partition keys.
    """

    items: int
    size: int
    keys: int


def usage_of(transaction: Transaction, container: Container) -> list[Usage]:
    """Count what a container holds.

    Args:
        transaction: Any.
        container: The container.

    Returns:
        One count for each physical partition, in the order of the keys.
    """
    return [
        Usage(
            *transaction.connection.execute(
                _COUNT, (container.number, part.start, part.end, transaction.now)
            ).fetchall()[0]
        )
        for part in container.ranges
    ]
