"""Save, load and get_latest: this package, the bare azure-cosmos client, and the framework's own Cosmos storage.

    python benchmarks/checkpoint_storage.py [--quick]

All three run in one process on one embedded engine, on the same checkpoints, taking turns. Requests and bytes are
counted at the client's transport, not worked out. The bare client writes and reads the very items of checkpoints that
this package stores, without the keyframes that they may refer to, so its figures are the floor: what is above them is
what a tenant storage costs.
"""

from __future__ import annotations

import argparse
import asyncio
import pydoc_data.topics
import statistics
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Final, Protocol

from _measuring import Cost, CountingTransport
from agent_framework import AgentExecutorRequest, Message, WorkflowCheckpoint, WorkflowMessage
from agent_framework_azure_cosmos import CosmosCheckpointStorage
from azure.cosmos.aio import ContainerProxy, CosmosClient

from cosmos_workflow_state import CosmosStateFactory, CosmosStateSettings, TenantCheckpointStorage, _queries
from cosmos_workflow_state._clients import CLIENT_OPTIONS
from cosmos_workflow_state._embedded import open_embedded
from cosmos_workflow_state._identity import Scope, TenantId, checkpoint_item_id

WORKFLOW: Final = "three-writers"
DATABASE: Final = "workflow-state"
CONTAINER: Final = "checkpoints"
AGENTS: Final = ("writer", "reviewer", "editor")
CHARACTERS: Final = 586  # of one message: the mean of conversations between agents that write prose

# One tenant each for the three, with names of one length: the bare client writes as many bytes as we do.
OURS: Final = "ours"
BARE: Final = "bare"
PREPARED: Final = "prep"


@dataclass(frozen=True, slots=True)
class Size:
    """How large the checkpoints of a round are: about how many bytes, by how many agents with how many messages."""

    label: str
    agents: int
    messages: int


SIZES: Final = (Size("2 KB", 1, 1), Size("60 KB", 3, 11), Size("600 KB", 3, 117))


class Subject(Protocol):
    """A storage that is measured."""

    name: str
    transport: CountingTransport

    async def save(self, checkpoint: WorkflowCheckpoint) -> object:
        """Write a checkpoint."""
        ...

    async def load(self, checkpoint_id: str) -> object:
        """Read a checkpoint by its id, its workflow being known."""
        ...

    async def load_elsewhere(self, checkpoint_id: str) -> object:
        """Read a checkpoint by its id, as a process does that knows nothing but the id."""
        ...

    async def get_latest(self) -> object:
        """Read the newest checkpoint."""
        ...


class Ours:
    """This package."""

    name = "this package"

    def __init__(self, client: CosmosClient, transport: CountingTransport, elsewhere: CosmosStateFactory) -> None:
        """Use one factory for what is known, and ``elsewhere``, which has seen nothing, for what is not."""
        self.transport = transport
        self.factory = CosmosStateFactory(_settings(), client=client)
        self._storage = self.factory.for_tenant(OURS).checkpoints
        self._elsewhere = elsewhere

    async def save(self, checkpoint: WorkflowCheckpoint) -> object:
        """Save."""
        return await self._storage.save(checkpoint)

    async def load(self, checkpoint_id: str) -> object:
        """Load by point read."""
        return await self._storage.load(checkpoint_id)

    async def load_elsewhere(self, checkpoint_id: str) -> object:
        """Load by the query within the tenant."""
        return await self._elsewhere.for_tenant(OURS).checkpoints.load(checkpoint_id)

    async def get_latest(self) -> object:
        """Query for the newest."""
        return await self._storage.get_latest(workflow_name=WORKFLOW)


class Bare:
    """The client alone: the same items, neither encoded nor decoded nor checked."""

    name = "bare client"

    def __init__(
        self, container: ContainerProxy, transport: CountingTransport, items: Mapping[str, dict[str, Any]]
    ) -> None:
        """Take the items to write, by checkpoint id."""
        self.transport = transport
        self._container = container
        self._items = items

    async def save(self, checkpoint: WorkflowCheckpoint) -> object:
        """Create the item."""
        return await self._container.create_item(self._items[checkpoint.checkpoint_id], no_response=True)

    async def load(self, checkpoint_id: str) -> object:
        """Read the item."""
        item_id = checkpoint_item_id(Scope(""), checkpoint_id)
        return await self._container.read_item(item_id, partition_key=[BARE, WORKFLOW])

    async def load_elsewhere(self, checkpoint_id: str) -> object:
        """Query the tenant."""
        parameters = _queries.by_id(TenantId(BARE), checkpoint_item_id(Scope(""), checkpoint_id))
        return await self._first(_queries.BY_ID, parameters, [BARE])

    async def get_latest(self) -> object:
        """Query for the newest."""
        parameters = _queries.in_scope(TenantId(BARE), WORKFLOW, Scope(""))
        return await self._first(_queries.LATEST, parameters, [BARE, WORKFLOW])

    async def _first(self, query: str, parameters: list[dict[str, object]], key: list[str]) -> object:
        found = self._container.query_items(query=query, parameters=parameters, partition_key=key)
        return [item async for item in found]


