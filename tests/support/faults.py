"""A transport that fails on demand, between the real client and the real engine."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from azure.core.exceptions import ServiceRequestError, ServiceResponseError
from azure.core.pipeline.transport import HttpRequest
from azure.cosmos.aio import CosmosClient

from cosmos_workflow_state._clients import CLIENT_OPTIONS
from cosmos_workflow_state._embedded import EmbeddedResponse, EmbeddedTransport, open_embedded
from cosmos_workflow_state.emulator._values import Response

Send = Callable[[], Awaitable[EmbeddedResponse]]
Fault = Callable[[HttpRequest, Send], Awaitable[EmbeddedResponse]]


def status(code: int, sub_status: int = 0, **headers: str) -> Fault:
    """Answer with a status in place of the engine; ``_`` in header names stands for ``-``."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}

    async def fault(request: HttpRequest, _: Send) -> EmbeddedResponse:
        body = b'{"code":"Injected","message":"injected"}'
        return EmbeddedResponse(request, Response(code, {"x-ms-substatus": str(sub_status), **sent}, body))

    return fault


def refused(code: int) -> Fault:
    """Answer a batch as if its last step could not be done."""

    async def fault(request: HttpRequest, _: Send) -> EmbeddedResponse:
        steps: int = len(json.loads(request.data))
        results = [{"statusCode": 424}] * (steps - 1) + [{"statusCode": code}]
        return EmbeddedResponse(request, Response(207, {}, json.dumps(results).encode()))

    return fault


async def drop_before(_request: HttpRequest, _send: Send) -> EmbeddedResponse:
    """Lose the request: nothing is applied."""
    raise ServiceRequestError("dropped")


async def drop_after(_request: HttpRequest, send: Send) -> EmbeddedResponse:
    """Lose the answer: the request is applied."""
    await send()
    raise ServiceResponseError("dropped")


async def let_pass(_request: HttpRequest, send: Send) -> EmbeddedResponse:
    """Let one request through."""
    return await send()


def then(action: Callable[[], Awaitable[None]]) -> Fault:
    """Let a request through after something else has happened in between."""

    async def fault(_: HttpRequest, send: Send) -> EmbeddedResponse:
        await action()
        return await send()

    return fault


each_transient = pytest.mark.parametrize(
    "fault",
    [
        pytest.param(status(429, 3200, x_ms_retry_after_ms="1"), id="429"),
        pytest.param(status(449), id="449"),
        pytest.param(status(408), id="408"),
        pytest.param(status(410, 1000), id="410"),
        pytest.param(status(500), id="500"),
        pytest.param(status(503), id="503"),
        pytest.param(drop_before, id="dropped before"),
        pytest.param(drop_after, id="dropped after"),
    ],
)
"""Runs a test with each fault that a repeat overcomes."""


class Late:
    """A request that is given up, and arrives later all the same."""

    async def __call__(self, _request: HttpRequest, send: Send) -> EmbeddedResponse:
        """Give the request up."""
        self._send = send
        raise ServiceRequestError("no answer")

    async def arrive(self) -> int:
        """Let it arrive at last; return what it was answered."""
        return (await self._send()).status_code


class FaultyTransport(EmbeddedTransport):
    """Gives each fault to one request for items, first come first served.

    Attributes:
        faults: What happens to the next item requests.
        sent: Method of every item request, in order.
    """

    faults: list[Fault]
    sent: list[str]

    async def send(self, request: HttpRequest, **options: Any) -> EmbeddedResponse:
        """Answer a request, or fail it."""

        async def send() -> EmbeddedResponse:
            return await super(FaultyTransport, self).send(request, **options)

        if "/docs/" not in request.url:
            return await send()
        self.sent.append(request.method)
        return await (self.faults.pop(0)(request, send) if self.faults else send())


@asynccontextmanager
async def faulty_client() -> AsyncIterator[tuple[CosmosClient, FaultyTransport]]:
    """Yield a client with our options on an engine in memory, and its transport."""
    account = await open_embedded(None)
    transport = FaultyTransport(account._engine)
    transport.faults, transport.sent = [], []
    try:
        async with CosmosClient(account.endpoint, account.key, transport=transport, **CLIENT_OPTIONS) as client:
            yield client, transport
    finally:
        await account.close()


class OvertakenTransport(EmbeddedTransport):
    """Creates each database and container once before the client does, as another process that was quicker would."""

    async def send(self, request: HttpRequest, **options: Any) -> EmbeddedResponse:
        """Answer a request."""
        if request.method == "POST" and request.url.rstrip("/").endswith(("/dbs", "/colls")):
            await super().send(request, **options)
        return await super().send(request, **options)


class RefusingTransport(EmbeddedTransport):
    """Refuses to create databases, as the service does to whoever comes with a token."""

    async def send(self, request: HttpRequest, **options: Any) -> EmbeddedResponse:
        """Answer a request."""
        if request.method == "POST" and request.url.endswith("/dbs"):
            return await status(403, 5300)(request, lambda: super(RefusingTransport, self).send(request, **options))
        return await super().send(request, **options)
