"""A gateway over an engine in memory with a database and a container in it, and how tests talk to it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from cosmos_workflow_state.emulator._engine._engine import Engine
from cosmos_workflow_state.emulator._gateway._gateway import Gateway
from cosmos_workflow_state.emulator._values import Request, Response

COLLECTION: Final = "/dbs/db/colls/c/"
DOCS: Final = "/dbs/db/colls/c/docs/"
KEY: Final = {"x-ms-documentdb-partitionkey": '["t1","w1"]'}
UPSERT: Final = KEY | {"x-ms-documentdb-is-upsert": "True"}
QUERY: Final = {"x-ms-documentdb-isquery": "true"}
CROSSING: Final = QUERY | {"x-ms-documentdb-query-enablecrosspartition": "True"}
BATCH: Final = KEY | {"x-ms-cosmos-is-batch-request": "True"}


class Clock:
    """A time that stands still until a test moves it."""

    def __init__(self) -> None:
        """Start somewhere."""
        self.now = 1_800_000_000.75

    def __call__(self) -> float:
        """Give the time."""
        return self.now


@dataclass(frozen=True)
class Service:
    """A gateway with a database and a container in it."""

    engine: Engine
    gateway: Gateway
    clock: Clock

    async def send(self, method: str, path: str, body: object = b"", headers: Mapping[str, str] = KEY) -> Response:
        """Send a request; a body that is no bytes is sent as JSON."""
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        return await self.gateway.handle(Request(method, path, headers, sent))

    async def create(self, item: Mapping[str, Any], headers: Mapping[str, str] = KEY) -> Response:
        """Create an item under the usual key."""
        return await self.send("POST", DOCS, {"t": "t1", "w": "w1"} | dict(item), headers)

    async def query(self, text: str, headers: Mapping[str, str] = CROSSING, **parameters: object) -> Response:
        """Send a query."""
        given = [{"name": f"@{name}", "value": value} for name, value in parameters.items()]
        return await self.send("POST", DOCS, {"query": text, "parameters": given}, headers)


def content(response: Response) -> Any:
    """Read a body."""
    return json.loads(response.body)


def outcome(response: Response) -> tuple[int, str | None]:
    """Give status and sub-status."""
    return response.status, response.headers.get("x-ms-substatus")


def definition(**changes: object) -> dict[str, object]:
    """Give the usual container's definition, changed."""
    key = {"paths": ["/t", "/w"], "kind": "MultiHash", "version": 2}
    return {"id": "c", "partitionKey": key, "defaultTtl": -1} | changes


@asynccontextmanager
async def running(partitions: int | None = None) -> AsyncIterator[Service]:
    """Run a gateway over memory with the usual database and container."""
    clock = Clock()
    engine = Engine.open(None, clock=clock)
    service = Service(engine, Gateway(engine, partitions=partitions), clock)
    assert (await service.send("POST", "/dbs", {"id": "db"})).status == 201
    assert (await service.send("POST", "/dbs/db/colls/", definition())).status == 201
    yield service
    engine.close()


async def fill(service: Service) -> None:
    """Store three items each under three keys."""
    for tenant, workflow in (("t1", "w1"), ("t1", "w2"), ("t10", "w1")):
        headers = {"x-ms-documentdb-partitionkey": json.dumps([tenant, workflow])}
        for number in range(3):
            await service.create({"id": str(number), "t": tenant, "w": workflow, "n": number}, headers)


async def pages(service: Service, text: str, size: int) -> list[list[object]]:
    """Read all pages of a query."""
    found: list[list[object]] = []
    headers = CROSSING | {"x-ms-max-item-count": str(size)}
    token: str | None = ""
    while token is not None:
        response = await service.query(text, headers | {"x-ms-continuation": token})
        assert response.status == 200
        found.append(content(response)["Documents"])
        token = response.headers.get("x-ms-continuation")
    return found
