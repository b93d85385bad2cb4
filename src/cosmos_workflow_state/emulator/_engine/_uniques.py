"""Unique keys: values that no two items of one partition key may share.

Owns the rows that stand for such values. Must not write items.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, Final

from cosmos_workflow_state.emulator._engine._errors import ExistsError
from cosmos_workflow_state.emulator._engine._expiry import LIVE
from cosmos_workflow_state.emulator._engine._paths import value_at
from cosmos_workflow_state.emulator._engine._stored import Address
from cosmos_workflow_state.emulator._engine._transaction import Transaction, sql
from cosmos_workflow_state.emulator._ordering import term
from cosmos_workflow_state.emulator._values import JsonObject

__all__ = ["claim_uniques", "release_uniques"]

_HOLDER: Final = sql(
    "SELECT uniques.item, (SELECT 1 FROM items WHERE items.number = uniques.item AND",
    LIVE,
    ") FROM uniques WHERE container = ? AND key = ? AND value = ?",
)


def claim_uniques(transaction: Transaction, address: Address, number: int, item: JsonObject) -> None:
    """Take the values of an item's unique keys for it, and give up those it had.

    Args:
        transaction: A writing one.
        address: Where the item lives.
        number: The item's number.
        item: The item as it is now.

    Raises:
        ExistsError: Another item of the same partition key has one of them.
    """
    if not address.container.definition.unique_keys:
        return
    release_uniques(transaction, number)
    for value in _values(address, item):
        place = (address.container.number, address.key, value)
        holders: list[Any] = transaction.connection.execute(_HOLDER, (transaction.now, *place)).fetchall()
        for holder, lives in holders:
            if lives:
                raise ExistsError("Unique index constraint violation.")
            release_uniques(transaction, holder)
        transaction.connection.execute("INSERT INTO uniques VALUES (?, ?, ?, ?)", (*place, number))


def release_uniques(transaction: Transaction, number: int) -> None:
    """Give up the values of a deleted item's unique keys."""
    transaction.connection.execute("DELETE FROM uniques WHERE item = ?", (number,))


def _values(address: Address, item: JsonObject) -> Iterator[bytes]:
    """Digest the values of each unique key; what is not there is a value of its own."""
    for position, paths in enumerate(address.container.definition.unique_keys):
        terms = b"".join(term(value_at(item, path)) for path in paths)
        yield bytes([position]) + hashlib.sha256(terms).digest()
