"""A workflow for hosts: it is told of a trip in the messages of a chat, asks a human, and says what was decided."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from agent_framework import (
    Executor,
    Message,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    handler,
    response_handler,
)

WORKFLOW: Final = "trips"


@dataclass
class Trip:
    """Where somebody wants to go."""

    city: str


ALLOWED: Final = frozenset({"support.trips:Trip"})


class Desk(Executor):
    """Asks a human about a trip and waits."""

    @handler
    async def ask(self, trip: Trip, context: WorkflowContext[None, str]) -> None:
        """Keep the trip and ask; the workflow pauses here."""
        context.set_state("trip", trip)
        await context.request_info(trip, bool)

    @handler
    async def ask_in_chat(self, messages: list[Message], context: WorkflowContext[None, str]) -> None:
        """Ask about the trip that the last message names; the answer is a word."""
        await context.request_info(Trip(messages[-1].text), str)

    @response_handler
    async def answered(self, asked: Trip, approved: bool, context: WorkflowContext[None, str]) -> None:
        """Say what was decided."""
        await context.yield_output(f"{asked.city}: {'yes' if approved else 'no'}")

    @response_handler
    async def answered_in_chat(self, asked: Trip, word: str, context: WorkflowContext[None, str]) -> None:
        """Say what was decided."""
        await context.yield_output(f"{asked.city}: {word}")


def build_workflow() -> Workflow:
    """Return the workflow, the same in every process."""
    desk = Desk("desk")
    return WorkflowBuilder(name=WORKFLOW, start_executor=desk, output_from=[desk]).build()
