"""Both ends of a migration, opened together: the container that is read, and the factories that write and read back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Final, TypeVar

from cosmos_workflow_state._definitions import ContainerDefinition
from cosmos_workflow_state._factory import CosmosStateFactory
from cosmos_workflow_state._gateway import Gateway
from cosmos_workflow_state.settings import CosmosStateSettings

from ._job import Job
from ._source import Items, entered, gateway_of, items_of, opened

_Task = TypeVar("_Task")

_AT_ONCE: Final = 4
"""Workflows or histories at a time: so many requests are under way at most."""


@dataclass(frozen=True, slots=True)
class Layout:
    """What the framework's own store makes of a container, and what it becomes here.

    Attributes:
        written_by: The class that writes it.
        key_path: The path of its partition key.
        target: The container of this package that takes what is in it.
    """

    written_by: str
    key_path: str
    target: ContainerDefinition


@dataclass(frozen=True, slots=True)
class Ends:
    """What is read and written.

    Attributes:
        source: The items of the source.
        target: The items of the target; None where it does not exist and a dry run must not create it.
        writer: Writes into the target.
        gateway: The target as a gateway, once `writer` has been there: that verifies it, or creates it.
        reader: Reads back what was written; it has seen nothing of it, so it can only have it from the service.
    """

    source: Items
    target: Items | None
    gateway: Gateway
    writer: CosmosStateFactory
    reader: CosmosStateFactory


@asynccontextmanager
async def opened_ends(job: Job, layout: Layout) -> AsyncGenerator[Ends]:
    """Open both ends. The factories share a client, and so its session: what one has written the other sees.

    Raises:
        ProvisioningError: The source is missing or is no such container, or the state file cannot be opened.
        ServiceError: The service refused or could not be reached.
        SettingsError: A key is none, or there is no identity.
    """
    settings, origin = job.settings, job.origin
    name = settings.name_of(layout.target)
    async with AsyncExitStack() as opening:
        client = await opening.enter_async_context(entered(settings, settings.database, name))
        source_client = client
        if origin.settings is not settings:
            source_client = await opening.enter_async_context(
                entered(origin.settings, origin.database, origin.container)
            )
        source = await opened(source_client, origin, layout.key_path, layout.written_by)
        writer = await opening.enter_async_context(CosmosStateFactory(settings, client=client))
        reader = await opening.enter_async_context(CosmosStateFactory(settings, client=client))
        target = await items_of(client, settings, name, only_existing=job.dry_run and _would_create(settings))
        yield Ends(source, target, gateway_of(client, settings, name), writer, reader)


def _would_create(settings: CosmosStateSettings) -> bool:
    return settings.effective_provisioning == "create"


async def in_turn(tasks: Iterable[_Task], work: Callable[[_Task], Awaitable[None]]) -> None:
    """Do some work for each task, a few at a time; the first error ends it.

    Raises:
        Exception: The first that the work has raised.
    """
    left = iter(tasks)
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(_AT_ONCE):
                group.create_task(_until_none_is_left(left, work))
    except ExceptionGroup as several:
        raise several.exceptions[0] from None


async def _until_none_is_left(left: Iterator[_Task], work: Callable[[_Task], Awaitable[None]]) -> None:
    for task in left:
        await work(task)
