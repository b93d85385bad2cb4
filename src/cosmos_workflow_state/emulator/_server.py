"""The server: HTTP requests to the emulator's and back.

Owns sockets, TLS and the limits of a request. Must not know what requests mean.
"""

from __future__ import annotations

import json
import ssl
from typing import Final

from aiohttp import web

from cosmos_workflow_state.emulator._gateway._call import MAX_BODY
from cosmos_workflow_state.emulator._gateway._faults import ConnectionDroppedError, Handler
from cosmos_workflow_state.emulator._hosts import HostRule
from cosmos_workflow_state.emulator._values import Request, Response

__all__ = ["Server"]

_END_WITHIN: Final = 5.0
"""Seconds that requests under way have to end."""


class Server:
    """Listens, and has a handler answer."""

    def __init__(self, handler: Handler, hosts: HostRule) -> None:
        """Set who answers and which Host headers are acceptable."""
        self._handler = handler
        self._hosts = hosts
        self._runner: web.ServerRunner | None = None

    async def start(self, host: str, port: int, context: ssl.SSLContext | None) -> int:
        """Listen.

        Args:
            host: Name or address to listen on.
            port: Port, 0 for any free one.
            context: For TLS; None for plain HTTP.

        Returns:
            The port.

        Raises:
            OSError: The address is not there or the port is taken.
        """
        # Access logs would be written for every request, and nobody asked for them.
        runner = web.ServerRunner(web.Server(self._respond, access_log=None), shutdown_timeout=_END_WITHIN)
        await runner.setup()
        self._runner = runner
        await web.TCPSite(runner, host, port, ssl_context=context).start()
        listening: int = runner.addresses[0][1]
        return listening

    async def stop(self) -> None:
        """Let requests under way end, and stop listening; a second call does nothing."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    async def _respond(self, received: web.BaseRequest) -> web.StreamResponse:
        if not self._hosts.accepts(received.headers.get("host", "")):
            return _sent(_refused("The Host header names another machine than this emulator."))
        if received.headers.get("expect", "").lower() == "100-continue":
            await received.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        try:
            body = await _body(received)
        except Exception:  # noqa: BLE001 - each decompressor has errors of its own for a body that is not what it says
            return _sent(_refused("The body is not what its headers say."))
        request = Request(
            received.method,
            _path(received.raw_path),
            {name.lower(): value for name, value in received.headers.items()},
            body,
        )
        try:
            return _sent(await self._handler(request))
        except ConnectionDroppedError:
            received.protocol.force_close()
            # Nobody gets it: there is no connection any more.
            return web.Response()


def _path(target: str) -> str:
    """Give the path of a request's target, which may be a whole URL."""
    path = target.split("?", 1)[0].split("#", 1)[0]
    if path.startswith("/"):
        return path
    _, _, rest = path.partition("://")
    _, _, path = rest.partition("/")
    return f"/{path}"


async def _body(received: web.BaseRequest) -> bytes:
    """Read the body, or just enough of it to see that it is too large."""
    chunks: list[bytes] = []
    size = 0
    while size <= MAX_BODY:
        chunk = await received.content.readany()
        if not chunk:
            break
        chunks.append(chunk)
        size += len(chunk)
    return b"".join(chunks)


def _refused(message: str) -> Response:
    body = json.dumps({"code": "BadRequest", "message": message}).encode()
    return Response(400, {"content-type": "application/json"}, body)


def _sent(response: Response) -> web.Response:
    return web.Response(status=response.status, headers=response.headers, body=response.body)
