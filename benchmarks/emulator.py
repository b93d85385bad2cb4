"""Operations a second of the emulator, and what 100,000 items of others cost.

    python benchmarks/emulator.py [--quick]

Three subjects in one run, taking turns, through the real azure-cosmos client: the emulator as a server in a process of
its own, the same engine embedded in this process, and the floor, which is the client alone: its requests are answered
from memory with what the engine answered once. Server and engine keep a file and are durable: each write is on the
disk before it is answered.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Final, Self

from azure.core.pipeline.transport import AsyncHttpTransport, HttpRequest
from azure.cosmos.aio import ContainerProxy, CosmosClient

from cosmos_workflow_state import _queries
from cosmos_workflow_state._clients import CLIENT_OPTIONS
from cosmos_workflow_state._definitions import CHECKPOINTS
from cosmos_workflow_state._embedded import EmbeddedResponse, open_embedded
from cosmos_workflow_state._identity import Scope, TenantId
from cosmos_workflow_state._ordering import scope_range
from cosmos_workflow_state._provisioning import open_container
from cosmos_workflow_state.emulator import CosmosEmulator

FLOOR: Final = "client alone"
EMBEDDED: Final = "embedded"
SERVER: Final = "server"
SUBJECTS: Final = (FLOOR, EMBEDDED, SERVER)

TENANT: Final = "contoso"
WORKFLOW: Final = "invoices"
KEY: Final = [TENANT, WORKFLOW]
SIZES: Final = {"1 KB": 1024, "50 KB": 50 * 1024}
AT_A_TIME: Final = (1, 16)
FEW: Final = 1_000
MANY: Final = 100_000
BOUND: Final = 1.5
BATCH: Final = 100

Work = Callable[[], Awaitable[object]]


class RepeatingTransport(AsyncHttpTransport[HttpRequest, EmbeddedResponse]):
    """Asks another transport once for each kind of request and repeats the answer from then on."""

    def __init__(self, inner: AsyncHttpTransport[HttpRequest, EmbeddedResponse]) -> None:
        """Start knowing nothing."""
        self._inner = inner
        self._known: dict[object, EmbeddedResponse] = {}

    def forget(self) -> None:
        """Ask again, from now on."""
        self._known.clear()

    async def send(self, request: HttpRequest, **options: Any) -> EmbeddedResponse:
        """Answer a request."""
        headers = request.headers
        kind = (request.method, request.url, headers.get("x-ms-documentdb-isquery"), headers.get("if-none-match"))
        if kind not in self._known:
            self._known[kind] = await self._inner.send(request, **options)
        return self._known[kind]

    async def open(self) -> None:
        """Open the other."""
        await self._inner.open()

    async def close(self) -> None:
        """Close the other."""
        await self._inner.close()

    async def __aenter__(self) -> Self:
        """Open."""
        await self.open()
        return self

    async def __aexit__(self, *_details: object) -> None:
        """Close."""
        await self.close()


@dataclass(frozen=True, slots=True)
class Subject:
    """What is measured: a container of one of the three, and how it is told that something else comes next."""

    name: str
    container: ContainerProxy
    begin: Callable[[], None] = lambda: None


def item(number: int, size: int, *, tenant: str = TENANT, workflow: str = WORKFLOW) -> dict[str, Any]:
    """Return an item of about so many bytes, shaped as this package's checkpoints are."""
    low, _ = scope_range(Scope(""))
    return {
        "id": f"cp::{number:012}",
        "tenant_id": tenant,
        "workflow_name": workflow,
        "type": "checkpoint",
        "scope": "",
        "checkpoint_id": f"{number:012}",
        "sort_key": f"{low}{number:012}",
        "payload": {"data": "x" * (size - 250)},
    }


async def rows(container: ContainerProxy, query: str, parameters: list[dict[str, object]], key: list[str]) -> int:
    """Run a query to its end and return how many rows it had."""
    found = container.query_items(query=query, parameters=parameters, partition_key=key)
    return len([row async for row in found])


