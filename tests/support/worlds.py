"""A world of its own for one story: an engine in memory without threads, its clock, and the processes that use it.

Nothing in it depends on how fast the machine is. The engine does its work at once, on the event loop; all waits are the
loop's timers, and on a `JumpingLoop` those take no time. So a story runs the same way each time it is told.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import sqlite3
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import Future
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

from azure.core.pipeline.transport import HttpRequest
from azure.cosmos.aio import CosmosClient

from cosmos_workflow_state import CosmosStateFactory, CosmosStateSettings, TenantCheckpointStorage
from cosmos_workflow_state._clients import CLIENT_OPTIONS
from cosmos_workflow_state._embedded import EmbeddedResponse, EmbeddedTransport
from cosmos_workflow_state.emulator._clock import MovableClock
from cosmos_workflow_state.emulator._engine._engine import Engine
from cosmos_workflow_state.emulator._engine._schema import connect
from cosmos_workflow_state.emulator._engine._threads import Lane, Outcome, as_engine_error
from support.faults import Fault, FaultyTransport
from support.states import ALLOWED_TYPES

TENANT: Final = "contoso"
TIMEOUT: Final = 20.0
"""Seconds of ``operation_timeout``."""

_START: Final = 1_800_000_000.0


class _Here:
    """Stands where the engine's threads do, and does each job at once in a transaction of its own."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def submit(self, run: Callable[[sqlite3.Connection], Any]) -> Future[Outcome]:
        done: Future[Outcome] = Future()
        self._connection.execute("BEGIN")
        try:
            result = run(self._connection)
        except Exception as error:  # noqa: BLE001 - whatever it is belongs to the coroutine that waits
            self._connection.execute("ROLLBACK")
            done.set_result((None, as_engine_error(error)))
        else:
            self._connection.execute("COMMIT")
            done.set_result((result, None))
        return done

    def close(self) -> None:
        self._connection.close()


class WorldTransport(FaultyTransport):
    """Gives faults to requests for items only, or to all.

    Attributes:
        all_of_them: Whether faults happen to all requests, so also to those that open the container.
        weather: What gives each request for items its fault, where the list of faults does not.
    """

    all_of_them: bool = False
    weather: Callable[[], Fault] | None = None

    async def send(self, request: HttpRequest, **options: Any) -> EmbeddedResponse:
        """Answer a request, or fail it."""

        async def send() -> EmbeddedResponse:
            return await EmbeddedTransport.send(self, request, **options)

        if "/docs/" in request.url and self.weather is not None:
            return await self.weather()(request, send)
        if "/docs/" in request.url or not self.all_of_them:
            return await super().send(request, **options)
        self.sent.append(request.method)
        return await (self.faults.pop(0)(request, send) if self.faults else send())


@dataclass(frozen=True, slots=True)
class Image:
    """Everything of a world that lasts: worlds can be made of it.

    Attributes:
        connection: The engine's memory.
        offset: How far its clock was moved, in seconds.
    """

    connection: sqlite3.Connection
    offset: float


@dataclass(frozen=True, slots=True)
class Process:
    """A process that uses the engine: it has a client and a factory of its own.

    Attributes:
        factory: The factory.
        storage: The factory's storage of the tenant.
        transport: What lies under the client.
    """

    factory: CosmosStateFactory
    storage: TenantCheckpointStorage
    transport: WorldTransport


class World:
    """An engine and its clock, which goes with the loop's time and can be moved forward."""

    def __init__(self, image: Image | None = None) -> None:
        """Begin with nothing, or with what an image holds."""
        self._connection = connect(None)
        self._provisioning: Final[Literal["create", "verify"]] = "create" if image is None else "verify"
        self.clock: Final = MovableClock(lambda: _START + asyncio.get_running_loop().time())
        if image is not None:
            image.connection.backup(self._connection)
            self.clock.offset = image.offset
        lane = cast("Lane", _Here(self._connection))
        self._engine = Engine(lane, lane, self.clock, None)

    def image(self) -> Image:
        """Return what it holds now."""
        copy = connect(None)
        self._connection.backup(copy)
        return Image(copy, self.clock.offset + asyncio.get_running_loop().time())

    def items(self) -> list[dict[str, Any]]:
        """Return every item that is stored and has not expired, of any container."""
        rows = self._connection.execute(
            "SELECT body FROM items WHERE expires IS NULL OR expires > ? ORDER BY number", (int(self.clock()),)
        )
        return [json.loads(body) for (body,) in rows]

    def close(self) -> None:
        """End the world."""
        self._engine.close()

    @asynccontextmanager
    async def process(self) -> AsyncGenerator[Process]:
        """Start a process, and end it."""
        transport = WorldTransport(self._engine)
        transport.faults, transport.sent = [], []
        settings = CosmosStateSettings(
            endpoint="embedded:",
            provisioning=self._provisioning,
            allowed_checkpoint_types=ALLOWED_TYPES,
            operation_timeout=TIMEOUT,
            on_undecodable="raise",
            _env_file=None,
        )
        # The client shares what it knows of containers among all clients of one endpoint in the process.
        endpoint = f"https://world-{secrets.token_hex(8)}.invalid:443/"
        async with (
            CosmosClient(endpoint, "a2V5", transport=transport, **CLIENT_OPTIONS) as client,
            CosmosStateFactory(settings, client=client) as factory,
        ):
            yield Process(factory, factory.for_tenant(TENANT).checkpoints, transport)


@asynccontextmanager
async def world_of(image: Image | None = None) -> AsyncGenerator[World]:
    """Make a world, and end it."""
    world = World(image)
    try:
        yield world
    finally:
        world.close()
