"""Transactional batches on the wire: what is sent, and what each answer to it means."""

from __future__ import annotations

import json

import httpx
import pytest

from cosmos_workflow_state._gateway import Create, Delete, Meter, Read, Refusal, Replace, Step, Upsert
from cosmos_workflow_state.errors import ProvisioningError, ServiceError, ServiceUnavailableError, ThrottledError
from unit.support.jumping import jumping
from unit.support.wire import KEY, answer, done, failed, item, wire

STEPS: list[Step] = [
    Read("guard"),
    Create(item("a")),
    Upsert(item("b", n=1)),
    Replace(item("c", n=2), '"7"'),
    Delete("d"),
]


@jumping
async def test_all_steps_are_one_request() -> None:
    """Each step in the form the service takes, in order, under the full key, all or nothing, in one request."""
    async with wire() as on:
        on.answers = [done(200, 201, 200, 200, 204)]
        meter = Meter()
        assert await on.gateway.batch(KEY, STEPS, meter) is None
        assert json.loads(on.sent[0].body) == [
            {"operationType": "Read", "id": "guard"},
            {"operationType": "Create", "resourceBody": item("a")},
            {"operationType": "Upsert", "resourceBody": item("b", n=1)},
            {"operationType": "Replace", "id": "c", "resourceBody": item("c", n=2), "ifMatch": '"7"'},
            {"operationType": "Delete", "id": "d"},
        ]
        headers = on.sent[0].headers
        assert json.loads(headers["x-ms-documentdb-partitionkey"]) == KEY
        assert headers["x-ms-cosmos-batch-atomic"] == "True"
        assert (len(on.sent), meter.requests, meter.request_charge) == (1, 1, 1.5)


@pytest.mark.parametrize("status", [404, 409, 412])
@pytest.mark.parametrize("index", range(5))
@jumping
async def test_a_step_that_could_not_be_done(index: int, status: int) -> None:
    """It is a result that names the step, the others' 424 is not one, and it is paid for once."""
    async with wire() as on:
        on.answers = [done(*(status if number == index else 424 for number in range(5)))]
        meter = Meter()
        assert await on.gateway.batch(KEY, STEPS, meter) == Refusal(index, status)
        assert (len(on.sent), meter.requests, meter.request_charge, meter.unknown_outcomes) == (1, 1, 1.5, 0)


@pytest.mark.parametrize(("status", "kind"), [(429, ThrottledError), (449, ServiceUnavailableError)])
@jumping
async def test_a_step_that_was_throttled(status: int, kind: type[ServiceError]) -> None:
    """The client repeats none of these; we do, for as long as for a whole request, and nothing was done."""
    async with wire() as on:
        on.answers = [done(424, status), done(200, 201)]
        assert await on.gateway.batch(KEY, STEPS[:2], Meter()) is None
        assert len(on.sent) == 2
        on.answers = [done(424, status, x_ms_retry_after_ms="1500") for _ in range(6)]
        meter = Meter()
        with pytest.raises(kind) as caught:
            await on.gateway.batch(KEY, STEPS[:2], meter)
        assert (caught.value.status_code, caught.value.retry_after) == (status, 1.5)
        assert not caught.value.outcome_unknown
        assert (meter.requests, meter.request_charge) == (6, 9.0)
        assert all(wait >= 1.5 for wait in on.waits[2:])


@pytest.mark.parametrize("status", [408, 500, 503])
@jumping
async def test_a_step_that_nobody_knows_about(status: int) -> None:
    """A server's error inside the answer is one around it: tried again, then said to be unknown."""
    async with wire() as on:
        on.answers = [done(424, status), done(424, 409)]
        meter = Meter()
        # The first try may have been done, so this refusal may be of its own work: the caller can tell.
        assert await on.gateway.batch(KEY, STEPS[:2], meter) == Refusal(1, 409)
        assert meter.unknown_outcomes == 1
        on.answers = [done(424, status) for _ in range(6)]
        with pytest.raises(ServiceUnavailableError) as caught:
            await on.gateway.batch(KEY, STEPS[:2], Meter())
        assert caught.value.outcome_unknown
        assert len(on.sent) == 5


@pytest.mark.parametrize("status", [400, 413])
@jumping
async def test_a_step_that_is_refused_for_good(status: int) -> None:
    """What no repeating helps against is an error, sent once."""
    async with wire() as on:
        on.answers = [done(status, 424)]
        with pytest.raises(ServiceError) as caught:
            await on.gateway.batch(KEY, STEPS[:2], Meter())
        assert type(caught.value) is ServiceError
        assert (caught.value.status_code, caught.value.retryable, len(on.sent)) == (status, False, 1)


@jumping
async def test_a_whole_batch_that_is_refused() -> None:
    """404 around the results is about the container and never names a step; 413 is about the size of all."""
    async with wire() as on:
        on.answers = [failed(404, 1003), failed(404), failed(409), failed(413)]
        with pytest.raises(ProvisioningError):
            await on.gateway.batch(KEY, STEPS, Meter())
        for status in (404, 409, 413):
            with pytest.raises(ServiceError) as caught:
                await on.gateway.batch(KEY, STEPS, Meter())
            assert caught.value.status_code == status
        assert len(on.sent) == 4


NOT_THE_ANSWER = {
    "nothing": answer(200),
    "no list": answer(200, {"statusCode": 200}),
    "empty list": answer(200, []),
    "too few": done(200),
    "too many": done(200, 201, 201),
    "too few and a failure": done(409),
    "too many and a failure": done(424, 409, 424),
    "nothing but 424": done(424, 424),
    "no results": answer(200, ["done", "done"]),
    "no statuses": answer(200, [{}, {}]),
    "statuses that are no numbers": answer(200, [{"statusCode": "well"}, {"statusCode": "done"}]),
    "no JSON": answer(200, b"<html>Sign in</html>", content_type="text/html"),
}


@pytest.mark.parametrize("sent", NOT_THE_ANSWER.values(), ids=list(NOT_THE_ANSWER))
@jumping
async def test_an_answer_that_is_not_one_result_a_step(sent: httpx.Response) -> None:
    """Demand 30: it is neither believed nor taken for a refusal; after six tries nobody knows."""
    async with wire() as on:
        on.answers = [sent] * 6
        meter = Meter()
        with pytest.raises(ServiceUnavailableError) as caught:
            await on.gateway.batch(KEY, STEPS[:2], meter)
        assert caught.value.outcome_unknown
        assert (len(on.sent), meter.requests, meter.unknown_outcomes) == (6, 6, 6)
