"""Requests a few at a time: all are made, and the first failure is the caller's."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from cosmos_workflow_state._threads import side_by_side


class Counted:
    """Works that wait for each other, and count how many are under way."""

    def __init__(self) -> None:
        self.under_way = self.most = self.done = 0

    async def work(self, failing: bool = False) -> None:  # noqa: FBT002 - a partial gives it
        """Let all others begin before ending."""
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            for _ in range(5):
                await asyncio.sleep(0)
            if failing:
                raise LookupError("failed")
            self.done += 1
        finally:
            self.under_way -= 1


async def test_a_few_at_a_time() -> None:
    """All are done, never more than four at once."""
    counted = Counted()
    await side_by_side(counted.work for _ in range(10))
    assert (counted.done, counted.most) == (10, 4)
    await side_by_side([])


async def test_first_failure_is_the_callers() -> None:
    """It comes as it is, not as a group; the others are cancelled, none goes on behind the caller's back."""
    counted = Counted()
    with pytest.raises(LookupError, match="failed"):
        await side_by_side(partial(counted.work, failing=number == 1) for number in range(10))
    assert counted.under_way == 0
    assert counted.done < 10


async def test_cancelling_cancels_all() -> None:
    """Who cancels the whole sees a cancellation, and nothing goes on."""
    counted = Counted()
    task = asyncio.create_task(side_by_side([counted.work] * 10))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert counted.under_way == 0
