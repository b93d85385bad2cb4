"""An engine whose clock tests move, the factories of several processes on it, and what each of them sends."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from azure.core.pipeline.transport import HttpRequest
from azure.cosmos.aio import CosmosClient

from cosmos_workflow_state import CosmosStateFactory, CosmosStateSettings
from cosmos_workflow_state._clients import CLIENT_OPTIONS
from cosmos_workflow_state._definitions import CHECKPOINTS, ContainerDefinition
from cosmos_workflow_state._embedded import EmbeddedAccount, EmbeddedResponse, EmbeddedTransport
from cosmos_workflow_state.emulator._clock import MovableClock
from cosmos_workflow_state.emulator._engine._engine import Engine
from support.states import ALLOWED_TYPES

ITEMS: Final = "/docs/"
_DEFAULTS: Final[dict[str, Any]] = {"endpoint": "embedded:", "_env_file": None}


class WatchedTransport(EmbeddedTransport):
    """Tells of each request for items before the engine sees it."""

    def __init__(self, engine: Engine, watch: Callable[[HttpRequest], None]) -> None:
        super().__init__(engine)
        self._watch = watch

    async def send(self, request: HttpRequest, **options: Any) -> EmbeddedResponse:
        """Answer a request."""
        if ITEMS in request.url:
            self._watch(request)
        return await super().send(request, **options)


class MovedAccount:
    """An account in memory or on a file, whose clock can be moved.

    Attributes:
        clock: The clock.
    """

    def __init__(self, path: Path | None, clock: MovableClock) -> None:
        """Open the engine; use `moved_account`."""
        self.clock = clock
        self._engine = Engine.open(path, clock=self.clock)
        self._account = EmbeddedAccount(self._engine)

    @asynccontextmanager
    async def factory(
        self, watch: Callable[[HttpRequest], None] = lambda _: None, **settings: Any
    ) -> AsyncGenerator[CosmosStateFactory]:
        """Open a factory that has seen nothing, over a client of its own.

        Args:
            watch: Told of each request for items.
            **settings: What is not as it is by default.
        """
        given: dict[str, Any] = {
            "endpoint": "embedded:",
            "allowed_checkpoint_types": ALLOWED_TYPES,
            "_env_file": None,
        } | settings
        async with (
            self._client(watch) as client,
            CosmosStateFactory(CosmosStateSettings(**given), client=client) as factory,
        ):
            yield factory

    async def items(
        self, query: str = "SELECT * FROM c", *, definition: ContainerDefinition = CHECKPOINTS
    ) -> list[dict[str, Any]]:
        """Return every item of a container that has not expired, or what a query says of them."""
        defaults = CosmosStateSettings(**_DEFAULTS)
        async with self._client(lambda _: None) as client:
            database = client.get_database_client(defaults.database)
            container = database.get_container_client(defaults.name_of(definition))
            return [dict(item) async for item in container.query_items(query)]

    async def close(self) -> None:
        """Close the engine."""
        await self._account.close()

    def _client(self, watch: Callable[[HttpRequest], None]) -> CosmosClient:
        transport = WatchedTransport(self._engine, watch)
        return CosmosClient(self._account.endpoint, self._account.key, transport=transport, **CLIENT_OPTIONS)


@asynccontextmanager
async def moved_account(
    path: Path | None = None, *, ahead: float = 0.0, still: bool = False
) -> AsyncGenerator[MovedAccount]:
    """Open an account whose clock can be moved.

    Args:
        path: The file, None for memory.
        ahead: Seconds that the clock begins ahead of the system's.
        still: Whether time stands still until a test moves it.
    """
    clock = MovableClock(lambda: 1_800_000_000.75) if still else MovableClock()
    clock.offset = ahead
    account = MovedAccount(path, clock)
    try:
        yield account
    finally:
        await account.close()
