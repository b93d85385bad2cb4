"""Time to live: when items expire, and their removal.

Owns the rules of expiry. An expired item is invisible to everything from that second on; its row goes later.
"""

from __future__ import annotations

from typing import Final

from cosmos_workflow_state.emulator._engine._definition import NEVER, stored_definition
from cosmos_workflow_state.emulator._engine._terms import IndexEntry, remove_terms
from cosmos_workflow_state.emulator._engine._transaction import Transaction

__all__ = ["LIVE", "expiry", "remove_expired", "renew_expiries"]

LIVE: Final = "(items.expires IS NULL OR items.expires > ?)"
"""SQL condition for items that have not expired; takes the time."""

_REMOVED_AT_ONCE: Final = 16


def expiry(ts: int, ttl: int | None, default_ttl: int | None) -> int | None:
    """Say when an item expires.

    Args:
        ts: When it was last written, in seconds since 1970.
        ttl: Its own time to live in seconds, None when it has none.
        default_ttl: The container's.

    Returns:
        Seconds since 1970, None for never.
    """
    effective = default_ttl if ttl is None else ttl
    if default_ttl is None or effective is None or effective == NEVER:
        return None
    return ts + effective


def renew_expiries(transaction: Transaction, container: int, default_ttl: int | None) -> None:
    """Let a container's items expire by a new default."""
    items = transaction.connection.execute(
        "SELECT number, ts, ttl FROM items WHERE container = ?", (container,)
    ).fetchall()
    transaction.connection.executemany(
        "UPDATE items SET expires = ? WHERE number = ?",
        [(expiry(ts, ttl, default_ttl), number) for number, ts, ttl in items],
    )


def remove_expired(transaction: Transaction) -> None:
    """Remove a few of the items that have expired, of any container."""
    rows = transaction.connection.execute(
        "SELECT items.number, items.container, items.epk, items.body, containers.definition FROM items"
        " JOIN containers ON containers.number = items.container WHERE items.expires <= ? LIMIT ?",
        (transaction.now, _REMOVED_AT_ONCE),
    ).fetchall()
    for number, container, epk, body, definition in rows:
        entry = IndexEntry(container, number, epk)
        remove_terms(transaction, entry, stored_definition(definition).policy, body)
        for statement in ("DELETE FROM uniques WHERE item = ?", "DELETE FROM items WHERE number = ?"):
            transaction.connection.execute(statement, (number,))
