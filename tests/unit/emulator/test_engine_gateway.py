"""The gateway over an engine in memory: every operation's status, sub-status, headers and body."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pytest

from cosmos_workflow_state.emulator._engine._engine import Engine
from cosmos_workflow_state.emulator._engine._errors import BusyError, EngineClosedError, StorageError
from cosmos_workflow_state.emulator._engine._transaction import Transaction
from cosmos_workflow_state.emulator._gateway import _queries
from cosmos_workflow_state.emulator._gateway._failures import failure_of
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


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    """Yield a gateway over memory with the usual database and container."""
    clock = Clock()
    engine = Engine.open(None, clock=clock)
    made = Service(engine, Gateway(engine), clock)
    assert (await made.send("POST", "/dbs", {"id": "db"})).status == 201
    assert (await made.send("POST", "/dbs/db/colls/", definition())).status == 201
    yield made
    engine.close()


async def test_account(service: Service) -> None:
    """The account has session consistency and sends nobody elsewhere."""
    account = content(await service.send("GET", "/"))
    assert account["userConsistencyPolicy"] == {"defaultConsistencyLevel": "Session"}
    assert account["writableLocations"] == []


async def test_databases(service: Service) -> None:
    """Databases are created once, read, listed, deleted with their containers, and can be made again."""
    assert outcome(await service.send("POST", "/dbs", {"id": "db"})) == (409, None)
    assert outcome(await service.send("POST", "/dbs", {"id": "a/b"})) == (400, None)
    read = await service.send("GET", "/dbs/db/")
    assert content(read)["id"] == "db"
    assert read.headers["etag"] == content(read)["_etag"]
    assert [each["id"] for each in content(await service.send("GET", "/dbs"))["Databases"]] == ["db"]
    await service.create({"id": "1"})
    assert outcome(await service.send("DELETE", "/dbs/db/")) == (204, None)
    assert outcome(await service.send("GET", "/dbs/db/")) == (404, None)
    assert outcome(await service.send("DELETE", "/dbs/db/")) == (404, None)
    assert outcome(await service.send("GET", COLLECTION)) == (404, "1003")
    assert (await service.send("POST", "/dbs", {"id": "db"})).status == 201
    assert content(await service.send("GET", "/dbs/db/colls/"))["DocumentCollections"] == []


async def test_containers(service: Service) -> None:
    """Containers are created once, read, listed and deleted with their items."""
    assert outcome(await service.send("POST", "/dbs/db/colls/", definition())) == (409, None)
    assert outcome(await service.send("POST", "/dbs/no/colls/", definition())) == (404, "1003")
    assert outcome(await service.send("GET", "/dbs/no/colls/")) == (404, "1003")
    assert outcome(await service.send("GET", "/dbs/db/colls/no/")) == (404, None)
    listed = content(await service.send("GET", "/dbs/db/colls/"))["DocumentCollections"]
    assert listed == [content(await service.send("GET", COLLECTION))]
    await service.create({"id": "1"})
    assert outcome(await service.send("DELETE", COLLECTION)) == (204, None)
    assert outcome(await service.send("GET", DOCS + "1/")) == (404, "1003")
    await service.send("POST", "/dbs/db/colls/", definition())
    assert outcome(await service.send("GET", DOCS + "1/")) == (404, None)
    assert content(await service.query("SELECT VALUE c.id FROM c"))["Documents"] == []


async def test_stale_containers_are_noticed(service: Service) -> None:
    """Who means a container that was deleted since is told so, and does not write into its successor."""
    rid = content(await service.send("GET", COLLECTION))["_rid"]
    meant = KEY | {"x-ms-cosmos-intended-collection-rid": rid}
    assert (await service.create({"id": "1"}, meant)).status == 201
    await service.send("DELETE", COLLECTION)
    await service.send("POST", "/dbs/db/colls/", definition())
    assert outcome(await service.create({"id": "1"}, meant)) == (400, "1024")


async def test_replaced_definitions_apply_to_existing_items(service: Service) -> None:
    """A new indexing policy and a new default time to live hold for the items that are there."""
    policy = {"includedPaths": [{"path": "/m/?"}], "excludedPaths": [{"path": "/*"}]}
    await service.create({"id": "1", "n": 1, "m": 2})
    changed = await service.send("PUT", COLLECTION, definition(defaultTtl=10, indexingPolicy=policy))
    assert content(changed)["defaultTtl"] == 10
    assert outcome(await service.query("SELECT * FROM c ORDER BY c.n"))[0] == 400
    ordered = await service.query("SELECT VALUE c.id FROM c WHERE c.m = 2 ORDER BY c.m")
    assert content(ordered)["Documents"] == ["1"]
    assert (await service.send("PUT", COLLECTION, definition(indexingPolicy=policy, defaultTtl=10))).status == 200
    service.clock.now += 10
    assert (await service.send("GET", DOCS + "1/")).status == 404
    key = {"paths": ["/t"], "kind": "Hash", "version": 2}
    assert (await service.send("PUT", COLLECTION, definition(partitionKey=key))).status == 400


async def test_partition_key_ranges_end_in_304(service: Service) -> None:
    """There is one range, and who asks with its ETag is told that nothing is new."""
    first = await service.send("GET", COLLECTION + "pkranges/")
    (only,) = content(first)["PartitionKeyRanges"]
    assert (only["id"], only["minInclusive"], only["maxExclusive"]) == ("0", "", "FF")
    again = await service.send("GET", COLLECTION + "pkranges/", headers={"if-none-match": first.headers["etag"]})
    assert (again.status, again.body) == (304, b"")


async def test_created_item_has_system_properties(service: Service) -> None:
    """A created item comes back with its system properties, and headers that say the same."""
    response = await service.create({"id": "1", "_ts": 5, "_etag": "mine", "text": "é"})
    item = content(response)
    assert response.status == 201
    assert item["_etag"] == response.headers["etag"] != "mine"
    assert item["_ts"] == 1_800_000_000
    assert item["_self"].endswith(f"/docs/{item['_rid']}/")
    assert item["_attachments"] == "attachments/"
    assert response.headers["x-ms-session-token"] == f"0:-1#{response.headers['lsn']}"
    assert response.headers["x-ms-alt-content-path"] == "dbs/db/colls/c"
    assert response.headers["x-ms-documentdb-partitionkeyrangeid"] == "0"
    assert float(response.headers["x-ms-request-charge"]) == 5
    read = await service.send("GET", DOCS + "1/")
    assert (content(read), read.headers["etag"]) == (item, item["_etag"])
    assert outcome(await service.create({"id": "1"})) == (409, None)


async def test_minimal_answers_have_no_body(service: Service) -> None:
    """Who prefers a minimal answer gets the headers only."""
    response = await service.create({"id": "1"}, KEY | {"prefer": "return=minimal"})
    assert (response.status, response.body) == (201, b"")
    assert response.headers["etag"]


async def test_unchanged_item_is_not_sent_again(service: Service) -> None:
    """A read with the current ETag is answered 304."""
    etag = (await service.create({"id": "1"})).headers["etag"]
    response = await service.send("GET", DOCS + "1/", headers=KEY | {"if-none-match": etag})
    assert (response.status, response.body) == (304, b"")


async def test_replacing_keeps_identity(service: Service) -> None:
    """A replaced item keeps its _rid and gets a new ETag; the old content is gone."""
    before = content(await service.create({"id": "1", "a": 1}))
    after = content(await service.send("PUT", DOCS + "1/", {"id": "1", "t": "t1", "w": "w1", "b": 2}))
    assert after["_rid"] == before["_rid"]
    assert after["_etag"] != before["_etag"]
    assert ("a" in after, after["b"]) == (False, 2)
    found = await service.query("SELECT VALUE c.id FROM c WHERE c.a = 1")
    assert content(found)["Documents"] == []


async def test_etags_guard_writes(service: Service) -> None:
    """A write under a wrong ETag is refused, under the right one or * it is done."""
    etag = (await service.create({"id": "1"})).headers["etag"]
    item = {"id": "1", "t": "t1", "w": "w1"}
    stale = KEY | {"if-match": '"stale"'}
    assert outcome(await service.send("PUT", DOCS + "1/", item, stale)) == (412, None)
    assert outcome(await service.send("DELETE", DOCS + "1/", headers=stale)) == (412, None)
    assert outcome(await service.create(item, UPSERT | {"if-match": '"stale"'})) == (412, None)
    assert outcome(await service.create(item, UPSERT | {"if-none-match": "*"})) == (412, None)
    assert (await service.send("PUT", DOCS + "1/", item, KEY | {"if-match": etag})).status == 200
    assert outcome(await service.send("PUT", DOCS + "1/", item, KEY | {"if-match": etag})) == (412, None)
    assert (await service.send("DELETE", DOCS + "1/", headers=KEY | {"if-match": "*"})).status == 204


async def test_upsert(service: Service) -> None:
    """An upsert creates, then replaces."""
    assert (await service.create({"id": "1", "n": 1}, UPSERT)).status == 201
    assert (await service.create({"id": "1", "n": 2}, UPSERT)).status == 200
    assert content(await service.send("GET", DOCS + "1/"))["n"] == 2


async def test_missing_items(service: Service) -> None:
    """What is not there is not found, under whatever operation."""
    item = {"id": "1", "t": "t1", "w": "w1"}
    assert outcome(await service.send("GET", DOCS + "1/")) == (404, None)
    assert outcome(await service.send("PUT", DOCS + "1/", item)) == (404, None)
    assert outcome(await service.send("DELETE", DOCS + "1/")) == (404, None)


async def test_keys_keep_apart(service: Service) -> None:
    """The same id under another key is another item."""
    await service.create({"id": "1", "n": 1})
    other = {"x-ms-documentdb-partitionkey": '["t10","w1"]'}
    assert outcome(await service.send("GET", DOCS + "1/", headers=other)) == (404, None)
    assert (await service.create({"id": "1", "t": "t10"}, other)).status == 201
    assert (await service.send("DELETE", DOCS + "1/", headers=other)).status == 204
    assert (await service.send("GET", DOCS + "1/")).status == 200


@pytest.mark.parametrize(
    ("header", "item"),
    [
        ('["t1"]', {"id": "1", "t": "t1"}),
        ('["t1","w1","x"]', {"id": "1", "t": "t1", "w": "w1"}),
        ('["t1","w2"]', {"id": "1", "t": "t1", "w": "w1"}),
        ('["t1",null]', {"id": "1", "t": "t1"}),
        ('["t1","w1"]', {"id": "1", "t": "t1", "w": {"x": 1}}),
        ('["t1",["w1"]]', {"id": "1", "t": "t1", "w": "w1"}),
        ('"t1"', {"id": "1", "t": "t1", "w": "w1"}),
        ("t1", {"id": "1", "t": "t1", "w": "w1"}),
        (None, {"id": "1", "t": "t1", "w": "w1"}),
    ],
    ids=["prefix", "long", "other", "null", "object", "array", "scalar", "junk", "none"],
)
async def test_wrong_partition_keys(service: Service, header: str | None, item: dict[str, object]) -> None:
    """A key that is no full key, or not the item's own, is refused with the sub-status for it."""
    headers = {} if header is None else {"x-ms-documentdb-partitionkey": header}
    assert outcome(await service.send("POST", DOCS, item, headers)) == (400, "1001")


