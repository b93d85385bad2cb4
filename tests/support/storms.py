"""A storm: whatever can happen to requests happens to some, at random and the same way each time for the same seed."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import ContextVar
from typing import Any, Final

from azure.core.exceptions import ServiceResponseError
from azure.core.pipeline.transport import HttpRequest

from cosmos_workflow_state._embedded import EmbeddedResponse
from support.faults import Fault, Send, drop_after, drop_before, let_pass, status
from support.troubles import Outcome, Scene, after, malformed, malformed_after, outcome_of, stall_after, stall_before

LONGEST: Final = 60.0
"""Seconds after which the last request that was lost has arrived."""

_MEDDLING: Final = 0.04
"""Of all requests, the part just before which somebody else does something."""

_scene: Final[ContextVar[Scene]] = ContextVar("scene")


class Storm:
    """Gives each request its fault, most of them none.

    Attributes:
        between: What somebody else does just before some of the requests, all at once.
    """

    def __init__(self, dice: random.Random, share: float) -> None:
        """Begin.

        Args:
            dice: What decides.
            share: Of all requests, the part that something happens to.
        """
        self._dice, self._share = dice, share
        self.between: Callable[[], Coroutine[Any, Any, None]] | None = None
        self._faults: list[Fault] = [
            drop_before,
            drop_after,
            status(429, 3200, x_ms_retry_after_ms="300"),
            status(449),
            status(410, 1000),
            status(404, 1002),
            status(503),
            after(status(503)),
            after(status(408)),
            malformed,
            malformed_after,
            status(401),
            stall_before,
            stall_after,
            self._lost_and_applied_later,
            self._stalled_and_applied_later,
            self._cancelled,
        ]

    def weather(self) -> Fault:
        """Return what happens to the next request; it takes its time, too."""
        fault = self._dice.choice(self._faults) if self._dice.random() < self._share else let_pass
        before, behind = self._dice.random(), self._dice.random()
        between = self.between if self._dice.random() < _MEDDLING else None

        async def slow(request: HttpRequest, send: Send) -> EmbeddedResponse:
            await asyncio.sleep(before)
            if between is not None:
                await asyncio.shield(asyncio.create_task(between()))
            answer = await fault(request, send)
            await asyncio.sleep(behind)
            return answer

        return slow

    async def endure(self, call: Callable[[], Awaitable[object]], landed: Callable[[], object]) -> Outcome:
        """Run an operation to its end.

        Args:
            call: The operation.
            landed: Called when nothing of it is under way any more; afterwards no request of it is applied.
        """
        scene = Scene()
        _scene.set(scene)
        outcome = await outcome_of(scene, call)
        if scene.late:
            asyncio.gather(*scene.late).add_done_callback(lambda _: landed())
        else:
            landed()
        return outcome

    def _late(self, send: Send) -> asyncio.Task[EmbeddedResponse]:
        delay = self._dice.uniform(0, LONGEST)

        async def apply() -> EmbeddedResponse:
            await asyncio.sleep(delay)
            return await send()

        _scene.get().late.append(asyncio.create_task(apply()))
        return _scene.get().late[-1]

    async def _lost_and_applied_later(self, _request: HttpRequest, send: Send) -> EmbeddedResponse:
        self._late(send)
        raise ServiceResponseError("dropped")

    async def _stalled_and_applied_later(self, _request: HttpRequest, send: Send) -> EmbeddedResponse:
        return await asyncio.shield(self._late(send))

    async def _cancelled(self, request: HttpRequest, send: Send) -> EmbeddedResponse:
        asyncio.get_running_loop().call_soon(_scene.get().cancel)
        return await self._dice.choice([stall_before, stall_after, self._stalled_and_applied_later])(request, send)
