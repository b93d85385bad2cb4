"""Items: create, read, replace, upsert, delete.

Owns the rows of items and their system properties. Must not know of requests; an item comes in as JSON and goes out as
the bytes that are stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from cosmos_workflow_state.emulator._engine._containers import Container
from cosmos_workflow_state.emulator._engine._definition import checked_ttl
from cosmos_workflow_state.emulator._engine._errors import (
    ExistsError,
    InvalidError,
    MissingError,
    PreconditionError,
)
from cosmos_workflow_state.emulator._engine._expiry import LIVE, expiry
from cosmos_workflow_state.emulator._engine._json import dump, parse_object
from cosmos_workflow_state.emulator._engine._terms import IndexEntry, item_terms, remove_terms, write_terms
from cosmos_workflow_state.emulator._engine._transaction import Stamp, Transaction, resource_id, resource_number, sql
from cosmos_workflow_state.emulator._values import JsonObject

__all__ = [
    "Address",
    "Precondition",
    "StoredItem",
    "address_of_rid",
    "create_item",
    "delete_item",
    "find_item",
    "item_id",
    "read_item",
    "replace_item",
    "upsert_item",
]

_MAX_ID_BYTES = 1023
_FORBIDDEN_IN_IDS: Final = frozenset("/\\?#")
_SYSTEM: Final = ("_rid", "_self", "_etag", "_attachments", "_ts")
_ANY_ETAG = "*"
_FIND: Final = sql(
    "SELECT number, etag, lsn, body FROM items WHERE container = ? AND epk = ? AND key = ? AND id = ? AND", LIVE
)


@dataclass(frozen=True, slots=True)
class Address:
    """Where an item lives.

    Attributes:
        container: Its container.
        epk: Effective partition key.
        key: Encoded partition key.
        id: The id in UTF-8; lone surrogates are let through.
    """

    container: Container
    epk: bytes
    key: bytes
    id: bytes


@dataclass(frozen=True, slots=True)
class Precondition:
    """What has to be true of an item before it is written.

    Attributes:
        if_match: The ETag it has to have, `*` for any, None for no condition.
        if_none_match: The ETag it must not have, `*` for any, None for no condition.
    """

    if_match: str | None = None
    if_none_match: str | None = None


@dataclass(frozen=True, slots=True)
class StoredItem:
    """One item.

    Attributes:
        number: Innermost number of its `_rid`.
        etag: Quoted.
        lsn: Of the write that made it what it is.
        body: The item with its system properties, as JSON in UTF-8.
    """

    number: int
    etag: str
    lsn: int
    body: bytes


def item_id(item: JsonObject) -> bytes:
    """Check an item's id.

    Args:
        item: The item.

    Returns:
        The id in UTF-8; lone surrogates are let through.

    Raises:
        InvalidError: It is missing, no text, empty, too long or has a character that is not allowed.
    """
    name = item.get("id")
    if not isinstance(name, str) or not name:
        raise InvalidError("An item needs an 'id', a text that is not empty.")
    if not _FORBIDDEN_IN_IDS.isdisjoint(name):
        raise InvalidError("The id of an item must not contain '/', '\\', '?' or '#'.")
    encoded = name.encode("utf-8", "surrogatepass")
    if len(encoded) > _MAX_ID_BYTES:
        raise InvalidError(f"The id of an item has at most {_MAX_ID_BYTES} bytes.")
    return encoded


def read_item(transaction: Transaction, address: Address) -> StoredItem:
    """Read an item.

    Args:
        transaction: Any.
        address: Where it lives.

    Returns:
        The item.

    Raises:
        MissingError: There is none, or it has expired.
    """
    found = find_item(transaction, address)
    if found is None:
        raise MissingError("The item does not exist.")
    return found


def find_item(transaction: Transaction, address: Address) -> StoredItem | None:
    """Read an item, None when there is none or it has expired."""
    rows: list[Any] = transaction.connection.execute(
        _FIND,
        (address.container.number, address.epk, address.key, address.id, transaction.now),
    ).fetchall()
    return StoredItem(*rows[0]) if rows else None


def address_of_rid(transaction: Transaction, address: Address, rid: str) -> Address | None:
    """Find where the item with a `_rid` lives.

    Args:
        transaction: Any.
        address: Its partition key; the id is not looked at.
        rid: The item's `_rid`.

    Returns:
        Its address, None when there is no such item under this partition key.
    """
    rows = transaction.connection.execute(
        "SELECT id FROM items WHERE number = ? AND container = ? AND key = ?",
        (resource_number(rid), address.container.number, address.key),
    ).fetchall()
    return Address(address.container, address.epk, address.key, rows[0][0]) if rows else None


def create_item(transaction: Transaction, address: Address, item: JsonObject, stamp: Stamp) -> StoredItem:
    """Create an item.

    Args:
        transaction: A writing one.
        address: Where it is to live.
        item: The item; system properties in it are replaced.
        stamp: Of this write.

    Returns:
        The item as stored.

    Raises:
        ExistsError: There is one.
        InvalidError: Its `ttl` is not allowed, or it cannot be written as JSON.
    """
    if find_item(transaction, address) is not None:
        raise ExistsError("An item with this id and partition key exists already.")
    _remove(transaction, address)
    return _insert(transaction, address, item, stamp)


def replace_item(
    transaction: Transaction,
    address: Address,
    item: JsonObject,
    stamp: Stamp,
    precondition: Precondition,
) -> StoredItem:
    """Replace an item.

    Args:
        transaction: A writing one.
        address: Where it lives.
        item: The new item; system properties in it are replaced.
        stamp: Of this write.
        precondition: What has to be true of the old one.

    Returns:
        The item as stored.

    Raises:
        MissingError: There is none.
        PreconditionError: The precondition is false.
        InvalidError: Its `ttl` is not allowed, or it cannot be written as JSON.
    """
    old = read_item(transaction, address)
    _check(old, precondition)
    return _update(transaction, address, old, item, stamp)


def upsert_item(
    transaction: Transaction,
    address: Address,
    item: JsonObject,
    stamp: Stamp,
    precondition: Precondition,
) -> tuple[StoredItem, bool]:
    """Create an item or replace the one that is there.

    Args:
        transaction: A writing one.
        address: Where it lives.
        item: The new item; system properties in it are replaced.
        stamp: Of this write.
        precondition: What has to be true of the old one, if there is one.

    Returns:
        The item as stored, and whether it is new.

    Raises:
        PreconditionError: The precondition is false.
        InvalidError: Its `ttl` is not allowed, or it cannot be written as JSON.
    """
    old = find_item(transaction, address)
    if old is None:
        return create_item(transaction, address, item, stamp), True
    _check(old, precondition)
    return _update(transaction, address, old, item, stamp), False


def delete_item(transaction: Transaction, address: Address, precondition: Precondition) -> None:
    """Delete an item.

    Args:
        transaction: A writing one, in which a stamp was taken.
        address: Where it lives.
        precondition: What has to be true of it.

    Raises:
        MissingError: There is none.
        PreconditionError: The precondition is false.
    """
    _check(read_item(transaction, address), precondition)
    _remove(transaction, address)


def _check(item: StoredItem, precondition: Precondition) -> None:
    expected, unwanted = precondition.if_match, precondition.if_none_match
    if expected not in (None, _ANY_ETAG, item.etag) or unwanted in (_ANY_ETAG, item.etag):
        raise PreconditionError("The item's ETag does not meet the request's condition.")


def _insert(transaction: Transaction, address: Address, item: JsonObject, stamp: Stamp) -> StoredItem:
    ttl, expires = _lifetime(address.container, item, stamp)
    full = _with_system_properties(address.container, stamp.serial, item, stamp)
    stored = StoredItem(stamp.serial, stamp.etag, stamp.lsn, dump(full))
    place = (stored.number, address.container.number, address.epk, address.key, address.id)
    transaction.connection.execute(
        "INSERT INTO items VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (*place, stored.etag, stamp.ts, stored.lsn, ttl, expires, stored.body),
    )
    new = item_terms(address.container.definition.policy, full)
    write_terms(transaction, _entry(address, stored.number), set(), new)
    return stored


def _update(
    transaction: Transaction,
    address: Address,
    old: StoredItem,
    item: JsonObject,
    stamp: Stamp,
) -> StoredItem:
    ttl, expires = _lifetime(address.container, item, stamp)
    full = _with_system_properties(address.container, old.number, item, stamp)
    stored = StoredItem(old.number, stamp.etag, stamp.lsn, dump(full))
    transaction.connection.execute(
        "UPDATE items SET etag = ?, ts = ?, lsn = ?, ttl = ?, expires = ?, body = ? WHERE number = ?",
        (stored.etag, stamp.ts, stored.lsn, ttl, expires, stored.body, old.number),
    )
    policy = address.container.definition.policy
    before, now = item_terms(policy, parse_object(old.body)), item_terms(policy, full)
    write_terms(transaction, _entry(address, old.number), before, now)
    return stored


def _remove(transaction: Transaction, address: Address) -> None:
    """Remove the row at an address, be it expired or not, if there is one."""
    rows: list[Any] = transaction.connection.execute(
        "SELECT number, body FROM items WHERE container = ? AND epk = ? AND key = ? AND id = ?",
        (address.container.number, address.epk, address.key, address.id),
    ).fetchall()
    for number, body in rows:
        remove_terms(transaction, _entry(address, number), address.container.definition.policy, body)
        transaction.connection.execute("DELETE FROM items WHERE number = ?", (number,))


def _entry(address: Address, number: int) -> IndexEntry:
    return IndexEntry(address.container.number, number, address.epk)


def _lifetime(container: Container, item: JsonObject, stamp: Stamp) -> tuple[int | None, int | None]:
    ttl = checked_ttl(item["ttl"], "ttl") if "ttl" in item else None
    return ttl, expiry(stamp.ts, ttl, container.definition.default_ttl)


def _with_system_properties(container: Container, number: int, item: JsonObject, stamp: Stamp) -> JsonObject:
    rid = resource_id(container.database, container.number, number)
    full = {name: value for name, value in item.items() if name not in _SYSTEM}
    return full | {
        "_rid": rid,
        "_self": f"{container.link}docs/{rid}/",
        "_etag": stamp.etag,
        "_attachments": "attachments/",
        "_ts": stamp.ts,
    }