async def test_undefined_levels(service: Service) -> None:
    """An item that lacks a level is stored and found under the empty object, which is not null."""
    lacking = {"x-ms-documentdb-partitionkey": '["t1",{}]'}
    assert (await service.send("POST", DOCS, {"id": "1", "t": "t1"}, lacking)).status == 201
    assert (await service.send("GET", DOCS + "1/", headers=lacking)).status == 200
    null = {"x-ms-documentdb-partitionkey": '["t1",null]'}
    assert (await service.send("GET", DOCS + "1/", headers=null)).status == 404


@pytest.mark.parametrize(
    "change",
    [
        {"id": ""},
        {"id": 1},
        {"id": None},
        {"id": "a/b"},
        {"id": "x" * 1024},
        {"id": "1", "ttl": 0},
        {"id": "1", "ttl": None},
        {"id": "1", "ttl": -10},
    ],
    ids=str,
)
async def test_wrong_items(service: Service, change: dict[str, object]) -> None:
    """An item whose id or time to live is not allowed is refused."""
    assert outcome(await service.create(change)) == (400, None)


@pytest.mark.parametrize("body", [b"", b"[1]", b"{", b'{"id":"1","n":NaN}', b"\xff"], ids=repr)
async def test_wrong_bodies(service: Service, body: bytes) -> None:
    """A body that is no JSON object is refused."""
    assert outcome(await service.send("POST", DOCS, body)) == (400, None)


