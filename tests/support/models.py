"""A model for agents in hosts: it says what it was sent, so that a test reads what an agent was told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

from agent_framework import BaseChatClient, ChatResponse, ChatResponseUpdate, Content, Message


class Recalling(BaseChatClient[Any]):
    """Answers with the texts of the user's messages; with a barrier, only when as many turns as it takes are there."""

    def __init__(self, meet: asyncio.Barrier | None = None) -> None:
        """Set what a turn waits at."""
        super().__init__()
        self._meet = meet

    def _inner_get_response(self, *, messages: Sequence[Message], stream: bool, **_: Any) -> Any:
        return self._build_response_stream(self._updates(messages)) if stream else self._answer(messages)

    async def _answer(self, messages: Sequence[Message]) -> ChatResponse[Any]:
        parts = [part async for part in self._parts(messages)]
        return ChatResponse(messages=[Message("assistant", ["".join(parts)])])

    async def _updates(self, messages: Sequence[Message]) -> AsyncIterator[ChatResponseUpdate]:
        async for part in self._parts(messages):
            yield ChatResponseUpdate(role="assistant", contents=[Content.from_text(part)])

    async def _parts(self, messages: Sequence[Message]) -> AsyncIterator[str]:
        if self._meet is not None:
            await self._meet.wait()
        yield "I was told "
        yield ", ".join(message.text for message in messages if message.role == "user")
