"""Every operation of the gateway once, on the item ``a``, so that a test can be about all of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import httpx

from cosmos_workflow_state._gateway import Create, Gateway, Meter
from unit.support.wire import KEY, deleted, done, found, item, page, written

Operation = Callable[[Gateway, Meter], Awaitable[object]]

TEXT: Final = "SELECT * FROM c"


async def query(gateway: Gateway, meter: Meter, key: list[str] | None = None) -> list[object]:
    """Return all that a query finds."""
    return [one async for one in gateway.query(TEXT, [], KEY if key is None else key, meter)]


OPERATIONS: Final[dict[str, Operation]] = {
    "read": lambda gateway, meter: gateway.read(KEY, "a", meter),
    "create": lambda gateway, meter: gateway.create(item("a"), meter),
    "delete": lambda gateway, meter: gateway.delete(KEY, "a", meter),
    "batch": lambda gateway, meter: gateway.batch(KEY, [Create(item("a"))], meter),
    "query": query,
    "prefix query": lambda gateway, meter: query(gateway, meter, KEY[:1]),
}
WORKS: Final[dict[str, Callable[[], httpx.Response]]] = {
    "read": lambda: found(item("a")),
    "create": written,
    "delete": deleted,
    "batch": lambda: done(201),
    "query": lambda: page(item("a")),
    "prefix query": lambda: page(item("a")),
}
RESULTS: Final[dict[str, object]] = {
    "read": item("a"),
    "create": True,
    "delete": True,
    "batch": None,
    "query": [item("a")],
    "prefix query": [item("a")],
}
WRITES: Final = ("create", "delete", "batch")