async def test_deep_items_are_refused(service: Service) -> None:
    """An item nested so deeply that it cannot be indexed is refused, and the engine goes on."""
    deep = b'{"id":"1","t":"t1","w":"w1","d":' + b'{"d":' * 900 + b"1" + b"}" * 901
    assert outcome(await service.send("POST", DOCS, deep)) == (400, None)
    assert (await service.create({"id": "1"})).status == 201


async def test_large_bodies(service: Service) -> None:
    """A body of 2 MiB is taken, one byte more is not."""
    empty = len(json.dumps({"t": "t1", "w": "w1", "id": "1", "x": ""}))
    fits = {"id": "1", "x": "x" * (2 * 1024 * 1024 - empty)}
    assert (await service.create(fits)).status == 201
    assert (await service.create({"id": "2", "x": fits["x"] + "x"})).status == 413


async def test_unusual_ids(service: Service) -> None:
    """Ids of any other characters come back, percent-encoded in the path."""
    for name, path in (("ä ö", "%C3%A4%20%C3%B6"), ("a%2Fb", "a%252Fb"), ("\x00", "%00"), ("\ud800", "%ED%A0%80")):
        assert (await service.create({"id": name})).status == 201
        assert content(await service.send("GET", f"{DOCS}{path}/"))["id"] == name


