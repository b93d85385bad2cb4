"""Time to live through the gateway."""

from __future__ import annotations

from cosmos_workflow_state.emulator._engine._transaction import Transaction
from support.service import DOCS, UPSERT, Service, content, definition


async def test_items_expire(service: Service) -> None:
    """An item is invisible from the second it expires, to reads, writes and queries, and its id is free again."""
    await service.create({"id": "1", "ttl": 10})
    await service.create({"id": "2", "ttl": -1})
    await service.create({"id": "3"})
    service.clock.now += 9
    assert (await service.send("GET", DOCS + "1/")).status == 200
    service.clock.now += 1
    assert (await service.send("GET", DOCS + "1/")).status == 404
    assert (await service.send("DELETE", DOCS + "1/")).status == 404
    assert content(await service.query("SELECT VALUE c.id FROM c"))["Documents"] == ["2", "3"]
    assert content(await service.query("SELECT VALUE c.id FROM c ORDER BY c.id"))["Documents"] == ["2", "3"]
    assert (await service.create({"id": "1"})).status == 201


async def test_expired_items_are_removed(service: Service) -> None:
    """Writes remove a few expired items each, with their index rows, until none is left."""
    for number in range(40):
        await service.create({"id": str(number), "ttl": 1})
    service.clock.now += 1

    def rows(transaction: Transaction) -> list[int]:
        counts = ("SELECT count(*) FROM items", "SELECT count(*) FROM terms")
        return [int(transaction.connection.execute(count).fetchone()[0]) for count in counts]

    for _ in range(4):
        await service.create({"id": "last"}, UPSERT)
    items, terms = await service.engine.read(rows)
    assert (items, terms > 0) == (1, True)
    await service.send("DELETE", DOCS + "last/")
    assert await service.engine.read(rows) == [0, 0]


async def test_without_default_nothing_expires(service: Service) -> None:
    """In a container without a default time to live, an item's own means nothing."""
    await service.send("POST", "/dbs/db/colls/", definition(id="eternal", defaultTtl=None))
    path = "/dbs/db/colls/eternal/docs/"
    await service.send("POST", path, {"id": "1", "t": "t1", "w": "w1", "ttl": 1})
    service.clock.now += 100
    assert (await service.send("GET", path + "1/")).status == 200


async def test_an_expired_items_id_can_be_taken_over(service: Service) -> None:
    """A replacement may take the id of an item that has expired."""
    await service.create({"id": "old", "ttl": 1})
    await service.create({"id": "1"})
    service.clock.now += 1
    assert (await service.send("PUT", DOCS + "1/", {"id": "old", "t": "t1", "w": "w1"})).status == 200
    assert content(await service.query("SELECT VALUE c.id FROM c"))["Documents"] == ["old"]
