"""The storages that `long_conversations` measures: this package, the framework's own, and the bare client as the floor.

Each has an embedded engine with a state file of its own: on one file the large writes of one would be paid for by the
next. Must not know what is saved.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final, Protocol

from _measuring import Cost, CountingTransport
from agent_framework import WorkflowCheckpoint
from agent_framework_azure_cosmos import CosmosCheckpointStorage
from azure.cosmos.aio import ContainerProxy, CosmosClient

from cosmos_workflow_state import CosmosStateFactory, CosmosStateSettings, TenantCheckpointStorage
from cosmos_workflow_state._clients import CLIENT_OPTIONS
from cosmos_workflow_state._definitions import CHECKPOINTS
from cosmos_workflow_state._embedded import open_embedded
from cosmos_workflow_state._provisioning import open_container

OURS: Final = "this package"
MAF: Final = "MAF's storage"
FLOOR: Final = "bare client"

KNOWN: Final = "load, workflow known"
BY_ID: Final = "load, id only"
LATEST: Final = "get_latest"

_TENANT: Final = "contoso"
_DATABASE: Final = "workflow-state"
_CONTAINER: Final = "checkpoints"
_FLOOR_BYTES: Final = 5 * 1024


class Subject(Protocol):
    """What is measured: something that saves checkpoints."""

    name: str
    transport: CountingTransport

    async def save(self, checkpoint: WorkflowCheckpoint) -> object:
        """Write a checkpoint."""
        ...

    async def cold_reads(self, checkpoint: WorkflowCheckpoint) -> dict[str, Cost]:
        """Read a checkpoint in each way that there is, as processes that have seen nothing yet."""
        ...


class Ours:
    """This package."""

    name = OURS

    def __init__(self, client: CosmosClient, transport: CountingTransport, factory: CosmosStateFactory) -> None:
        """Save through one factory; each cold read has its own."""
        self.transport = transport
        self._client = client
        self._storage = factory.for_tenant(_TENANT).checkpoints

    async def save(self, checkpoint: WorkflowCheckpoint) -> object:
        """Save."""
        return await self._storage.save(checkpoint)

    async def cold_reads(self, checkpoint: WorkflowCheckpoint) -> dict[str, Cost]:
        """Load and get the latest, each in a factory that has connected and read nothing."""
        name, checkpoint_id = checkpoint.workflow_name, checkpoint.checkpoint_id
        costs: dict[str, Cost] = {}
        async with self._fresh() as storage:
            costs[KNOWN] = await self.transport.measure(storage.for_workflow(name).load(checkpoint_id))
        async with self._fresh() as storage:
            costs[BY_ID] = await self.transport.measure(storage.load(checkpoint_id))
        async with self._fresh() as storage:
            costs[LATEST] = await self.transport.measure(storage.get_latest(workflow_name=name))
        return costs

    async def stored(self) -> tuple[int, Counter[str]]:
        """Return the bytes of all items as JSON, without the service's own fields, and how many there are by type."""
        container = self._client.get_database_client(_DATABASE).get_container_client(_CONTAINER)
        size, types = 0, Counter[str]()
        async for item in container.query_items("SELECT * FROM c", partition_key=[_TENANT]):
            own = {name: value for name, value in item.items() if not name.startswith("_")}
            size += len(json.dumps(own, ensure_ascii=False, separators=(",", ":")).encode())
            types[own["type"]] += 1
        return size, types

    @asynccontextmanager
    async def _fresh(self) -> AsyncGenerator[TenantCheckpointStorage]:
        async with CosmosStateFactory(_settings(), client=self._client) as factory:
            storage = factory.for_tenant(_TENANT).checkpoints
            await storage.list_checkpoint_ids(workflow_name="to connect")
            yield storage


class Framework:
    """The framework's own storage; it knows nothing of what it has saved, so that all its reads are cold."""

    name = MAF

    def __init__(self, client: CosmosClient, transport: CountingTransport) -> None:
        """Let it create its container."""
        self.transport = transport
        self._storage = CosmosCheckpointStorage(
            cosmos_client=client, database_name=_DATABASE, container_name=_CONTAINER
        )

    async def save(self, checkpoint: WorkflowCheckpoint) -> object:
        """Save."""
        return await self._storage.save(checkpoint)

    async def cold_reads(self, checkpoint: WorkflowCheckpoint) -> dict[str, Cost]:
        """Load, in the one way it has, and get the latest."""
        load = await self.transport.measure(self._storage.load(checkpoint.checkpoint_id))
        latest = await self.transport.measure(self._storage.get_latest(workflow_name=checkpoint.workflow_name))
        return {KNOWN: load, BY_ID: load, LATEST: latest}


class Floor:
    """The client alone, which writes one item of 5 KB."""

    name = FLOOR

    def __init__(self, container: ContainerProxy, transport: CountingTransport) -> None:
        """Take a container like ours."""
        self.transport = transport
        self._container = container

    async def save(self, checkpoint: WorkflowCheckpoint) -> object:
        """Create the item."""
        item: dict[str, Any] = {"id": checkpoint.checkpoint_id, "tenant_id": _TENANT, "workflow_name": "floor"}
        item["payload"] = "x" * (_FLOOR_BYTES - len(json.dumps(item)))
        return await self._container.create_item(item, no_response=True)

    async def cold_reads(self, checkpoint: WorkflowCheckpoint) -> dict[str, Cost]:
        """Read the item."""
        read = self._container.read_item(checkpoint.checkpoint_id, partition_key=[_TENANT, "floor"])
        return {KNOWN: await self.transport.measure(read)}


async def _open_ours(client: CosmosClient, transport: CountingTransport, stack: AsyncExitStack) -> Subject:
    factory = await stack.enter_async_context(CosmosStateFactory(_settings(), client=client))
    return Ours(client, transport, factory)


async def _open_maf(client: CosmosClient, transport: CountingTransport, _stack: AsyncExitStack) -> Subject:
    return Framework(client, transport)


async def _open_floor(client: CosmosClient, transport: CountingTransport, _stack: AsyncExitStack) -> Subject:
    container = await open_container(
        client, database=_DATABASE, container=_CONTAINER, mode="create", wanted=CHECKPOINTS
    )
    return Floor(container, transport)


_OPENERS: Final[
    Mapping[str, Callable[[CosmosClient, CountingTransport, AsyncExitStack], Coroutine[Any, Any, Subject]]]
] = {OURS: _open_ours, MAF: _open_maf, FLOOR: _open_floor}


async def open_subject(name: str, directory: Path, stack: AsyncExitStack) -> Subject:
    """Open one of the three on a state file of its own; the stack closes it."""
    account = await open_embedded(directory / f"{name.replace(' ', '-')}.db")
    stack.push_async_callback(account.close)
    transport = CountingTransport(account.transport())
    options = {} if name == MAF else CLIENT_OPTIONS
    client = CosmosClient(account.endpoint, account.key, transport=transport, **options)
    return await _OPENERS[name](await stack.enter_async_context(client), transport, stack)


def _settings() -> CosmosStateSettings:
    return CosmosStateSettings(
        _env_file=None, endpoint="embedded:", database=_DATABASE, checkpoint_container=_CONTAINER
    )
