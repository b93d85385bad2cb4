"""The account, databases, containers and their ranges through the gateway."""

from __future__ import annotations

from cosmos_workflow_state.emulator._engine._engine import Engine
from cosmos_workflow_state.emulator._gateway._gateway import Gateway
from cosmos_workflow_state.emulator._values import Request
from support.service import COLLECTION, DOCS, KEY, Service, content, definition, outcome


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


async def test_usage_is_told_to_who_asks(service: Service) -> None:
    """A container read with the headers for it tells how much is in it."""
    await service.create({"id": "1", "x": "x" * 2048})
    await service.create({"id": "2"})
    plain = await service.send("GET", COLLECTION)
    assert "x-ms-resource-usage" not in plain.headers
    assert "statistics" not in content(plain)
    headers = {"x-ms-documentdb-populatequotainfo": "True", "x-ms-documentdb-populatepartitionstatistics": "True"}
    asked = await service.send("GET", COLLECTION, headers=headers)
    assert asked.headers["x-ms-resource-usage"] == "documentsSize=2;collectionSize=2;documentsCount=2;"
    assert asked.headers["x-ms-documentdb-collection-index-transformation-progress"] == "100"
    (only,) = content(asked)["statistics"]
    assert (only["id"], only["sizeInKB"], only["documentCount"]) == ("0", 2, 2)
    assert only["sampledDistinctPartitionKeyCount"] == 1


async def test_account_of_an_endpoint() -> None:
    """An account that knows its endpoint sends clients there."""
    engine = Engine.open(None)
    gateway = Gateway(engine, endpoint="https://localhost:8081/")
    account = content(await gateway.handle(Request("GET", "/", {}, b"")))
    assert account["writableLocations"] == account["readableLocations"]
    assert account["writableLocations"][0]["databaseAccountEndpoint"] == "https://localhost:8081/"
    engine.close()
