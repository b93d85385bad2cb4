"""An event loop whose time jumps to the next timer instead of waiting for it: waits are exact and take no time."""

from __future__ import annotations

import asyncio
import functools
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec

_Parameters = ParamSpec("_Parameters")


class _JumpingSelector(selectors.DefaultSelector):
    """Passes the time it should have waited for as over, unless something is there at once."""

    passed: float = 0.0
    turns: int = 0
    interruption: Callable[[], object] | None = None

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.turns -= 1
        if self.turns == 0 and self.interruption is not None:
            self.interruption()
        if timeout is None:
            return super().select()
        ready = super().select(0)
        if not ready:
            self.passed += max(timeout, 0.0)
        return ready


class JumpingLoop(asyncio.SelectorEventLoop):
    """Starts at 0 seconds; only timers move its time, so nothing may run in threads meanwhile."""

    def __init__(self) -> None:
        """Build the loop on its own selector."""
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        """Return the seconds that were jumped over."""
        return self._jumping.passed

    def interrupt(self, turns: int, action: Callable[[], object]) -> None:
        """Do something after this many turns of the loop, waits that are jumped over included."""
        self._jumping.turns, self._jumping.interruption = turns, lambda: self.call_soon(action)


def jumping(test: Callable[_Parameters, Coroutine[Any, Any, None]]) -> Callable[_Parameters, None]:
    """Run a test on a `JumpingLoop` of its own."""

    @functools.wraps(test)
    def run(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> None:
        with asyncio.Runner(loop_factory=JumpingLoop) as runner:
            runner.run(test(*args, **kwargs))

    return run
