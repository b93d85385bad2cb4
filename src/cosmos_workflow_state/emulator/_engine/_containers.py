"""Containers: create, find, list, replace, delete.

Owns the rows of containers. Items are touched only as a whole: deleted with their container, or given new terms and
expiries when a definition is replaced.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cosmos_workflow_state.emulator._engine._definition import Definition, stored_definition
from cosmos_workflow_state.emulator._engine._errors import ExistsError, InvalidError, MissingError
from cosmos_workflow_state.emulator._engine._expiry import renew_expiries
from cosmos_workflow_state.emulator._engine._json import dump
from cosmos_workflow_state.emulator._engine._offers import (
    DEFAULT_THROUGHPUT,
    Throughput,
    create_offer,
    has_offer,
)
from cosmos_workflow_state.emulator._engine._terms import renew_terms
from cosmos_workflow_state.emulator._engine._transaction import Transaction, resource_id, resource_number
from cosmos_workflow_state.emulator._partition import KeyRange
from cosmos_workflow_state.emulator._values import JsonObject

__all__ = [
    "Container",
    "create_container",
    "delete_container",
    "delete_containers",
    "find_container",
    "list_containers",
    "replace_container",
]

_SELECT = (
    "SELECT containers.number, databases.number, databases.name, containers.etag, containers.ts,"
    " containers.definition, containers.partitions"
    " FROM databases JOIN containers ON containers.database = databases.number"
)


@dataclass(frozen=True, slots=True)
class Container:
    """One container.

    Attributes:
        number: Innermost number of its `_rid`.
        database: The number of its database.
        database_name: The id of its database.
        etag: Quoted.
        ts: When its definition was last written, in seconds since 1970.
        definition: What it is.
        partitions: How many physical partitions it has, for ever.
    """

    number: int
    database: int
    database_name: str
    etag: str
    ts: int
    definition: Definition
    partitions: int

    @property
    def rid(self) -> str:
        """Its `_rid`."""
        return resource_id(self.database, self.number)

    @property
    def link(self) -> str:
        """Its `_self`: the path of `_rid`s that leads to it."""
        return f"dbs/{resource_id(self.database)}/colls/{self.rid}/"

    @property
    def ranges(self) -> tuple[KeyRange, ...]:
        """The keys of each of its physical partitions."""
        return self.definition.partition_key.split(self.partitions)

    def document(self) -> JsonObject:
        """Give the container as it is shown to clients."""
        return self.definition.document() | {
            "_rid": self.rid,
            "_ts": self.ts,
            "_self": self.link,
            "_etag": self.etag,
            "_docs": "docs/",
            "_sprocs": "sprocs/",
            "_triggers": "triggers/",
            "_udfs": "udfs/",
            "_conflicts": "conflicts/",
        }


def create_container(
    transaction: Transaction,
    database: int,
    document: JsonObject,
    throughput: Throughput | None = None,
    partitions: int | None = None,
) -> Container:
    """Create a container.

    Args:
        transaction: A writing one.
        database: The number of the database it is to be in.
        document: The definition as the client wrote it.
        throughput: Its own; None for its database's or, if that has none, the default.
        partitions: How many physical partitions it gets; None for as many as its throughput asks for.

    Returns:
        The container.

    Raises:
        InvalidError: The definition is not allowed.
        ExistsError: There is one of this name.
    """
    definition = Definition.of(document)
    if _rows(transaction, "WHERE databases.number = ? AND containers.name = ?", (database, definition.name)):
        raise ExistsError(f"A container with the id {definition.name!r} exists already.")
    stamp, offered = transaction.stamps(2)
    own = throughput or (None if has_offer(transaction, database) else DEFAULT_THROUGHPUT)
    count = partitions or (own.partitions if own else 1)
    text = dump(definition.document()).decode()
    transaction.connection.execute(
        "INSERT INTO containers VALUES (?, ?, ?, ?, ?, ?, ?)",
        (stamp.serial, database, definition.name, stamp.etag, stamp.ts, text, count),
    )
    if own is not None:
        create_offer(transaction, stamp.serial, own, offered)
    return _one(transaction, "WHERE containers.number = ?", (stamp.serial,))


def find_container(transaction: Transaction, database: str, name: str) -> Container:
    """Find a container.

    Args:
        transaction: Any.
        database: Its database's id, or both are `_rid`s.
        name: Its id.

    Returns:
        The container.

    Raises:
        MissingError: There is none.
    """
    by_name = _rows(transaction, "WHERE databases.name = ? AND containers.name = ?", (database, name))
    if by_name:
        return by_name[0]
    numbers = (resource_number(database), resource_number(name))
    return _one(transaction, "WHERE databases.number = ? AND containers.number = ?", numbers)


def list_containers(transaction: Transaction, database: int) -> list[Container]:
    """List a database's containers in the order of their creation."""
    return _rows(transaction, "WHERE databases.number = ? ORDER BY containers.number", (database,))


def replace_container(transaction: Transaction, container: Container, document: JsonObject) -> Container:
    """Replace a container's definition; all of its items follow the new one at once.

    Args:
        transaction: A writing one.
        container: The container.
        document: The whole definition as the client wrote it.

    Returns:
        The container as it is now.

    Raises:
        InvalidError: The definition is not allowed, or differs in name, partition key or unique keys.
    """
    definition = Definition.of(document)
    old = container.definition
    fixed = (definition.name, definition.partition_key, definition.unique_keys)
    if fixed != (old.name, old.partition_key, old.unique_keys):
        raise InvalidError("The id, the partition key and the unique keys of a container cannot be changed.")
    (stamp,) = transaction.stamps()
    transaction.connection.execute(
        "UPDATE containers SET etag = ?, ts = ?, definition = ? WHERE number = ?",
        (stamp.etag, stamp.ts, dump(definition.document()).decode(), container.number),
    )
    if definition.policy.document != old.policy.document:
        renew_terms(transaction, container.number, definition.policy)
    if definition.default_ttl != old.default_ttl:
        renew_expiries(transaction, container.number, definition.default_ttl)
    return _one(transaction, "WHERE containers.number = ?", (container.number,))


def delete_container(transaction: Transaction, container: Container) -> None:
    """Delete a container with its items."""
    transaction.stamps()
    _delete(transaction, container.number)


def delete_containers(transaction: Transaction, database: int) -> None:
    """Delete all containers of a database with their items."""
    for container in list_containers(transaction, database):
        _delete(transaction, container.number)


def _delete(transaction: Transaction, number: int) -> None:
    for statement in (
        "DELETE FROM offers WHERE resource = ?",
        "DELETE FROM uniques WHERE container = ?",
        "DELETE FROM terms WHERE container = ?",
        "DELETE FROM items WHERE container = ?",
        "DELETE FROM containers WHERE number = ?",
    ):
        transaction.connection.execute(statement, (number,))


def _one(transaction: Transaction, condition: str, values: Iterable[object]) -> Container:
    rows = _rows(transaction, condition, values)
    if not rows:
        raise MissingError("The container does not exist.")
    return rows[0]


def _rows(transaction: Transaction, condition: str, values: Iterable[object]) -> list[Container]:
    rows: Iterable[tuple[int, int, str, str, int, str, int]] = transaction.connection.execute(
        f"{_SELECT} {condition}", tuple(values)
    ).fetchall()
    return [
        Container(number, database, database_name, etag, ts, stored_definition(definition), partitions)
        for number, database, database_name, etag, ts, definition, partitions in rows
    ]
