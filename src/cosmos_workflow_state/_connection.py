"""One client for all tenants, and the containers reached with it: opened on first use, owned, and closed in reverse.

It knows nothing of checkpoints. What the caller gave (a client, a credential) is used and never closed.
"""

from __future__ import annotations

import asyncio
import os
import warnings
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Final, Literal

from azure.core.credentials_async import AsyncTokenCredential
from azure.cosmos.aio import ContainerProxy, CosmosClient
from pydantic import SecretStr
from structlog.typing import FilteringBoundLogger

from ._clients import enter_client
from ._credentials import account_keys, where_keys_are
from ._definitions import ContainerDefinition
from ._logging import CREDENTIAL_KEY_ROTATED, FACTORY_CLOSE, FACTORY_OPEN, emit, operation
from ._provisioning import open_container
from ._remedies import Access
from ._throughput import Throughput
from .errors import AccessDeniedError, FactoryClosedError
from .settings import CosmosStateSettings

_UNAUTHORIZED: Final = 401


class CosmosConnection:
    """Opens the client and each container once, however many tasks ask at once; once more with the other key."""

    def __init__(
        self,
        settings: CosmosStateSettings,
        logger: FilteringBoundLogger,
        *,
        client: CosmosClient | None,
        credential: AsyncTokenCredential | None,
    ) -> None:
        """Keep what is needed; nothing is opened before a container is asked for."""
        self._settings = settings
        self._logger = logger
        self._given_client = client
        self._given_credential = credential
        self._keys: tuple[SecretStr, ...] | None = None
        self._lock = asyncio.Lock()
        self._home: tuple[int, asyncio.AbstractEventLoop] | None = None
        self._opened: AsyncExitStack | None = None
        self._client: CosmosClient | None = None
        self._containers: dict[str, ContainerProxy] = {}  # by kind
        self._closing: asyncio.Task[None] | None = None

    def __del__(self) -> None:
        """Tell of a connection that nobody closed."""
        if self._opened is not None:
            warnings.warn(
                "a CosmosStateFactory was left open: use async with", ResourceWarning, stacklevel=2, source=self
            )

    def to(self, definition: ContainerDefinition) -> ContainerConnection:
        """Return what a gateway to one container needs; nothing is opened."""
        return ContainerConnection(self, definition)

    def access(self, definition: ContainerDefinition) -> Access:
        """Return who asks for a container, for the remedy when the service refuses."""
        settings = self._settings
        return Access(
            settings.endpoint,
            settings.database,
            settings.name_of(definition),
            self._proof(),
            Throughput.parse(settings.throughput),
            definition,
            where_keys_are(settings),
        )

    def _proof(self) -> Literal["key", "token"] | None:
        if self._given_client is not None:
            return None
        return "key" if self._keys else "token"

    def check_open(self) -> None:
        """Check that the connection was not closed.

        Raises:
            FactoryClosedError: It was.
        """
        if self._closing is not None:
            raise FactoryClosedError("the factory is closed; use its storages inside its async with block")

    async def container(self, definition: ContainerDefinition) -> ContainerProxy:
        """Return a container, opening it, and before it the client, under a lock on first use.

        Raises:
            FactoryClosedError: The connection was closed, or was opened on another event loop or in another process.
            ProvisioningError: The container is missing or not shaped as it must be.
            ServiceError: The service refused or could not be reached.
            SettingsError: The key is none, or there is no identity, or no token may be sent to the endpoint.
        """
        self.check_open()
        if self._home not in {None, (os.getpid(), asyncio.get_running_loop())}:
            raise FactoryClosedError(
                "the factory was opened on another event loop or before a fork; build one for each"
            )
        # Who uses one container does not wait until another one is opened.
        opened = self._containers.get(definition.kind)
        if opened is not None:
            return opened
        async with self._lock:
            self.check_open()
            if definition.kind not in self._containers:
                await self._open(definition)
            return self._containers[definition.kind]

    async def replaces(self, definition: ContainerDefinition, refused: ContainerProxy) -> bool:
        """Tell whether `container` gives another one now than this, whose key the service does not accept (401).

        The first of many tasks that ask opens another client with the other key, if there is one; the others only
        learn that it is done. A key that was refused is not tried again.

        Raises:
            AccessDeniedError: The other key is not accepted either, or was refused something else than to be who it is.
            FactoryClosedError: The connection was closed.
            ServiceError: The service could not be reached; the other key is still to be tried.
        """
        async with self._lock:
            self.check_open()
            if self._containers.get(definition.kind) is refused and self._has_other_key():
                await self._open_with_other_key(definition)
            return self._containers.get(definition.kind) is not refused

    async def close(self) -> None:
        """Close what was opened here, in reverse; once it is closed another call does nothing.

        Cancelling a call does not stop the closing.

        Raises:
            Exception: What closing the client raised.
        """
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        elif self._closing.done():
            return
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        async with self._lock:
            opened, self._opened = self._opened, None
            self._client, self._containers = None, {}
            with operation(self._logger, FACTORY_CLOSE):
                if opened is not None:
                    await opened.aclose()

    async def _open(self, definition: ContainerDefinition) -> None:
        mode = self._settings.effective_provisioning
        with operation(self._logger, FACTORY_OPEN, provisioning=mode, container=definition.kind):
            try:
                return await self._open_once(definition)
            except AccessDeniedError as error:
                if error.status_code != _UNAUTHORIZED or not self._has_other_key():
                    raise
            return await self._open_with_other_key(definition)

    async def _open_once(self, definition: ContainerDefinition) -> None:
        settings = self._settings
        async with AsyncExitStack() as opening:
            client = self._client or self._given_client or await self._enter_client(definition, opening)
            container = await open_container(
                client,
                database=settings.database,
                container=settings.name_of(definition),
                mode=settings.effective_provisioning,
                wanted=definition,
                throughput=Throughput.parse(settings.throughput),
                access=self.access(definition),
            )
            self._keep(opening.pop_all())
        self._home = (os.getpid(), asyncio.get_running_loop())
        self._client = client
        self._containers = {**self._containers, definition.kind: container}

    def _keep(self, opened: AsyncExitStack) -> None:
        """Own what was opened, beside the client of a key that was given up: other tasks may still wait for that."""
        if self._opened is None:
            self._opened = opened
        else:
            self._opened.push_async_callback(opened.aclose)

    def _has_other_key(self) -> bool:
        return bool(self._keys and self._keys[1:])

    async def _open_with_other_key(self, definition: ContainerDefinition) -> None:
        """Open a container with the other key; the others are opened with it when they are asked for next."""
        keys, client, containers = self._keys or (), self._client, self._containers
        self._keys, self._client, self._containers = keys[1:], None, {}
        try:
            await self._open_once(definition)
        except BaseException as error:
            self._client, self._containers = client, containers
            if getattr(error, "status_code", None) != _UNAUTHORIZED:
                self._keys = keys  # nobody has refused the other one yet
            raise
        if client is not None and self._client is not None:
            _share_session(client, self._client)
        emit(self._logger.warning, CREDENTIAL_KEY_ROTATED, now_using="secondary")

    async def _enter_client(self, definition: ContainerDefinition, opening: AsyncExitStack) -> CosmosClient:
        if self._keys is None:
            keyless = self._settings.is_embedded or self._given_credential is not None
            self._keys = () if keyless else account_keys(self._settings)
        key = self._keys[0] if self._keys else None
        return await enter_client(
            self._settings, opening, access=self.access(definition), key=key, credential=self._given_credential
        )


@dataclass(frozen=True, slots=True)
class ContainerConnection:
    """One container of a connection, as a gateway asks for it.

    Attributes:
        connection: What opens it.
        definition: Which one.
    """

    connection: CosmosConnection
    definition: ContainerDefinition

    @property
    def access(self) -> Access:
        """Who asks, for the remedy when the service refuses."""
        return self.connection.access(self.definition)

    async def container(self) -> ContainerProxy:
        """Return the container, as `CosmosConnection.container` does.

        Raises:
            CosmosStateError: As there.
        """
        return await self.connection.container(self.definition)

    async def replaces(self, refused: ContainerProxy) -> bool:
        """Tell whether there is another one now than this, as `CosmosConnection.replaces` does.

        Raises:
            CosmosStateError: As there.
        """
        return await self.connection.replaces(self.definition, refused)


def _share_session(before: CosmosClient, client: CosmosClient) -> None:
    """Let a client read at least what the one before has read or written.

    The two share their session from now on, and requests that are still under way with the one before add to it.
    """
    session, own = before.client_connection.session, client.client_connection.session
    if session is not None and own is not None:
        client.client_connection.session = session
