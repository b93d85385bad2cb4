"""Both ends of a migration, opened together: the container that is read, and the factories that write and read back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Final, TypeVar

from cosmos_workflow_state._clients import is_to_be_made
from cosmos_workflow_state._definitions import ContainerDefinition
from cosmos_workflow_state._endpoints import EMBEDDED
from cosmos_workflow_state._factory import CosmosStateFactory
from cosmos_workflow_state._gateway import Gateway
from cosmos_workflow_state._remedies import ENDPOINT
from cosmos_workflow_state.errors import ProvisioningError
from cosmos_workflow_state.settings import CosmosStateSettings

from ._job import Job
from ._source import Items, access_to_source, access_to_target, entered, gateway_of, items_of, opened

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
        ProvisioningError: The source is missing or is no such container, a state file cannot be opened, or the target
            is memory.
        ServiceError: The service refused or could not be reached.
        SettingsError: A key is none, or there is no identity.
    """
    origin = job.origin
    _refuse_what_is_not_kept(job)
    settings = _target_of(job)
    access = access_to_target(settings, layout.target)
    async with AsyncExitStack() as opening:
        client = await opening.enter_async_context(entered(settings, access))
        source_client = client
        if origin.settings is not job.settings:
            source_client = await opening.enter_async_context(entered(origin.settings, access_to_source(origin)))
        source = await opened(source_client, origin, layout.key_path, layout.written_by)
        writer = await opening.enter_async_context(CosmosStateFactory(settings, client=client))
        reader = await opening.enter_async_context(CosmosStateFactory(settings, client=client))
        target = await items_of(client, access, only_existing=job.dry_run and _would_create(settings))
        yield Ends(source, target, gateway_of(client, access), writer, reader)


def _refuse_what_is_not_kept(job: Job) -> None:
    """Check that both ends are there before and after this process, where they are no account.

    Raises:
        ProvisioningError: The state file of the source is missing, or the target is memory.
    """
    path, target = job.origin.settings.embedded_path, job.settings
    if path is not None and not path.exists():
        raise ProvisioningError(
            f"there is no state file {str(path.absolute())!r} to migrate from; is {job.origin.named_by} right?"
        )
    if target.is_embedded and target.embedded_path is None and not job.dry_run:
        raise ProvisioningError(
            "the embedded engine in memory ends with the process, and what is migrated into it with it; "
            f"{ENDPOINT}=embedded:PATH names a state file"
        )


def _target_of(job: Job) -> CosmosStateSettings:
    """Return the settings of the target; of memory in place of a state file that a dry run would create."""
    if job.dry_run and is_to_be_made(job.settings):
        return job.settings.model_copy(update={"endpoint": EMBEDDED})
    return job.settings


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
