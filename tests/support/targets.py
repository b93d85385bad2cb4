"""What the integration tests run against: the embedded engine, an emulator started for them, or somebody's account.

Owns how each of them is reached. Must not know what is tested.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from azure.core.credentials_async import AsyncTokenCredential
from azure.cosmos import PartitionKey
from azure.cosmos.aio import CosmosClient

from cosmos_workflow_state import CosmosStateFactory, CosmosStateSettings, KeyAuth
from cosmos_workflow_state._definitions import CONTAINERS, DATA_ACTIONS
from cosmos_workflow_state._embedded import open_embedded
from cosmos_workflow_state._provisioning import open_container
from cosmos_workflow_state.emulator import CosmosEmulator
from support.states import ALLOWED_TYPES
from support.tokens import EmulatorCredential

EMBEDDED: Final = "embedded"
HTTP: Final = "http"
HTTPS: Final = "https"
ACCOUNT: Final = "account"

_credentials: Final[dict[str, AsyncTokenCredential]] = {}
"""By endpoint: settings have no place for a credential, and tests derive settings from settings."""


@dataclass(frozen=True)
class Target:
    """Something that listens.

    Attributes:
        endpoint: Its URL.
        key: Its account key; for what tokens may not do, where the tests have one.
        database: A database for this run only.
    """

    endpoint: str
    key: str
    database: str = field(default_factory=lambda: f"cosmos-workflow-state-{uuid.uuid4().hex[:12]}")

    def settings(self) -> CosmosStateSettings:
        """Make settings for containers of a test's own, which are there already if tokens may not create them."""
        own = uuid.uuid4().hex[:12]
        by_token = self.endpoint in _credentials
        settings = CosmosStateSettings(
            _env_file=None,
            endpoint=self.endpoint,
            auth=None if by_token else {"mode": "key", "key": self.key},
            provisioning="verify" if by_token else "create",
            database=self.database,
            checkpoint_container=f"checkpoints-{own}",
            history_container=f"history-{own}",
            session_container=f"sessions-{own}",
            allowed_checkpoint_types=ALLOWED_TYPES,
        )
        if by_token:
            _run(self._create_containers(settings))
        return settings

    async def create_container(self, key_path: str) -> str:
        """Create a container with a single partition key in the database of this run, by key, and return its name."""
        name = f"container-{uuid.uuid4().hex[:12]}"
        async with CosmosClient(self.endpoint, self.key) as client:
            database = await client.create_database_if_not_exists(self.database)
            await database.create_container(name, PartitionKey(key_path))
        return name

    def clear(self) -> None:
        """Delete the containers of this run: an account bills each of them, until it is gone."""
        _run(self._clear())

    def remove(self) -> None:
        """Delete the database, if a test created it."""
        _run(self._remove())

    async def _create_containers(self, settings: CosmosStateSettings) -> None:
        async with CosmosClient(self.endpoint, self.key) as client:
            for wanted in CONTAINERS:
                name: str = getattr(settings, wanted.setting)
                await open_container(client, database=self.database, container=name, mode="create", wanted=wanted)

    async def _clear(self) -> None:
        async with CosmosClient(self.endpoint, self.key) as client:
            if await self._exists(client):
                database = client.get_database_client(self.database)
                for container in [found["id"] async for found in database.list_containers()]:
                    await database.delete_container(container)

    async def _remove(self) -> None:
        async with CosmosClient(self.endpoint, self.key) as client:
            if await self._exists(client):
                await client.delete_database(self.database)

    async def _exists(self, client: CosmosClient) -> bool:
        return self.database in [found["id"] async for found in client.list_databases()]


@contextmanager
def emulator_target(how: str) -> Iterator[Target]:
    """Run an emulator: over HTTP by key, or over HTTPS by a token with the rights of our role and no others."""
    with CosmosEmulator(tls=how == HTTPS) as emulator:
        if how == HTTPS:
            _credentials[emulator.endpoint] = EmulatorCredential(emulator, role=None, actions=DATA_ACTIONS)
        yield Target(emulator.endpoint, emulator.key)
        _credentials.pop(emulator.endpoint, None)


def factory_of(settings: CosmosStateSettings) -> CosmosStateFactory:
    """Build a factory; with the token credential where the tests have one."""
    return CosmosStateFactory(settings, credential=_credentials.get(settings.endpoint))


@asynccontextmanager
async def client_of(settings: CosmosStateSettings) -> AsyncIterator[CosmosClient]:
    """Open a client of its own beside the factory's."""
    if settings.is_embedded:
        account = await open_embedded(settings.embedded_path)
        try:
            async with CosmosClient(account.endpoint, account.key, transport=account.transport()) as client:
                yield client
        finally:
            await account.close()
    else:
        key = settings.auth.key.get_secret_value() if isinstance(settings.auth, KeyAuth) else None
        async with CosmosClient(settings.endpoint, key or _credentials[settings.endpoint]) as client:
            yield client


def _run(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine on a thread of its own: fixtures that are no coroutines stand beside a test's event loop."""
    with ThreadPoolExecutor(1) as threads:
        threads.submit(asyncio.run, work).result()
