"""The model that these samples ask: a stub, so that they need no account. It only tells what it was given.

With a model in its place, such as ``FoundryChatClient``, nothing else in the samples changes.
"""

from collections.abc import Sequence
from typing import Any

from agent_framework import BaseChatClient, ChatResponse, FunctionInvocationLayer, Message


class LocalModel(FunctionInvocationLayer[Any], BaseChatClient[Any]):
    """Tells how many messages it was given, and the first: what it can know only when the history was loaded."""

    async def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, **_options: Any
    ) -> ChatResponse[Any]:
        if stream:
            raise NotImplementedError("the stub answers at once or not at all")
        text = f"[stub] messages I was given: {len(messages)}, the first: {messages[0].text}"
        return ChatResponse(messages=[Message("assistant", [text])])
