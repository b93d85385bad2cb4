"""Writing items: create, replace, upsert, delete.

Owns the rows of items and their system properties. Must not know of requests; an item comes in as JSON and goes out as
the bytes that are stored.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from cosmos_workflow_state.emulator._engine._containers import Container
from cosmos_workflow_state.emulator._engine._definition import checked_ttl
from cosmos_workflow_state.emulator._engine._errors import ExistsError, PreconditionError
from cosmos_workflow_state.emulator._engine._expiry import expiry
from cosmos_workflow_state.emulator._engine._json import check_nesting, dump, parse_object
from cosmos_workflow_state.emulator._engine._stored import (
    Address,
    Precondition,
    StoredItem,
    find_item,
    item_id,
    read_item,
)
from cosmos_workflow_state.emulator._engine._terms import IndexEntry, item_terms, remove_terms, write_terms
from cosmos_workflow_state.emulator._engine._transaction import Stamp, Transaction, resource_id
from cosmos_workflow_state.emulator._engine._uniques import claim_uniques, release_uniques
from cosmos_workflow_state.emulator._values import JsonObject

__all__ = ["SYSTEM_PROPERTIES", "create_item", "delete_item", "replace_item", "upsert_item"]

SYSTEM_PROPERTIES: Final = ("_rid", "_self", "_etag", "_attachments", "_ts")
"""What the engine itself writes into every item."""

_ANY_ETAG = "*"
_TAKEN = "An item with this id and partition key exists already."


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
        ExistsError: There is one, or one with the same unique key.
        InvalidError: Its `ttl` is not allowed, or it cannot be written as JSON.
    """
    if find_item(transaction, address) is not None:
        raise ExistsError(_TAKEN)
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
        item: The new item; system properties in it are replaced. It may have another id.
        stamp: Of this write.
        precondition: What has to be true of the old one.

    Returns:
        The item as stored.

    Raises:
        MissingError: There is none.
        ExistsError: There is another one of the new id, or with the same unique key.
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
        ExistsError: There is another one with the same unique key.
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
    stored = StoredItem(stamp.serial, stamp.etag, stamp.lsn, _text(full))
    place = (stored.number, address.container.number, address.epk, address.key, address.id)
    transaction.connection.execute(
        "INSERT INTO items VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (*place, stored.etag, stamp.ts, stored.lsn, ttl, expires, stored.body),
    )
    terms = item_terms(address.container.definition.policy, full)
    write_terms(transaction, _entry(address, stored.number), set(), terms)
    claim_uniques(transaction, address, stored.number, full)
    return replace(stored, terms=len(terms))


def _update(
    transaction: Transaction,
    address: Address,
    old: StoredItem,
    item: JsonObject,
    stamp: Stamp,
) -> StoredItem:
    ttl, expires = _lifetime(address.container, item, stamp)
    full = _with_system_properties(address.container, old.number, item, stamp)
    stored = StoredItem(old.number, stamp.etag, stamp.lsn, _text(full))
    name = _free_id(transaction, address, item)
    transaction.connection.execute(
        "UPDATE items SET id = ?, etag = ?, ts = ?, lsn = ?, ttl = ?, expires = ?, body = ? WHERE number = ?",
        (name, stored.etag, stamp.ts, stored.lsn, ttl, expires, stored.body, old.number),
    )
    policy = address.container.definition.policy
    before, now = item_terms(policy, parse_object(old.body)), item_terms(policy, full)
    write_terms(transaction, _entry(address, old.number), before, now)
    claim_uniques(transaction, address, old.number, full)
    return replace(stored, terms=len(before ^ now))


def _free_id(transaction: Transaction, address: Address, item: JsonObject) -> bytes:
    """Make sure that the id an item is to have is its own already, or nobody's."""
    wanted = replace(address, id=item_id(item))
    if wanted != address:
        if find_item(transaction, wanted) is not None:
            raise ExistsError(_TAKEN)
        _remove(transaction, wanted)
    return wanted.id


def _remove(transaction: Transaction, address: Address) -> None:
    """Remove the row at an address, be it expired or not, if there is one."""
    rows: list[Any] = transaction.connection.execute(
        "SELECT number, body FROM items WHERE container = ? AND epk = ? AND key = ? AND id = ?",
        (address.container.number, address.epk, address.key, address.id),
    ).fetchall()
    for number, body in rows:
        remove_terms(transaction, _entry(address, number), address.container.definition.policy, body)
        release_uniques(transaction, number)
        transaction.connection.execute("DELETE FROM items WHERE number = ?", (number,))


def _text(full: JsonObject) -> bytes:
    text = dump(full)
    check_nesting(full, text)
    return text


def _entry(address: Address, number: int) -> IndexEntry:
    return IndexEntry(address.container.number, number, address.epk)


def _lifetime(container: Container, item: JsonObject, stamp: Stamp) -> tuple[int | None, int | None]:
    ttl = checked_ttl(item["ttl"], "ttl") if "ttl" in item else None
    return ttl, expiry(stamp.ts, ttl, container.definition.default_ttl)


def _with_system_properties(container: Container, number: int, item: JsonObject, stamp: Stamp) -> JsonObject:
    rid = resource_id(container.database, container.number, number)
    full = {name: value for name, value in item.items() if name not in SYSTEM_PROPERTIES}
    return full | {
        "_rid": rid,
        "_self": f"{container.link}docs/{rid}/",
        "_etag": stamp.etag,
        "_attachments": "attachments/",
        "_ts": stamp.ts,
    }