class Framework:
    """The framework's own storage for Cosmos DB, with its own container."""

    name = "MAF's storage"

    def __init__(self, client: CosmosClient, transport: CountingTransport) -> None:
        """Let it create its container in the same database."""
        self.transport = transport
        self._storage = CosmosCheckpointStorage(
            cosmos_client=client, database_name=DATABASE, container_name="maf-checkpoints"
        )

    async def save(self, checkpoint: WorkflowCheckpoint) -> object:
        """Save."""
        return await self._storage.save(checkpoint)

    async def load(self, checkpoint_id: str) -> object:
        """Load; it knows one way only."""
        return await self._storage.load(checkpoint_id)

    async def load_elsewhere(self, checkpoint_id: str) -> object:
        """Load."""
        return await self._storage.load(checkpoint_id)

    async def get_latest(self) -> object:
        """Query for the newest."""
        return await self._storage.get_latest(workflow_name=WORKFLOW)


def lineage(size: Size, length: int) -> Iterator[WorkflowCheckpoint]:
    """Yield a run of one conversation: each checkpoint has lost the oldest message of its parent and got a new one."""
    texts = islice(_prose(), size.messages + length)
    messages = [
        Message("assistant", [text], author_name=AGENTS[number % len(AGENTS)], message_id=f"message-{number:05}")
        for number, text in enumerate(texts)
    ]
    parent = None
    for step in range(length):
        checkpoint = _checkpoint(size, step, messages[step : step + size.messages], parent)
        yield checkpoint
        parent = checkpoint.checkpoint_id


def _checkpoint(size: Size, step: int, conversation: list[Message], parent: str | None) -> WorkflowCheckpoint:
    """Return a checkpoint as a chain of agents leaves it: each has the conversation, and so has the next request."""
    agents: dict[str, dict[str, Any]] = {
        name: {
            "cache": [],
            "full_conversation": list(conversation),
            "agent_session": {"type": "session", "session_id": f"session-{name}", "state": {}},
            "pending_agent_requests": {},
            "pending_responses_to_agent": [],
            "pending_request_order": [],
        }
        for name in AGENTS[: size.agents]
    }
    request = AgentExecutorRequest(messages=list(conversation)) if size.agents > 1 else "Go on."
    return WorkflowCheckpoint(
        workflow_name=WORKFLOW,
        graph_signature_hash="0" * 64,
        checkpoint_id=f"{size.messages:08}-0000-4000-8000-{step:012}",
        previous_checkpoint_id=parent,
        messages={AGENTS[0]: [WorkflowMessage(data=request, source_id="input")]},
        state={"_executor_state": agents},
        iteration_count=step,
    )


def _prose() -> Iterator[str]:
    """Yield messages of real English: the manual that comes with Python, cut up."""
    manual = " ".join(" ".join(pydoc_data.topics.topics.values()).split())
    return cycle(manual[start : start + CHARACTERS] for start in range(0, len(manual) - CHARACTERS, CHARACTERS))


OPERATIONS: Final[Sequence[tuple[str, Callable[[Subject, WorkflowCheckpoint], Awaitable[object]]]]] = (
    ("save", lambda subject, checkpoint: subject.save(checkpoint)),
    ("load", lambda subject, checkpoint: subject.load(checkpoint.checkpoint_id)),
    ("load, id only", lambda subject, checkpoint: subject.load_elsewhere(checkpoint.checkpoint_id)),
    ("get_latest", lambda subject, _checkpoint: subject.get_latest()),
)


async def run(size: Size, repetitions: int, directory: Path) -> tuple[int, dict[tuple[str, str], Cost]]:
    """Measure one size on a state file of its own.

    Returns:
        Bytes of a checkpoint before compression, and the median cost by operation and subject.
    """
    checkpoints = list(lineage(size, repetitions + 1))
    async with AsyncExitStack() as stack:
        account = await open_embedded(directory / f"{size.messages}.db")
        stack.push_async_callback(account.close)

        async def connect(**options: Any) -> tuple[CosmosClient, CountingTransport]:
            transport = CountingTransport(account.transport())
            client = CosmosClient(account.endpoint, account.key, transport=transport, **options)
            return await stack.enter_async_context(client), transport

        client, transport = await connect(**CLIENT_OPTIONS)
        elsewhere = await stack.enter_async_context(CosmosStateFactory(_settings(), client=client))
        ours = Ours(client, transport, elsewhere)
        await stack.enter_async_context(ours.factory)
        prepared = await _prepared(elsewhere.for_tenant(PREPARED).checkpoints, client, checkpoints)
        bare_client, bare_transport = await connect(**CLIENT_OPTIONS)
        container = bare_client.get_database_client(DATABASE).get_container_client(CONTAINER)
        items: dict[str, dict[str, Any]] = {name: {**item, "tenant_id": BARE} for name, item in prepared.items()}
        subjects = (ours, Bare(container, bare_transport, items), Framework(*await connect()))
        costs = await _measure(subjects, checkpoints)
        raw = items[checkpoints[0].checkpoint_id]["payload"]["size"]
    return raw, {which: _median(several) for which, several in costs.items()}


