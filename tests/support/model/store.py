"""One engine in memory, on the thread of the test: its clock, its past states, and what is in it at any moment."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from azure.core.pipeline.transport import HttpRequest
from azure.cosmos.aio import CosmosClient

from cosmos_workflow_state import CosmosStateFactory, CosmosStateSettings
from cosmos_workflow_state._clients import CLIENT_OPTIONS
from cosmos_workflow_state._embedded import EmbeddedResponse, EmbeddedTransport
from cosmos_workflow_state.emulator._clock import MovableClock
from cosmos_workflow_state.emulator._engine._engine import Engine
from cosmos_workflow_state.emulator._engine._schema import connect
from cosmos_workflow_state.emulator._engine._threads import Lane, Outcome, as_engine_error

ENDPOINT: Final = "https://model.invalid:443/"
KEY: Final = "a2V5"
_START: Final = 1_800_000_000.0
_REMEMBERED: Final = 12
"""How many states a replica may be behind."""

Item = dict[str, Any]
ItemKey = tuple[str, str, str]
"""Tenant, workflow name and id."""


class _InlineLane(Lane):
    """Does each job at once, where it is submitted: the same requests give the same state, always."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Start no thread."""
        self._connection = connection

    def submit(self, run: Callable[[sqlite3.Connection], Any]) -> Future[Outcome]:
        future: Future[Outcome] = Future()
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            result = run(self._connection)
        except BaseException as error:  # noqa: BLE001 - whatever it is belongs to the caller who waits
            self._connection.execute("ROLLBACK")
            future.set_result((None, as_engine_error(error)))
        else:
            self._connection.execute("COMMIT")
            future.set_result((result, None))
        return future

    def close(self) -> None:
        self._connection.close()


@dataclass(frozen=True, slots=True)
class Past:
    """What a replica that is behind still shows.

    Attributes:
        lsn: The last write it has seen.
        moment: The moment of the world just after that write.
        image: The whole file.
    """

    lsn: int
    moment: int
    image: bytes


class Store:
    """An engine that is provisioned and empty."""

    def __init__(self, settings: CosmosStateSettings) -> None:
        """Open it.

        Args:
            settings: Say what the database and container are called.
        """
        self.clock = MovableClock(lambda: _START)
        self._connection = _opened(_provisioned(settings.database, settings.checkpoint_container))
        self._engine = _engine(self._connection, self.clock)
        self._past: deque[Past] = deque(maxlen=_REMEMBERED)
        self._parsed: dict[bytes, Item] = {}

    async def answer(self, request: HttpRequest) -> EmbeddedResponse:
        """Answer a request."""
        return await EmbeddedTransport(self._engine).send(request)

    async def answer_from(self, past: Past, request: HttpRequest) -> EmbeddedResponse:
        """Answer a reading request as a replica does that has not seen the last writes."""
        connection = _opened(past.image)
        try:
            return await EmbeddedTransport(_engine(connection, self.clock)).send(request)
        finally:
            connection.close()

    def remember(self, moment: int) -> None:
        """Keep the present state as one that a replica may still show later."""
        lsn = int(self._connection.execute("SELECT lsn FROM counters").fetchone()[0])
        if not self._past or self._past[-1].lsn < lsn:
            self._past.append(Past(lsn, moment, self._connection.serialize()))

    def past(self, least_lsn: int, steps: int) -> Past | None:
        """Return the state some writes ago, but none before the one that a session token asks for."""
        allowed = [one for one in self._past if one.lsn >= least_lsn]
        return allowed[max(0, len(allowed) - 1 - steps)] if allowed else None

    def items(self) -> dict[ItemKey, Item]:
        """Return what has not expired, each with its time of expiry as ``expires`` (None: never)."""
        found: dict[ItemKey, Item] = {}
        rows = self._connection.execute(
            "SELECT body, expires FROM items WHERE expires IS NULL OR expires > ?", (int(self.clock()),)
        )
        for body, expires in rows:
            item = self._parsed.get(body)
            if item is None:
                item = self._parsed[body] = json.loads(body) | {"expires": expires}
            found[item["tenant_id"], item["workflow_name"], item["id"]] = item
        return found

    def close(self) -> None:
        """Close the engine."""
        self._engine.close()


def _opened(image: bytes) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.deserialize(image)
    return connection


def _engine(connection: sqlite3.Connection, clock: Callable[[], float]) -> Engine:
    lane = _InlineLane(connection)
    return Engine(lane, lane, clock, None)


@cache
def _provisioned(database: str, container: str) -> bytes:
    """Return the file of an engine with an empty container. All worlds share it, so their containers are the same."""
    connection = connect(None)
    settings = CosmosStateSettings(endpoint="embedded:", database=database, checkpoint_container=container)

    async def provision() -> None:
        transport = EmbeddedTransport(_engine(connection, lambda: _START))
        async with (
            CosmosClient(ENDPOINT, KEY, transport=transport, **CLIENT_OPTIONS) as client,
            CosmosStateFactory(settings, client=client) as factory,
        ):
            await factory.for_tenant("nobody").checkpoints.list_workflows()

    asyncio.run(provision())
    return connection.serialize()
