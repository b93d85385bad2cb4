"""The framework's own semantics: the same scenarios on its providers in memory, on files and on Cosmos DB, and ours."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest
from agent_framework import Agent, AgentSession, ContextProvider, HistoryProvider, Message, SessionContext
from azure.cosmos.exceptions import CosmosHttpResponseError

from cosmos_workflow_state import CosmosStateSettings, errors
from cosmos_workflow_state.testing._workflows import Echo
from support.chat_providers import COSMOS, FILE, MEMORY, OURS, OURS_STATELESS, SOURCE, Providers, providers_on
from support.chats import CONTENT_TYPES, CONTENTS, incompressible, said, texts, turn, written
from support.targets import Target

pytestmark = pytest.mark.filterwarnings("ignore:.FILE_HISTORY. :FutureWarning")

A, B, C = said("a"), said("b", "assistant"), said("c")
A1, B1 = said("a", message_id="1"), said("b", "assistant", message_id="2")

SAVES: Final[dict[str, list[list[Message]]]] = {
    "one turn after another": [turn(number) for number in range(4)],
    "nothing": [[]],
    "the whole conversation again": [[A, B], [A, B], [A, B, C]],
    "the last turn again and more": [[A, B], [B, C], [C, B, A]],
    "an input that is said again": [[A], [A]],
    "an input with an id that is said again": [[A1], [A1]],
    "an answer that is given again": [[A, B], [B]],
    "an answer with an id that is given again": [[A, B1], [B1], [A, B1]],
    "the same content under another id": [[A1, B1], [said("a", message_id="3"), B1]],
    "the same id with another content": [[A1], [said("another", message_id="1"), C]],
    "the conversation within another": [[A, B], [C, A, B, C]],
    "the same twice in one save": [[A, A, B, B], [B, B, A]],
    "no contents at all": [[Message("user", [])], [Message("user", [])]],
    "other roles": [[said("s", "system"), said("t", "tool"), said("d", "developer")], [said("d", "developer"), A]],
    "an author and properties": [
        [Message("user", ["a"], author_name="ann", additional_properties={"k": [1, {"x": None}]})]
    ],
}


@pytest.fixture
async def providers(
    file_settings: CosmosStateSettings, target: Target | None, tmp_path: Path
) -> AsyncIterator[Providers]:
    """Yield providers of every kind."""
    async with providers_on(file_settings, target, tmp_path / "files") as opened:
        yield opened


@pytest.mark.parametrize("saves", SAVES.values(), ids=list(SAVES))
async def test_what_is_kept_of_what_is_saved(providers: Providers, saves: list[list[Message]]) -> None:
    """After each save of a scenario every provider gives back the same messages."""
    chats = providers.chats()
    for messages in saves:
        found: dict[str, str] = {}
        for kind, chat in chats.items():
            await chat.save(messages)
            found[kind] = written(await chat.read())
        assert set(found.values()) == {found[MEMORY]}


async def test_random_saves(providers: Providers, full_size: bool) -> None:
    """Whatever is replayed in whatever parts, with and without ids: no provider keeps anything else."""
    chance = random.Random(8)
    for number in range(60 if full_size else 4):
        chats = providers.chats(f"s-{number}")
        kept: list[Message] = []
        for _ in range(6):
            messages = _some(chance, kept)
            for chat in chats.values():
                await chat.save(messages)
            kept = await chats[MEMORY].read()
            found = {kind: written(await chat.read()) for kind, chat in chats.items()}
            assert set(found.values()) == {written(kept)}


def _some(chance: random.Random, kept: list[Message]) -> list[Message]:
    start = chance.choice([0, chance.randrange(len(kept) + 1)])
    new = [
        said(
            chance.choice("ab"), chance.choice(["user", "assistant"]), message_id=chance.choice([None, None, "1", "2"])
        )
        for _ in range(chance.randrange(4))
    ]
    return [*kept[start:], *new]


@pytest.mark.parametrize("kind", CONTENT_TYPES)
async def test_every_content_type(providers: Providers, kind: str) -> None:
    """What the framework can write of a content comes back as it was, also what its Cosmos provider cannot store."""
    message = Message("assistant", [CONTENTS[kind], CONTENTS["text"]], message_id="m", author_name="é \U0001f600")
    for chat in providers.chats(without=[FILE, COSMOS]).values():
        await chat.save([message])
        assert written(await chat.read()) == written([message])


async def test_two_hundred_and_fifty_messages_at_once(providers: Providers) -> None:
    """More than two batches, and then the whole conversation again with one more message."""
    messages = [message for number in range(125) for message in turn(number)]
    for chat in providers.chats().values():
        await chat.save(messages)
        await chat.save([*messages, C])
        assert texts(await chat.read()) == texts([*messages, C])


# Over HTTP the client's library warns of the framework's own large request.
@pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
async def test_a_message_of_three_megabytes(providers: Providers) -> None:
    """The framework's Cosmos provider cannot store it (413); in memory, on files and in ours it is a message."""
    messages = [A, said(incompressible(3_000_000), "assistant"), C]
    chats = providers.chats()
    with pytest.raises(CosmosHttpResponseError) as caught:
        await chats.pop(COSMOS).save(messages)
    assert caught.value.status_code == 413
    for chat in chats.values():
        await chat.save(messages)
        assert texts(await chat.read()) == texts(messages)


