"""One client and one container for all tenants: opened on first use, owned, and closed in reverse.

It knows nothing of checkpoints. What the caller gave (a client, a credential) is used and never closed.
"""

from __future__ import annotations

import asyncio
import os
import warnings
from contextlib import AsyncExitStack
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from azure.core.credentials_async import AsyncTokenCredential
from azure.cosmos.aio import ContainerProxy, CosmosClient
from structlog.typing import FilteringBoundLogger

from ._credentials import account_key
from ._embedded import EmbeddedAccount, EngineError, open_embedded
from ._logging import FACTORY_CLOSE, FACTORY_OPEN, operation
from ._provisioning import open_container
from ._service_errors import translated
from .errors import FactoryClosedError, ProvisioningError
from .settings import CosmosStateSettings

CLIENT_OPTIONS: Final[dict[str, Any]] = {
    # All retries are the gateway's: the client re-sends writes that are not idempotent after a dropped connection, and
    # turns one throttled query into 100 requests. (-1: it takes 0 for "not given".)
    "retry_total": 0,
    "retry_throttle_total": -1,
    # Otherwise a text in Chinese takes twice, an emoji three times the bytes it is stored and paid for with.
    "enable_compact_utf8_item_writes": True,
    "user_agent_suffix": f"cosmos-workflow-state/{version('cosmos-workflow-state')}",
}


class CosmosConnection:
    """Opens the client and the container once, however many tasks ask at once."""

    def __init__(
        self,
        settings: CosmosStateSettings,
        logger: FilteringBoundLogger,
        *,
        client: CosmosClient | None,
        credential: AsyncTokenCredential | None,
    ) -> None:
        """Keep what is needed; nothing is opened before `container` is awaited."""
        self._settings = settings
        self._logger = logger
        self._given_client = client
        self._given_credential = credential
        self._lock = asyncio.Lock()
        self._home: tuple[int, asyncio.AbstractEventLoop] | None = None
        self._opened: AsyncExitStack | None = None
        self._container: ContainerProxy | None = None
        self._closing: asyncio.Task[None] | None = None

    def __del__(self) -> None:
        """Tell of a connection that nobody closed."""
        if self._opened is not None:
            warnings.warn(
                "a CosmosStateFactory was left open: use async with", ResourceWarning, stacklevel=2, source=self
            )

    def check_open(self) -> None:
        """Check that the connection was not closed.

        Raises:
            FactoryClosedError: It was.
        """
        if self._closing is not None:
            raise FactoryClosedError("the factory is closed; use its storages inside its async with block")

    async def container(self) -> ContainerProxy:
        """Return the container, opening the client under a lock on first use.

        Raises:
            FactoryClosedError: The connection was closed, or was opened on another event loop or in another process.
            ProvisioningError: The container is missing or not shaped as it must be.
            ServiceError: The service refused or could not be reached.
            SettingsError: No usable key is set.
        """
        self.check_open()
        if self._home not in {None, (os.getpid(), asyncio.get_running_loop())}:
            raise FactoryClosedError(
                "the factory was opened on another event loop or before a fork; build one for each"
            )
        async with self._lock:
            self.check_open()
            if self._container is None:
                self._container = await self._open()
            return self._container

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
            opened, self._opened, self._container = self._opened, None, None
            with operation(self._logger, FACTORY_CLOSE):
                if opened is not None:
                    await opened.aclose()

    async def _open(self) -> ContainerProxy:
        settings = self._settings
        mode = settings.effective_provisioning
        with operation(self._logger, FACTORY_OPEN, provisioning=mode):
            async with AsyncExitStack() as opening:
                client = self._given_client or await self._enter_client(opening)
                container = await open_container(
                    client, database=settings.database, container=settings.checkpoint_container, mode=mode
                )
                self._opened = opening.pop_all()
        self._home = (os.getpid(), asyncio.get_running_loop())
        return container

    async def _enter_client(self, opening: AsyncExitStack) -> CosmosClient:
        client = await self._build_client(opening)
        # Before entering: a client whose entering fails has a session to close, and without entering there would be no
        # session token, so no reading of what was just written.
        opening.push_async_callback(client.close)
        with translated():
            await client.__aenter__()
        return client

    async def _build_client(self, opening: AsyncExitStack) -> CosmosClient:
        settings = self._settings
        if not settings.is_embedded:
            return CosmosClient(settings.endpoint, self._given_credential or account_key(settings), **CLIENT_OPTIONS)
        account = await self._open_embedded()
        opening.push_async_callback(account.close)
        return CosmosClient(account.endpoint, account.key, transport=account.transport(), **CLIENT_OPTIONS)

    async def _open_embedded(self) -> EmbeddedAccount:
        path = self._settings.embedded_path
        try:
            return await open_embedded(path)
        except (EngineError, OSError) as error:
            fault = str(error) if path is None else _fault_of(path, error)
            raise ProvisioningError(
                f"the state file that COSMOS_WORKFLOW_STATE_ENDPOINT names cannot be opened: {fault}; it takes a path "
                "in a directory that exists and that this user may write to, for example embedded:state.db"
            ) from error


def _fault_of(path: Path, error: Exception) -> str:
    where = path.absolute()
    if not where.parent.is_dir():
        return f"{where}: its directory does not exist"
    if where.is_dir():
        return f"{where}: it is a directory"
    return f"{where}: {error}"
