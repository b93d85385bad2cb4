"""What runs inside one SQLite transaction is given: the connection, the time, the counters.

Owns log sequence numbers, serial numbers and ETags. Must not know of containers and items.
"""

from __future__ import annotations

import base64
import sqlite3
from dataclasses import dataclass

__all__ = ["Stamp", "Transaction", "resource_id", "resource_number", "sql"]


@dataclass(frozen=True, slots=True)
class Stamp:
    """What a write puts on what it writes.

    Attributes:
        lsn: Log sequence number; all operations of a batch share one.
        serial: Number that no other write of this file has.
        etag: Quoted, unique among all files.
        ts: Time of the write in seconds since 1970.
    """

    lsn: int
    serial: int
    etag: str
    ts: int


@dataclass(frozen=True, slots=True)
class Transaction:
    """One transaction.

    Attributes:
        connection: In a transaction, for the engine's modules only.
        now: Time in seconds since 1970; the same throughout the transaction.
    """

    connection: sqlite3.Connection
    now: int

    def lsn(self) -> int:
        """Read the number of the last write."""
        return int(self.connection.execute("SELECT lsn FROM counters").fetchall()[0][0])

    def stamps(self, count: int = 1) -> list[Stamp]:
        """Start a write: take the next log sequence number and as many serial numbers as there are operations.

        Args:
            count: Number of operations.

        Returns:
            One stamp an operation.
        """
        lsn, last, origin = self.connection.execute(
            "UPDATE counters SET lsn = lsn + 1, serial = serial + ? RETURNING lsn, serial, origin", (count,)
        ).fetchall()[0]
        return [
            Stamp(lsn, serial, f'"{origin}-0000-0000-{serial >> 32:04x}-{serial & 0xFFFFFFFF:012x}"', self.now)
            for serial in range(last - count + 1, last + 1)
        ]


def sql(*parts: str) -> str:
    """Put a statement together; all parts are the engine's own texts, values never are among them."""
    return " ".join(parts)


def resource_id(*numbers: int) -> str:
    """Build a `_rid`: the numbers of the database, the container and the item, as far as there are.

    Args:
        numbers: From the outside inwards.

    Returns:
        Base64 in the service's alphabet, in which '-' stands for '/'.
    """
    sizes = (4, 4, 8)
    raw = b"".join(number.to_bytes(size, "big") for number, size in zip(numbers, sizes, strict=False))
    return base64.b64encode(raw, b"+-").decode()


def resource_number(rid: str) -> int | None:
    """Read the innermost number of a `_rid`.

    Args:
        rid: Any text.

    Returns:
        The number, None when the text is no `_rid`.
    """
    try:
        raw = base64.b64decode(rid, b"+-", validate=True)
    except ValueError:
        return None
    size = {4: 4, 8: 4, 16: 8}.get(len(raw))
    return int.from_bytes(raw[-size:], "big") if size else None
