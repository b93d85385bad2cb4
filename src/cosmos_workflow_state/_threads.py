"""Where pure work on bytes is done: on the event loop when it is short, in a thread when it is not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

_Result = TypeVar("_Result")

_THREAD_BYTES: Final = 256 * 1024
"""Below, the work takes less than the hop to a thread and back (compressing 256 KiB: about a millisecond)."""


async def off_loop(size: int, work: Callable[[], _Result]) -> _Result:
    """Return ``work()``, done in a thread when there are many bytes to it.

    Args:
        size: Bytes it is about.
        work: Must not touch the live state of a workflow: that goes on changing.
    """
    return work() if size < _THREAD_BYTES else await asyncio.to_thread(work)
