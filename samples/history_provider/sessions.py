"""The sessions of several tenants: each sees its own, under the same ids too, and deletes its own.

    $ python sessions.py
    contoso, chat-1: [stub] messages I was given: 1, the first: I am Ada.
    contoso, chat-2: [stub] messages I was given: 1, the first: I am Ada too.
    fabrikam, chat-1: [stub] messages I was given: 1, the first: I am Bob.
    contoso has: chat-1 chat-2
    fabrikam has: chat-1
    without its chat-1, contoso has: chat-2
    fabrikam has: chat-1

A second run goes on with what the first one has left. Needs no account: a stub answers in place of a model, and state
is kept in ./history_sessions.db. Against an account, set COSMOS_WORKFLOW_STATE_ENDPOINT and COSMOS_WORKFLOW_STATE_KEY,
and COSMOS_WORKFLOW_STATE_PROVISIONING=create the first time; nothing here changes.
"""

import asyncio
import os

from agent_framework import Agent
from local_model import LocalModel

from cosmos_workflow_state import CosmosStateFactory, TenantHistoryProvider

SAID = [("contoso", "chat-1", "I am Ada."), ("contoso", "chat-2", "I am Ada too."), ("fabrikam", "chat-1", "I am Bob.")]


async def say(history: TenantHistoryProvider, session_id: str, text: str) -> None:
    """Say something to the agent of a tenant."""
    agent = Agent(LocalModel(), context_providers=[history])
    reply = await agent.run(text, session=agent.create_session(session_id=session_id))
    print(f"{history.tenant_id}, {session_id}: {reply.text}")


async def main() -> None:
    """Talk for two tenants, list their sessions, and delete one."""
    os.environ.setdefault("COSMOS_WORKFLOW_STATE_ENDPOINT", "embedded:history_sessions.db")
    async with CosmosStateFactory() as factory:
        histories = {tenant: factory.for_tenant(tenant).history() for tenant in ("contoso", "fabrikam")}
        for tenant, session_id, text in SAID:
            await say(histories[tenant], session_id, text)
        for tenant, history in histories.items():
            print(f"{tenant} has:", *await history.list_sessions())
        await histories["contoso"].delete_session("chat-1")
        print("without its chat-1, contoso has:", *await histories["contoso"].list_sessions())
        print("fabrikam has:", *await histories["fabrikam"].list_sessions())


if __name__ == "__main__":
    asyncio.run(main())
