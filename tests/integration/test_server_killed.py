"""The emulator's process is killed in the middle of its work."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from pathlib import Path
from typing import Any

from azure.core.exceptions import AzureError
from azure.cosmos import PartitionKey
from azure.cosmos.aio import ContainerProxy, CosmosClient

from cosmos_workflow_state.emulator import CosmosEmulator
from support.servers import EmulatorProcess, emulator_process

BATCHES = 1000
AT_ONCE = 16
SIZE = 5
KILLED_AFTER = 300
KEYS: Any = PartitionKey(["/tenant", "/workflow"], kind="MultiHash")


async def fill(container: ContainerProxy, server: EmulatorProcess) -> set[int]:
    """Write batches, kill the server in the middle of it and return the batches that were confirmed."""
    confirmed: set[int] = set()
    numbers = iter(range(BATCHES))

    async def write() -> None:
        for number in numbers:
            items = [{"id": f"{number}-{index}", "tenant": "t", "workflow": f"w{number}"} for index in range(SIZE)]
            await container.execute_item_batch([("create", (item,)) for item in items], ["t", f"w{number}"])
            confirmed.add(number)
            if len(confirmed) == KILLED_AFTER:
                server.process.send_signal(signal.SIGKILL)

    results = await asyncio.gather(*(write() for _ in range(AT_ONCE)), return_exceptions=True)
    assert all(isinstance(result, AzureError) for result in results)
    return confirmed


async def test_every_batch_is_whole_or_absent(tmp_path: Path) -> None:
    """Killed in the middle of 1,000 batches: each is there as a whole or not at all, and all confirmed ones are."""
    data = tmp_path / "state.db"
    with emulator_process("--data", str(data)) as server:
        async with CosmosClient(server.shown("endpoint"), server.shown("key"), retry_total=0) as client:
            database = await client.create_database("db")
            confirmed = await fill(await database.create_container("items", KEYS), server)
    async with CosmosEmulator(data=data) as emulator, CosmosClient(emulator.endpoint, emulator.key) as client:
        container = client.get_database_client("db").get_container_client("items")
        found = Counter([str(item["workflow"]) async for item in container.read_all_items()])
    assert set(found.values()) == {SIZE}
    assert {f"w{number}" for number in confirmed} <= set(found)
    assert KILLED_AFTER <= len(found) < BATCHES