async def test_resource_ids_name_things(service: Service) -> None:
    """The path of _rids that an item's _self gives reads and deletes the item; a wrong one finds nothing."""
    link = "/" + content(await service.create({"id": "1"}))["_self"]
    assert content(await service.send("GET", link))["id"] == "1"
    assert (await service.send("GET", link.replace("/docs/", "/docs/x"))).status == 404
    collection = link[: link.index("docs/")]
    assert content(await service.send("GET", collection))["id"] == "c"
    assert (await service.send("PUT", link, {"id": "1", "t": "t1", "w": "w1"})).status == 200
    assert (await service.send("DELETE", link)).status == 204
    assert (await service.send("GET", DOCS + "1/")).status == 404


async def test_an_id_cannot_be_changed(service: Service) -> None:
    """A replacement by an item of another id is refused."""
    await service.create({"id": "1"})
    assert outcome(await service.send("PUT", DOCS + "1/", {"id": "2", "t": "t1", "w": "w1"})) == (400, None)


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


async def test_batch(service: Service) -> None:
    """A batch does all of its operations in order, with one log sequence number."""
    await service.create({"id": "old", "n": 1})
    before = int((await service.create({"id": "doomed"})).headers["lsn"])
    key = {"t": "t1", "w": "w1"}
    response = await service.send(
        "POST",
        DOCS,
        [
            {"operationType": "Create", "resourceBody": {"id": "new"} | key},
            {"operationType": "Read", "id": "new"},
            {"operationType": "Upsert", "resourceBody": {"id": "new", "n": 2} | key},
            {"operationType": "Upsert", "resourceBody": {"id": "newer"} | key},
            {"operationType": "Replace", "id": "old", "resourceBody": {"id": "old", "n": 3} | key},
            {"operationType": "Delete", "id": "doomed"},
        ],
        BATCH,
    )
    results = content(response)
    assert response.status == 200
    assert [result["statusCode"] for result in results] == [201, 200, 200, 201, 200, 204]
    assert results[2]["resourceBody"]["n"] == 2
    assert results[2]["eTag"] == results[2]["resourceBody"]["_etag"] != results[0]["eTag"]
    assert int(response.headers["lsn"]) == before + 1
    assert float(response.headers["x-ms-request-charge"]) == sum(result["requestCharge"] for result in results)


