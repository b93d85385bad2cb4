"""Where work is done: on bytes on the event loop when it is short, in a thread when not; requests a few at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, TypeVar

_Result = TypeVar("_Result")

_THREAD_BYTES: Final = 256 * 1024
"""Below, the work takes less than the hop to a thread and back (compressing 256 KiB: about a millisecond)."""

_AT_ONCE: Final = 4
"""Requests of one operation under way at the same time: enough to hide the way to the service, too few to starve the
other tenants of a container."""


async def off_loop(size: int, work: Callable[[], _Result]) -> _Result:
    """Return ``work()``, done in a thread when there are many bytes to it.

    Args:
        size: Bytes it is about.
        work: Must not touch the live state of a workflow: that goes on changing.
    """
    return work() if size < _THREAD_BYTES else await asyncio.to_thread(work)


async def side_by_side(works: Iterable[Callable[[], Awaitable[object]]]) -> None:
    """Await each of the works, a few at a time; one that fails cancels the others.

    Raises:
        Exception: What the first of them raised that failed.
    """
    gate = asyncio.Semaphore(_AT_ONCE)

    async def run(work: Callable[[], Awaitable[object]]) -> None:
        async with gate:
            await work()

    try:
        async with asyncio.TaskGroup() as group:
            for work in works:
                group.create_task(run(work))
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None
