"""The real azure-cosmos client over containers of several physical partitions: what it merges is what was stored."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

import pytest
from azure.cosmos import PartitionKey, ThroughputProperties
from azure.cosmos.aio import ContainerProxy, CosmosClient
from azure.cosmos.exceptions import CosmosAccessConditionFailedError, CosmosHttpResponseError

from cosmos_workflow_state._embedded import EmbeddedAccount, open_embedded

COUNT: Final = 60
KEYS: Final = {
    "single": PartitionKey("/t"),
    "version 1": PartitionKey("/t", version=1),
    "hierarchical": PartitionKey(["/t", "/w"], kind="MultiHash"),
}


@pytest.fixture
async def client() -> AsyncIterator[CosmosClient]:
    """Yield a client of an engine in memory."""
    account: EmbeddedAccount = await open_embedded(None)
    async with CosmosClient(account.endpoint, account.key, transport=account.transport()) as opened:
        yield opened
    await account.close()


@pytest.fixture(params=KEYS)
async def container(request: pytest.FixtureRequest, client: CosmosClient) -> ContainerProxy:
    """Create a container of five physical partitions, filled."""
    database = await client.create_database("db")
    made = await database.create_container("c", partition_key=KEYS[request.param], offer_throughput=30_000)
    for number in range(COUNT):
        item = {"id": f"{number}", "t": f"t{number % 20}", "w": f"w{number % 3}", "n": number, "m": number % 7}
        await made.create_item(item)
    return made


async def rows(pages: AsyncIterator[Any]) -> list[Any]:
    """Collect the results of a query."""
    return [row async for row in pages]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT VALUE c.n FROM c ORDER BY c.n", list(range(COUNT))),
        ("SELECT VALUE c.n FROM c ORDER BY c.n DESC", list(reversed(range(COUNT)))),
        ("SELECT VALUE c.n FROM c WHERE c.n >= @lo ORDER BY c.n OFFSET 5 LIMIT 3", [15, 16, 17]),
        ("SELECT TOP 2 c.n FROM c ORDER BY c.n DESC", [{"n": 59}, {"n": 58}]),
        ("SELECT VALUE COUNT(1) FROM c", [COUNT]),
        ("SELECT VALUE SUM(c.n) FROM c", [1770]),
        ("SELECT VALUE AVG(c.n) FROM c", [29.5]),
        ("SELECT VALUE MIN(c.n) FROM c WHERE c.n > @lo", [11]),
        ("SELECT VALUE MAX(c.n) FROM c", [59]),
        ("SELECT DISTINCT VALUE c.m FROM c ORDER BY c.m", list(range(7))),
    ],
)
async def test_rows_are_merged(container: ContainerProxy, text: str, expected: list[Any]) -> None:
    """Orders, windows, aggregates and distinct rows hold over all partitions, as over one."""
    query = container.query_items(text, parameters=[{"name": "@lo", "value": 10}])
    assert await rows(query) == expected


async def test_rows_are_collected(container: ContainerProxy) -> None:
    """What needs no merging comes from all partitions, by queries, feeds, feed ranges, and many reads at once."""
    everything = set(range(COUNT))
    assert set(await rows(container.query_items("SELECT VALUE c.n FROM c", max_item_count=7))) == everything
    assert {item["n"] for item in await rows(container.read_all_items(max_item_count=7))} == everything
    ranges = [each async for each in container.read_feed_ranges()]
    parts = [await rows(container.query_items("SELECT VALUE c.n FROM c", feed_range=each)) for each in ranges]
    assert len(parts) == 5
    assert all(parts)
    assert sorted(number for part in parts for number in part) == sorted(everything)
    assert set(await rows(container.query_items("SELECT DISTINCT VALUE c.m FROM c"))) == set(range(7))


async def test_groups_cannot_be_merged(container: ContainerProxy) -> None:
    """The client cannot merge groups, so the query is refused as the service refuses it."""
    with pytest.raises(CosmosHttpResponseError, match="does not support: GroupBy"):
        await rows(container.query_items("SELECT c.m FROM c GROUP BY c.m"))


async def test_one_tenant_needs_no_merging(client: CosmosClient) -> None:
    """All keys of one prefix are in one partition: order and window hold without a plan."""
    database = await client.create_database("db")
    container = await database.create_container("c", partition_key=KEYS["hierarchical"], offer_throughput=30_000)
    for number in range(12):
        await container.create_item({"id": f"{number}", "t": "t1", "w": f"w{number % 3}", "n": number})
    text = "SELECT VALUE c.n FROM c ORDER BY c.n DESC OFFSET 1 LIMIT 3"
    assert await rows(container.query_items(text, partition_key=["t1"])) == [10, 9, 8]


async def test_read_many(client: CosmosClient) -> None:
    """Items of many keys are read at once."""
    database = await client.create_database("db")
    container = await database.create_container("c", partition_key=KEYS["single"], offer_throughput=30_000)
    for number in range(30):
        await container.create_item({"id": f"{number}", "t": f"t{number}"})
    found = await container.read_items([(f"{number}", f"t{number}") for number in range(0, 30, 2)])
    assert [item["id"] for item in found] == [f"{number}" for number in range(0, 30, 2)]


async def test_throughput(client: CosmosClient) -> None:
    """Throughput is read and changed through the client, of databases and containers, fixed and scaling."""
    database = await client.create_database("db", offer_throughput=500)
    assert (await database.get_throughput()).offer_throughput == 500
    container = await database.create_container("c", partition_key=KEYS["single"], offer_throughput=400)
    assert (await container.replace_throughput(700)).offer_throughput == 700
    assert (await container.get_throughput()).offer_throughput == 700
    wanted = ThroughputProperties(auto_scale_max_throughput=4000, auto_scale_increment_percent=5)
    scaling = await database.create_container("s", partition_key=KEYS["single"], offer_throughput=wanted)
    found = await scaling.get_throughput()
    assert (found.auto_scale_max_throughput, found.auto_scale_increment_percent) == (4000, 5)


async def test_lists_are_queried(client: CosmosClient) -> None:
    """Databases and containers are queried, and listed page by page."""
    database = await client.create_database("db")
    for name in ("a", "b", "c"):
        await database.create_container(name, partition_key=KEYS["single"])
    parameters: list[dict[str, object]] = [{"name": "@id", "value": "db"}]
    databases = client.query_databases("SELECT * FROM r WHERE r.id = @id", parameters=parameters)
    assert [each["id"] for each in await rows(databases)] == ["db"]
    containers = database.query_containers("SELECT * FROM r WHERE r.id > 'a'")
    assert [each["id"] for each in await rows(containers)] == ["b", "c"]
    assert [each["id"] for each in await rows(database.list_containers(max_item_count=1))] == ["a", "b", "c"]


async def test_patch(client: CosmosClient) -> None:
    """An item is patched through the client, alone and in a batch, if its condition holds."""
    database = await client.create_database("db")
    container = await database.create_container("c", partition_key=KEYS["single"])
    await container.create_item({"id": "1", "t": "t", "n": 1})
    increment = [{"op": "incr", "path": "/n", "value": 1}]
    changed = await container.patch_item("1", "t", increment, filter_predicate="FROM c WHERE c.n = 1")
    assert changed["n"] == 2
    with pytest.raises(CosmosAccessConditionFailedError):
        await container.patch_item("1", "t", increment, filter_predicate="FROM c WHERE c.n = 1")
    batch = await container.execute_item_batch([("patch", ("1", increment))], "t")
    assert batch[0]["resourceBody"]["n"] == 3
