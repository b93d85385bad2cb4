"""Throttling on the wire: how often we ask, how long we wait, and what is said when it does not end."""

from __future__ import annotations

import asyncio

import pytest

from cosmos_workflow_state._gateway import Meter
from cosmos_workflow_state.errors import ServiceUnavailableError, ThrottledError
from unit.support.jumping import jumping
from unit.support.operations import OPERATIONS, RESULTS, TEXT, WORKS
from unit.support.wire import KEY, failed, found, item, page, wire

each_operation = pytest.mark.parametrize("name", OPERATIONS)

JITTER = [0.1, 0.2, 0.4, 0.8, 1.6]
"""Seconds that the wait after each failed try may be longer than the service asks for."""


@each_operation
@jumping
async def test_one_throttled_answer_is_repaired(name: str) -> None:
    """Demand 21: the second request works, and both answers are counted and paid for."""
    async with wire() as on:
        on.answers = [failed(429, 3200), WORKS[name]()]
        meter = Meter()
        assert await OPERATIONS[name](on.gateway, meter) == RESULTS[name]
        assert len(on.sent) == 2
        assert 0 <= on.waits[0] <= JITTER[0]
        assert (meter.requests, meter.request_charge, meter.unknown_outcomes) == (2, 3.0, 0)


@each_operation
@jumping
async def test_throttling_that_does_not_end(name: str) -> None:
    """Demand 21: six requests, whatever the client would make of it, then what the service says, and nothing done."""
    async with wire() as on:
        on.answers = [failed(429, 3200, x_ms_retry_after_ms="250") for _ in range(6)]
        meter = Meter()
        with pytest.raises(ThrottledError) as caught:
            await OPERATIONS[name](on.gateway, meter)
        error = caught.value
        assert (error.status_code, error.sub_status, error.retry_after, error.activity_id) == (429, 3200, 0.25, "a-1")
        assert error.retryable
        assert not error.outcome_unknown
        assert (len(on.sent), meter.requests, meter.request_charge) == (6, 6, 9.0)


@jumping
async def test_what_the_service_asks_for_is_waited_in_full() -> None:
    """Never less than retry-after, and at most the jitter more; the next answer's counts for the next wait."""
    asked = [10.0, 0.5, 3.0, 0.0, 7.25]
    async with wire() as on:
        on.answers = [failed(429, 3200, x_ms_retry_after_ms=str(seconds * 1000)) for seconds in asked]
        on.answers.append(found(item("a")))
        assert await on.gateway.read(KEY, "a", Meter())
        for seconds, jitter, wait in zip(asked, JITTER, on.waits, strict=True):
            assert seconds <= wait <= seconds + jitter


@jumping
async def test_waits_without_retry_after_grow_and_differ() -> None:
    """Full jitter: writers that were throttled together do not come back together."""
    async with wire() as on:
        on.answers = [failed(429, 3200) for _ in range(60)]
        for _ in range(10):
            with pytest.raises(ThrottledError):
                await on.gateway.read(KEY, "a", Meter())
        for number, most in enumerate(JITTER):
            waits = on.waits[number::6]
            assert len(set(waits)) == 10
            assert all(0 <= wait <= most for wait in waits)


@pytest.mark.parametrize("text", ["soon", "-5", "nan", "inf", "1e999", ""])
@jumping
async def test_an_absurd_retry_after_is_none(text: str) -> None:
    """A header that is no amount of time neither breaks the retries nor makes them wait for ever."""
    async with wire() as on:
        on.answers = [failed(429, 3200, x_ms_retry_after_ms=text, x_ms_request_charge=text), found(item("a"))]
        meter = Meter()
        assert await on.gateway.read(KEY, "a", meter)
        assert on.waits[0] <= JITTER[0]
        assert (meter.requests, meter.request_charge) == (2, 1.5)


@pytest.mark.parametrize("key", [KEY, KEY[:1]], ids=["full key", "prefix"])
@jumping
async def test_a_query_throttled_on_its_second_page(key: list[str]) -> None:
    """Only the second page is asked for again, and no item is given twice or left out."""
    async with wire() as on:
        on.answers = [page(item("a"), item("b"), continuation="next"), failed(429, 3200), page(item("c"))]
        meter = Meter()
        ids = [one["id"] async for one in on.gateway.query(TEXT, [], key, meter)]
        assert ids == ["a", "b", "c"]
        assert [one.headers.get("x-ms-continuation") for one in on.sent] == [None, "next", "next"]
        assert meter.requests == 3


@jumping
async def test_a_query_throttled_for_good_on_its_second_page() -> None:
    """What was found before is given, then the error; the tries of a page are its own."""
    async with wire() as on:
        on.answers = [failed(429, 3200), page(item("a"), continuation="next"), *(failed(429, 3200) for _ in range(6))]
        items = on.gateway.query(TEXT, [], KEY, Meter())
        assert await anext(items) == item("a")
        with pytest.raises(ThrottledError):
            await anext(items)
        assert len(on.sent) == 8


@jumping
async def test_a_wait_that_would_pass_the_deadline_is_not_begun() -> None:
    """The error in hand is raised at once, so that the caller has its time back and knows how long to wait."""
    async with wire() as on:
        loop = asyncio.get_running_loop()
        on.answers = [failed(429, 3200, x_ms_retry_after_ms="2000") for _ in range(6)]
        meter = Meter(deadline=loop.time() + 5)
        with pytest.raises(ThrottledError) as caught:
            await on.gateway.read(KEY, "a", meter)
        assert caught.value.retry_after == 2.0
        assert len(on.sent) == 3
        assert loop.time() == on.sent[-1].at < 5


@jumping
async def test_a_deadline_that_is_far_changes_nothing() -> None:
    """Retries go on while there is time."""
    async with wire() as on:
        on.answers = [failed(429, 3200, x_ms_retry_after_ms="2000"), found(item("a"))]
        assert await on.gateway.read(KEY, "a", Meter(deadline=60.0))


@jumping
async def test_no_try_after_the_deadline() -> None:
    """A deadline that passes during a try ends the retries, whatever the reason of the next one would be."""
    async with wire() as on:
        on.answers = [failed(503) for _ in range(6)]
        # The client itself waits half a second and asks once more.
        with pytest.raises(ServiceUnavailableError):
            await on.gateway.read(KEY, "a", Meter(deadline=0.25))
        assert len(on.sent) == 2
