"""The azure-core transport over httpx, so that the real client can be answered by respx routes."""

from __future__ import annotations

from types import TracebackType
from typing import Any

import httpx
from azure.core.exceptions import ServiceRequestError, ServiceResponseError, ServiceResponseTimeoutError
from azure.core.pipeline.transport import AsyncHttpTransport, HttpRequest
from azure.core.utils import CaseInsensitiveDict


class HttpxResponse:
    """What azure-core's policies and the client read of a response."""

    def __init__(self, request: HttpRequest, response: httpx.Response) -> None:
        """Wrap a response whose body was read."""
        self.request = request
        self.status_code = response.status_code
        self.headers = CaseInsensitiveDict(response.headers)
        self.reason = response.reason_phrase
        self.content_type = response.headers.get("content-type")
        self._body = response.content

    def body(self) -> bytes:
        """Give the body's bytes."""
        return self._body

    def text(self, encoding: str | None = None) -> str:
        """Give the body as text."""
        return self._body.decode(encoding or "utf-8")

    async def read(self) -> bytes:
        """Give the body's bytes, as responses of other transports do once they have received them."""
        return self._body


class HttpxTransport(AsyncHttpTransport[HttpRequest, HttpxResponse]):
    """Sends the client's requests with httpx, and fails as azure-core's own transports do."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        """Take over an httpx client."""
        self._client = client

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        """Close the httpx client."""
        await self.close()

    async def open(self) -> None:
        """Do nothing; httpx connects when it sends."""

    async def close(self) -> None:
        """Close the httpx client."""
        await self._client.aclose()

    async def send(self, request: HttpRequest, **options: Any) -> HttpxResponse:
        """Send a request and receive its answer whole.

        Raises:
            ServiceRequestError: It could not be sent.
            ServiceResponseError: It was sent, and its answer was not received.
        """
        timeout = httpx.Timeout(options.get("read_timeout"), connect=options.get("connection_timeout"))
        sent = self._client.build_request(
            request.method, request.url, headers=dict(request.headers), content=request.data, timeout=timeout
        )
        try:
            return HttpxResponse(request, await self._client.send(sent))
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
            raise ServiceRequestError(str(error), error=error) from error
        except httpx.TimeoutException as error:
            raise ServiceResponseTimeoutError(str(error), error=error) from error
        except httpx.TransportError as error:
            raise ServiceResponseError(str(error), error=error) from error
