"""Connections that fail on the wire, and callers that go away: what is said, and that the gateway stays usable."""

from __future__ import annotations

import asyncio
import time

import httpx
import pytest
from azure.core.credentials import AccessToken
from azure.core.exceptions import ClientAuthenticationError

from cosmos_workflow_state._gateway import Meter
from cosmos_workflow_state.errors import AccessDeniedError, ServiceUnavailableError
from unit.support.jumping import JumpingLoop, jumping
from unit.support.operations import OPERATIONS, RESULTS, WORKS, WRITES
from unit.support.wire import KEY, failed, found, item, wire, written

DROPPED = {
    "refused": httpx.ConnectError("refused"),
    "no connection in time": httpx.ConnectTimeout("connect"),
    "no free connection": httpx.PoolTimeout("pool"),
    "reset while sending": httpx.WriteError("reset"),
    "not sent in time": httpx.WriteTimeout("write"),
    "reset while receiving": httpx.ReadError("reset"),
    "no answer in time": httpx.ReadTimeout("read"),
    "closed without an answer": httpx.RemoteProtocolError("disconnected"),
    "proxy": httpx.ProxyError("proxy"),
    "the transport was closed": RuntimeError("closed"),
}
each_drop = pytest.mark.parametrize("dropped", DROPPED.values(), ids=list(DROPPED))
each_operation = pytest.mark.parametrize("name", OPERATIONS)


@each_drop
@each_operation
@jumping
async def test_a_connection_that_fails_once(name: str, dropped: Exception) -> None:
    """Demand 21: sent once more, by us and by nobody else; the meter knows that the first outcome is unknown."""
    async with wire() as on:
        on.answers = [dropped, WORKS[name]()]
        meter = Meter()
        assert await OPERATIONS[name](on.gateway, meter) == RESULTS[name]
        assert (len(on.sent), meter.requests, meter.unknown_outcomes) == (2, 1, 1)


@each_drop
@each_operation
@jumping
async def test_a_connection_that_keeps_failing(name: str, dropped: Exception) -> None:
    """Demand 21: six tries, then an error that says that nobody knows, with its cause."""
    async with wire() as on:
        on.answers = [dropped] * 20
        meter = Meter()
        with pytest.raises(ServiceUnavailableError) as caught:
            await OPERATIONS[name](on.gateway, meter)
        assert caught.value.outcome_unknown
        assert caught.value.retryable
        assert caught.value.status_code is None
        # Kept where it is an error of the connection, which quotes nothing that was answered.
        assert (caught.value.__cause__ is None) is isinstance(dropped, RuntimeError)
        assert (len(on.sent), meter.requests, meter.unknown_outcomes) == (6, 0, 6)


@each_operation
@jumping
async def test_a_connection_that_fails_as_the_deadline_passes(name: str) -> None:
    """No wait and no try beyond it."""
    async with wire() as on:
        on.answers = [httpx.ReadTimeout("read")] * 6
        with pytest.raises(ServiceUnavailableError):
            await OPERATIONS[name](on.gateway, Meter(deadline=0.0))
        assert len(on.sent) == 1
        assert asyncio.get_running_loop().time() == 0.0


@jumping
async def test_no_message_tells_what_was_sent() -> None:
    """What the client's own errors say may quote requests; ours names the kind and the setting to look at."""
    async with wire() as on:
        on.answers = [httpx.ReadError("secret")] * 6
        with pytest.raises(ServiceUnavailableError) as caught:
            await on.gateway.read(KEY, "a", Meter())
        assert "secret" not in str(caught.value)
        assert "ServiceResponseError" in str(caught.value)
        assert "COSMOS_WORKFLOW_STATE_ENDPOINT" in str(caught.value)


async def hang(_request: httpx.Request) -> httpx.Response:
    """Never answer."""
    return await asyncio.Future[httpx.Response]()


@each_operation
@jumping
async def test_an_operation_that_is_given_up(name: str) -> None:
    """Cancelled while it waits for the answer: the meter knows that it may have been done, the next one works."""
    async with wire() as on:
        on.answers = [hang, WORKS[name]()]
        meter = Meter()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3):
                await OPERATIONS[name](on.gateway, meter)
        assert (meter.requests, meter.unknown_outcomes) == (0, 1)
        assert await OPERATIONS[name](on.gateway, Meter()) == RESULTS[name]
        assert len(on.sent) == 2


