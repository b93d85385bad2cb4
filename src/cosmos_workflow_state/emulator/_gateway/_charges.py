"""Request charges: estimates in RU.

Owns the formulas. The service's are not public; these follow its documented examples: a point read costs 1 RU for 1 KB
and 10 for 100 KB, a write 5 and 50, a replacement about twice that
(https://learn.microsoft.com/azure/cosmos-db/request-units).
"""

from __future__ import annotations

from typing import Final

__all__ = ["METADATA_CHARGE", "delete_charge", "query_charge", "read_charge", "replace_charge", "write_charge"]

METADATA_CHARGE: Final = 1.0
"""RU of reading or writing databases and containers."""

_KILOBYTE = 1024
_QUERY_FLOOR = 2.3


def read_charge(size: int) -> float:
    """Estimate a point read of an item of so many bytes."""
    return _linear(1.0, 10.0, size)


def write_charge(size: int) -> float:
    """Estimate the creation of an item of so many bytes."""
    return _linear(5.0, 50.0, size)


def replace_charge(size: int) -> float:
    """Estimate the replacement of an item by one of so many bytes."""
    return 2 * write_charge(size)


def delete_charge() -> float:
    """Estimate a deletion."""
    return write_charge(0)


def query_charge(rows: int, size: int) -> float:
    """Estimate a page of a query, of so many rows that have so many bytes together."""
    return round(_QUERY_FLOOR + 0.05 * rows + 0.03 * size / _KILOBYTE, 2)


def _linear(at_one: float, at_hundred: float, size: int) -> float:
    kilobytes = max(1.0, size / _KILOBYTE)
    return round(at_one + (at_hundred - at_one) * (kilobytes - 1) / 99, 2)
