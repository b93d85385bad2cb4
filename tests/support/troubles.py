"""What may happen to the requests of an operation, and how it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from azure.core.pipeline.transport import HttpRequest

from cosmos_workflow_state import errors
from cosmos_workflow_state._embedded import EmbeddedResponse
from cosmos_workflow_state.emulator._values import Response
from support.faults import Fault, Send, drop_after, drop_before, let_pass, status
from support.worlds import TIMEOUT

EVER: Final = 400
"""More requests than any operation sends."""

_LATE: Final = TIMEOUT + 5.0


class Scene:
    """One operation under way, that faults can reach.

    Attributes:
        victim: The task of the operation, while it runs.
        late: Requests that are still on their way although nobody waits for them.
    """

    def __init__(self) -> None:
        """Begin before the operation."""
        self.victim: asyncio.Task[Any] | None = None
        self.late: list[asyncio.Task[Any]] = []

    def cancel(self) -> bool:
        """Cancel the operation; return whether it was still running."""
        return self.victim is not None and self.victim.cancel()

    async def land(self) -> None:
        """Wait for the requests that are on their way."""
        late, self.late = self.late, []
        await asyncio.gather(*late)


@dataclass(frozen=True, slots=True)
class Trouble:
    """What happens to a request, and to those after it.

    Attributes:
        name: What it is called.
        faults: What happens to the request and those that follow.
        absorbed: Whether the operation succeeds nevertheless.
        raises: What it may raise when it does not, nothing for that it was cancelled.
        known: Whether an error that is raised has to say that nothing was done.
        cuts: Whether it only comes to an end for operations that have a time limit.
        lands_last: Whether a request that nobody waits for any more is applied after the operation was repeated.
    """

    name: str
    faults: Callable[[Scene], list[Fault]]
    absorbed: bool = False
    raises: tuple[type[errors.CosmosStateError], ...] = (errors.ServiceUnavailableError,)
    known: bool = False
    cuts: bool = False
    lands_last: bool = False


async def malformed(request: HttpRequest, _send: Send) -> EmbeddedResponse:
    """Answer in place of the service, with what is no answer of it."""
    return EmbeddedResponse(request, Response(200, {"content-type": "text/html"}, b"<html>"))


async def malformed_after(request: HttpRequest, send: Send) -> EmbeddedResponse:
    """Garble the answer of the service."""
    await send()
    return await malformed(request, send)


def after(fault: Fault) -> Fault:
    """Let a request be applied before a fault happens to its answer."""

    async def applied(request: HttpRequest, send: Send) -> EmbeddedResponse:
        await send()
        return await fault(request, send)

    return applied


async def stall_before(_request: HttpRequest, send: Send) -> EmbeddedResponse:
    """Keep a request for too long, then let it through if it is still there."""
    await asyncio.sleep(_LATE)
    return await send()


async def stall_after(_request: HttpRequest, send: Send) -> EmbeddedResponse:
    """Keep an answer for too long."""
    answer = await send()
    await asyncio.sleep(_LATE)
    return answer


def _lands_later(scene: Scene) -> Fault:
    """Keep a request for too long and then apply it, whether or not somebody waits for the answer."""

    async def fault(_request: HttpRequest, send: Send) -> EmbeddedResponse:
        async def apply() -> EmbeddedResponse:
            await asyncio.sleep(_LATE)
            return await send()

        scene.late.append(asyncio.create_task(apply()))
        return await asyncio.shield(scene.late[-1])

    return fault


def _cancels(scene: Scene, then: Fault) -> Fault:
    """Cancel the operation while its request is in the hands of another fault."""

    async def fault(request: HttpRequest, send: Send) -> EmbeddedResponse:
        asyncio.get_running_loop().call_soon(scene.cancel)
        return await then(request, send)

    return fault


def _always(name: str, *faults: Fault, **how: Any) -> Trouble:
    return Trouble(name, lambda _: list(faults), **how)


def _transient() -> list[Trouble]:
    """Return what passes: once it is absorbed; for ever it is an error."""
    throttled = {"raises": (errors.ThrottledError,), "known": True}
    passing: list[tuple[str, Fault, dict[str, Any]]] = [
        ("dropped-before", drop_before, {}),
        ("dropped-after", drop_after, {}),
        # The client repeats this one for two minutes.
        ("403-3", status(403, 3), {"raises": (errors.ServiceUnavailableError, errors.OperationTimeoutError)}),
        # At the second one the client forgets its session twice, and fails in a way that says nothing.
        ("404-1002", status(404, 1002), {}),
        ("408", status(408), {}),
        ("408-after", after(status(408)), {}),
        ("410", status(410, 1000), {"known": True}),
        ("429", status(429, 3200, x_ms_retry_after_ms="50"), throttled),
        ("449", status(449), {"known": True}),
        ("500", status(500), {}),
        ("500-after", after(status(500)), {}),
        ("503", status(503), {}),
        ("503-after", after(status(503)), {}),
        ("malformed", malformed, {}),
        ("malformed-after", malformed_after, {}),
    ]
    once = [_always(name, fault, absorbed=True) for name, fault, _ in passing]
    return once + [_always(f"{name}-for-ever", *[fault] * EVER, **how) for name, fault, how in passing]


def _refused() -> list[Trouble]:
    """Return what is an error at once."""
    refused = [(str(code), status(code), errors.ServiceError) for code in (400, 412, 413)]
    denied = [(str(code), status(code), errors.AccessDeniedError) for code in (401, 403)]
    gone = [("404-1003", status(404, 1003), errors.ProvisioningError)]
    return [_always(name, fault, raises=(kind,), known=True) for name, fault, kind in [*refused, *denied, *gone]]


def _slow() -> list[Trouble]:
    """Return what takes longer than an operation may, and what cancels it."""
    timeout: dict[str, Any] = {"raises": (errors.OperationTimeoutError,), "cuts": True}
    return [
        _always("stalled-before", stall_before, **timeout),
        _always("stalled-after", stall_after, **timeout),
        Trouble("stalled-and-applied-later", lambda scene: [_lands_later(scene)], **timeout),
        Trouble("stalled-and-applied-last", lambda scene: [_lands_later(scene)], lands_last=True, **timeout),
        Trouble("cancelled-before", lambda scene: [_cancels(scene, stall_before)], raises=()),
        Trouble("cancelled-after", lambda scene: [_cancels(scene, stall_after)], raises=()),
        Trouble("cancelled-and-applied-later", lambda scene: [_cancels(scene, _lands_later(scene))], raises=()),
        Trouble(
            "cancelled-and-applied-last",
            lambda scene: [_cancels(scene, _lands_later(scene))],
            raises=(),
            lands_last=True,
        ),
    ]


def _compound() -> list[Trouble]:
    """Return an answer that is lost, and then one that says something of the repeated request, or of the read after."""
    throttled = [status(429, 3200)] * EVER
    return [
        _always("lost-then-denied", drop_after, status(401), raises=(errors.AccessDeniedError,)),
        _always("lost-then-throttled", drop_after, *throttled, raises=(errors.ThrottledError,)),
        _always("lost-passed-denied", drop_after, let_pass, status(401), raises=(errors.AccessDeniedError,)),
        _always("lost-passed-throttled", drop_after, let_pass, *throttled, raises=(errors.ThrottledError,)),
        _always("lost-passed-stalled", drop_after, let_pass, stall_before, raises=(errors.OperationTimeoutError,)),
    ]


TROUBLES: Final = (*_transient(), *_refused(), *_slow(), *_compound())


@dataclass(slots=True)
class Outcome:
    """How an operation has ended.

    Attributes:
        value: What it returned.
        error: What it raised.
        was_cancelled: Whether it was cancelled.
    """

    value: object = None
    error: Exception | None = None
    was_cancelled: bool = False

    @property
    def is_done(self) -> bool:
        """Whether it says that it was done."""
        return self.error is None and not self.was_cancelled

    @property
    def is_refused(self) -> bool:
        """Whether it says that nothing was done."""
        return not self.is_done and not self.is_unknown

    @property
    def is_unknown(self) -> bool:
        """Whether nobody can say if it was done."""
        return self.was_cancelled or bool(getattr(self.error, "outcome_unknown", False))


async def outcome_of(scene: Scene, call: Callable[[], Awaitable[object]]) -> Outcome:
    """Run an operation as a task of its own, within reach of its faults, to its end."""

    async def run() -> object:
        return await call()

    scene.victim = asyncio.create_task(run())
    await asyncio.wait([scene.victim])
    done, scene.victim = scene.victim, None
    if done.cancelled():
        return Outcome(was_cancelled=True)
    error = done.exception()
    if error is None:
        return Outcome(done.result())
    if not isinstance(error, Exception):
        raise error
    return Outcome(error=error)
