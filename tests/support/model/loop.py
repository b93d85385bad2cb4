"""An event loop that a test drives from one standstill to the next; waits of a few seconds take no time."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable
from typing import Final

_LONGEST_WAIT: Final = 60.0
"""Seconds: waits between tries are jumped over. The time of a whole operation is longer and does not pass: the process
may have been asleep, which no clock of its own has seen."""


class _SteppingSelector(selectors.DefaultSelector):
    """Jumps over short waits, and says when there is nothing else to do."""

    passed: float = 0.0
    idle: Callable[[], object]

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is not None and timeout <= _LONGEST_WAIT:
            self.passed += timeout
        else:
            self.idle()
        return ready


class SteppingLoop(asyncio.SelectorEventLoop):
    """Starts at 0 seconds. Nothing may run in threads: the loop would take it for a standstill."""

    def __init__(self) -> None:
        """Build the loop on its own selector."""
        self._stepping = _SteppingSelector()
        self._stepping.idle = self._stand_still
        self._standstill: asyncio.Future[None] | None = None
        super().__init__(self._stepping)

    def time(self) -> float:
        """Return the seconds that were jumped over."""
        return self._stepping.passed

    def run_to_standstill(self) -> None:
        """Run until every task waits for something that only the test can give it."""
        self._standstill = self.create_future()
        self.run_until_complete(self._standstill)

    def _stand_still(self) -> None:
        if self._standstill is None or self._standstill.done():
            raise RuntimeError("a coroutine that was to be run to its end waits for ever")
        self._standstill.set_result(None)
