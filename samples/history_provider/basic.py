"""An agent that remembers: its conversation is kept by a history provider.

    $ python basic.py
    My name is Ada.  ->  [stub] messages I was given: 1, the first: My name is Ada.
    I like trains.  ->  [stub] messages I was given: 3, the first: My name is Ada.
    Who am I?  ->  [stub] messages I was given: 5, the first: My name is Ada.
    messages that are kept: 6

Needs no account: a stub answers in place of a model, and state is kept in ./history_basic.db. Against an account, set
COSMOS_WORKFLOW_STATE_ENDPOINT and COSMOS_WORKFLOW_STATE_KEY, and COSMOS_WORKFLOW_STATE_PROVISIONING=create the first
time; nothing here changes.
"""

import asyncio
import os

from agent_framework import Agent
from local_model import LocalModel

from cosmos_workflow_state import CosmosStateFactory


async def main() -> None:
    """Talk to an agent, without giving it again what was said before."""
    os.environ.setdefault("COSMOS_WORKFLOW_STATE_ENDPOINT", "embedded:history_basic.db")
    async with CosmosStateFactory() as factory:
        history = factory.for_tenant("contoso").history()
        agent = Agent(LocalModel(), context_providers=[history])
        session = agent.create_session()  # a new conversation; without a session there is no id to keep it under
        for text in ("My name is Ada.", "I like trains.", "Who am I?"):
            reply = await agent.run(text, session=session)
            print(f"{text}  ->  {reply.text}")
        print("messages that are kept:", await history.count(session.session_id))


if __name__ == "__main__":
    asyncio.run(main())
