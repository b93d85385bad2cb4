"""Workflows that pause for a human, built anew for each process: a graph, one within another, an agent, functions.

Owns the workflows and how they are run up to the pause and on from it. Must not know which storage they are run on.
They run without a model and without a network, and the same way every time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Final

from agent_framework import (
    Agent,
    AgentExecutor,
    AgentExecutorRequest,
    AgentExecutorResponse,
    BaseChatClient,
    ChatResponse,
    Executor,
    FunctionalWorkflow,
    Message,
    RunContext,
    Workflow,
    WorkflowAgent,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    handler,
    response_handler,
    step,
    workflow,
)

from ._values import Expense, Question

GRAPH: Final = "kit-graph"
OUTER: Final = "kit-outer"
AGENT: Final = "kit-agent"
FUNCTIONAL: Final = "kit-functional"


class Desk(Executor):
    """Takes an expense in, and counts; passes it on to all that have to do with it."""

    def __init__(self) -> None:
        """Start to count."""
        super().__init__("desk")
        self.taken = 0

    @handler
    async def take(self, expense: Expense, context: WorkflowContext[Expense]) -> None:
        """Keep the expense in the state of the workflow and pass it on."""
        self.taken += 1
        context.set_state("expense", expense)
        await context.send_message(expense)

    async def on_checkpoint_save(self) -> dict[str, Any]:
        """Save the count."""
        return {"taken": self.taken}

    async def on_checkpoint_restore(self, state: dict[str, Any]) -> None:
        """Restore the count."""
        self.taken = state["taken"]


class Manager(Executor):
    """Asks a human and waits."""

    @handler
    async def ask(self, expense: Expense, context: WorkflowContext[bool | int]) -> None:
        """Ask; the workflow pauses here."""
        await context.request_info(Question(expense), bool)

    @response_handler
    async def answered(self, asked: Question, approved: bool, context: WorkflowContext[bool | int]) -> None:  # noqa: FBT001 - an answer
        """Pass the answer on."""
        await context.send_message(approved and asked.expense == context.get_state("expense"))


class Archive(Executor):
    """Is done while the manager waits: what it sends lies in the edge's buffer when the workflow pauses."""

    @handler
    async def file(self, expense: Expense, context: WorkflowContext[bool | int]) -> None:
        """Count the receipts."""
        await context.send_message(len(expense.receipts))


class Ledger(Executor):
    """Writes down what the others have said."""

    def __init__(self, desk: Desk) -> None:
        """Remember whose count to tell."""
        super().__init__("ledger")
        self._desk = desk

    @handler
    async def book(self, said: list[bool | int], context: WorkflowContext[None, str]) -> None:
        """Tell all of it."""
        await context.yield_output(f"{said} of {self._desk.taken}")


def build_graph() -> Workflow:
    """Return a graph that fans out and in, and pauses with one of the two answers there."""
    desk, manager, archive = Desk(), Manager("manager"), Archive("archive")
    ledger = Ledger(desk)
    builder = WorkflowBuilder(name=GRAPH, start_executor=desk, output_from=[ledger])
    return builder.add_fan_out_edges(desk, [manager, archive]).add_fan_in_edges([manager, archive], ledger).build()


BOOKED: Final = "[True, 2] of 1"
"""What the graph says of an expense with two receipts that was approved."""


class Clerk(Executor):
    """Passes an expense into another workflow and tells what came out of it."""

    @handler
    async def hand_over(self, expense: Expense, context: WorkflowContext[Expense]) -> None:
        """Pass it on."""
        await context.send_message(expense)


class Postbox(Executor):
    """Tells what another workflow has said."""

    @handler
    async def tell(self, said: str, context: WorkflowContext[None, str]) -> None:
        """Tell it."""
        await context.yield_output(f"inner: {said}")


def build_outer() -> Workflow:
    """Return a workflow with the graph in it, whose question becomes a question of the whole."""
    clerk, postbox = Clerk("clerk"), Postbox("postbox")
    inner = WorkflowExecutor(build_graph(), "inner", propagate_request=True)
    builder = WorkflowBuilder(name=OUTER, start_executor=clerk, output_from=[postbox])
    return builder.add_edge(clerk, inner).add_edge(inner, postbox).build()


class Echo(BaseChatClient[Any]):
    """A model that counts the user's turns and repeats the last one."""

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **kwargs: Any
    ) -> Awaitable[ChatResponse]:
        del stream, options, kwargs
        return self._answer([message.text for message in messages if message.role == "user"])

    async def _answer(self, told: Sequence[str]) -> ChatResponse:
        return ChatResponse(messages=[Message("assistant", [f"turn {len(told)}: {told[-1]}"])])


class Reviewer(Executor):
    """Asks a human about the first answer of the agent, and gives the agent another turn."""

    def __init__(self, scribe: AgentExecutor) -> None:
        """Remember who is reviewed."""
        super().__init__("reviewer")
        self._scribe = scribe

    @handler
    async def review(self, said: AgentExecutorResponse, context: WorkflowContext[AgentExecutorRequest, str]) -> None:
        """Ask about the first answer; the workflow pauses here. Pass a later one out."""
        if context.get_state("asked"):
            await context.yield_output(said.agent_response.text)
        else:
            context.set_state("asked", value=True)
            await context.request_info(said.agent_response.text, str)

    @response_handler
    async def answered(self, _asked: str, answer: str, context: WorkflowContext[AgentExecutorRequest, str]) -> None:
        """Tell the agent what the human has said."""
        request = AgentExecutorRequest([Message("user", [answer])], should_respond=True)
        await context.send_message(request, target_id=self._scribe.id)


def build_agent() -> WorkflowAgent:
    """Return a workflow with an agent in it, as an agent; the memory of the agent inside is part of its state."""
    scribe = AgentExecutor(Agent(Echo(), name="scribe"), id="scribe")
    reviewer = Reviewer(scribe)
    builder = WorkflowBuilder(name=AGENT, start_executor=scribe, output_from=[reviewer])
    return builder.add_edge(scribe, reviewer).add_edge(reviewer, scribe).build().as_agent()


def build_functional(ran: list[str]) -> FunctionalWorkflow:
    """Return a functional workflow of two steps with a question between them.

    Args:
        ran: The steps add their names to it when they run, and not when their results are taken from a checkpoint.
    """

    # The framework asks for a key where a step shares something with its surroundings, as these do.
    def key_of(*_arguments: object) -> str:
        return "key"

    @step(replay_key=key_of)
    async def draft(expense: Expense) -> dict[str, Any]:
        ran.append("draft")
        return {"expense": expense, "by_day": [(1, 2.5)]}

    @step(replay_key=key_of)
    async def book(drafted: dict[str, Any], approved: bool) -> str:  # noqa: FBT001 - the human's answer
        ran.append("book")
        return f"{drafted['expense'].receipts}, {drafted['by_day']}: {approved}"

    @workflow(name=FUNCTIONAL)
    async def pipeline(expense: Expense, ctx: RunContext) -> str:
        drafted = await draft(expense)
        approved = await ctx.request_info(Question(expense), bool)
        return await book(drafted, approved)

    return pipeline.build()


PAID: Final = "['train', 'hotel'], [(1, 2.5)]: True"
"""What the functional workflow says of `EXPENSE` when it was approved."""
