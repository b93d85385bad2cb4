"""The messages themselves, without an agent: what a save adds, the newest few, and clearing.

    $ python messages.py
    all:
      user: Is the bicycle red?
      assistant: It is blue.
      user: Does it fold?
      assistant: It does.
    the newest two:
      user: Does it fold?
      assistant: It does.
    count: 4
    count after clearing: 0

Needs no account and no model: state is kept in ./history_messages.db. Against an account, set
COSMOS_WORKFLOW_STATE_ENDPOINT and COSMOS_WORKFLOW_STATE_KEY, and COSMOS_WORKFLOW_STATE_PROVISIONING=create the first
time; nothing here changes.
"""

import asyncio
import os
import uuid
from collections.abc import Iterable

from agent_framework import Message

from cosmos_workflow_state import CosmosStateFactory, TenantState


def show(what: str, messages: Iterable[Message]) -> None:
    """Print who said what."""
    print(f"{what}:", *(f"{message.role}: {message.text}" for message in messages), sep="\n  ")


async def tell(tenant: TenantState, session_id: str) -> None:
    """Save messages, load them, and clear."""
    history = tenant.history()
    conversation = [Message("user", ["Is the bicycle red?"]), Message("assistant", ["It is blue."])]
    await history.save_messages(session_id, conversation)
    # Hosts often hand over the whole conversation, as here: only what is new is added.
    conversation += [Message("user", ["Does it fold?"]), Message("assistant", ["It does."])]
    await history.save_messages(session_id, conversation)
    show("all", await history.get_messages(session_id))
    show("the newest two", await tenant.history(max_messages=2).get_messages(session_id))
    print("count:", await history.count(session_id))
    await history.clear(session_id)
    print("count after clearing:", await history.count(session_id))


async def main() -> None:
    """Open the factory; everything else happens while it is open."""
    os.environ.setdefault("COSMOS_WORKFLOW_STATE_ENDPOINT", "embedded:history_messages.db")
    async with CosmosStateFactory() as factory:
        await tell(factory.for_tenant("contoso"), str(uuid.uuid4()))


if __name__ == "__main__":
    asyncio.run(main())
