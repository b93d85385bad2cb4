"""What a turn of a conversation costs: this package's chat history beside the framework's own provider for Cosmos DB.

    python benchmarks/history_turns.py [--turns 100]

Each turn is what an agent does of it: the history is loaded, and a question and an answer are added. Both providers run
in turns on embedded engines of their own. Requests, bytes and charges are counted at the client's transport; charges
are as the engine estimates them. Takes about ten seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import random
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from _measuring import Cost, CountingTransport
from agent_framework import HistoryProvider, Message
from agent_framework_azure_cosmos import CosmosHistoryProvider
from azure.cosmos.aio import CosmosClient

from cosmos_workflow_state import CosmosStateFactory, CosmosStateSettings
from cosmos_workflow_state._clients import CLIENT_OPTIONS
from cosmos_workflow_state._embedded import open_embedded

OURS: Final = "this package"
MAF: Final = "MAF's provider"
SESSION: Final = "session-1"
SHOWN: Final = (1, 10, 25, 50, 75, 100)
WORDS: Final = (
    "the",
    "a",
    "of",
    "order",
    "invoice",
    "ship",
    "late",
    "why",
    "please",
    "tomorrow",
    "amount",
    "customer",
    "is",
)


@dataclass(slots=True)
class Subject:
    """A provider that is measured.

    Attributes:
        name: What it is called.
        provider: The provider.
        transport: What counts for it.
        state: What an agent keeps for it in its session.
        loads: What each turn's loading has cost.
        saves: What each turn's saving has cost.
    """

    name: str
    provider: HistoryProvider
    transport: CountingTransport
    state: dict[str, Any] = field(default_factory=dict[str, Any])
    loads: list[Cost] = field(default_factory=list[Cost])
    saves: list[Cost] = field(default_factory=list[Cost])

    async def turn(self, messages: list[Message]) -> None:
        """Load the history and add to it, as an agent does.

        Raises:
            RuntimeError: The history does not hold all turns before.
        """
        loaded: list[Message] = []

        async def load() -> None:
            loaded.extend(await self.provider.get_messages(SESSION, state=self.state))

        self.loads.append(await self.transport.measure(load()))
        self.saves.append(
            await self.transport.measure(self.provider.save_messages(SESSION, messages, state=self.state))
        )
        if len(loaded) != len(messages) * (len(self.loads) - 1):
            raise RuntimeError(f"{self.name} has lost a message")


@asynccontextmanager
async def subject(name: str) -> AsyncGenerator[Subject]:
    """Open a provider over an engine of its own, its container there and its client warm."""
    settings = CosmosStateSettings(endpoint="embedded:", _env_file=None)
    async with AsyncExitStack() as stack:
        account = await open_embedded(None)
        stack.push_async_callback(account.close)
        transport = CountingTransport(account.transport())
        client = await stack.enter_async_context(
            CosmosClient(account.endpoint, account.key, transport=transport, **CLIENT_OPTIONS)
        )
        if name == OURS:
            factory = await stack.enter_async_context(CosmosStateFactory(settings, client=client))
            provider: HistoryProvider = factory.for_tenant("contoso").history()
        else:
            database, container = settings.database, settings.history_container
            await client.create_database(database)
            provider = CosmosHistoryProvider(cosmos_client=client, database_name=database, container_name=container)
        await provider.save_messages("to connect", turn(0))
        await provider.get_messages("to connect")
        yield Subject(name, provider, transport)


def turn(number: int) -> list[Message]:
    """Return what is said in a turn: a question of 80 words and an answer of 160."""
    chance = random.Random(number)  # noqa: S311 - the same in every run
    return [
        Message(role, [" ".join(chance.choices(WORDS, k=words))]) for role, words in (("user", 80), ("assistant", 160))
    ]


async def run(turns: int) -> None:
    """Measure both, and print a table."""
    async with AsyncExitStack() as stack:
        subjects = [await stack.enter_async_context(subject(name)) for name in (OURS, MAF)]
        for number in range(turns):
            for one in subjects if number % 2 else reversed(subjects):
                await one.turn(turn(number))
    print("| turn | provider | requests to load | to save | RU to load | to save | ms of both |")
    print("|---|---|---|---|---|---|---|")
    for number in [shown for shown in SHOWN if shown < turns] + [turns]:
        for one in subjects:
            print(_row(str(number), one.name, [one.loads[number - 1]], [one.saves[number - 1]]))
    for one in subjects:
        print(_row(f"all {turns}", one.name, one.loads, one.saves))


def _row(which: str, name: str, loads: list[Cost], saves: list[Cost]) -> str:
    requests = [str(sum(cost.requests for cost in costs)) for costs in (loads, saves)]
    charges = [f"{sum(cost.charge for cost in costs):.1f}" for costs in (loads, saves)]
    milliseconds = f"{1000 * sum(cost.seconds for cost in loads + saves):.1f}"
    return "| " + " | ".join([which, name, *requests, *charges, milliseconds]) + " |"


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser(description="What a turn of a conversation costs.")
    parser.add_argument("--turns", type=int, default=100, help="turns of the conversation (default: %(default)s)")
    asyncio.run(run(parser.parse_args().turns))


if __name__ == "__main__":
    main()
