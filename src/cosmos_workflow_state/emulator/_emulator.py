"""The emulator: an engine behind a server, as a context manager.

Owns what belongs together: engine, checks, faults, server. Must not know what requests mean.
"""

from __future__ import annotations

import asyncio
import base64
import secrets
from collections.abc import Iterable
from contextlib import AsyncExitStack
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import cosmos_workflow_state
from cosmos_workflow_state.emulator._admin import Admin
from cosmos_workflow_state.emulator._background import BackgroundLoop
from cosmos_workflow_state.emulator._certificates import Identity, make_identity
from cosmos_workflow_state.emulator._clock import MovableClock
from cosmos_workflow_state.emulator._engine._engine import Engine
from cosmos_workflow_state.emulator._gateway._auth import Authenticator
from cosmos_workflow_state.emulator._gateway._faults import FaultInjector, Faults, Handler
from cosmos_workflow_state.emulator._gateway._gateway import Gateway
from cosmos_workflow_state.emulator._hosts import HostRule, url_host
from cosmos_workflow_state.emulator._identity_endpoint import IdentityEndpoint
from cosmos_workflow_state.emulator._server import Server
from cosmos_workflow_state.emulator._service import Service
from cosmos_workflow_state.emulator._tokens import LIFETIME, Role, issue_token

__all__ = ["CosmosEmulator"]

_KEY_BYTES: Final = 64
_HOSTS: Final = 16


