"""Every status the service can fail with: its kind, how often it is sent, whether it may have been done."""

from __future__ import annotations

from dataclasses import dataclass

import httpx
import pytest

from cosmos_workflow_state._gateway import Meter
from cosmos_workflow_state._service_errors import translated
from cosmos_workflow_state.errors import (
    AccessDeniedError,
    CosmosStateError,
    ProvisioningError,
    ServiceError,
    ServiceUnavailableError,
)
from unit.support.jumping import jumping
from unit.support.operations import OPERATIONS, RESULTS, WORKS, WRITES
from unit.support.wire import KEY, Answer, failed, found, item, wire, written


@dataclass(frozen=True, slots=True)
class Case:
    """A failure that does not end.

    Attributes:
        status: Its status.
        sub_status: Its sub-status.
        kind: What it becomes.
        reads: How often a read is sent.
        writes: How often a write is sent.
        queries: How often a query is sent.
        unknown: Whether it may have been done.
    """

    status: int
    sub_status: int | None
    kind: type[CosmosStateError]
    reads: int = 1
    writes: int = 1
    queries: int = 1
    unknown: bool = False

    def sends(self, name: str) -> int:
        """Return how often an operation is sent."""
        if name in WRITES:
            return self.writes
        return self.reads if name == "read" else self.queries


# Reads that the client repeats by itself are two requests a try, its queries four.
CASES = [
    Case(400, None, ServiceError),
    Case(400, 1001, ServiceError),
    Case(401, None, AccessDeniedError),
    Case(403, None, AccessDeniedError),
    Case(403, 5300, AccessDeniedError),
    Case(403, 5301, AccessDeniedError),
    Case(403, 1014, ServiceError),
    Case(404, 1002, ServiceUnavailableError, 6, 6, 6),
    Case(404, 1003, ProvisioningError),
    Case(405, None, ServiceError),
    Case(408, None, ServiceUnavailableError, 6, 3, 12, unknown=True),
    Case(410, 1000, ServiceUnavailableError, 6, 6, 6),
    Case(410, 1002, ServiceUnavailableError, 3, 3, 12),
    Case(410, 1007, ServiceUnavailableError, 6, 6, 6),
    Case(410, 1008, ServiceUnavailableError, 6, 6, 6),
    Case(413, None, ServiceError),
    Case(423, None, ServiceError),
    Case(449, None, ServiceUnavailableError, 6, 6, 6),
    Case(500, None, ServiceUnavailableError, 6, 3, 12, unknown=True),
    Case(502, None, ServiceUnavailableError, 6, 3, 12, unknown=True),
    Case(503, None, ServiceUnavailableError, 6, 6, 12, unknown=True),
    Case(504, None, ServiceUnavailableError, 6, 3, 12, unknown=True),
    Case(507, None, ServiceError, 2, 1, 4),
    Case(520, None, ServiceUnavailableError, 6, 3, 12, unknown=True),
]
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.status}-{case.sub_status}")
each_operation = pytest.mark.parametrize("name", OPERATIONS)


@each_case
@each_operation
@jumping
async def test_a_failure_that_does_not_end(name: str, case: Case) -> None:
    """Demands 21 and 30: each status is one kind of error after a bounded number of requests, all of them counted."""
    async with wire() as on:
        on.answers = [failed(case.status, case.sub_status) for _ in range(20)]
        meter = Meter()
        with pytest.raises(case.kind) as caught:
            await OPERATIONS[name](on.gateway, meter)
        assert type(caught.value) is case.kind
        assert caught.value.retryable is (case.kind is ServiceUnavailableError)
        assert len(on.sent) == meter.requests == case.sends(name)
        assert meter.unknown_outcomes == (len(on.sent) if case.unknown else 0)
        if isinstance(caught.value, ServiceError):
            assert (caught.value.status_code, caught.value.sub_status) == (case.status, case.sub_status)
            assert caught.value.outcome_unknown is case.unknown


@pytest.mark.parametrize("case", [case for case in CASES if case.reads > 2], ids=lambda c: f"{c.status}-{c.sub_status}")
@each_operation
@jumping
async def test_a_failure_that_passes(name: str, case: Case) -> None:
    """Demand 21: what may pass is repaired without a word."""
    async with wire() as on:
        on.answers = [failed(case.status, case.sub_status), WORKS[name]()]
        assert await OPERATIONS[name](on.gateway, Meter()) == RESULTS[name]
        assert len(on.sent) == 2


