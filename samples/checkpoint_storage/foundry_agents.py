"""Two Foundry agents in a workflow, with a checkpoint after each step: what has been answered is not asked again.

    python foundry_agents.py        the writer answers, then the reviewer; prints the id of the checkpoint of each step
    python foundry_agents.py ID     is a new process: does what comes after a checkpoint; that is, after the first
                                    step, to ask the reviewer only, and after the second one nothing

Needs a Foundry project, and a login that azure-identity finds (``az login`` is enough). Set FOUNDRY_PROJECT_ENDPOINT,
https://ACCOUNT.services.ai.azure.com/api/projects/PROJECT, and FOUNDRY_MODEL, the name of a deployment.

State is kept in ./foundry_agents.db. Against an account, set COSMOS_WORKFLOW_STATE_ENDPOINT and
COSMOS_WORKFLOW_STATE_KEY, and COSMOS_WORKFLOW_STATE_PROVISIONING=create the first time; nothing here changes.
"""

import argparse
import asyncio
import os
import sys

from agent_framework import Agent, Workflow, WorkflowBuilder
from azure.core.credentials_async import AsyncTokenCredential
from azure.identity.aio import DefaultAzureCredential

from cosmos_workflow_state import CosmosStateFactory, TenantCheckpointStorage

try:
    from agent_framework.foundry import FoundryChatClient
except ImportError as error:
    sys.exit(str(error))

NAME = "write-and-review"  # a fixed name: a process finds only checkpoints of workflows it can name


def build(client: FoundryChatClient) -> Workflow:
    """Return the workflow, the same in every process."""

    def agent(name: str, instructions: str) -> Agent:
        # The checkpoints hold what was said; without store=False the service would keep a copy, and they its id.
        return Agent(client, instructions, name=name, default_options={"store": False})

    writer = agent("writer", "Write a slogan for the product, one line.")
    reviewer = agent("reviewer", "Say in one line what is good and what is bad about the slogan.")
    return WorkflowBuilder(name=NAME, start_executor=writer, output_from=[reviewer]).add_edge(writer, reviewer).build()


async def start(workflow: Workflow, storage: TenantCheckpointStorage) -> None:
    """Run from the start, and print what was saved."""
    result = await workflow.run("A bicycle that folds", checkpoint_storage=storage)
    print(*result.get_outputs())
    async for header in storage.iter_checkpoint_headers(NAME):
        print(f"{header.checkpoint_id} after {header.iteration_count} steps")


async def resume(workflow: Workflow, storage: TenantCheckpointStorage, checkpoint_id: str) -> None:
    """Go on from a checkpoint."""
    result = await workflow.run(checkpoint_id=checkpoint_id, checkpoint_storage=storage)
    print(*result.get_outputs() or ["nothing was left to ask"])


async def main(checkpoint_id: str | None = None, *, credential: AsyncTokenCredential | None = None) -> None:
    """Open everything, start or resume, and close everything; a login is looked for when no credential is given."""
    os.environ.setdefault("COSMOS_WORKFLOW_STATE_ENDPOINT", "embedded:foundry_agents.db")
    async with CosmosStateFactory() as factory, credential or DefaultAzureCredential() as login:
        chat = FoundryChatClient(credential=login)
        async with chat.client:
            storage, workflow = factory.for_tenant("contoso").checkpoints, build(chat)
            await (resume(workflow, storage, checkpoint_id) if checkpoint_id else start(workflow, storage))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint_id", metavar="ID", nargs="?")
    asyncio.run(main(parser.parse_args().checkpoint_id))
