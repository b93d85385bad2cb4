"""Several processes on one engine file through the real client, at its creation and under SIGKILL."""

from __future__ import annotations

import asyncio
import multiprocessing
import random
import sqlite3
import stat
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from multiprocessing.connection import Connection
from pathlib import Path

from azure.cosmos import PartitionKey
from azure.cosmos.aio import ContainerProxy, CosmosClient
from azure.cosmos.exceptions import CosmosResourceExistsError

from cosmos_workflow_state._embedded import open_embedded

_SPAWN = multiprocessing.get_context("spawn")


@asynccontextmanager
async def opened(path: Path) -> AsyncIterator[ContainerProxy]:
    """Open the container in a file, creating what is missing, be others doing the same or not."""
    account = await open_embedded(path)
    async with CosmosClient(account.endpoint, account.key, transport=account.transport()) as client:
        while True:
            try:
                database = await client.create_database_if_not_exists("db")
                key = PartitionKey(["/t", "/w"], kind="MultiHash")
                container = await database.create_container_if_not_exists("c", partition_key=key)
                break
            except CosmosResourceExistsError:
                # The client asks first and creates then; another process was in between.
                continue
        yield container
    await account.close()


def write_share(reports: Connection, path: Path, writer: int, count: int) -> None:
    """Create items of all keys in turn, a few at a time, and report what failed."""

    async def run() -> list[str]:
        async with opened(path) as container:
            items = [{"id": f"{writer}-{number}", "t": f"t{number % 5}", "w": "w"} for number in range(count)]
            outcomes = await asyncio.gather(*map(container.create_item, items), return_exceptions=True)
            return [repr(outcome) for outcome in outcomes if isinstance(outcome, BaseException)]

    reports.send("ready")
    reports.send(asyncio.run(run()))


def write_for_ever(reports: Connection, path: Path, first: int) -> None:
    """Write pairs of items in batches until killed, reporting each number once its batch has returned."""

    async def run() -> None:
        async with opened(path) as container:
            number = first
            while True:
                pair = [("create", ({"id": f"{side}{number}", "t": "t0", "w": "w", "n": number},)) for side in "ab"]
                await container.execute_item_batch(pair, ["t0", "w"])
                reports.send(number)
                number += 1

    asyncio.run(run())


async def test_processes_create_and_fill_one_file(tmp_path: Path, *, full_size: bool) -> None:
    """Four processes that find no file create one between them, and every item of each is in it."""
    path, count = tmp_path / "state.db", 1000 if full_size else 200
    pipes = [_SPAWN.Pipe(duplex=False) for _ in range(4)]
    processes = [
        _SPAWN.Process(target=write_share, args=(theirs, path, writer, count))
        for writer, (_, theirs) in enumerate(pipes)
    ]
    for process in processes:
        process.start()
    for ours, _ in pipes:
        assert ours.recv() == "ready"
    failures = [failure for ours, _ in pipes for failure in await asyncio.to_thread(ours.recv)]
    for process in processes:
        process.join()
    assert failures == []
    async with opened(path) as container:
        texts = [text async for text in container.query_items("SELECT VALUE c.id FROM c")]
    assert sorted(texts) == sorted(f"{writer}-{number}" for writer in range(4) for number in range(count))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_killed_writers_lose_nothing(tmp_path: Path, *, full_size: bool) -> None:
    """A writer killed at any moment has lost no batch that returned, and left none half done."""
    path, chance = tmp_path / "state.db", random.Random(2)
    known = -1
    for _ in range(50 if full_size else 10):
        reported = _killed_after(path, known + 1, chance.randint(1, 30), chance.uniform(0, 0.01))
        async with opened(path) as container:
            numbers = [
                number
                async for number in container.query_items("SELECT VALUE c.n FROM c ORDER BY c.n", partition_key=["t0"])
            ]
        assert numbers == [number for number in range(len(numbers) // 2) for _ in "ab"]
        known = numbers[-1]
        assert known in {reported, reported + 1}
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()


def _killed_after(path: Path, first: int, batches: int, seconds: float) -> int:
    """Let a writer do so many batches and run so much longer, kill it, and give the last number it reported."""
    ours, theirs = _SPAWN.Pipe(duplex=False)
    process = _SPAWN.Process(target=write_for_ever, args=(theirs, path, first))
    process.start()
    theirs.close()
    last = first - 1
    for _ in range(batches):
        last = ours.recv()
    time.sleep(seconds)  # the moment of the kill, anywhere in a batch
    process.kill()
    process.join()
    while True:
        try:
            last = ours.recv()
        except EOFError:
            ours.close()
            return last
