"""Faults on demand, for tests of what an application does about them.

Owns which request gets which fault, and the throttle. Off until somebody adds one. Must not know of sockets: a dropped
connection is an error that the server or the transport turns into one.
"""

from __future__ import annotations

import asyncio
import json
import math
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from http import HTTPStatus
from typing import Final, Literal
from urllib.parse import unquote

from cosmos_workflow_state.emulator._gateway._kinds import OPERATIONS, RESOURCES, kind_of
from cosmos_workflow_state.emulator._values import Request, Response

__all__ = ["ConnectionDroppedError", "Fault", "FaultInjector", "Faults", "Handler"]

Handler = Callable[[Request], Awaitable[Response]]

_ANY: Final = "*"
_RANGE_HEADERS: Final = ("x-ms-start-epk", "x-ms-end-epk")
_ERRORS: Final = range(400, 600)


class ConnectionDroppedError(Exception):
    """The connection is to be dropped without an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What happens to which requests. What is left out does not matter, or does not happen.

    Attributes:
        resource: The kind of resource a request is about: account, dbs, colls, docs, pkranges, offers, or ``*``.
        operation: The operation: read, list, query, plan, create, upsert, replace, patch, delete, batch, or ``*``.
        path: A pattern for the decoded path without slashes around it, for example ``dbs/*/colls/orders/*``.
        nth: The first request it happens to, counted from 1 among those that match.
        times: To how many requests in a row; None for all from then on.
        delay: Seconds to wait first.
        status: HTTP status to answer with, 400 to 599; nothing is applied.
        sub_status: The service's refinement of the status.
        retry_after: Seconds the answer tells the client to wait.
        drop: Drop the connection before or after the operation is applied.
    """

    resource: str = "docs"
    operation: str = _ANY
    path: str = _ANY
    nth: int = 1
    times: int | None = 1
    delay: float = 0.0
    status: int | None = None
    sub_status: int | None = None
    retry_after: float | None = None
    drop: Literal["before", "after"] | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be meant.

        Raises:
            ValueError: It would do nothing, or two things that exclude each other, or match nothing.
        """
        problem = _problem(self)
        if problem:
            raise ValueError(problem)

    def matches(self, request: Request) -> bool:
        """Tell whether it is about a request."""
        kind = kind_of(request)
        return (
            self.resource in (_ANY, kind.resource)
            and self.operation in (_ANY, kind.operation)
            and fnmatchcase(unquote(request.path).strip("/"), self.path)
        )


class Faults:
    """The faults that are still to come. May be changed from any thread, at any time.

    Each request goes to the first fault that has something to do with it at this request; later ones do not count it.

    Attributes:
        ignore_partial_keys: Answer queries by a part of a hierarchical key with the items of all keys, as some builds
            of Microsoft's emulator do.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        """Start without any."""
        self.ignore_partial_keys = False
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._counts: list[tuple[Fault, int]] = []
        self._rate: float | None = None
        self._budget = 0.0
        self._filled_at = 0.0

    @property
    def pending(self) -> tuple[Fault, ...]:
        """The faults that will still happen, in order."""
        with self._lock:
            return tuple(fault for fault, _ in self._counts)

    @property
    def ru_per_second(self) -> float | None:
        """The RU a second that operations on items may use before they are throttled; None for any number."""
        return self._rate

    @ru_per_second.setter
    def ru_per_second(self, rate: float | None) -> None:
        if rate is not None and not 0 < rate < math.inf:
            raise ValueError("ru_per_second has to be a number above 0, or None.")
        with self._lock:
            self._rate = rate
            self._budget = rate or 0.0
            self._filled_at = self._monotonic()

    def add(self, fault: Fault) -> None:
        """Let a fault happen."""
        with self._lock:
            self._counts.append((fault, 0))

    def clear(self) -> None:
        """Go back to how it is without faults."""
        with self._lock:
            self._counts.clear()
        self.ru_per_second = None
        self.ignore_partial_keys = False

    def take(self, request: Request) -> Fault | None:
        """Count a request and give the fault that happens to it, if any."""
        with self._lock:
            for position, (fault, count) in enumerate(self._counts):
                if not fault.matches(request):
                    continue
                self._count(position, fault, count + 1)
                if count + 1 >= fault.nth:
                    return fault
        return None

    def wait(self, request: Request) -> float:
        """Give the seconds a request has to wait for the budget, 0 for none."""
        with self._lock:
            if self._rate is None or kind_of(request).resource != "docs":
                return 0.0
            now = self._monotonic()
            self._budget = min(self._rate, self._budget + (now - self._filled_at) * self._rate)
            self._filled_at = now
            # A millisecond is the smallest wait a client can be told.
            return 0.0 if self._budget > 0 else max(0.001, -self._budget / self._rate)

    def spend(self, charge: float) -> None:
        """Take RU from the budget; it may go below zero, as that of the service."""
        with self._lock:
            self._budget -= charge

    def _count(self, position: int, fault: Fault, count: int) -> None:
        if fault.times is not None and count >= fault.nth + fault.times - 1:
            del self._counts[position]
        else:
            self._counts[position] = (fault, count)


