"""Containers that are not as they must be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from azure.cosmos.aio import CosmosClient

from cosmos_workflow_state._definitions import CHECKPOINTS
from cosmos_workflow_state._embedded import open_embedded

RIGHT = CHECKPOINTS.properties("checkpoints")


async def drifted(path: Path, **changes: Any) -> None:
    """Make a state file whose container is as it must be except for some changes."""
    account = await open_embedded(path)
    definition = {name: value for name, value in (RIGHT | changes).items() if value is not None}
    async with CosmosClient(account.endpoint, account.key, transport=account.transport()) as client:
        await client.create_database("workflow-state")
        await client.client_connection.CreateContainer("dbs/workflow-state", definition)
    await account.close()
