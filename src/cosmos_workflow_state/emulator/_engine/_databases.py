"""Databases: create, find, list, delete.

Owns the rows of databases. Must not know of items.
"""

from __future__ import annotations

from dataclasses import dataclass

from cosmos_workflow_state.emulator._engine._containers import delete_containers
from cosmos_workflow_state.emulator._engine._definition import checked_name
from cosmos_workflow_state.emulator._engine._errors import ExistsError, MissingError
from cosmos_workflow_state.emulator._engine._offers import Throughput, create_offer, delete_offer
from cosmos_workflow_state.emulator._engine._transaction import Transaction, resource_id, resource_number
from cosmos_workflow_state.emulator._values import Json, JsonObject

__all__ = ["Database", "create_database", "delete_database", "find_database", "list_databases"]


@dataclass(frozen=True, slots=True)
class Database:
    """One database.

    Attributes:
        number: Innermost number of its `_rid`.
        name: Its id.
        etag: Quoted.
        ts: When it was created, in seconds since 1970.
    """

    number: int
    name: str
    etag: str
    ts: int

    @property
    def rid(self) -> str:
        """Its `_rid`."""
        return resource_id(self.number)

    def document(self) -> JsonObject:
        """Give the database as it is shown to clients."""
        return {
            "id": self.name,
            "_rid": self.rid,
            "_self": f"dbs/{self.rid}/",
            "_etag": self.etag,
            "_colls": "colls/",
            "_users": "users/",
            "_ts": self.ts,
        }


def create_database(transaction: Transaction, name: Json, throughput: Throughput | None = None) -> Database:
    """Create a database.

    Args:
        transaction: A writing one.
        name: What the client gave as `id`.
        throughput: What its containers share, None for nothing.

    Returns:
        The database.

    Raises:
        InvalidError: The name is not allowed.
        ExistsError: There is one of this name.
    """
    checked = checked_name(name)
    if transaction.connection.execute("SELECT 1 FROM databases WHERE name = ?", (checked,)).fetchall():
        raise ExistsError(f"A database with the id {checked!r} exists already.")
    stamp, offered = transaction.stamps(2)
    transaction.connection.execute(
        "INSERT INTO databases VALUES (?, ?, ?, ?)", (stamp.serial, checked, stamp.etag, stamp.ts)
    )
    if throughput is not None:
        create_offer(transaction, stamp.serial, throughput, offered)
    return Database(stamp.serial, checked, stamp.etag, stamp.ts)


def find_database(transaction: Transaction, name: str) -> Database:
    """Find a database.

    Args:
        transaction: Any.
        name: Its id or its `_rid`.

    Returns:
        The database.

    Raises:
        MissingError: There is none.
    """
    rows = (
        transaction.connection.execute(
            "SELECT number, name, etag, ts FROM databases WHERE name = ?", (name,)
        ).fetchall()
        or transaction.connection.execute(
            "SELECT number, name, etag, ts FROM databases WHERE number = ?", (resource_number(name),)
        ).fetchall()
    )
    if not rows:
        raise MissingError("The database does not exist.")
    return Database(*rows[0])


def list_databases(transaction: Transaction) -> list[Database]:
    """List all databases in the order of their creation."""
    rows = transaction.connection.execute("SELECT number, name, etag, ts FROM databases ORDER BY number")
    return [Database(*row) for row in rows]


def delete_database(transaction: Transaction, name: str) -> None:
    """Delete a database with everything in it.

    Args:
        transaction: A writing one.
        name: Its id or its `_rid`.

    Raises:
        MissingError: There is none.
    """
    number = find_database(transaction, name).number
    transaction.stamps()
    delete_containers(transaction, number)
    delete_offer(transaction, number)
    transaction.connection.execute("DELETE FROM databases WHERE number = ?", (number,))
