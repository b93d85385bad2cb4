"""Answers that are not the service's, or not whole: none of them is taken for a result, or ends as a foreign error."""

from __future__ import annotations

import traceback

import httpx
import pytest

from cosmos_workflow_state._gateway import Meter
from cosmos_workflow_state.errors import ServiceUnavailableError
from unit.support.jumping import jumping
from unit.support.operations import OPERATIONS, RESULTS, TEXT, WORKS
from unit.support.wire import KEY, answer, found, item, page, wire, written

HTML = b"<!doctype html><title>Sign in</title>"

NOT_THE_SERVICE = {
    "HTML": answer(200, HTML, content_type="text/html"),
    "HTML said to be JSON": answer(200, HTML),
    "a redirect": answer(302, location="https://login.invalid/", x_ms_request_charge=None),
    "not modified": answer(304),
    "accepted": answer(202),
    "truncated JSON": answer(200, b'{"id":"a","tenant_id":"con'),
    "a list": answer(200, [1, 2]),
    "a number": answer(200, b"7"),
    "a text": answer(200, b'"done"'),
    "bytes that are no UTF-8": answer(200, b"\xff\xfe\x00"),
    "another object": answer(200, {"status": "ok"}),
    "null": answer(200, b"null"),
}


@pytest.mark.parametrize("sent", NOT_THE_SERVICE.values(), ids=list(NOT_THE_SERVICE))
@pytest.mark.parametrize("name", OPERATIONS)
@jumping
async def test_an_answer_that_is_not_the_service_s(name: str, sent: httpx.Response) -> None:
    """Demand 30: nothing read, nothing written, nothing deleted and nothing missing; nobody knows."""
    async with wire() as on:
        on.answers = [sent] * 6
        with pytest.raises(ServiceUnavailableError) as caught:
            await OPERATIONS[name](on.gateway, Meter())
        assert (caught.value.outcome_unknown, caught.value.status_code) == (True, None)
        assert len(on.sent) == 6


@pytest.mark.parametrize("name", OPERATIONS)
@jumping
async def test_an_answer_that_is_the_service_s_after_one_that_is_not(name: str) -> None:
    """A proxy that answers once in the service's place costs one more try."""
    async with wire() as on:
        on.answers = [answer(200, HTML, content_type="text/html"), WORKS[name]()]
        assert await OPERATIONS[name](on.gateway, Meter()) == RESULTS[name]
        assert len(on.sent) == 2


@pytest.mark.parametrize("body", [item("b"), {}, {"id": None}], ids=["another item", "none", "no id"])
@jumping
async def test_a_read_that_gives_another_item(body: object) -> None:
    """Demand 9: an answer that belongs to another request is not returned, whoever mixed them up."""
    async with wire() as on:
        on.answers = [answer(200, body)] * 6
        with pytest.raises(ServiceUnavailableError):
            await on.gateway.read(KEY, "a", Meter())


@pytest.mark.parametrize(
    "body",
    [{"Documents": None}, {"Documents": {}}, {"Documents": ["a"]}, {"Documents": [item("a"), None]}, {"_count": 0}],
    ids=["null", "an object", "texts", "an item and null", "none"],
)
@pytest.mark.parametrize("name", ["query", "prefix query"])
@jumping
async def test_a_page_that_is_none(name: str, body: object) -> None:
    """Demand 30: what holds no list of items is not an empty page."""
    async with wire() as on:
        on.answers = [answer(200, body)] * 6
        with pytest.raises(ServiceUnavailableError):
            await OPERATIONS[name](on.gateway, Meter())


@pytest.mark.parametrize("name", ["create"])
@jumping
async def test_a_write_without_its_version(name: str) -> None:
    """Every version the service writes has an ETag; what has none was not written by it."""
    async with wire() as on:
        on.answers = [written(etag=None)] * 6
        with pytest.raises(ServiceUnavailableError) as caught:
            await OPERATIONS[name](on.gateway, Meter())
        assert caught.value.outcome_unknown


