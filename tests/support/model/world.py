"""Several processes on one store, each of whose requests waits until the test says what becomes of it.

A process is a factory with a client and caches of its own. It knows of the others what the service tells it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from azure.core.exceptions import ServiceRequestError, ServiceResponseError
from azure.core.pipeline.transport import HttpRequest
from azure.cosmos.aio import CosmosClient

from cosmos_workflow_state import CosmosStateFactory, CosmosStateSettings, TenantCheckpointStorage
from cosmos_workflow_state._clients import CLIENT_OPTIONS
from cosmos_workflow_state._definitions import CHECKPOINTS
from cosmos_workflow_state._embedded import EmbeddedResponse, EmbeddedTransport

from .loop import SteppingLoop
from .store import ENDPOINT, KEY, Past, Store
from .timeline import Right, Timeline, ViolationError

SETTINGS: Final = CosmosStateSettings(
    endpoint="embedded:", provisioning="skip", on_undecodable="raise", operation_timeout=3600
)
_MANY: Final = 3_000
"""Requests until everything that is under way must have ended."""


class Fate(Enum):
    """What becomes of a request."""

    DELIVERED = "delivered"
    LOST = "lost"
    ANSWER_LOST = "answer lost"
    LATE = "late"


@dataclass(slots=True, eq=False)
class Running:
    """An operation of a process.

    Attributes:
        name: For messages.
        right: What it may do.
        since: The earliest moment that its result may be of.
        faults: How many of its requests or answers were lost.
        outcome: What it returned or raised.
        task: Where it runs.
    """

    name: str
    right: Right
    since: int
    faults: int = 0
    outcome: Any = None
    task: asyncio.Task[None] | None = None


@dataclass(slots=True, eq=False)
class Process:
    """A process that uses the package.

    Attributes:
        number: Its slot.
        client: Its client.
        factory: Its factory.
    """

    number: int
    client: CosmosClient
    factory: CosmosStateFactory

    def storage(self, tenant: str, scope: str, ttl: int | None = None) -> TenantCheckpointStorage:
        """Return a storage as the process would."""
        return self.factory.for_tenant(tenant).checkpoints.scoped(scope).with_ttl(ttl)


@dataclass(slots=True, eq=False)
class Pending:
    """A request that waits at the gate.

    Attributes:
        running: What it is for.
        process: Whose.
        request: The request.
        fate: What becomes of it; a past state is that of the replica that answers.
    """

    running: Running
    process: Process
    request: HttpRequest
    fate: asyncio.Future[Fate | Past]

    @property
    def reads(self) -> bool:
        """Whether a replica may answer it."""
        is_query = self.request.headers.get("x-ms-documentdb-isquery", "")
        return self.request.method == "GET" or is_query.lower() == "true"

    @property
    def least_lsn(self) -> int:
        """The last write that a replica must have seen to answer it; 0 without a session token."""
        _, _, lsn = self.request.headers.get("x-ms-session-token", "").rpartition("#")
        return int(lsn or 0)


_running: ContextVar[Running] = ContextVar("_running")


class _GatedTransport(EmbeddedTransport):
    """Lets each request for items wait for its fate, once its process is named."""

    process: Process | None = None

    def __init__(self, world: World) -> None:
        """Set the world that decides."""
        self._world = world

    async def send(self, request: HttpRequest, **_: Any) -> EmbeddedResponse:
        """Answer a request."""
        if "/docs" not in request.url or self.process is None or "x-ms-cosmos-is-query-plan-request" in request.headers:
            return await self._world.store.answer(request)
        return await self._world.wait_and_answer(self.process, request)


class World:
    """The store, the processes and what waits.

    Attributes:
        store: The service.
        timeline: What was stored when.
        processes: The living ones, by slot.
        pending: Requests at the gate, in the order in which they came.
        late: Requests that may still arrive although nobody waits for them.
        running: Operations of living processes that have not ended.
    """

    def __init__(self) -> None:
        """Start with an empty store and no process."""
        self.loop = SteppingLoop()
        self.store = Store(SETTINGS)
        self.timeline = Timeline(self.store)
        self.processes: dict[int, Process] = {}
        self.pending: list[Pending] = []
        self.late: list[Pending] = []
        self.running: list[Running] = []
        self._all: list[Process] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._is_over = False

    def process(self, number: int) -> Process:
        """Return the process in a slot, a new one where there is none."""
        if number not in self.processes:
            self.processes[number] = self.loop.run_until_complete(self._start_process(number))
            self._all.append(self.processes[number])
        return self.processes[number]

    def start(
        self,
        process: Process,
        running: Running,
        action: Callable[[], Awaitable[Any]],
        problem: Callable[[Running], str | None],
    ) -> None:
        """Begin an operation and run it to its first request.

        Args:
            process: Whose.
            running: The operation.
            action: What it does.
            problem: Returns what is wrong with its outcome, None for nothing.
        """

        async def run() -> None:
            _running.set(running)
            try:
                running.outcome = await action()
            except asyncio.CancelledError:
                return
            except Exception as error:  # noqa: BLE001 - it is judged like a result
                running.outcome = error
            finally:
                if running in self.running:
                    self.running.remove(running)
            found = problem(running)
            if found is not None:
                self.timeline.violations.append(f"{running.name} of process {process.number}: {found}")

        self.running.append(running)
        running.task = self.loop.create_task(run())
        self._tasks.append(running.task)
        self.settle()

    def release(self, pending: Pending, fate: Fate | Past) -> None:
        """Decide on a request, and run to the next standstill."""
        self.pending.remove(pending)
        pending.fate.set_result(fate)
        self.settle()

    def kill(self, number: int) -> None:
        """End a process: nothing of it goes on. What it has sent may still arrive."""
        process = self.processes.pop(number)
        for pending in [one for one in self.pending if one.process is process]:
            self._abandon(pending)
            if pending.running in self.running:
                self.running.remove(pending.running)

    def cancel(self, running: Running) -> None:
        """Cancel an operation of a process that lives on. What it has sent may still arrive."""
        if running.task is not None:
            running.task.cancel()
        self.settle()

    def deliver_late(self, pending: Pending) -> None:
        """Let a request arrive for which nobody waits any more."""
        self.late.remove(pending)
        self.loop.run_until_complete(self._apply(pending))
        self.check()

    def wait(self, seconds: float) -> None:
        """Move the clock of the service."""
        self.store.clock.advance(seconds)
        self.timeline.observe(None)
        self.check()

    def finish(self, running: list[Running] | None = None) -> None:
        """Deliver all requests, of some operations or of all, until these have ended.

        Raises:
            ViolationError: They do not end, or something happened that must never happen.
        """
        wanted = self.running if running is None else running
        for _ in range(_MANY):
            mine = [one for one in self.pending if one.running in wanted]
            if not mine:
                return
            self.release(mine[0], Fate.DELIVERED)
        raise ViolationError(f"{[one.name for one in wanted]} do not end")

    def settle(self) -> None:
        """Run to the next standstill.

        Raises:
            ViolationError: Something happened that must never happen.
        """
        self.loop.run_to_standstill()
        self.check()

    def check(self) -> None:
        """Look for what must not have happened.

        Raises:
            ViolationError: Something has.
        """
        if self.timeline.violations:
            raise ViolationError("; ".join(self.timeline.violations[:3]))

    def close(self) -> None:
        """End all processes."""
        self._is_over = True
        self.loop.run_until_complete(self._close())
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()
        self.store.close()

    async def wait_and_answer(self, process: Process, request: HttpRequest) -> EmbeddedResponse:
        """Answer a request of a process once its fate is known."""
        if self._is_over:
            raise ServiceRequestError("over")
        running = _running.get()
        pending = Pending(running, process, request, self.loop.create_future())
        self.pending.append(pending)
        try:
            fate = await pending.fate
        except asyncio.CancelledError:
            if pending in self.pending:
                self._abandon(pending)
            raise
        if isinstance(fate, Past):
            running.since = min(running.since, fate.moment)
            return await self.store.answer_from(fate, request)
        if fate is Fate.DELIVERED:
            return await self._apply(pending)
        running.faults += 1
        if fate is Fate.LOST:
            raise ServiceRequestError("lost")
        if fate is Fate.LATE:
            self.late.append(pending)
        else:
            await self._apply(pending)
        raise ServiceResponseError("lost")

    async def _apply(self, pending: Pending) -> EmbeddedResponse:
        response = await self.store.answer(pending.request)
        if not pending.reads:
            self.timeline.observe(pending.running.right)
        return response

    def _abandon(self, pending: Pending) -> None:
        self.pending.remove(pending)
        self.late.append(pending)

    async def _start_process(self, number: int) -> Process:
        transport = _GatedTransport(self)
        client = await CosmosClient(ENDPOINT, KEY, transport=transport, **CLIENT_OPTIONS).__aenter__()
        factory = CosmosStateFactory(SETTINGS, client=client)
        # Opened here, so that what waits at the gate are the requests of operations alone.
        await factory._connection.container(CHECKPOINTS)
        transport.process = Process(number, client, factory)
        return transport.process

    async def _close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for process in self._all:
            await process.factory.close()
            await process.client.close()
