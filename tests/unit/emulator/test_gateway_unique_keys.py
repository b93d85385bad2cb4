"""Unique keys through the gateway."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pytest

from cosmos_workflow_state.emulator._values import Response
from support.service import KEY, Service, content, definition, outcome

DOCS: Final = "/dbs/db/colls/u/docs/"
POLICY: Final = {"uniqueKeys": [{"paths": ["/email"]}, {"paths": ["/a/b", "/c"]}]}
OTHER: Final = {"x-ms-documentdb-partitionkey": '["t1","w2"]'}


@pytest.fixture(autouse=True)
async def container(service: Service) -> None:
    """Create a container with two unique keys."""
    created = await service.send("POST", "/dbs/db/colls/", definition(id="u", uniqueKeyPolicy=POLICY))
    assert content(created)["uniqueKeyPolicy"] == POLICY


async def write(service: Service, item: Mapping[str, Any], *, upsert: bool = False) -> Response:
    """Create or upsert an item of the usual partition key."""
    headers = KEY | ({"x-ms-documentdb-is-upsert": "True"} if upsert else {})
    return await service.send("POST", DOCS, {"t": "t1", "w": "w1"} | dict(item), headers)


async def test_values_are_unique_within_a_partition_key(service: Service) -> None:
    """No two items of one partition key share a unique key; what is not there counts as a value."""
    assert (await write(service, {"id": "1", "email": "x", "a": {"b": 1}, "c": 1})).status == 201
    assert outcome(await write(service, {"id": "2", "email": "x", "c": 2})) == (409, None)
    assert outcome(await write(service, {"id": "2", "email": "y", "a": {"b": 1.0}, "c": 1})) == (409, None)
    assert (await write(service, {"id": "2", "email": "y", "a": {"b": 1}, "c": 2})).status == 201
    assert (await write(service, {"id": "3"})).status == 201
    assert outcome(await write(service, {"id": "4", "c": 4})) == (409, None)
    other = {"id": "1", "t": "t1", "w": "w2", "email": "x"}
    assert (await service.send("POST", DOCS, other, OTHER)).status == 201


async def test_values_are_given_up(service: Service) -> None:
    """A value is free again when its item is changed, deleted or expired."""
    await write(service, {"id": "1", "email": "x", "c": 1, "ttl": 10})
    await write(service, {"id": "2", "email": "y", "c": 2})
    assert outcome(await write(service, {"id": "2", "email": "x", "c": 2}, upsert=True)) == (409, None)
    assert (await write(service, {"id": "2", "email": "y", "c": 2, "n": 1}, upsert=True)).status == 200
    service.clock.now += 10
    assert (await write(service, {"id": "2", "email": "x", "c": 1}, upsert=True)).status == 200
    assert (await write(service, {"id": "3", "email": "y", "c": 2})).status == 201
    assert (await service.send("DELETE", DOCS + "3/")).status == 204
    assert (await write(service, {"id": "4", "email": "y", "c": 2})).status == 201


async def test_unique_keys_stay(service: Service) -> None:
    """The unique keys of a container cannot be changed, and go with it."""
    path = "/dbs/db/colls/u/"
    assert outcome(await service.send("PUT", path, definition(id="u"))) == (400, None)
    assert (await service.send("PUT", path, definition(id="u", uniqueKeyPolicy=POLICY, defaultTtl=5))).status == 200
    await write(service, {"id": "1"})
    await service.send("DELETE", path)
    await service.send("POST", "/dbs/db/colls/", definition(id="u", uniqueKeyPolicy=POLICY))
    assert (await write(service, {"id": "1"})).status == 201
