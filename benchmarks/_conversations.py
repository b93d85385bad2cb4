"""Conversations to measure: the framework's own workflows, run by agents that answer with real English prose.

Owns what is said and by whom. Must not know any storage: a conversation is run against whatever it is given.

The prose is the docstrings of Python's standard library in the order of its files, each used once: a text that repeats
itself, or one made of few words, would flatter whoever compresses it. zstd makes a third of it, as of other prose.
"""

from __future__ import annotations

import ast
import random
import sysconfig
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatResponse,
    CheckpointStorage,
    Content,
    FunctionInvocationLayer,
    Message,
    RunContext,
    step,
    workflow,
)
from agent_framework.orchestrations import SequentialBuilder

AGENTS: Final = ("writer", "reviewer", "editor")
CHARACTERS: Final = 586  # of one message: the mean of conversations between agents that write prose
IMAGE_BYTES: Final = 100 * 1024  # of a photograph, made small for a model to look at
IMAGE_EVERY: Final = 10  # turns
_SHORTEST: Final = 300  # characters of a docstring that is prose

Conversation = AsyncIterator[int]
"""Runs one turn after another, and yields the number of each when it is over."""


def prose() -> Iterator[str]:
    """Yield messages of about `CHARACTERS`, cut where a word ends, until there are no docstrings left."""
    text = ""
    for docstring in _docstrings(Path(sysconfig.get_path("stdlib"))):
        text += " ".join(docstring.split()) + " "
        while len(text) > 2 * CHARACTERS:
            end = text.index(" ", CHARACTERS)
            yield text[:end]
            text = text[end + 1 :]


def _docstrings(directory: Path) -> Iterator[str]:
    for path in sorted(directory.rglob("*.py")):
        if {"site-packages", "dist-packages", "test", "tests", "idle_test"}.isdisjoint(path.parts):
            for node in ast.walk(ast.parse(path.read_bytes())):
                if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                    docstring = ast.get_docstring(node) or ""
                    if len(docstring) >= _SHORTEST:
                        yield docstring


class _Model(FunctionInvocationLayer[Any], BaseChatClient[Any]):
    """A chat client that answers with the next piece of prose."""

    def __init__(self, texts: Iterator[str]) -> None:
        super().__init__()
        self._texts = texts

    def _inner_get_response(self, **_: Any) -> Any:
        async def answer() -> ChatResponse:
            return ChatResponse(messages=[Message("assistant", [next(self._texts)])])

        return answer()


async def sequential(turns: int, storage: CheckpointStorage) -> Conversation:
    """Run the framework's ``SequentialBuilder`` with three agents, each of which keeps its session between turns."""
    texts = prose()
    async for turn in _sequential(turns, storage, texts, lambda _turn: Message("user", [next(texts)])):
        yield turn


async def images(turns: int, storage: CheckpointStorage) -> Conversation:
    """Run the same, where the user shows a photograph in the first turn and in every tenth after it."""
    texts, randomness = prose(), random.Random(4)  # noqa: S311 - a photograph compresses as noise does

    def ask(turn: int) -> Message:
        contents = [Content.from_text(next(texts))]
        if turn % IMAGE_EVERY == 1:
            contents.append(Content.from_data(randomness.randbytes(IMAGE_BYTES), "image/jpeg"))
        return Message("user", contents)

    async for turn in _sequential(turns, storage, texts, ask):
        yield turn


async def _sequential(
    turns: int, storage: CheckpointStorage, texts: Iterator[str], ask: Callable[[int], Message]
) -> Conversation:
    agents = _agents(texts)
    built = SequentialBuilder(name="three-writers", participants=agents, checkpoint_storage=storage).build()
    for turn in range(1, turns + 1):
        await built.run(ask(turn))
        yield turn


async def functional(turns: int, storage: CheckpointStorage) -> Conversation:
    """Run a functional workflow of three steps; the application hands it the whole conversation at every turn."""
    texts = prose()
    write, review, edit = (_answering(agent) for agent in _agents(texts))

    @workflow(name="three-steps")
    async def three_steps(conversation: list[Message], ctx: RunContext) -> list[Message]:
        for answer in (write, review, edit):
            conversation = [*conversation, await answer(conversation)]
        ctx.set_state("conversation", conversation)
        return conversation

    built = three_steps.build(checkpoint_storage=storage)
    conversation: list[Message] = []
    for turn in range(1, turns + 1):
        result = await built.run([*conversation, Message("user", [next(texts)])])
        conversation = result.get_outputs()[-1]
        yield turn


def _answering(agent: Agent[Any]) -> Callable[[list[Message]], Awaitable[Message]]:
    """Return the step in which an agent answers; how long the conversation is tells one call from another."""

    def call(conversation: list[Message]) -> str:
        return f"{agent.name} {len(conversation)}"

    @step(name=agent.name, replay_key=call)
    async def answer(conversation: list[Message]) -> Message:
        return (await agent.run(conversation)).messages[-1]

    return answer


def _agents(texts: Iterator[str]) -> list[Agent[Any]]:
    return [Agent(_Model(texts), name=name) for name in AGENTS]


KINDS: Final[Mapping[str, Callable[[int, CheckpointStorage], Conversation]]] = {
    "sequential": sequential,
    "functional": functional,
    "images": images,
}
"""What can be measured, by the name that the command line gives it."""
