"""What the benchmarks measure with: a transport that counts, and a stopwatch for the stages of a save.

Must not know what is measured, apart from the names of the stages' functions.
"""

from __future__ import annotations

import inspect
import sys
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from types import ModuleType
from typing import Any, Final, Self

from agent_framework._workflows import _checkpoint_encoding
from azure.core.pipeline.transport import AsyncHttpTransport, HttpRequest
from azure.cosmos.aio import ContainerProxy
from azure.cosmos.exceptions import CosmosHttpResponseError

from cosmos_workflow_state import _codec, _maf
from cosmos_workflow_state._embedded import EmbeddedResponse

ENCODING: Final = "MAF's encoding"
WALK: Final = "walk and JSON"
CHECK: Final = "restorability check"
COMPRESSION: Final = "compression and digest"
REQUEST: Final = "request"
REST: Final = "rest"
STAGES: Final = (ENCODING, WALK, CHECK, COMPRESSION, REQUEST, REST)

_REQUESTS: Final = ("create_item", "upsert_item", "replace_item", "read_item", "execute_item_batch")
_PATCHED: Final = ("cosmos_workflow_state", "agent_framework")
_TOO_LARGE: Final = 413


@dataclass(frozen=True, slots=True)
class Cost:
    """What one operation took.

    Attributes:
        requests: Sent by the client.
        sent: Bytes of their bodies.
        charge: Request units, as the engine estimates them.
        seconds: From the call to its return.
        stages: Seconds by stage; what is in none of them is `REST`.
        refused: Whether the service found it too large.
    """

    requests: int
    sent: int
    charge: float
    seconds: float
    stages: dict[str, float] = field(default_factory=dict[str, float])
    refused: bool = False


class CountingTransport(AsyncHttpTransport[HttpRequest, EmbeddedResponse]):
    """Counts what passes to another transport."""

    def __init__(self, inner: AsyncHttpTransport[HttpRequest, EmbeddedResponse]) -> None:
        """Start at nothing."""
        self._inner = inner
        self.requests = 0
        self.sent = 0
        self.charge = 0.0

    async def send(self, request: HttpRequest, **kwargs: Any) -> EmbeddedResponse:
        """Count a request and its body, and pass it on."""
        body = request.data or b""
        self.requests += 1
        self.sent += len(body.encode() if isinstance(body, str) else body)
        response = await self._inner.send(request, **kwargs)
        self.charge += float(response.headers.get("x-ms-request-charge", 0))
        return response

    async def open(self) -> None:
        """Open the other."""
        await self._inner.open()

    async def close(self) -> None:
        """Close the other."""
        await self._inner.close()

    async def __aenter__(self) -> Self:
        """Open."""
        await self.open()
        return self

    async def __aexit__(self, *_details: object) -> None:
        """Close."""
        await self.close()

    async def measure(self, work: Awaitable[object], watch: Stopwatch | None = None) -> Cost:
        """Return what an operation through this transport costs, also if it is refused as too large."""
        before, refused = (self.requests, self.sent, self.charge), False
        laps = Stopwatch() if watch is None else watch
        with laps.stage(REST):
            try:
                await work
            except CosmosHttpResponseError as error:
                refused = error.status_code == _TOO_LARGE
                if not refused:
                    raise
        stages = laps.take()
        requests, sent, charge = self.requests - before[0], self.sent - before[1], self.charge - before[2]
        return Cost(requests, sent, charge, sum(stages.values()), stages, refused)


class Stopwatch:
    """Seconds by stage, each without those of the stages inside it; for one operation at a time."""

    def __init__(self) -> None:
        """Start at nothing."""
        self._spent: dict[str, float] = {}
        self._inside: list[float] = [0.0]

    def take(self) -> dict[str, float]:
        """Return what was measured and start again."""
        spent, self._spent = self._spent, {}
        return spent

    @contextmanager
    def stage(self, name: str) -> Generator[None]:
        """Measure what is done meanwhile, in whatever thread."""
        self._inside.append(0.0)
        started = time.perf_counter()
        try:
            yield
        finally:
            seconds = time.perf_counter() - started
            self._spent[name] = self._spent.get(name, 0.0) + seconds - self._inside.pop()
            self._inside[-1] += seconds

    @contextmanager
    def attached(self) -> Generator[None]:
        """Measure the stages of every save meanwhile, of this package and of the framework's storage.

        Raises:
            LookupError: A stage's function has gone elsewhere.
        """
        encode = _found(_checkpoint_encoding, "encode_checkpoint_value")
        undo = [
            _replaced_everywhere(encode, self._timed(ENCODING, encode)),
            _replaced_everywhere(*self._pair(_maf, "serialize", WALK)),
            _replaced(_found(_maf, "RestorePolicy"), "check", self._timed(CHECK, _maf.RestorePolicy.check)),
            *(_replaced_everywhere(*self._pair(_codec, name, COMPRESSION)) for name in _encoders()),
            *(
                _replaced(ContainerProxy, name, self._timed(REQUEST, _found(ContainerProxy, name)))
                for name in _REQUESTS
            ),
        ]
        try:
            yield
        finally:
            for one in undo:
                one()

    def _pair(self, module: ModuleType, name: str, stage: str) -> tuple[Any, Any]:
        function = _found(module, name)
        return function, self._timed(stage, function)

    def _timed(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def timed(*arguments: Any, **options: Any) -> Any:
            with self.stage(stage):
                return function(*arguments, **options)

        @wraps(function)
        async def timed_async(*arguments: Any, **options: Any) -> Any:
            with self.stage(stage):
                return await function(*arguments, **options)

        return timed_async if inspect.iscoroutinefunction(function) else timed


def _encoders() -> list[str]:
    """Return the functions by which payloads become smaller: those of the codec that do not undo it."""
    names = [name for name in _codec.__all__ if name.startswith("encode")]
    if not names:
        raise LookupError("_codec has no function whose name starts with encode: what is timed as compression?")
    return names


def _found(owner: Any, name: str) -> Any:
    function = getattr(owner, name, None)
    if function is None:
        raise LookupError(f"{owner.__name__}.{name} has gone: _measuring.py has to say what is timed in its place")
    return function


def _replaced(owner: Any, name: str, replacement: Any) -> Callable[[], None]:
    """Replace an attribute, and return how to undo that."""
    original = getattr(owner, name)
    setattr(owner, name, replacement)
    return lambda: setattr(owner, name, original)


def _replaced_everywhere(original: Any, replacement: Any) -> Callable[[], None]:
    """Replace a function in every module that has imported it by name, and return how to undo that."""
    undo = [
        _replaced(module, name, replacement)
        for module in list(sys.modules.values())
        if module.__name__.startswith(_PATCHED)
        for name, value in list(vars(module).items())
        if value is original
    ]

    def undo_all() -> None:
        for one in undo:
            one()

    return undo_all
