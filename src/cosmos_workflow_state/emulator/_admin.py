"""Faults and the clock over HTTP, for tests that run in another process than the emulator.

Owns the routes below ``/_emulator`` and their form. Answers only who knows the account key. Must not know of items.
"""

from __future__ import annotations

import dataclasses
import hmac
import json
from collections.abc import Callable, Collection
from types import UnionType
from typing import Any, Final, cast

from cosmos_workflow_state.emulator._clock import MovableClock
from cosmos_workflow_state.emulator._gateway._faults import Fault, Faults, Handler
from cosmos_workflow_state.emulator._values import Request, Response

__all__ = ["ADMIN_PATH", "Admin"]

ADMIN_PATH: Final = "/_emulator"

_FAULTS: Final = f"{ADMIN_PATH}/faults"
_SETTINGS: Final = f"{ADMIN_PATH}/settings"

# What JSON may have for the fields of a fault; the fault itself looks at the values.
_FIELDS: Final[dict[str, type | UnionType]] = {
    "resource": str,
    "operation": str,
    "path": str,
    "nth": int,
    "times": int | None,
    "delay": int | float,
    "status": int | None,
    "sub_status": int | None,
    "retry_after": int | float | None,
    "drop": str | None,
}


_LARGEST: Final = 1e10
"""Seconds, or anything else that a number says: 300 years. Also keeps NaN and infinity out."""


class Admin:
    """Answers the admin's requests and passes all others on."""

    def __init__(self, key: str, faults: Faults, clock: MovableClock) -> None:
        """Set what is administered, and the key that its requests have as bearer token."""
        self._bearer = f"Bearer {key}".encode()
        self._faults = faults
        self._clock = clock
        self._routes: Final[dict[tuple[str, str], Callable[[Any], Response]]] = {
            ("GET", _SETTINGS): self._read,
            ("PATCH", _SETTINGS): self._change,
            ("POST", _FAULTS): self._add,
            ("DELETE", _FAULTS): self._clear,
        }

    def before(self, handler: Handler) -> Handler:
        """Make a handler that answers the admin's requests and passes all others on."""

        async def handle(request: Request) -> Response:
            if request.path.startswith(f"{ADMIN_PATH}/"):
                return self._handle(request)
            return await handler(request)

        return handle

    def _handle(self, request: Request) -> Response:
        given = request.headers.get("authorization", "").encode("utf-8", "surrogateescape")
        if not hmac.compare_digest(given, self._bearer):
            return _error(401, "The header authorization has to be 'Bearer' and the account key.")
        route = self._routes.get((request.method, request.path))
        if route is None:
            return _error(404, f"There are GET and PATCH {_SETTINGS}, POST and DELETE {_FAULTS}.")
        try:
            return route(json.loads(request.body or b"{}"))
        except (TypeError, ValueError, RecursionError) as error:
            return _error(400, str(error))

    def _read(self, _: Any) -> Response:
        return _json(
            200,
            {
                "ru_per_second": self._faults.ru_per_second,
                "ignore_partial_keys": self._faults.ignore_partial_keys,
                "clock_offset": self._clock.offset,
                "faults": [dataclasses.asdict(fault) for fault in self._faults.pending],
            },
        )

    def _change(self, wanted: Any) -> Response:
        changes = _object(wanted, ("ru_per_second", "ignore_partial_keys", "clock_offset"))
        # All are looked at before the first is made.
        rate, offset = changes.get("ru_per_second"), changes.get("clock_offset", self._clock.offset)
        ignore = changes.get("ignore_partial_keys", self._faults.ignore_partial_keys)
        if not isinstance(ignore, bool) or not _is_number(offset) or not (rate is None or _is_number(rate)):
            raise ValueError("ru_per_second and clock_offset are numbers, ignore_partial_keys is true or false.")
        if "ru_per_second" in changes:
            self._faults.ru_per_second = rate
        self._faults.ignore_partial_keys = ignore
        self._clock.offset = offset
        return self._read(None)

    def _add(self, wanted: Any) -> Response:
        fields = _object(wanted, _FIELDS)
        for name, value in fields.items():
            if not isinstance(value, _FIELDS[name]) or (isinstance(value, (int, float)) and not _is_number(value)):
                raise TypeError(f"{name} is of the wrong type.")
        self._faults.add(Fault(**fields))
        return _json(201, {})

    def _clear(self, _: Any) -> Response:
        self._faults.clear()
        self._clock.offset = 0.0
        return Response(204, {}, b"")


def _object(value: Any, names: Collection[str]) -> dict[str, Any]:
    if not isinstance(value, dict) or not value.keys() <= set(names):
        raise ValueError(f"The body has to be a JSON object with some of {', '.join(names)}.")
    return cast("dict[str, Any]", value)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= _LARGEST


def _json(status: int, document: dict[str, Any]) -> Response:
    return Response(status, {"content-type": "application/json"}, json.dumps(document).encode())


def _error(status: int, message: str) -> Response:
    return _json(status, {"message": message})