@pytest.mark.parametrize(
    ("operation", "status"),
    [
        ({"operationType": "Create", "resourceBody": {"id": "old", "t": "t1", "w": "w1"}}, 409),
        ({"operationType": "Create", "resourceBody": {"id": "x", "t": "t2", "w": "w1"}}, 400),
        ({"operationType": "Create"}, 400),
        ({"operationType": "Read", "id": "no"}, 404),
        ({"operationType": "Read", "id": "old", "ifMatch": '"stale"'}, 412),
        ({"operationType": "Delete"}, 400),
        ({"operationType": "Delete", "id": "old", "ifMatch": '"stale"'}, 412),
        (
            {
                "operationType": "Replace",
                "id": "old",
                "ifMatch": '"stale"',
                "resourceBody": {"id": "old", "t": "t1", "w": "w1"},
            },
            412,
        ),
    ],
    ids=["exists", "other key", "no body", "missing", "read guard", "no id", "delete guard", "replace guard"],
)
async def test_batch_is_all_or_nothing(service: Service, operation: dict[str, object], status: int) -> None:
    """When one operation fails, it says why, all others say 424, and nothing is done."""
    await service.create({"id": "old"})
    create = {"operationType": "Create", "resourceBody": {"id": "new", "t": "t1", "w": "w1"}}
    response = await service.send("POST", DOCS, [create, operation, create], BATCH)
    assert response.status == 207
    assert [result["statusCode"] for result in content(response)] == [424, status, 424]
    assert (await service.send("GET", DOCS + "new/")).status == 404
    lsn = (await service.send("GET", DOCS + "old/")).headers["lsn"]
    assert response.headers["lsn"] == lsn


@pytest.mark.parametrize(
    ("body", "headers", "message"),
    [
        ([], BATCH, "no operations"),
        ({}, BATCH, "array"),
        ([{"operationType": "Read", "id": "1"}] * 101, BATCH, "more operations"),
        ([{"operationType": "Patch", "id": "1"}], BATCH, "has to be one of"),
        ([1], BATCH, "has to be one of"),
        (
            [{"operationType": "Read", "id": "1"}],
            BATCH | {"x-ms-documentdb-partitionkey": '["t1"]'},
            "Partition key",
        ),
    ],
    ids=["empty", "object", "many", "unknown", "junk", "prefix"],
)
async def test_wrong_batches(service: Service, body: object, headers: dict[str, str], message: str) -> None:
    """A batch that cannot be meant is refused as a whole."""
    response = await service.send("POST", DOCS, body, headers)
    assert response.status == 400
    assert message in content(response)["message"]