class CosmosEmulator:
    """A local Cosmos DB for NoSQL that listens while the context is open.

    In a coroutine it runs on the running event loop, elsewhere on a thread of its own::

        async with CosmosEmulator() as emulator: ...
        with CosmosEmulator() as emulator: ...

    Attributes:
        key: The account key, base64.
        faults: Faults to let happen; none by themselves.
        clock: The time by which items and tokens expire.
    """

    def __init__(  # noqa: PLR0913 - each is a choice of its own, all by name
        self,
        *,
        data: Path | str | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        tls: bool = False,
        key: str | None = None,
        partitions: int | None = None,
        allow_remote: bool = False,
        admin: bool = False,
    ) -> None:
        """Set up; nothing is opened yet.

        Keyword Args:
            data: A state file, created if there is none; None keeps everything in memory.
            host: Name or address to listen on.
            port: Port to listen on; 0 picks a free one.
            tls: Whether to speak TLS, with a certificate of its own making. Needs the extra ``emulator``.
            key: The account key, base64; None makes one.
            partitions: Physical partitions of each container; None derives them from its throughput.
            allow_remote: Whether other machines may reach it.
            admin: Whether faults and the clock may be set over HTTP, too, by who knows the key.

        Raises:
            RemoteAccessError: Other machines would reach it and may not.
            ValueError: The key is not base64, or partitions is below 1.
        """
        if partitions is not None and partitions < 1:
            raise ValueError("partitions has to be 1 or more.")
        self.key: Final = key or base64.b64encode(secrets.token_bytes(_KEY_BYTES)).decode()
        self.faults: Final = Faults()
        self.clock: Final = MovableClock()
        self._data = None if data is None else Path(data)
        self._host, self._port = host, port
        self._tls = tls
        self._partitions = partitions
        self._hosts = HostRule(host, allow_remote=allow_remote)
        self._authenticator = Authenticator(self.key, token_clock=self.clock)
        self._admin = Admin(self.key, self.faults, self.clock) if admin else None
        self._open: AsyncExitStack | None = None
        self._identity: Identity | None = None
        self._thread: BackgroundLoop | None = None

    @property
    def endpoint(self) -> str:
        """The URL clients use.

        Raises:
            RuntimeError: The emulator is not open and its port not known.
        """
        if self._open is None:
            raise RuntimeError("The emulator is not open.")
        return f"{self._scheme}://{url_host(self._host)}:{self._port}/"

    @property
    def certificate(self) -> bytes | None:
        """PEM of the certificate a client may trust, None without TLS."""
        return None if self._identity is None else self._identity.authority

    def settings(self, **arguments: Any) -> cosmos_workflow_state.CosmosStateSettings:
        """Make settings for `cosmos_workflow_state.CosmosStateFactory`.

        Args:
            arguments: Further settings by name; they win.

        Returns:
            Settings that reach this emulator with its key and create what is missing.
        """
        defaults: dict[str, Any] = {
            "endpoint": self.endpoint,
            "auth": {"mode": "key", "key": self.key},
            "provisioning": "create",
        }
        return cosmos_workflow_state.CosmosStateSettings(_env_file=None, **{**defaults, **arguments})

    def token(
        self,
        role: Role | None = "contributor",
        *,
        audience: str = "",
        lifetime: float = LIFETIME,
        actions: Iterable[str] = (),
    ) -> str:
        """Make a token, as Entra ID would.

        Args:
            role: ``reader`` or ``contributor``; None for a principal that no role was assigned to.

        Keyword Args:
            audience: For whom it is made.
            lifetime: In seconds.
            actions: Data actions that it gives besides, as a role of one's own does.

        Returns:
            A JWT; clients send tokens over TLS only.
        """
        return issue_token(self.key, role, self.clock(), audience=audience, lifetime=lifetime, actions=actions)

    def identity_endpoint(
        self, role: Role | None = "contributor", *, actions: Iterable[str] = (), lifetime: float = LIFETIME
    ) -> IdentityEndpoint:
        """Make a stand-in for the endpoints that identities get their tokens from; an async context manager.

        Args:
            role: What the identity may do here; None for a principal that no role was assigned to.

        Keyword Args:
            actions: Data actions that it may do besides, as a role of one's own gives them.
            lifetime: Of the tokens, in seconds.
        """
        given = tuple(actions)
        context = None if self._identity is None else self._identity.context
        return IdentityEndpoint(
            lambda audience: self.token(role, audience=audience, actions=given, lifetime=lifetime), context
        )

    async def __aenter__(self) -> Self:
        """Open the engine and listen.

        Raises:
            EngineError: The file cannot be used; the kind says why.
            ModuleNotFoundError: An extra is missing.
            OSError: The address is not there, the port is taken or the file cannot be created.
            RuntimeError: It is open already.
        """
        if self._open is not None:
            raise RuntimeError("The emulator is open already.")
        async with AsyncExitStack() as stack:
            self._identity = await asyncio.to_thread(make_identity, self._host) if self._tls else None
            engine = await asyncio.to_thread(Engine.open, self._data, clock=self.clock)
            stack.push_async_callback(asyncio.to_thread, engine.close)
            server = Server(self._handler(engine), self._hosts)
            stack.push_async_callback(server.stop)
            context = None if self._identity is None else self._identity.context
            self._port = await server.start(self._host, self._port, context)
            self._open = stack.pop_all()
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        """Finish what is under way, stop listening and close the engine."""
        if self._open is not None:
            opened, self._open = self._open, None
            await opened.aclose()

    def __enter__(self) -> Self:
        """Do as in a coroutine, on a thread of its own."""
        thread = BackgroundLoop("cosmos-emulator")
        try:
            thread.run(self.__aenter__())
        except BaseException:
            thread.close()
            raise
        self._thread = thread
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Do as in a coroutine, and end the thread."""
        thread, self._thread = self._thread, None
        if thread is not None:
            try:
                thread.run(self.__aexit__(kind, error, traceback))
            finally:
                thread.close()

    @property
    def _scheme(self) -> str:
        return "https" if self._tls else "http"

    def _handler(self, engine: Engine) -> Handler:
        @lru_cache(maxsize=_HOSTS)
        def gateway_at(host: str) -> Gateway:
            return Gateway(engine, partitions=self._partitions, endpoint=f"{self._scheme}://{host}/")

        handler = FaultInjector(self.faults, Service(self._authenticator, gateway_at).handle).handle
        return handler if self._admin is None else self._admin.before(handler)
