"""Whether the tests run on a real account; the tests store the answer on the function."""

from __future__ import annotations


def is_live() -> bool:
    """Say no."""
    return False
