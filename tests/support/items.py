"""A way behind the storage's back: the stored items themselves, through a client of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from azure.cosmos.aio import ContainerProxy

from cosmos_workflow_state import CosmosStateSettings
from support.states import WORKFLOW
from support.targets import client_of


class StoredItems:
    """Reads and changes checkpoint items of the unnamed scope by tenant and checkpoint id."""

    def __init__(self, container: ContainerProxy) -> None:
        self._container = container

    async def read(self, tenant: str, checkpoint_id: str) -> dict[str, Any]:
        """Return an item."""
        return dict(await self._container.read_item(f"cp::{checkpoint_id}", partition_key=[tenant, WORKFLOW]))

    async def overwrite(self, tenant: str, checkpoint_id: str, /, **fields: Any) -> None:
        """Change fields of an item, its key included: the item moves then, and the old one stays away."""
        item = {**await self.read(tenant, checkpoint_id), **fields}
        await self._container.upsert_item(item)

    async def all(self) -> list[dict[str, Any]]:
        """Return every item of the container."""
        return [dict(item) async for item in self._container.query_items("SELECT * FROM c")]


@asynccontextmanager
async def stored_items(settings: CosmosStateSettings) -> AsyncIterator[StoredItems]:
    """Open the items of a state file, or of the account that the tests run against."""
    async with client_of(settings) as client:
        database = client.get_database_client(settings.database)
        yield StoredItems(database.get_container_client(settings.checkpoint_container))


async def items_of(settings: CosmosStateSettings, container: str) -> list[dict[str, Any]]:
    """Return every item of a container of a state file, or of the account that the tests run against."""
    async with client_of(settings) as client:
        found = client.get_database_client(settings.database).get_container_client(container)
        return [dict(item) async for item in found.query_items("SELECT * FROM c")]
