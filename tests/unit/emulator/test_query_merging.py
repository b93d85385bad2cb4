"""Queries over several physical partitions: the real client merges what the rewritten queries give."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from azure.cosmos import PartitionKey
from azure.cosmos.aio import ContainerProxy, CosmosClient
from azure.cosmos.exceptions import CosmosHttpResponseError

from cosmos_workflow_state._embedded import open_embedded

MERGED = [
    "SELECT * FROM c ORDER BY c.n",
    "SELECT c.id, c.n FROM c ORDER BY c.n DESC",
    "SELECT VALUE c.id FROM c WHERE c.n > 5 ORDER BY c.n",
    "SELECT VALUE c.odd FROM c ORDER BY c.n",
    "SELECT c.id FROM c ORDER BY c.k ASC, c.n DESC",
    "SELECT TOP 4 VALUE c.n FROM c ORDER BY c.n",
    "SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 3 LIMIT 5",
    "SELECT DISTINCT VALUE c.k FROM c ORDER BY c.k",
    "SELECT VALUE COUNT(1) FROM c",
    "SELECT VALUE COUNT(c.odd) FROM c WHERE c.n < @most",
    "SELECT VALUE SUM(c.n) FROM c",
    "SELECT VALUE MIN(c.n) FROM c",
    "SELECT VALUE MAX(c.id) FROM c",
    "SELECT VALUE AVG(c.n) FROM c",
]


@pytest.fixture
async def containers() -> AsyncIterator[list[ContainerProxy]]:
    """Two containers with the same items, one in a single physical partition and one in five."""
    account = await open_embedded(None)
    async with CosmosClient(account.endpoint, account.key, transport=account.transport()) as client:
        database = await client.create_database("db")
        order = [{"path": "/k", "order": "ascending"}, {"path": "/n", "order": "descending"}]
        policy = {"includedPaths": [{"path": "/*"}], "excludedPaths": [], "compositeIndexes": [order]}
        made: list[ContainerProxy] = []
        for name, throughput in (("one", 400), ("five", 30_000)):
            container = await database.create_container(
                name, PartitionKey("/id"), offer_throughput=throughput, indexing_policy=policy
            )
            for number in range(20):
                odd = {"odd": number} if number % 2 else {}
                await container.create_item({"id": f"i{number:02}", "n": number * 7 % 20, "k": number % 3, **odd})
            made.append(container)
        yield made
    await account.close()


async def answer(container: ContainerProxy, text: str) -> list[Any]:
    """The rows of a query; of whole items their ids."""
    rows = container.query_items(text, parameters=[{"name": "@most", "value": 9}])
    return [row["id"] if isinstance(row, dict) and "id" in row else row async for row in rows]


async def test_the_client_merges_partitions_into_the_same_rows(containers: list[ContainerProxy]) -> None:
    """The real client, given a plan and five partitions, gives what one partition gives."""
    one, five = [{text: await answer(container, text) for text in MERGED} for container in containers]
    assert all(one.values())
    assert five == one


async def test_unordered_rows_of_partitions_are_the_same_set(containers: list[ContainerProxy]) -> None:
    """DISTINCT, TOP and OFFSET LIMIT without an order: the same values, or as many of them."""
    one, five = [await answer(container, "SELECT DISTINCT VALUE c.k FROM c") for container in containers]
    assert sorted(one) == sorted(five) == [0, 1, 2]
    for text in ("SELECT TOP 7 VALUE c.k FROM c", "SELECT c.k FROM c OFFSET 9 LIMIT 7"):
        assert [len(await answer(container, text)) for container in containers] == [7, 7]


async def test_what_the_client_cannot_merge_is_refused(containers: list[ContainerProxy]) -> None:
    """GROUP BY and aggregates that are no SELECT VALUE: an error over five partitions, answers over one."""
    for text in (
        "SELECT c.k, COUNT(1) AS n FROM c GROUP BY c.k",
        "SELECT COUNT(1) AS n FROM c",
        "SELECT VALUE COUNT(1) + 1 FROM c",
    ):
        assert await answer(containers[0], text)
        with pytest.raises(CosmosHttpResponseError) as refused:
            await answer(containers[1], text)
        assert refused.value.status_code == 400
