"""Two writers and a sweeper on one container while anything may happen to any request: nothing is ever lost.

A run is its seed: the same one goes the same way each time. ``--full`` is 10,000 of them.
"""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import Iterator
from typing import Final

import pytest

from support.crowds import Meddler, Setting, Sweeper, Writer
from support.histories import History
from support.matrix import run, unused
from support.operations import HOUR, small_parts
from support.states import WORKFLOW
from support.storms import LONGEST, Storm
from support.worlds import Image, World, world_of

_FOREVER: Final = 1e6
"""Seconds of the loop, which jumps there at once when nothing goes on any more."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make the runs."""
    metafunc.parametrize("seed", range(10_000 if metafunc.config.getoption("--full") else 100))


@pytest.fixture(scope="module")
def empty() -> Iterator[Image]:
    """Yield a world with a container and nothing in it."""
    made: list[Image] = []

    async def story() -> None:
        async with world_of() as world, world.process() as process:
            await process.storage.list_workflows()
            made.append(world.image())

    run(story)
    yield made[0]
    made[0].connection.close()


@pytest.fixture(autouse=True)
def _the_same_each_time(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing be random that does not come from the seed."""
    small_parts(monkeypatch)
    ids = random.Random(seed)
    monkeypatch.setattr("uuid.uuid4", lambda: uuid.UUID(int=ids.getrandbits(128), version=4))
    random.seed(seed)


def test_nothing_is_lost(empty: Image, seed: int) -> None:
    """Demands 16 and 21: what a save has returned is there until it is deleted, whatever happens meanwhile."""

    async def story() -> None:
        async with world_of(empty) as world, asyncio.timeout(_FOREVER):
            await _weather(world, random.Random(seed))

    run(story)


async def _weather(world: World, dice: random.Random) -> None:
    """Let two writers and a sweeper go on until the storm is over."""
    setting = Setting(world, Storm(dice, share=dice.choice([0.05, 0.15, 0.3])), History(), dice)
    async with (
        world.process() as first,
        world.process() as second,
        world.process() as third,
        world.process() as fourth,
    ):
        sweeper = Sweeper("sweeper", third, setting)
        setting.storm.between = Meddler("meddler", fourth, setting).meddle
        async with asyncio.TaskGroup() as group:
            group.create_task(Writer("one", first, setting).run(7))
            group.create_task(Writer("two", second, setting).run(7))
            group.create_task(sweeper.run(5))
        await asyncio.sleep(2 * LONGEST)
        await _all_is_well(world, sweeper, setting.history)


async def _all_is_well(world: World, reader: Sweeper, history: History) -> None:
    """Check, from a process that has just been started, what is stored, and again after everything was swept."""
    async with world.process() as process:
        storage = process.storage
        found = await storage.list_checkpoints(workflow_name=WORKFLOW)
        reader.check_all(found, history.now())
        assert await storage.get_latest(workflow_name=WORKFLOW) == (found[-1] if found else None)
        world.clock.advance(25 * HOUR)
        await storage.sweep()
        assert unused(world.items()) == []
    async with world.process() as process:
        assert await process.storage.list_checkpoints(workflow_name=WORKFLOW) == found
        assert [await process.storage.load(one.checkpoint_id) for one in found] == found
