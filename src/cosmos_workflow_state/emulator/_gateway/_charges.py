"""Request charges: estimates in RU.

Owns the formulas. The service's are not public; these follow its documented examples: a point read costs 1 RU for 1 KB
and 10 for 100 KB, a write without indexes 5 and 50, a replacement about twice that, a query 2.8 and more
(https://learn.microsoft.com/azure/cosmos-db/request-units). Wherever a charge is shown, it is an estimate.
"""

from __future__ import annotations

from typing import Final

__all__ = ["METADATA_CHARGE", "delete_charge", "query_charge", "read_charge", "replace_charge", "write_charge"]

METADATA_CHARGE: Final = 1.0
"""RU of reading or writing databases, containers and offers."""

_KILOBYTE = 1024
_QUERY_BASE = 2.8
_ROW = 0.05
_RESULT_KILOBYTE = 0.03
_TERM = 0.1
_TERMS_OF_EVERY_ITEM = 2
"""`id` and `_ts` are indexed whatever the policy says; the published figures without indexes include them."""


def read_charge(size: int) -> float:
    """Estimate a point read of an item of so many bytes."""
    return _linear(1.0, 10.0, size)


def write_charge(size: int, terms: int) -> float:
    """Estimate the creation of an item of so many bytes that has so many index terms."""
    return round(_linear(5.0, 50.0, size) + _indexing(terms), 2)


def replace_charge(size: int, terms: int) -> float:
    """Estimate the replacement of an item by one of so many bytes that changes so many index terms."""
    return round(2 * _linear(5.0, 50.0, size) + _indexing(terms), 2)


def delete_charge() -> float:
    """Estimate a deletion."""
    return write_charge(0, 0)


def query_charge(rows: int, size: int) -> float:
    """Estimate a page of a query, of so many rows that have so many bytes together."""
    return round(_QUERY_BASE + _ROW * rows + _RESULT_KILOBYTE * size / _KILOBYTE, 2)


def _indexing(terms: int) -> float:
    return _TERM * max(0, terms - _TERMS_OF_EVERY_ITEM)


def _linear(at_one: float, at_hundred: float, size: int) -> float:
    kilobytes = max(1.0, size / _KILOBYTE)
    return round(at_one + (at_hundred - at_one) * (kilobytes - 1) / 99, 2)
