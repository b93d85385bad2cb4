"""Agent sessions, the types in their state, and an engine on which several processes' stores keep them."""

from __future__ import annotations

import copy
import random
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from agent_framework import AgentSession, register_state_type
from azure.cosmos.aio import ContainerProxy, CosmosClient
from pydantic import BaseModel

from cosmos_workflow_state import CosmosStateFactory, CosmosStateSettings, TenantSessionStore
from cosmos_workflow_state._clients import CLIENT_OPTIONS
from cosmos_workflow_state._embedded import EmbeddedAccount
from cosmos_workflow_state.emulator._clock import MovableClock
from cosmos_workflow_state.emulator._engine._engine import Engine
from support.faults import FaultyTransport

TENANT: Final = "contoso"


@dataclass
class Ticket:
    """A type that is registered, with a codec of its own."""

    number: int
    title: str


class Booking(BaseModel):
    """A type that is registered, and that the framework knows how to encode."""

    place: str
    guests: list[str]


class Loose:
    """A type that is not registered but can be made a dict, which is what comes back."""

    def to_dict(self) -> dict[str, Any]:
        """Return what there is of it."""
        return {"loose": (1, 2)}


class Fragile:
    """A type whose code raises what quotes the state, on the way in or on the way out."""

    def __init__(self, secret: str, *, breaks_out: bool = False) -> None:
        """Keep a secret."""
        self.secret, self.breaks_out = secret, breaks_out


def _encode_fragile(value: Fragile) -> Mapping[str, Any]:
    if not value.breaks_out:
        raise LookupError(value.secret)
    return {"secret": value.secret}


def _decode_fragile(payload: Mapping[str, Any]) -> Fragile:
    raise LookupError(payload["secret"])


register_state_type(
    Ticket,
    type_id="support.sessions.ticket",
    encoder=lambda ticket: {"number": ticket.number, "title": ticket.title},
    decoder=lambda payload: Ticket(payload["number"], payload["title"]),
)
register_state_type(Booking, type_id="support.sessions.booking")
register_state_type(Fragile, type_id="support.sessions.fragile", encoder=_encode_fragile, decoder=_decode_fragile)


def session(state: Mapping[str, Any] | None = None, **ids: Any) -> AgentSession:
    """Return a session with a state."""
    made = AgentSession(**{"session_id": "s-1"} | ids)
    made.state = dict(state or {})
    return made


def noise(size: int, seed: int = 0) -> dict[str, Any]:
    """Return a state of about this many bytes that hardly compress."""
    return {"noise": random.Random(seed).randbytes(size // 2).hex()}


def content(of: AgentSession | None) -> tuple[Any, ...] | None:
    """Return all there is of a session, to be compared."""
    return None if of is None else (of.session_id, copy.deepcopy(of.service_session_id), copy.deepcopy(of.state))


@dataclass(frozen=True)
class Process:
    """A process that keeps sessions: a client and a factory of its own.

    Attributes:
        factory: The factory.
        store: Its store of the tenant.
        transport: What lies under the client.
    """

    factory: CosmosStateFactory
    store: TenantSessionStore
    transport: FaultyTransport

    def sent(self) -> list[str]:
        """Return the methods that were sent since somebody asked."""
        sent, self.transport.sent = self.transport.sent, []
        return sent


class Account:
    """An engine in memory, the processes on it and the way behind their backs.

    Attributes:
        clock: Its clock.
    """

    def __init__(self) -> None:
        """Open the engine; use `account_of_sessions`."""
        self.clock = MovableClock()
        self._engine = Engine.open(None, clock=self.clock)
        self._embedded = EmbeddedAccount(self._engine)

    async def close(self) -> None:
        """Close the engine."""
        await self._embedded.close()

    @asynccontextmanager
    async def process(self, **settings: Any) -> AsyncGenerator[Process]:
        """Start a process whose container is open already, and end it."""
        given: dict[str, Any] = {"endpoint": "embedded:", "_env_file": None} | settings
        async with (
            self._client() as (client, transport),
            CosmosStateFactory(CosmosStateSettings(**given), client=client) as factory,
        ):
            store = factory.for_tenant(TENANT).sessions
            await store.get("connects")
            transport.sent = []
            yield Process(factory, store, transport)

    @asynccontextmanager
    async def container(self) -> AsyncGenerator[ContainerProxy]:
        """Open the container of sessions."""
        async with self._client() as (client, _):
            yield client.get_database_client("workflow-state").get_container_client("sessions")

    async def items(self, kind: str | None = None) -> list[dict[str, Any]]:
        """Return what is stored, of one type or all."""
        async with self.container() as container:
            found = [dict(item) async for item in container.query_items("SELECT * FROM c")]
        return [item for item in found if kind in {None, item["type"]}]

    async def overwrite(self, item: Mapping[str, Any], **fields: Any) -> None:
        """Change fields of an item, or plant one; a field that is None is taken away."""
        changed = {name: value for name, value in {**item, **fields}.items() if value is not None}
        async with self.container() as container:
            await container.upsert_item(changed)

    @asynccontextmanager
    async def _client(self) -> AsyncGenerator[tuple[CosmosClient, FaultyTransport]]:
        transport = FaultyTransport(self._engine)
        transport.faults, transport.sent = [], []
        embedded = self._embedded
        async with CosmosClient(embedded.endpoint, embedded.key, transport=transport, **CLIENT_OPTIONS) as client:
            yield client, transport


@asynccontextmanager
async def account_of_sessions() -> AsyncGenerator[Account]:
    """Open an engine in memory."""
    account = Account()
    try:
        yield account
    finally:
        await account.close()