class FaultInjector:
    """Stands in front of whatever answers requests."""

    def __init__(self, faults: Faults, handler: Handler) -> None:
        """Set the faults, and who answers."""
        self._faults = faults
        self._handler = handler

    async def handle(self, request: Request) -> Response:
        """Answer a request, or let a fault happen to it.

        Args:
            request: The request.

        Returns:
            The response.

        Raises:
            ConnectionDroppedError: The connection is to be dropped.
        """
        fault = self._faults.take(request)
        if fault is None:
            return await self._answered(request)
        await asyncio.sleep(fault.delay)
        if fault.drop == "before":
            raise ConnectionDroppedError
        if fault.status is not None:
            return _refusal(fault.status, "Injected fault.", fault.sub_status, fault.retry_after)
        response = await self._answered(request)
        if fault.drop == "after":
            raise ConnectionDroppedError
        return response

    async def _answered(self, request: Request) -> Response:
        wait = self._faults.wait(request)
        if wait:
            text = "Request rate is large. More Request Units may be needed, so no changes were made."
            return _refusal(429, text, 3200, wait)
        if self._faults.ignore_partial_keys:
            request = _without_range(request)
        response = await self._handler(request)
        if self._faults.ru_per_second is not None:
            self._faults.spend(float(response.headers.get("x-ms-request-charge", "0")))
        return response


def _problem(fault: Fault) -> str:
    if fault.resource not in (_ANY, *RESOURCES):
        return f"resource has to be one of {', '.join(RESOURCES)}, or {_ANY}."
    if fault.operation not in (_ANY, *OPERATIONS):
        return f"operation has to be one of {', '.join(OPERATIONS)}, or {_ANY}."
    if fault.nth < 1 or (fault.times is not None and fault.times < 1):
        return "nth and times count from 1."
    return _effect_problem(fault)


def _effect_problem(fault: Fault) -> str:
    if fault.status is not None and fault.status not in _ERRORS:
        return "status has to be from 400 to 599."
    if fault.status is None and (fault.sub_status is not None or fault.retry_after is not None):
        return "sub_status and retry_after belong to a status."
    if fault.drop not in (None, "before", "after"):
        return "drop has to be before or after."
    if not 0 <= fault.delay < math.inf or not 0 <= (fault.retry_after or 0.0) < math.inf:
        return "delay and retry_after are seconds from 0 on."
    if (fault.status is None) + (fault.drop is None) + (not fault.delay) == 3:  # noqa: PLR2004 - all of three
        return "a fault needs a status, a drop or a delay."
    return "" if fault.status is None or fault.drop is None else "status and drop exclude each other."


def _refusal(status: int, message: str, sub_status: int | None, retry_after: float | None) -> Response:
    headers = {"content-type": "application/json", "x-ms-request-charge": "0"}
    if sub_status is not None:
        headers["x-ms-substatus"] = str(sub_status)
    if retry_after is not None:
        headers["x-ms-retry-after-ms"] = str(math.ceil(retry_after * 1000))
    try:
        code = HTTPStatus(status).phrase.replace(" ", "")
    except ValueError:
        code = str(status)
    return Response(status, headers, json.dumps({"code": code, "message": message}).encode())


def _without_range(request: Request) -> Request:
    headers = {name: value for name, value in request.headers.items() if name not in _RANGE_HEADERS}
    if len(headers) == len(request.headers):
        return request
    headers["x-ms-documentdb-query-enablecrosspartition"] = "True"
    return replace(request, headers=headers)
