"""The bridge between the azure-cosmos client and the embedded engine.

Owns the transport that answers the client's requests in this process, and the account that a state file or memory is.
The only module that knows both azure-core and the emulator. Must not know of checkpoints, tenants or settings.
"""

from __future__ import annotations

import asyncio
import base64
import secrets
import threading
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import Any, Final
from urllib.parse import urlsplit

from azure.core.pipeline.transport import AsyncHttpTransport, HttpRequest
from azure.core.utils import CaseInsensitiveDict

from cosmos_workflow_state.emulator._engine._engine import Engine
from cosmos_workflow_state.emulator._engine._errors import EngineError
from cosmos_workflow_state.emulator._gateway._gateway import Gateway
from cosmos_workflow_state.emulator._values import Request, Response

__all__ = ["EmbeddedAccount", "EmbeddedResponse", "EmbeddedTransport", "EngineError", "open_embedded"]

_REASONS: Final = {status.value: status.phrase for status in HTTPStatus}


class EmbeddedResponse:
    """What azure-core's policies and the client read of a response; its whole body is there from the start."""

    def __init__(self, request: HttpRequest, response: Response) -> None:
        """Wrap a response of the gateway."""
        self.request = request
        self.status_code = response.status
        self.headers = CaseInsensitiveDict(response.headers)
        self.reason = _REASONS.get(response.status, "")
        self.content_type = response.headers.get("content-type")
        self._body = response.body

    def body(self) -> bytes:
        """Give the body's bytes."""
        return self._body

    def text(self, encoding: str | None = None) -> str:
        """Give the body as text."""
        return self._body.decode(encoding or "utf-8")

    async def read(self) -> bytes:
        """Give the body's bytes, as responses of other transports do once they have received them."""
        return self._body


class EmbeddedTransport(AsyncHttpTransport[HttpRequest, EmbeddedResponse]):
    """Answers the client's requests from an engine in this process.

    Several clients may have a transport each over one engine. The engine is used, not owned: closing a client closes
    its transport and leaves the engine open.
    """

    def __init__(self, engine: Engine) -> None:
        """Set the engine that answers."""
        self._gateway = Gateway(engine)

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        """Do nothing; the engine belongs to somebody else."""

    async def open(self) -> None:
        """Do nothing; there is no connection to open."""

    async def close(self) -> None:
        """Do nothing; the engine belongs to somebody else."""

    async def send(self, request: HttpRequest, **_: Any) -> EmbeddedResponse:
        """Answer a request.

        Args:
            request: The client's request. Timeouts and TLS options have no meaning here and are passed over.

        Returns:
            The response.

        Raises:
            EngineClosedError: The engine is closed.
        """
        headers = {name.lower(): value for name, value in request.headers.items()}
        asked = Request(request.method, urlsplit(request.url).path, headers, _body(request))
        return EmbeddedResponse(request, await self._gateway.handle(asked))


def _body(request: HttpRequest) -> bytes:
    data: object = request.data
    if isinstance(data, str):
        return data.encode()
    return data if isinstance(data, bytes) else b""


class EmbeddedAccount:
    """An engine together with what a client needs to use it; owns the engine."""

    def __init__(self, engine: Engine) -> None:
        """Take over an engine; use `open_embedded`."""
        self._engine = engine
        # The client shares what it knows of containers among all clients of one endpoint in the process, so no two
        # engines may have the same. The name is reserved, nothing ever answers to it.
        self.endpoint: Final = f"https://embedded-{secrets.token_hex(8)}.invalid:443/"
        self.key: Final = base64.b64encode(secrets.token_bytes(64)).decode()

    def transport(self) -> EmbeddedTransport:
        """Make a transport for one more client."""
        return EmbeddedTransport(self._engine)

    async def close(self) -> None:
        """Finish what is under way and close the engine; a second call does nothing."""
        await asyncio.to_thread(self._engine.close)


class _Handover:
    """Opens an engine in a thread for a coroutine that may be cancelled meanwhile: then nobody else would close it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._engine: Engine | None = None
        self._abandoned = False

    def open(self, path: Path | None) -> Engine:
        engine = Engine.open(path)
        with self._lock:
            self._engine = engine
            if self._abandoned:
                engine.close()
        return engine

    def abandon(self) -> None:
        """Close the engine now or, from the thread, once it is open."""
        with self._lock:
            self._abandoned = True
            if self._engine is not None:
                self._engine.close()


async def open_embedded(path: Path | None) -> EmbeddedAccount:
    """Open the embedded engine.

    Args:
        path: The state file, created if there is none; None for memory that lasts until the account is closed.

    Returns:
        The account; close it.

    Raises:
        EngineError: The file cannot be used; the kind says why.
        OSError: The file cannot be created.
    """
    handover = _Handover()
    try:
        return EmbeddedAccount(await asyncio.to_thread(handover.open, path))
    except asyncio.CancelledError:
        handover.abandon()
        raise
