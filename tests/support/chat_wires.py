"""A history on an engine in memory, the transport under it that fails on demand, and the way behind its back."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

from azure.core.pipeline.transport import HttpRequest
from azure.cosmos.aio import ContainerProxy

from cosmos_workflow_state import CosmosStateFactory, CosmosStateSettings, TenantHistoryProvider
from cosmos_workflow_state._embedded import EmbeddedResponse
from cosmos_workflow_state._history_items import head_id, message_id
from cosmos_workflow_state.emulator._values import Response
from support.chats import turn
from support.faults import Fault, FaultyTransport, Send, faulty_client, then

TENANT: Final = "contoso"
SESSION: Final = "s-1"
SOURCE: Final = "chat"
HEAD: Final = head_id(SOURCE)


class Wire:
    """What a test of faults needs; the session holds one turn.

    Attributes:
        factory: What the providers are from.
        history: A provider.
        other: Another one of the same source, as of another process.
        transport: What its faults happen in.
        container: The container behind it.
        state: The state that goes with the session.
        began: The number of its first message.
    """

    def __init__(self, factory: CosmosStateFactory, transport: FaultyTransport, container: ContainerProxy) -> None:
        self.factory = factory
        self.history: TenantHistoryProvider = factory.for_tenant(TENANT).history(SOURCE)
        self.other: TenantHistoryProvider = factory.for_tenant(TENANT).history(SOURCE)
        self.transport, self.container = transport, container
        self.state: dict[str, Any] = {}
        self.began = 0

    def message(self, index: int) -> str:
        """Return the id of the item of a message, from 0."""
        return message_id(SOURCE, self.began + index)

    def meanwhile(self, action: Callable[[], Awaitable[object]]) -> Fault:
        """Return a fault that lets a request through after something else, whose own requests meet no faults."""

        async def act() -> None:
            faults, self.transport.faults = self.transport.faults, []
            await action()
            self.transport.faults = faults

        return then(act)

    async def items(self) -> list[dict[str, Any]]:
        """Return all items that are stored."""
        faults, self.transport.faults = self.transport.faults, []
        found = [dict(item) async for item in self.container.query_items("SELECT * FROM c")]
        self.transport.faults = faults
        return found

    async def types(self) -> set[str]:
        """Return the types of the items that are stored."""
        return {item["type"] for item in await self.items()}

    async def change(self, item_id: str, /, **fields: Any) -> None:
        """Change fields of an item."""
        item = await self.container.read_item(item_id, partition_key=[TENANT, SESSION])
        await self.container.upsert_item({**item, **fields})

    async def delete(self, item_id: str) -> None:
        """Delete an item."""
        await self.container.delete_item(item_id, partition_key=[TENANT, SESSION])


def refused_at(index: int, code: int) -> Fault:
    """Answer a batch as if this step of it could not be done."""

    async def fault(request: HttpRequest, _: Send) -> EmbeddedResponse:
        results = [{"statusCode": 424} for _ in json.loads(request.data)]
        results[index] = {"statusCode": code}
        return EmbeddedResponse(request, Response(207, {}, json.dumps(results).encode()))

    return fault


@asynccontextmanager
async def open_wire() -> AsyncIterator[Wire]:
    """Open a history of which one turn is stored and known."""
    settings = CosmosStateSettings(endpoint="embedded:", _env_file=None)
    async with faulty_client() as (client, transport), CosmosStateFactory(settings, client=client) as factory:
        container = client.get_database_client(settings.database).get_container_client(settings.history_container)
        wire = Wire(factory, transport, container)
        await wire.history.save_messages(SESSION, turn(0), state=wire.state)
        wire.began = (await container.read_item(HEAD, partition_key=[TENANT, SESSION]))["began"]
        transport.sent.clear()
        yield wire
