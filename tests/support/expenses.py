"""The workflow behind the golden items. Its types are in stored items: never rename or move them."""

from __future__ import annotations

from dataclasses import dataclass

from agent_framework import (
    CheckpointStorage,
    Executor,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    handler,
    response_handler,
)

WORKFLOW = "expense-approval"


@dataclass
class Expense:
    """What somebody spent; the amount is in cents."""

    purpose: str
    amount: int
    items: list[str]


@dataclass
class Approval:
    """What the human is asked."""

    expense: Expense


ALLOWED = frozenset({"support.expenses:Expense", "support.expenses:Approval"})


class Desk(Executor):
    """Asks a human about an expense and waits."""

    @handler
    async def ask(self, expense: Expense, context: WorkflowContext[bool]) -> None:
        """Keep the expense and ask; the workflow pauses here."""
        context.set_state("expense", expense)
        context.set_state("by_year", {2026: (1, 2.5), None: b"\0"})
        await context.request_info(Approval(expense), bool)

    @response_handler
    async def answered(self, _asked: Approval, approved: bool, context: WorkflowContext[bool]) -> None:
        """Pass the answer on."""
        await context.send_message(approved)


class Ledger(Executor):
    """Writes the outcome down."""

    @handler
    async def book(self, approved: bool, context: WorkflowContext[None, str]) -> None:
        """Say what was decided."""
        await context.yield_output("booked" if approved else "rejected")


def build_workflow() -> Workflow:
    """Return the workflow, the same in every process."""
    desk, ledger = Desk("desk"), Ledger("ledger")
    builder = WorkflowBuilder(name=WORKFLOW, start_executor=desk, output_from=[ledger])
    return builder.add_edge(desk, ledger).build()


async def run_to_the_pause(storage: CheckpointStorage) -> None:
    """Run the workflow until it waits for the human, saving its checkpoints."""
    expense = Expense("Gr\u00fc\u00dfe, \U0001f600", 2**70, ["train", "hotel"])
    await build_workflow().run(expense, checkpoint_storage=storage)