@each_operation
@jumping
async def test_an_operation_that_is_given_up_while_it_waits(name: str) -> None:
    """Cancelled between two tries: nothing is under way, so nothing is unknown."""
    async with wire() as on:
        on.answers = [failed(429, 3200, x_ms_retry_after_ms="50000"), WORKS[name]()]
        meter = Meter()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3):
                await OPERATIONS[name](on.gateway, meter)
        assert (meter.requests, meter.unknown_outcomes, len(on.sent)) == (1, 0, 1)
        assert await OPERATIONS[name](on.gateway, Meter()) == RESULTS[name]


@each_operation
@jumping
async def test_cancelled_at_every_await(name: str) -> None:
    """Wherever a task is cancelled, that is what comes out of it, and the gateway goes on working."""
    async with wire() as on:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, JumpingLoop)
        cancelled = 0
        for turns in range(1, 100):
            on.answers = [failed(429, 3200), failed(503), httpx.ReadError("reset"), WORKS[name]()]
            task = asyncio.ensure_future(OPERATIONS[name](on.gateway, Meter()))
            loop.interrupt(turns, task.cancel)
            try:
                assert await task == RESULTS[name]
                break
            except asyncio.CancelledError:
                cancelled += 1
            on.answers = [WORKS[name]()]
            assert await OPERATIONS[name](on.gateway, Meter()) == RESULTS[name]
        assert 4 < cancelled < 99


@jumping
async def test_many_at_once() -> None:
    """Operations side by side do not take each other's answers for theirs, whatever fails in between."""
    async with wire() as on:

        async def answer(request: httpx.Request) -> httpx.Response:
            await asyncio.sleep(0.01 * (int(request.url.path.strip("/").rpartition("/")[2]) % 7))
            return failed(429, 3200) if len(on.sent) % 3 == 0 else found(item(request.url.path.split("/")[-2]))

        on.answers = [answer] * 400
        found_items = await asyncio.gather(*(on.gateway.read(KEY, str(number), Meter()) for number in range(60)))
        assert found_items == [item(str(number)) for number in range(60)]


@jumping
async def test_a_write_that_is_given_up_and_repeated() -> None:
    """A plain repeat after a cancelled write meets its own work as "there already"."""
    async with wire() as on:
        on.answers = [hang, failed(409)]
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await on.gateway.create(item("a"), Meter())
        assert await on.gateway.create(item("a"), Meter()) is False


@pytest.mark.parametrize("name", WRITES)
@jumping
async def test_no_write_is_repeated_by_the_client(name: str) -> None:
    """The client's own repeating of dropped writes is off: every request after the first is a try of ours, in time."""
    async with wire() as on:
        on.answers = [httpx.ReadError("reset"), httpx.ConnectError("refused"), WORKS[name]()]
        meter = Meter()
        await OPERATIONS[name](on.gateway, meter)
        assert (len(on.sent), meter.unknown_outcomes) == (3, 2)
        assert on.waits[0] <= 0.1
        assert on.waits[1] <= 0.2


@jumping
async def test_the_account_that_refuses_the_key() -> None:
    """401 is said at once, and the next operation asks again."""
    async with wire() as on:
        on.answers = [failed(401), written()]
        with pytest.raises(AccessDeniedError):
            await on.gateway.create(item("a"), Meter())
        assert await on.gateway.create(item("a"), Meter())


class LapsingCredential:
    """Gives short-lived tokens until it is told to give none.

    Attributes:
        lapsed: Whether it gives none.
    """

    lapsed = False

    async def get_token(self, *_scopes: str, **_options: object) -> AccessToken:
        """Give a token that is to be renewed at once."""
        if self.lapsed:
            raise ClientAuthenticationError("the secret has expired")
        return AccessToken("t0ken", int(time.time()) + 1)

    async def close(self) -> None:
        """Do nothing."""

    async def __aexit__(self, *_: object) -> None:
        """Do nothing."""


@jumping
async def test_a_credential_that_gives_no_token_any_more() -> None:
    """Nothing is sent, nothing is tried again, and no word of the credential's gets into the message."""
    credential = LapsingCredential()
    async with wire(credential) as on:
        on.answers = [written(), written()]
        assert await on.gateway.create(item("a"), Meter())
        credential.lapsed = True
        with pytest.raises(AccessDeniedError) as caught:
            await on.gateway.create(item("a"), Meter())
        assert "secret" not in str(caught.value)
        assert not caught.value.outcome_unknown
        assert len(on.sent) == 1