def read(container: ContainerProxy) -> Work:
    """Return a point read."""
    return lambda: container.read_item(item(0, 300)["id"], partition_key=KEY)


def latest(container: ContainerProxy) -> Work:
    """Return the query for the newest checkpoint of a workflow."""
    return lambda: rows(container, _queries.LATEST, _queries.in_scope(TenantId(TENANT), WORKFLOW, Scope("")), KEY)


def prefix(container: ContainerProxy) -> Work:
    """Return the query over all workflows of a tenant for one id."""
    return lambda: rows(container, _queries.BY_ID, _queries.by_id(TenantId(TENANT), item(0, 300)["id"]), [TENANT])


def create(container: ContainerProxy, size: int, numbers: Iterator[int]) -> Work:
    """Return a write of a new item."""
    return lambda: container.create_item(item(next(numbers), size), no_response=True)


async def rate(work: Work, at_a_time: int, seconds: float) -> float:
    """Return how many times a second something is done, so many at a time."""
    await work()
    done = 0
    started = time.perf_counter()

    async def repeat() -> None:
        nonlocal done
        while time.perf_counter() - started < seconds:
            await work()
            done += 1

    await asyncio.gather(*(repeat() for _ in range(at_a_time)))
    return done / (time.perf_counter() - started)


async def throughput(subjects: Sequence[Subject], seconds: float, rounds: int) -> Iterator[str]:
    """Measure the first table: the median of the rounds, in each of which every subject has its turn."""
    numbers = count(1)
    rates: dict[tuple[str, str, int, str], list[float]] = {}
    for label, size in SIZES.items():
        for subject in subjects:
            subject.begin()
            await subject.container.upsert_item(item(0, size), no_response=True)
        for turn in range(rounds):
            for operation, at_a_time in ((operation, many) for operation in OPERATIONS for many in AT_A_TIME):
                for subject in (*subjects[turn % len(subjects) :], *subjects[: turn % len(subjects)]):
                    subject.begin()
                    work = OPERATIONS[operation](subject.container, size, numbers)
                    measured = await rate(work, at_a_time, seconds)
                    rates.setdefault((label, operation, at_a_time, subject.name), []).append(measured)
    return _throughput_table({which: statistics.median(several) for which, several in rates.items()})


OPERATIONS: Final[Mapping[str, Callable[[ContainerProxy, int, Iterator[int]], Work]]] = {
    "create": create,
    "point read": lambda container, _size, _numbers: read(container),
    "latest": lambda container, _size, _numbers: latest(container),
}


def _throughput_table(rates: Mapping[tuple[str, str, int, str], float]) -> Iterator[str]:
    yield f"{'size':<6} {'operation':<11} {'at a time':>9}" + "".join(f"  {name:>12}" for name in SUBJECTS)
    for size, operation, at_a_time in dict.fromkeys(which[:3] for which in rates):
        found = (rates[size, operation, at_a_time, name] for name in SUBJECTS)
        yield f"{size:<6} {operation:<11} {at_a_time:>9}" + "".join(f"  {rate:>12,.0f}" for rate in found)


async def growth(few: ContainerProxy, many: ContainerProxy, repetitions: int) -> Iterator[str]:
    """Measure the second table: the same three reads beside few and beside many items of others, taking turns."""
    works = {"point read": read, "latest of workflow": latest, "prefix list": prefix}
    times: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in works}
    for _ in range(repetitions):
        for name, make in works.items():
            for container, taken in zip((few, many), times[name], strict=True):
                started = time.perf_counter()
                await make(container)()
                taken.append((time.perf_counter() - started) * 1000)
    return _growth_table({name: (statistics.median(one), statistics.median(two)) for name, (one, two) in times.items()})