@pytest.mark.parametrize("session_id", [None, ""])
async def test_no_session_id(providers: Providers, session_id: str | None) -> None:
    """Where the framework's providers lose the messages or mix all callers' up, ours refuses to take them."""
    chats = providers.chats(session_id)
    for kind in (MEMORY, FILE, COSMOS):
        await chats[kind].save([A])
    assert texts(await chats[MEMORY].read()) == ["a"]
    # One file for all that have no id: another caller finds it.
    assert texts(await providers.chats(session_id)[FILE].read()) == ["a"]
    # Stored under an id that was made up, and that nobody finds again.
    assert await chats[COSMOS].read() == []
    for kind in (OURS, OURS_STATELESS):
        with pytest.raises(errors.InvalidIdentifierError, match="session_id must not be empty"):
            await chats[kind].save([A])
        with pytest.raises(errors.InvalidIdentifierError, match="session_id must not be empty"):
            await chats[kind].read()


class Facts(ContextProvider):
    """Adds a message to what the model is told."""

    async def before_run(self, *, context: SessionContext, **_arguments: Any) -> None:
        """Add it."""
        context.extend_messages(self, [said(f"fact of {self.source_id}", "system")])


SWITCHES: Final[dict[str, dict[str, Any]]] = {
    "as by default": {},
    "no loading": {"load_messages": False},
    "no inputs": {"store_inputs": False},
    "no outputs": {"store_outputs": False},
    "no inputs and no outputs": {"store_inputs": False, "store_outputs": False},
    "context messages": {"store_context_messages": True},
    "context messages of one": {"store_context_messages": True, "store_context_from": {"tides"}},
    "context messages of none": {"store_context_messages": True, "store_context_from": set()},
    "only context messages": {"store_context_messages": True, "store_inputs": False, "store_outputs": False},
    "from one, but switched off": {"store_context_from": {"tides"}},
}


@pytest.mark.parametrize("switches", SWITCHES.values(), ids=list(SWITCHES))
async def test_what_an_agent_stores(providers: Providers, switches: dict[str, Any]) -> None:
    """Three turns of an agent, with each of the framework's switches: the answers and what is stored are the same."""
    found: dict[str, object] = {}
    for kind, make in providers.kinds.items():
        if kind != OURS_STATELESS:
            found[kind] = await _three_turns(make(**switches))
    assert [found[kind] for kind in (FILE, COSMOS, OURS)] == [found[MEMORY]] * 3


async def _three_turns(history: HistoryProvider) -> object:
    agent = Agent(Echo(), context_providers=[Facts("weather"), Facts("tides"), history])
    session = AgentSession(session_id="s-1")
    answers = [(await agent.run(f"say {number}", session=session)).text for number in range(3)]
    stored = await history.get_messages("s-1", state=session.state.get(SOURCE))
    return answers, written(stored)