@pytest.mark.parametrize("name", OPERATIONS)
@jumping
async def test_answers_without_charge_and_session(name: str) -> None:
    """Headers that only tell what it cost and what to read next may be missing; the result stands."""
    async with wire() as on:
        worked = WORKS[name]()
        for header in ("x-ms-request-charge", "x-ms-session-token", "x-ms-activity-id", "x-ms-alt-content-path"):
            worked.headers.pop(header, None)
        on.answers = [worked]
        meter = Meter()
        assert await OPERATIONS[name](on.gateway, meter) == RESULTS[name]
        assert (len(on.sent), meter.requests, meter.request_charge) == (1, 1, 0.0)


@pytest.mark.parametrize("charge", ["cheap", "", "nan", "inf", "-1e9", "1e999", "0x10"])
@pytest.mark.parametrize("name", OPERATIONS)
@jumping
async def test_a_charge_that_is_no_amount(name: str, charge: str) -> None:
    """It neither breaks the operation nor spoils the sum."""
    async with wire() as on:
        worked, again = WORKS[name](), WORKS[name]()
        worked.headers["x-ms-request-charge"] = charge
        on.answers = [worked, again]
        meter = Meter()
        assert await OPERATIONS[name](on.gateway, meter) == RESULTS[name]
        assert await OPERATIONS[name](on.gateway, meter) == RESULTS[name]
        assert (meter.requests, meter.request_charge) == (2, 1.5)


@jumping
async def test_empty_pages_are_not_the_end() -> None:
    """A page without items but with a continuation is followed; one request a page."""
    async with wire() as on:
        on.answers = [page(continuation="1"), page(item("a"), continuation="2"), page(continuation="3"), page()]
        meter = Meter()
        assert await OPERATIONS["query"](on.gateway, meter) == [item("a")]
        assert [one.headers.get("x-ms-continuation") for one in on.sent] == [None, "1", "2", "3"]
        assert meter.requests == 4


@pytest.mark.parametrize("size", [None, 7])
@jumping
async def test_the_size_of_a_page(size: int | None) -> None:
    """It is asked for when it is given, on every page, and left to the service when not."""
    async with wire() as on:
        on.answers = [page(item("a"), continuation="1"), page(item("b"))]
        pages = on.gateway.query(TEXT, [], KEY, Meter(), page_size=size)
        assert [one["id"] async for one in pages] == ["a", "b"]
        asked = [one.headers.get("x-ms-max-item-count") for one in on.sent]
        assert asked == [None if size is None else str(size)] * 2


@jumping
async def test_a_query_that_is_left_early() -> None:
    """Whoever stops after the first page does not pay for the second."""
    async with wire() as on:
        on.answers = [page(item("a"), item("b"), continuation="1"), page(item("c"))]
        pages = on.gateway.query(TEXT, [], KEY, Meter())
        assert await anext(pages) == item("a")
        await pages.aclose()  # type: ignore[attr-defined] - it is an async generator
        assert len(on.sent) == 1
        on.answers = [found(item("a"))]
        assert await on.gateway.read(KEY, "a", Meter()) == item("a")


@pytest.mark.parametrize("name", ["read", "query", "batch"])
@jumping
async def test_an_answer_that_is_not_understood_is_quoted_nowhere(name: str) -> None:
    """An answer cut short may be an item: neither the error nor what led to it has any of it."""
    async with wire() as on:
        on.answers = [answer(200, b'{"id":"a","data":"canary-4711", "cut')] * 20
        with pytest.raises(ServiceUnavailableError) as caught:
            await OPERATIONS[name](on.gateway, Meter())
    error: BaseException | None = caught.value
    assert error is not None
    assert error.__cause__ is error.__context__ is None
    assert "canary-4711" not in "".join(traceback.format_exception(error))