def _growth_table(times: Mapping[str, tuple[float, float]]) -> Iterator[str]:
    yield f"{'operation':<18}  {f'{FEW:,} ms':>10}  {f'{MANY:,} ms':>10}  {'ratio':>6}"
    for name, (few, many) in times.items():
        verdict = "" if many <= BOUND * few else f"  over {BOUND}"
        yield f"{name:<18}  {few:>10.2f}  {many:>10.2f}  {many / few:>5.2f}x{verdict}"


async def fill(container: ContainerProxy, items: int) -> None:
    """Write our own few items, and so many of others, a batch to a partition key."""
    await container.upsert_item(item(0, 1024), no_response=True)
    batches = iter(range(items // BATCH))

    async def write() -> None:
        for number in batches:
            tenant, workflow = f"other-{number % 97}", f"workflow-{number}"
            operations = [("create", (item(one, 1024, tenant=tenant, workflow=workflow),)) for one in range(BATCH)]
            await container.execute_item_batch(operations, partition_key=[tenant, workflow])

    await asyncio.gather(*(write() for _ in range(8)))


@asynccontextmanager
async def embedded(path: Path | None) -> AsyncIterator[tuple[Subject, Subject]]:
    """Open an engine in this process; the second subject is the floor."""
    async with AsyncExitStack() as stack:
        account = await open_embedded(path)
        stack.push_async_callback(account.close)
        repeating = RepeatingTransport(account.transport())
        subjects = []
        for name, transport in ((EMBEDDED, account.transport()), (FLOOR, repeating)):
            client = CosmosClient(account.endpoint, account.key, transport=transport, **CLIENT_OPTIONS)
            container = await _container(await stack.enter_async_context(client))
            subjects.append(Subject(name, container, repeating.forget if name == FLOOR else lambda: None))
        yield subjects[0], subjects[1]


@asynccontextmanager
async def served(path: Path) -> AsyncIterator[Subject]:
    """Start a server in a process of its own."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, __file__, "--serve", str(path), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdin is not None  # noqa: S101 - both were asked for
    assert process.stdout is not None  # noqa: S101
    try:
        endpoint, key = [(await process.stdout.readline()).decode().strip() for _ in range(2)]
        async with CosmosClient(endpoint, key, **CLIENT_OPTIONS) as client:
            yield Subject(SERVER, await _container(client))
    finally:
        process.stdin.close()
        await process.wait()


async def serve(path: Path) -> None:
    """Be that process: serve until the parent closes the standard input, or ends."""
    async with CosmosEmulator(data=path) as emulator:
        print(emulator.endpoint, emulator.key, sep="\n", flush=True)
        await asyncio.to_thread(sys.stdin.read)


async def _container(client: CosmosClient) -> ContainerProxy:
    return await open_container(
        client, database="benchmark", container="checkpoints", mode="create", wanted=CHECKPOINTS
    )


async def measure(directory: Path, *, quick: bool) -> None:
    """Run both parts and print their tables."""
    seconds, rounds, repetitions = (0.2, 1, 50) if quick else (1.0, 3, 500)
    async with embedded(directory / "embedded.db") as (engine, floor), served(directory / "server.db") as server:
        print("Operations a second, by how many are under way at a time", flush=True)
        print(*await throughput((floor, engine, server), seconds, rounds), "", sep="\n", flush=True)
    async with embedded(directory / "few.db") as (few, _), embedded(directory / "many.db") as (many, _):
        await fill(few.container, FEW)
        await fill(many.container, MANY)
        print("Medians beside so many items in other partitions, embedded")
        print(*await growth(few.container, many.container, repetitions), sep="\n")


async def main() -> None:
    """Read the arguments, and measure or serve."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="short turns: whether it runs, not how fast")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve is not None:
        await serve(arguments.serve)
        return
    print(f"Python {sys.version.split()[0]}, {os.cpu_count()} cores, state on a file, one client a subject\n")
    with tempfile.TemporaryDirectory() as directory:
        await measure(Path(directory), quick=arguments.quick)


if __name__ == "__main__":
    asyncio.run(main())
