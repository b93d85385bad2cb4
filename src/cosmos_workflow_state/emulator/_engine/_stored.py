"""Where an item lives, what it looks like stored, and how it is found.

Owns addresses, ids and reading. Must not write.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from cosmos_workflow_state.emulator._engine._containers import Container
from cosmos_workflow_state.emulator._engine._errors import InvalidError, MissingError
from cosmos_workflow_state.emulator._engine._expiry import LIVE
from cosmos_workflow_state.emulator._engine._transaction import Transaction, resource_number, sql
from cosmos_workflow_state.emulator._partition import KeyRange
from cosmos_workflow_state.emulator._values import JsonObject

__all__ = [
    "Address",
    "Precondition",
    "StoredItem",
    "address_of_rid",
    "find_item",
    "item_id",
    "read_item",
]

_MAX_ID_BYTES = 1023
_FORBIDDEN_IN_IDS: Final = frozenset("/\\?#")
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

    @property
    def keys(self) -> KeyRange:
        """The range that is this one partition key."""
        return KeyRange(self.epk, self.epk + b"\x00", self.key)


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
        terms: How many index terms the write changed; 0 when the item was only read.
    """

    number: int
    etag: str
    lsn: int
    body: bytes
    terms: int = 0


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
