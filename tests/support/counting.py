"""Several processes that count in one session in a storm, each increment with its mark, and what becomes of them."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable
from typing import Any, Final

from agent_framework import AgentSession
from azure.core.exceptions import ServiceResponseError
from azure.core.pipeline.transport import HttpRequest

from cosmos_workflow_state import TenantSessionStore, errors
from cosmos_workflow_state._embedded import EmbeddedResponse
from cosmos_workflow_state._session_items import SESSION_TYPE
from support.faults import Fault, Send
from support.storms import Storm
from support.worlds import TENANT, Process, World

_NO_EXCUSE: Final = (
    errors.FactoryClosedError,
    errors.InvalidArgumentError,
    errors.ProvisioningError,
    errors.StateCorruptError,
    errors.StateNotRestorableError,
    errors.StateTooLargeError,
)

_OVERTAKEN: Final = 0.12
"""Of all requests, the part whose answer is lost while others go on."""

_ARRIVES: Final = 0.8
"""Of those, the part that is lost on the way back."""


def store_of(process: Process) -> TenantSessionStore:
    """Return the sessions of a process."""
    return process.factory.for_tenant(TENANT).sessions


class Count:
    """One session, which holds the marks of its increments; how many they are is the counter.

    Attributes:
        session_id: Its id.
        done: The marks of the increments that returned.
        unknown: The marks of those of which nobody knows, as they say themselves.
        refused: The marks of those that say that they were not done.
        writes: The writes that have made its versions, in their order.
    """

    def __init__(self, session_id: str, dice: random.Random, world: World, quiet: Process) -> None:
        """Begin with nothing stored.

        Args:
            session_id: Its id.
            dice: What decides.
            world: Where it is kept.
            quiet: A process to which nothing happens, which goes on while an answer is lost.
        """
        self.session_id = session_id
        self.done: set[str] = set()
        self.unknown: set[str] = set()
        self.refused: set[str] = set()
        self.writes: list[str] = []
        self._dice, self._world, self._quiet = dice, world, store_of(quiet)
        self._ballast = dice.randbytes(3_000).hex() if dice.random() < 0.2 else ""
        self._storm = Storm(dice, share=dice.choice([0.02, 0.1, 0.3]))

    async def run(self, processes: list[Process], increments: int, *, guarded: bool) -> None:
        """Let each process make this many increments, guarded by ``if_match`` or not."""
        for process in processes:
            process.transport.weather = self._weather
        async with asyncio.TaskGroup() as group:
            for name, process in enumerate(processes):
                group.create_task(self._increments(store_of(process), f"{name}", increments, guarded=guarded))

    async def marks(self) -> list[str]:
        """Return the marks that are stored, in the order they were made."""
        found = await self._quiet.get(self.session_id)
        return [] if found is None else list(found.state["marks"])

    async def _increments(self, store: TenantSessionStore, name: str, count: int, *, guarded: bool) -> None:
        for number in range(count):
            await asyncio.sleep(self._dice.uniform(0, 5))
            await self._increment(store, f"{name}.{number}", guarded=guarded)

    async def _increment(self, store: TenantSessionStore, mark: str, *, guarded: bool) -> None:
        found = await self._endure(lambda: store.get_stored(self.session_id))
        if not found.is_done:
            return
        session, version = self._next(found.value, mark)
        if_match = version if guarded else None
        outcome = await self._endure(lambda: store.set_stored(self.session_id, session, if_match=if_match))
        kept = self.done if outcome.is_done else self.unknown if outcome.is_unknown else self.refused
        kept.add(mark)

    def _next(self, stored: Any, mark: str) -> tuple[AgentSession, str]:
        session, version = (AgentSession(session_id="s"), "") if stored is None else (stored.session, stored.etag)
        session.state = {"marks": [*session.state.get("marks", []), mark], "ballast": self._ballast}
        return session, version

    async def _endure(self, call: Callable[[], Awaitable[object]]) -> Any:
        outcome = await self._storm.endure(call, lambda: None)
        assert not isinstance(outcome.error, _NO_EXCUSE), repr(outcome.error)
        assert outcome.error is None or isinstance(outcome.error, errors.CosmosStateError), repr(outcome.error)
        return outcome

    def _weather(self) -> Fault:
        """Return what happens to a request; what it leaves is looked at, whenever it arrives."""
        fault = self._overtaken if self._dice.random() < _OVERTAKEN else self._storm.weather()

        async def watched(request: HttpRequest, send: Send) -> EmbeddedResponse:
            async def sent() -> EmbeddedResponse:
                answer = await send()
                self._look()
                return answer

            return await fault(request, sent)

        return watched

    async def _overtaken(self, _: HttpRequest, send: Send) -> EmbeddedResponse:
        """Lose the answer, or the request, while others go on."""
        if self._dice.random() < _ARRIVES:
            await send()
        for number in range(self._dice.choice([0, 1, 1, 3])):
            await self._go_on(f"q.{len(self.writes)}.{number}")
        raise ServiceResponseError("dropped")

    async def _go_on(self, mark: str) -> None:
        session, version = self._next(await self._quiet.get_stored(self.session_id), mark)
        # Another of these may be going on just now.
        with contextlib.suppress(errors.StateChangedError):
            await self._quiet.set(self.session_id, session, if_match=version)
            self.done.add(mark)
        self._look()

    def _look(self) -> None:
        made = [item["writes"][0] for item in self._world.items() if self._is_session(item)]
        if made != self.writes[-1:]:
            self.writes += made

    def _is_session(self, item: dict[str, Any]) -> bool:
        return (item.get("session_id"), item["type"]) == (self.session_id, SESSION_TYPE)
