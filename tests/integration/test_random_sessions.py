"""Three processes that count in one session while anything may happen to any request: once is once.

A run is its seed. Those of one block share their processes, which is what makes them quick. ``--full`` is 5,000 runs.
"""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

import pytest

from cosmos_workflow_state._session_items import MAX_WRITES
from support.counting import Count, store_of
from support.matrix import run
from support.operations import small_parts
from support.storms import LONGEST
from support.worlds import Process, World, world_of

BLOCK: Final = 20
INCREMENTS: Final = 2
"""Of each process."""

_FOREVER: Final = 1e6
"""Seconds of the loop, which jumps there at once when nothing goes on any more."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make the blocks of runs."""
    metafunc.parametrize("block", range((5_000 if metafunc.config.getoption("--full") else 200) // BLOCK))


def test_what_is_counted_is_counted_once(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What has returned is there once, what was refused is not, and nothing comes back that was replaced."""

    async def story() -> None:
        async with _processes() as (world, noisy, quiet):
            for seed in range(block * BLOCK, (block + 1) * BLOCK):
                dice = _dice(seed, monkeypatch)
                count = Count(f"seed {seed}", dice, world, quiet)
                await _check(count, noisy, guarded=dice.random() < 0.75)

    small_parts(monkeypatch)
    run(story)


def _dice(seed: int, monkeypatch: pytest.MonkeyPatch) -> random.Random:
    """Let nothing be random that does not come from the seed; in most runs an item remembers few writes."""
    dice, ids = random.Random(seed), random.Random(seed)
    monkeypatch.setattr("uuid.uuid4", lambda: uuid.UUID(int=ids.getrandbits(128), version=4))
    monkeypatch.setattr("cosmos_workflow_state._session_items.MAX_WRITES", dice.choice([1, 2, 4, MAX_WRITES]))
    random.seed(seed)
    return dice


@asynccontextmanager
async def _processes() -> AsyncGenerator[tuple[World, list[Process], Process]]:
    """Start three processes and a quiet one, which know the container."""
    async with world_of() as world, AsyncExitStack() as stack, asyncio.timeout(_FOREVER):
        quiet, *noisy = [await stack.enter_async_context(world.process()) for _ in range(4)]
        for process in (quiet, *noisy):
            await store_of(process).get("connects")
        yield world, noisy, quiet


async def _check(count: Count, processes: list[Process], *, guarded: bool) -> None:
    await count.run(processes, INCREMENTS, guarded=guarded)
    await asyncio.sleep(2 * LONGEST)
    marks, which = await count.marks(), count.session_id
    assert len(set(count.writes)) == len(count.writes), f"{which}: what was replaced has come back"
    assert not count.refused & set(marks), f"{which}: what was refused is there"
    if guarded:
        assert len(set(marks)) == len(marks), f"{which}: counted twice"
        assert count.done <= set(marks), f"{which}: lost"
        assert len(count.done) <= len(marks) <= len(count.done) + len(count.unknown), which
