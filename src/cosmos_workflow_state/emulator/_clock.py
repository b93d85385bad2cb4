"""A clock that can be moved.

Owns how far it is ahead of the system's. Must not know who reads it.
"""

from __future__ import annotations

import time
from collections.abc import Callable

__all__ = ["MovableClock"]


class MovableClock:
    """Gives the time in seconds since 1970: the system's, moved by as much as somebody asked for."""

    def __init__(self, system: Callable[[], float] = time.time) -> None:
        """Start with the time of another clock."""
        self._system = system
        self._offset = 0.0

    def __call__(self) -> float:
        """Give the time."""
        return self._system() + self._offset

    @property
    def offset(self) -> float:
        """How far this clock is ahead of the system's, in seconds."""
        return self._offset

    @offset.setter
    def offset(self, seconds: float) -> None:
        self._offset = seconds

    def advance(self, seconds: float) -> None:
        """Move the clock forward, or back by a negative number of seconds."""
        self._offset += seconds
