"""The framework's history providers and ours side by side, on one engine, as one scenario after another needs them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from agent_framework import FileHistoryProvider, HistoryProvider, InMemoryHistoryProvider, Message
from agent_framework_azure_cosmos import CosmosHistoryProvider

from cosmos_workflow_state import CosmosStateSettings
from support.targets import Target, client_of, factory_of

MEMORY: Final = "in memory"
FILE: Final = "file"
COSMOS: Final = "cosmos"
OURS: Final = "ours"
OURS_STATELESS: Final = "ours without state"

SOURCE: Final = "history"
Make = Callable[..., HistoryProvider]


class Chat:
    """One session with one provider, and the state that goes with it."""

    def __init__(self, provider: HistoryProvider, session_id: str | None, *, stateful: bool) -> None:
        self._provider, self._session_id = provider, session_id
        self._state: dict[str, Any] | None = {} if stateful else None

    async def save(self, messages: Sequence[Message]) -> None:
        """Save messages."""
        await self._provider.save_messages(self._session_id, messages, state=self._state)

    async def read(self) -> list[Message]:
        """Return what is stored."""
        return await self._provider.get_messages(self._session_id, state=self._state)


class Providers:
    """Makes providers of every kind.

    Attributes:
        kinds: By name, what makes one; it takes the framework's switches.
    """

    def __init__(self, kinds: dict[str, Make]) -> None:
        self.kinds = kinds

    def chats(self, session_id: str | None = "s-1", *, without: Sequence[str] = ()) -> dict[str, Chat]:
        """Return a session with each kind of provider."""
        return {
            kind: Chat(make(), session_id, stateful=kind != OURS_STATELESS)
            for kind, make in self.kinds.items()
            if kind not in without
        }


@asynccontextmanager
async def providers_on(settings: CosmosStateSettings, target: Target | None, path: Path) -> AsyncIterator[Providers]:
    """Open what the providers need; ours has a tenant of its own for each way it is used.

    Args:
        settings: Of the engine that the framework's Cosmos provider and ours share.
        target: What listens, None for the embedded engine.
        path: A directory for the file provider.
    """
    name = "framework" if target is None else await target.create_container("/session_id")
    async with client_of(settings) as client, factory_of(settings) as factory:
        if target is None:
            await client.create_database_if_not_exists(settings.database)
        cosmos = {"cosmos_client": client, "database_name": settings.database, "container_name": name}
        yield Providers(
            {
                MEMORY: lambda **switches: InMemoryHistoryProvider(SOURCE, **switches),
                FILE: lambda **switches: FileHistoryProvider(path, source_id=SOURCE, **switches),
                COSMOS: lambda **switches: CosmosHistoryProvider(SOURCE, **cosmos, **switches),
                OURS: lambda **switches: factory.for_tenant("t1").history(SOURCE, **switches),
                OURS_STATELESS: lambda **switches: factory.for_tenant("t10").history(SOURCE, **switches),
            }
        )
