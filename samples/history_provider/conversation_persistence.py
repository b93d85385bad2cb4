"""A conversation that goes on in another process: run it again and again, with what you want to say.

    $ python conversation_persistence.py "My name is Ada."
    turn 1: [stub] messages I was given: 1, the first: My name is Ada.
    $ python conversation_persistence.py "Who am I?"
    turn 2: [stub] messages I was given: 3, the first: My name is Ada.

Each run is a new process that says one thing. The messages are in the history; the session, with what the agent and its
providers keep in it, is in the session store. Needs no account: a stub answers in place of a model, and state is kept
in ./conversation_persistence.db. Against an account, set COSMOS_WORKFLOW_STATE_ENDPOINT and COSMOS_WORKFLOW_STATE_KEY,
and COSMOS_WORKFLOW_STATE_PROVISIONING=create the first time; nothing here changes.
"""

import argparse
import asyncio
import os
import warnings

from agent_framework import Agent
from local_model import LocalModel

from cosmos_workflow_state import CosmosStateFactory

CONVERSATION = "conversation-1"  # in an application: from the request, and of this user

# The framework tells that its session stores are experimental.
warnings.filterwarnings("ignore", r"\[SESSION_STORE\]", FutureWarning)


async def main(text: str) -> None:
    """Load the session, say one thing, and store the session."""
    os.environ.setdefault("COSMOS_WORKFLOW_STATE_ENDPOINT", "embedded:conversation_persistence.db")
    async with CosmosStateFactory() as factory:
        tenant = factory.for_tenant("contoso")
        agent = Agent(LocalModel(), context_providers=[tenant.history()])
        session = await tenant.sessions.get(CONVERSATION) or agent.create_session(session_id=CONVERSATION)
        turn = session.state["turn"] = session.state.get("turn", 0) + 1
        print(f"turn {turn}:", await agent.run(text, session=session))
        await tenant.sessions.set(CONVERSATION, session)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", metavar="TEXT")
    asyncio.run(main(parser.parse_args().text))