async def _measure(
    subjects: Sequence[Subject], checkpoints: Sequence[WorkflowCheckpoint]
) -> dict[tuple[str, str], list[Cost]]:
    """Take turns: for each checkpoint, every operation, by each subject, whose order changes every time.

    The first checkpoint is not counted: with it the clients ask for what they ask for once.
    """
    costs: dict[tuple[str, str], list[Cost]] = {}
    for turn, checkpoint in enumerate(checkpoints):
        first = turn % len(subjects)
        for operation, work in OPERATIONS:
            for subject in (*subjects[first:], *subjects[:first]):
                cost = await subject.transport.measure(work(subject, checkpoint))
                if turn:
                    costs.setdefault((operation, subject.name), []).append(cost)
    return costs


async def _prepared(
    storage: TenantCheckpointStorage, client: CosmosClient, checkpoints: Sequence[WorkflowCheckpoint]
) -> dict[str, dict[str, Any]]:
    """Return the items that this package stores for these checkpoints, without the service's own fields."""
    for checkpoint in checkpoints:
        await storage.save(checkpoint)
    container = client.get_database_client(DATABASE).get_container_client(CONTAINER)
    found = container.query_items(
        query="SELECT * FROM c WHERE c.type = 'checkpoint'", partition_key=[PREPARED, WORKFLOW]
    )
    return {
        item["checkpoint_id"]: {name: value for name, value in item.items() if not name.startswith("_")}
        async for item in found
    }


def _median(costs: Sequence[Cost]) -> Cost:
    return Cost(
        round(statistics.median(cost.requests for cost in costs)),
        round(statistics.median(cost.sent for cost in costs)),
        statistics.median(cost.charge for cost in costs),
        statistics.median(cost.seconds for cost in costs),
    )


def _settings() -> CosmosStateSettings:
    return CosmosStateSettings(_env_file=None, endpoint="embedded:", database=DATABASE, checkpoint_container=CONTAINER)


def report(size: Size, raw: int, repetitions: int, costs: Mapping[tuple[str, str], Cost]) -> Iterator[str]:
    """Yield the table of one size."""
    yield f"\n{size.label}: a checkpoint has {raw:,} bytes before compression; medians of {repetitions}"
    columns = f"{'requests':>8}  {'bytes sent':>10}  {'of bare':>7}  {'ms':>7}  {'of bare':>7}"
    yield f"{'operation':<13}  {'by':<13}  {columns}"
    for operation, _ in OPERATIONS:
        floor = costs[operation, Bare.name]
        for name in (Ours.name, Bare.name, Framework.name):
            cost = costs[operation, name]
            sent = f"{cost.sent / floor.sent:.2f}x" if floor.sent else "-"
            times = f"{cost.seconds * 1000:>7.2f}  {cost.seconds / floor.seconds:>6.2f}x"
            label = operation if name == Ours.name else ""
            yield f"{label:<13}  {name:<13}  {cost.requests:>8}  {cost.sent:>10,}  {sent:>7}  {times}"
    yield f"{Ours.name} against {Framework.name}: {', '.join(_against(costs))}"


def _against(costs: Mapping[tuple[str, str], Cost]) -> Iterator[str]:
    saved, theirs = costs["save", Ours.name], costs["save", Framework.name]
    yield f"bytes of a save {saved.sent / theirs.sent:.2f}x"
    for operation, _ in OPERATIONS:
        yield f"{operation} {costs[operation, Ours.name].seconds / costs[operation, Framework.name].seconds:.2f}x"


MEANING: Final = """
How to read it. Requests and bytes sent depend on no machine. Times do, and these have no network in them and an
engine inside the process: their ratios are estimates of the work that a process does. On an account each request
also takes a round trip, the request charge of a save grows with its bytes, the framework's container pays for an
index of every leaf of the state as well, and a load of the framework's storage asks every physical partition (here
there is one). "load, id only" is a process that has not seen the checkpoint before. The bare client returns the
items and decodes nothing."""


async def main() -> None:
    """Run all sizes and print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="5 checkpoints of each size in place of 60")
    repetitions = 5 if parser.parse_args().quick else 60
    print(f"Python {sys.version.split()[0]}, embedded engine on a file, one process, taking turns")
    with tempfile.TemporaryDirectory() as directory:
        for size in SIZES:
            raw, costs = await run(size, repetitions, Path(directory))
            print(*report(size, raw, repetitions, costs), sep="\n")
    print(MEANING)


if __name__ == "__main__":
    asyncio.run(main())
