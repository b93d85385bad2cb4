"""The demo's workflow: an invoice comes in, a human is asked, the answer is carried out. No model, no I/O.

Importable, so that another process can restore the types that a checkpoint of it holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Never

from agent_framework import Executor, Workflow, WorkflowBuilder, WorkflowContext, handler, response_handler

WORKFLOW_NAME: Final = "invoice-approval"
_INVOICE: Final = "invoice"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of an invoice; the price is in cents."""

    article: str
    quantity: int
    price: int


@dataclass(frozen=True, slots=True)
class Invoice:
    """What the workflow is about."""

    number: str
    lines: tuple[Line, ...]

    @property
    def total(self) -> int:
        """Cents of all lines."""
        return sum(line.quantity * line.price for line in self.lines)


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """What the human is asked."""

    question: str


@dataclass(frozen=True, slots=True)
class Decision:
    """What the human answered: ``yes`` or ``no``."""

    answer: str


CHECKPOINT_TYPES: Final = tuple(
    f"{kind.__module__}:{kind.__qualname__}" for kind in (Line, Invoice, ApprovalRequest, Decision)
)
"""The types of this module that a checkpoint may hold."""


class Intake(Executor):
    """Keeps the invoice in the workflow's state."""

    @handler
    async def receive(self, invoice: Invoice, context: WorkflowContext[Invoice]) -> None:
        """Keep the invoice and pass it on."""
        context.set_state(_INVOICE, invoice)
        await context.send_message(invoice)


class Approval(Executor):
    """Asks a human and waits, for days if need be."""

    @handler
    async def ask(self, invoice: Invoice, context: WorkflowContext[Decision]) -> None:
        """Ask; the workflow pauses here."""
        await context.request_info(ApprovalRequest(f"Pay invoice {invoice.number} of {_amount(invoice)}?"), str)

    @response_handler
    async def answered(self, _request: ApprovalRequest, answer: str, context: WorkflowContext[Decision]) -> None:
        """Go on with the answer."""
        await context.send_message(Decision(answer))


class Payment(Executor):
    """Carries the decision out."""

    @handler
    async def settle(self, decision: Decision, context: WorkflowContext[Never, str]) -> None:
        """Pay or reject the invoice that is in the restored state."""
        invoice: Invoice = context.get_state(_INVOICE)
        done = "paid" if decision.answer == "yes" else "rejected"
        await context.yield_output(f"invoice {invoice.number} of {_amount(invoice)} was {done}")


def build_workflow() -> Workflow:
    """Return the workflow, the same in every process: its name and its graph identify its checkpoints."""
    intake, approval, payment = Intake("intake"), Approval("approval"), Payment("payment")
    builder = WorkflowBuilder(name=WORKFLOW_NAME, start_executor=intake, output_from=[payment])
    return builder.add_edge(intake, approval).add_edge(approval, payment).build()


def invoice_of(tenant_id: str) -> Invoice:
    """Return the invoice that a tenant has to approve; made up, and long enough for a checkpoint of a real size."""
    articles = ("paper A4, 500 sheets", "toner, black", "toner, magenta", "envelopes DL, 1,000", "desk lamp, LED")
    lines = [
        Line(
            f"{articles[number % len(articles)]}, order {tenant_id}-{number:03}",
            1 + number % len(tenant_id),
            390 + 17 * number,
        )
        for number in range(100)
    ]
    return Invoice(f"{tenant_id}-2041", tuple(lines))


def _amount(invoice: Invoice) -> str:
    return f"{invoice.total / 100:,.2f} EUR"
