"""One app that keeps both: what a Foundry agent was told and answered, and where the workflow around it waits.

    python foundry_history_and_checkpoints.py TICKET          the agent drafts a reply, and waits for a decision
    python foundry_history_and_checkpoints.py TICKET yes      is a new process: goes on, and remembers the draft

TICKET is any name of yours, such as 7, and "yes" any text. Needs a Foundry project, and a login that azure-identity
finds (``az login`` is enough). Set FOUNDRY_PROJECT_ENDPOINT, https://ACCOUNT.services.ai.azure.com/api/projects/PROJECT,
and FOUNDRY_MODEL, the name of a deployment.

State is kept in ./foundry_history_and_checkpoints.db. Against an account, set COSMOS_WORKFLOW_STATE_ENDPOINT and
COSMOS_WORKFLOW_STATE_KEY, and COSMOS_WORKFLOW_STATE_PROVISIONING=create the first time; nothing here changes.
"""

import argparse
import asyncio
import os
import sys
from typing import Never

from agent_framework import Agent, Executor, Workflow, WorkflowBuilder, WorkflowContext, handler, response_handler
from azure.core.credentials_async import AsyncTokenCredential
from azure.identity.aio import DefaultAzureCredential

from cosmos_workflow_state import CosmosStateFactory, TenantCheckpointStorage, TenantState

try:
    from agent_framework.foundry import FoundryChatClient
except ImportError as error:
    sys.exit(str(error))

NAME = "refunds"  # a fixed name: a process finds only checkpoints of workflows it can name
COMPLAINT = "The bicycle that I bought does not fold. I want my money back."
INSTRUCTIONS = "You answer customers. Draft a reply; when you are told the decision, write the final one."


class Desk(Executor):
    """Lets an agent draft, a human decide and the agent finish, all in one conversation."""

    def __init__(self, agent: Agent, ticket: str) -> None:
        """Set who answers. The session's id is all that is needed to find what was said under it before."""
        super().__init__("desk")
        self._agent, self._session = agent, agent.create_session(session_id=ticket)

    @handler
    async def draft(self, complaint: str, context: WorkflowContext[Never, str]) -> None:
        """Draft a reply; the workflow pauses here."""
        draft = await self._agent.run(complaint, session=self._session)
        await context.request_info(draft.text, str)

    @response_handler
    async def finish(self, _draft: str, decision: str, context: WorkflowContext[Never, str]) -> None:
        """Finish with the decision, perhaps days later and in another process; the draft is in the history."""
        final = await self._agent.run(f"Decided: {decision}", session=self._session)
        await context.yield_output(final.text)


def build(chat: FoundryChatClient, tenant: TenantState, ticket: str) -> Workflow:
    """Return the workflow for a ticket, the same in every process."""
    # Without store=False the service would keep the conversation, and the agent not ask the history for it.
    agent = Agent(chat, INSTRUCTIONS, context_providers=[tenant.history()], default_options={"store": False})
    desk = Desk(agent, ticket)
    return WorkflowBuilder(name=NAME, start_executor=desk, output_from=[desk]).build()


async def ask(workflow: Workflow, storage: TenantCheckpointStorage) -> None:
    """Run until a decision is needed, and print what about."""
    result = await workflow.run(COMPLAINT, checkpoint_storage=storage)
    print(*(event.data for event in result.get_request_info_events()))


async def decide(workflow: Workflow, storage: TenantCheckpointStorage, decision: str) -> None:
    """Answer what the newest checkpoint waits for, and finish."""
    paused = await storage.get_latest(workflow_name=NAME)
    if paused is None or not paused.pending_request_info_events:
        print("nothing waits for a decision")
        return
    answers = dict.fromkeys(paused.pending_request_info_events, decision)
    result = await workflow.run(responses=answers, checkpoint_id=paused.checkpoint_id, checkpoint_storage=storage)
    print(*result.get_outputs())


async def main(ticket: str, decision: str | None = None, *, credential: AsyncTokenCredential | None = None) -> None:
    """Open everything, ask or decide, and close everything; a login is looked for when no credential is given."""
    os.environ.setdefault("COSMOS_WORKFLOW_STATE_ENDPOINT", "embedded:foundry_history_and_checkpoints.db")
    async with CosmosStateFactory() as factory, credential or DefaultAzureCredential() as login:
        chat = FoundryChatClient(credential=login)
        async with chat.client:
            tenant = factory.for_tenant("contoso")
            storage = tenant.checkpoints.scoped(ticket)  # each ticket has a newest checkpoint of its own
            workflow = build(chat, tenant, ticket)
            await (decide(workflow, storage, decision) if decision else ask(workflow, storage))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ticket", metavar="TICKET")
    parser.add_argument("decision", nargs="?")
    given = parser.parse_args()
    asyncio.run(main(given.ticket, given.decision))