@pytest.mark.parametrize("sub_status", [3, 1008])
@each_operation
@jumping
async def test_writes_that_move_to_another_region(name: str, sub_status: int) -> None:
    """Refused for as long as the client asks (two minutes, once a second) it is no lack of rights, and not done."""
    async with wire() as on:
        on.answers = [failed(403, sub_status) for _ in range(200)]
        with pytest.raises(ServiceUnavailableError) as caught:
            await OPERATIONS[name](on.gateway, Meter())
        assert not caught.value.outcome_unknown
        assert len(on.sent) == 121


@pytest.mark.parametrize(
    ("name", "status", "expected"),
    [
        ("read", 404, None),
        ("create", 409, False),
        ("delete", 404, False),
    ],
)
@jumping
async def test_answers_about_the_item_are_results(name: str, status: int, expected: object) -> None:
    """Not there, there already, another version: one request each."""
    async with wire() as on:
        on.answers = [failed(status, 0)]
        assert await OPERATIONS[name](on.gateway, Meter()) is expected
        assert len(on.sent) == 1


@pytest.mark.parametrize(
    ("name", "status"), [("read", 409), ("read", 412), ("create", 404), ("create", 412), ("query", 404)]
)
@jumping
async def test_answers_that_do_not_belong_to_the_operation(name: str, status: int) -> None:
    """Demand 30: a status that says nothing about this item is an error, never "not there"."""
    async with wire() as on:
        on.answers = [failed(status)]
        with pytest.raises(ServiceError) as caught:
            await OPERATIONS[name](on.gateway, Meter())
        assert caught.value.status_code == status
        assert len(on.sent) == 1


@jumping
async def test_a_write_that_the_client_repeats_by_itself_may_have_been_done() -> None:
    """The client sends a write again after 503; its answer 409 may be about the first one, and the meter says so."""
    async with wire() as on:
        on.answers = [failed(503), failed(409)]
        meter = Meter()
        assert await on.gateway.create(item("a"), meter) is False
        assert (len(on.sent), meter.unknown_outcomes) == (2, 1)


@pytest.mark.parametrize("before", [failed(500), failed(503), httpx.ReadError("reset")], ids=["500", "503", "none"])
@jumping
async def test_a_delete_that_finds_its_own_work(before: Answer) -> None:
    """404 after a delete whose outcome nobody knows is that delete's work."""
    async with wire() as on:
        on.answers = [before, failed(404)]
        assert await on.gateway.delete(KEY, "a", Meter()) is True
        assert on.methods == ["DELETE", "DELETE"]


@jumping
async def test_the_last_answer_does_not_hide_an_earlier_one() -> None:
    """A write that may have been done by an earlier try is not said to be undone because the last try was not."""
    async with wire() as on:
        for last in (failed(413), failed(401)):
            on.answers = [failed(500), last]
            with pytest.raises(ServiceError) as caught:
                await on.gateway.create(item("a"), Meter())
            assert caught.value.outcome_unknown
            assert not caught.value.retryable


@jumping
async def test_one_operation_does_not_speak_for_another() -> None:
    """The outcome of what was sent before with the same meter is another matter."""
    async with wire() as on:
        meter = Meter()
        on.answers = [failed(500), written(), failed(413)]
        assert await on.gateway.create(item("a"), meter)
        with pytest.raises(ServiceError) as caught:
            await on.gateway.create(item("b"), meter)
        assert not caught.value.outcome_unknown


@jumping
async def test_a_sub_status_that_is_no_number() -> None:
    """Something on the way that garbles it makes the answer one that is not understood."""
    async with wire() as on:
        on.answers = [failed(400, x_ms_substatus="many"), found(item("a"))]
        assert await on.gateway.read(KEY, "a", Meter()) == item("a")
        assert len(on.sent) == 2


@jumping
async def test_the_account_is_no_item() -> None:
    """What a client that was not entered asks about the account on the way is no request for items."""
    async with wire(entered=False) as on:
        on.answers = [found(item("a"))]
        meter = Meter()
        assert await on.gateway.read(KEY, "a", meter) == item("a")
        assert on.account.called
        assert (len(on.sent), meter.requests, meter.request_charge) == (1, 1, 1.5)


def test_our_own_errors_are_left_alone() -> None:
    """What is translated already is not translated again."""
    with pytest.raises(ProvisioningError), translated():
        raise ProvisioningError("missing")