async def test_storage_failures_in_a_batch_are_no_result_of_it(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When storage fails under a batch, the request fails: no operation is to blame."""

    def fail(*_: object) -> None:
        raise StorageError("disk full")

    monkeypatch.setattr("cosmos_workflow_state.emulator._gateway._batch.read_item", fail)
    response = await service.send("POST", DOCS, [{"operationType": "Read", "id": "1"}], BATCH)
    assert outcome(response) == (507, None)


async def fill(service: Service) -> None:
    """Store three items each under three keys."""
    for tenant, workflow in (("t1", "w1"), ("t1", "w2"), ("t10", "w1")):
        headers = {"x-ms-documentdb-partitionkey": json.dumps([tenant, workflow])}
        for number in range(3):
            await service.create({"id": str(number), "t": tenant, "w": workflow, "n": number}, headers)


PREFIX: Final = QUERY | {
    "x-ms-documentdb-partitionkeyrangeid": "0",
    "x-ms-start-epk": "3D48BB14DA9D090D22112C96695028B6",
    "x-ms-end-epk": "3D48BB14DA9D090D22112C96695028B6FF",
}


@pytest.mark.parametrize(
    ("headers", "count"),
    [
        (QUERY | KEY, 3),
        (QUERY | {"x-ms-documentdb-partitionkey": '["t1"]'}, 6),
        (PREFIX, 6),
        (QUERY | {"x-ms-start-epk": "3D48BB14DA9D090D22112C96695028B6"}, 6),
        (QUERY | {"x-ms-documentdb-partitionkeyrangeid": "0"}, 9),
        (CROSSING, 9),
    ],
    ids=["full", "prefix key", "prefix range", "open range", "whole range", "crossing"],
)
async def test_queries_keep_to_their_keys(service: Service, headers: dict[str, str], count: int) -> None:
    """A query sees the items of the keys its headers name, and no other's."""
    await fill(service)
    response = await service.query("SELECT VALUE c.id FROM c WHERE c.n >= @lo", headers, lo=0)
    assert content(response)["_count"] == count
    assert response.status == 200
    assert not {"etag", "x-ms-continuation"} & set(response.headers)


async def test_prefix_knows_its_fixed_paths(service: Service) -> None:
    """A prefix with predicate finds an item by id among the tenant's own, in however many workflows it is."""
    await fill(service)
    text = "SELECT c.w FROM c WHERE c.t = @t AND c.id = @id"
    found = content(await service.query(text, PREFIX, t="t1", id="2"))["Documents"]
    assert sorted(row["w"] for row in found) == ["w1", "w2"]


@pytest.mark.parametrize(
    ("headers", "body", "message"),
    [
        (QUERY, {"query": "SELECT * FROM c"}, "Cross partition query is required"),
        (QUERY | {"x-ms-documentdb-partitionkey": "[]"}, {"query": "SELECT * FROM c"}, "Partition key"),
        (QUERY | {"x-ms-documentdb-partitionkeyrangeid": "1"}, {"query": "SELECT * FROM c"}, "range"),
        (QUERY | {"x-ms-start-epk": "no"}, {"query": "SELECT * FROM c"}, "hexadecimal"),
        (CROSSING | {"x-ms-max-item-count": "many"}, {"query": "SELECT * FROM c"}, "whole number"),
        (CROSSING | {"x-ms-continuation": "junk"}, {"query": "SELECT * FROM c"}, "continuation"),
        (CROSSING | {"x-ms-continuation": "=é="}, {"query": "SELECT * FROM c"}, "continuation"),
        (CROSSING, {"query": "SELECT * FROM c JOIN d IN c.x"}, "line 1"),
        (CROSSING, {"query": "SELECT * FROM c WHERE c.x = @x"}, "@x"),
        (CROSSING, {"query": 1}, "text"),
        (CROSSING, {"query": "SELECT * FROM c", "parameters": {"a": 1}}, "list"),
        (CROSSING, {"query": "SELECT * FROM c", "parameters": [1]}, "name"),
    ],
    ids=["no key", "empty key", "range", "epk", "count", "token", "base64", "language", "parameter", "text",
         "parameters", "name"],
)  # fmt: skip
async def test_wrong_queries(service: Service, headers: dict[str, str], body: object, message: str) -> None:
    """A query that cannot be meant is refused with the reason, and with its place if it is the text."""
    response = await service.send("POST", DOCS, body, headers)
    assert response.status == 400
    assert message in content(response)["message"]


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


@pytest.mark.parametrize("text", ["SELECT VALUE c.n FROM c", "SELECT VALUE c.n FROM c ORDER BY c.n DESC"])
@pytest.mark.parametrize("size", [1, 2, 3, 9, 100, -1])
async def test_pages_make_the_whole(service: Service, text: str, size: int) -> None:
    """Pages of any size hold the same rows in the same order, none empty, and end."""
    await fill(service)
    whole = content(await service.query(text))["Documents"]
    read = await pages(service, text, size)
    assert [row for page in read for row in page] == whole
    assert {len(page) for page in read[:-1]} <= {size}
    assert read[-1]


async def test_pages_are_bounded_in_bytes(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that would be too large ends before it is, but a row larger than a page is a page of its own."""
    await fill(service)
    monkeypatch.setattr(_queries, "_MAX_PAGE", 2)
    assert [len(page) for page in await pages(service, "SELECT VALUE c.n FROM c", 100)] == [2, 2, 2, 2, 1]
    monkeypatch.setattr(_queries, "_MAX_PAGE", 0)
    assert {len(page) for page in await pages(service, "SELECT VALUE c.n FROM c", 100)} == {1}


async def test_continuations_belong_to_one_query(service: Service) -> None:
    """A token is refused with another text, other parameters or other keys, and when it was cut."""
    await fill(service)
    text = "SELECT * FROM c WHERE c.n >= @lo"
    headers = CROSSING | {"x-ms-max-item-count": "1"}
    token = (await service.query(text, headers, lo=0)).headers["x-ms-continuation"]
    resumed = headers | {"x-ms-continuation": token}
    assert (await service.query(text, resumed, lo=0)).status == 200
    assert (await service.query(text, resumed, lo=1)).status == 400
    assert (await service.query(text + " ", resumed, lo=0)).status == 400
    assert (await service.query(text, resumed | KEY, lo=0)).status == 400
    assert (await service.query(text, headers | {"x-ms-continuation": token[:-8]}, lo=0)).status == 400
    assert (await service.query(text, headers | {"x-ms-continuation": token[:24]}, lo=0)).status == 400


async def test_feed_of_items(service: Service) -> None:
    """All items are read page by page without a query, of a container or of one key."""
    await fill(service)
    first = await service.send("GET", DOCS, headers={"x-ms-max-item-count": "5"})
    rest = {"x-ms-max-item-count": "5", "x-ms-continuation": first.headers["x-ms-continuation"]}
    second = await service.send("GET", DOCS, headers=rest)
    assert (content(first)["_count"], content(second)["_count"]) == (5, 4)
    assert content(await service.send("GET", DOCS, headers=KEY))["_count"] == 3


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("GET", "/offers", {}, 400),
        ("GET", "/dbs/db/users/u/", {}, 400),
        ("POST", "/dbs/db/colls/c/operations/partitionkeydelete", KEY, 400),
        ("PATCH", DOCS + "1/", KEY, 405),
        ("PUT", "/dbs/db/", {}, 405),
        ("POST", "/dbs", QUERY, 400),
        ("GET", DOCS, {"a-im": "Incremental Feed"}, 400),
        ("POST", DOCS, {"x-ms-cosmos-is-query-plan-request": "True"}, 400),
    ],
    ids=["offers", "users", "delete by key", "patch", "put", "query databases", "change feed", "query plan"],
)
async def test_what_is_not_supported_says_so(
    service: Service, method: str, path: str, headers: dict[str, str], status: int
) -> None:
    """What the engine does not have is refused in words, never answered wrongly."""
    response = await service.send(method, path, {"id": "x"}, headers)
    assert response.status == status
    assert "embedded engine" in content(response)["message"]


async def test_failures_name_the_request(service: Service) -> None:
    """A failure has a code, a message and the activity id it was asked with, or one made up."""
    response = await service.send("GET", DOCS + "1/", headers=KEY | {"x-ms-activity-id": "abc"})
    assert content(response)["code"] == "NotFound"
    assert "ActivityId: abc" in content(response)["message"]
    assert (await service.send("GET", "/")).headers["x-ms-activity-id"]


def test_busy_files_can_be_tried_again() -> None:
    """A file held by others for too long is a 503, other failures of storage a 507, which no client repeats."""
    assert failure_of(BusyError("busy")).status == 503
    assert failure_of(StorageError("disk full")).status == 507


async def test_closed_engines_are_an_error_of_their_own() -> None:
    """A request to a closed engine is no response: nothing was asked of the service."""
    engine = Engine.open(None)
    engine.close()
    with pytest.raises(EngineClosedError):
        await Gateway(engine).handle(Request("GET", "/", {}, b""))
