"""Conversations on both sides of a migration, and the commands that migrate them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agent_framework import Message

from cosmos_workflow_state import CosmosStateFactory

from .migrating import HISTORY, Account

MIGRATE = ("migrate", "history", "--from", HISTORY)
CONTOSO = (*MIGRATE, "--tenant", "contoso")
BY_FIELD = (*MIGRATE, "--tenant-from-field", "message.additional_properties.tenant")
OURS = "workflow-state/history"
DEFAULT = "azure_cosmos_history"


def talk(*texts: str, **fields: Any) -> list[Message]:
    """Return what a user and an assistant say in turn."""
    return [Message(("user", "assistant")[turn % 2], [text], **fields) for turn, text in enumerate(texts)]


def numbered(length: int, start: int = 0) -> list[Message]:
    """Return a conversation of which no two messages are the same."""
    return talk(*(f"message {number}" for number in range(start, start + length)))


def ours(account: Account, session_id: str, *, tenant: str = "contoso", source_id: str = DEFAULT) -> list[Message]:
    """Return the messages of a session after a migration."""

    async def read(factory: CosmosStateFactory) -> list[Message]:
        return await factory.for_tenant(tenant).history(source_id).get_messages(session_id)

    found: list[Message] = account.in_ours(read)
    return found


def theirs(account: Account, session_id: str, **options: Any) -> list[Message]:
    """Return the messages that the framework's provider reads."""
    found: list[Message] = account.in_history(lambda provider: provider.get_messages(session_id), **options)
    return found


def add(account: Account, session_id: str, messages: list[Message]) -> None:
    """Save messages with our provider."""
    account.in_ours(lambda factory: factory.for_tenant("contoso").history().save_messages(session_id, messages))


def texts(messages: Iterable[Message]) -> list[str]:
    """Return what messages say."""
    return [message.text for message in messages]


def reasons(document: dict[str, Any]) -> set[str]:
    """Return why messages failed."""
    return {one["reason"] for one in document["failures"]}
