"""The real azure-cosmos client on the embedded engine: every operation the SDK and users of the client need."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from azure.core import MatchConditions
from azure.core.pipeline.transport import HttpRequest
from azure.cosmos import PartitionKey
from azure.cosmos.aio import ContainerProxy, CosmosClient
from azure.cosmos.exceptions import (
    CosmosAccessConditionFailedError,
    CosmosBatchOperationError,
    CosmosHttpResponseError,
    CosmosResourceExistsError,
    CosmosResourceNotFoundError,
)

from cosmos_workflow_state._embedded import EmbeddedAccount, open_embedded
from cosmos_workflow_state.emulator._engine._errors import EngineClosedError

KEY = PartitionKey(["/t", "/w"], kind="MultiHash")


def client_of(account: EmbeddedAccount, **options: Any) -> CosmosClient:
    """Make a client of an account."""
    return CosmosClient(account.endpoint, account.key, transport=account.transport(), **options)


async def container_of(client: CosmosClient, name: str = "c") -> ContainerProxy:
    """Create a container with a hierarchical key, or find it."""
    database = await client.create_database_if_not_exists("db")
    return await database.create_container_if_not_exists(name, partition_key=KEY, default_ttl=-1)


@pytest.fixture(params=["memory", "file"])
async def account(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[EmbeddedAccount]:
    """Yield an account in memory and one on a file."""
    opened = await open_embedded(tmp_path / "state.db" if request.param == "file" else None)
    yield opened
    await opened.close()


@pytest.fixture
async def container(account: EmbeddedAccount) -> AsyncIterator[ContainerProxy]:
    """Yield an empty container."""
    async with client_of(account) as client:
        yield await container_of(client)


async def rows(pages: AsyncIterator[Any]) -> list[Any]:
    """Collect the results of a query."""
    return [row async for row in pages]


async def test_item_life(container: ContainerProxy) -> None:
    """An item is created, read, replaced, upserted and deleted through the client."""
    created = await container.create_item({"id": "1", "t": "t1", "w": "w1", "n": 1})
    assert await container.read_item("1", ["t1", "w1"]) == created
    replaced = await container.replace_item("1", {"id": "1", "t": "t1", "w": "w1", "n": 2})
    assert (replaced["n"], replaced["_rid"]) == (2, created["_rid"])
    upserted = await container.upsert_item({"id": "1", "t": "t1", "w": "w1", "n": 3})
    assert upserted["n"] == 3
    await container.delete_item(upserted, ["t1", "w1"])
    with pytest.raises(CosmosResourceNotFoundError):
        await container.read_item("1", ["t1", "w1"])


async def test_conflicts_are_the_clients_errors(container: ContainerProxy) -> None:
    """Existing items and wrong ETags arrive as the client's own exceptions, with code and charge."""
    await container.create_item({"id": "1", "t": "t1", "w": "w1"})
    with pytest.raises(CosmosResourceExistsError) as caught:
        await container.create_item({"id": "1", "t": "t1", "w": "w1"})
    assert caught.value.message.startswith("(Conflict)")
    assert caught.value.headers["x-ms-request-charge"]
    with pytest.raises(CosmosAccessConditionFailedError):
        await container.replace_item(
            "1", {"id": "1", "t": "t1", "w": "w1"}, etag='"x"', match_condition=MatchConditions.IfNotModified
        )
    with pytest.raises(CosmosHttpResponseError) as mismatch:
        await container.read_item("1", ["t1"])
    assert (mismatch.value.status_code, mismatch.value.sub_status) == (400, 1001)


async def test_texts_survive(container: ContainerProxy) -> None:
    """Text of any script, lone surrogates and NUL come back as they were, compact or escaped on the wire."""
    text = "漢字 😀 é \ud800 \x00 \\ \" '"
    for name in ("plain", "ä ö+%"):
        await container.create_item({"id": name, "t": "t1", "w": text[:8], "text": text})
        assert (await container.read_item(name, ["t1", text[:8]]))["text"] == text


async def test_batch_is_atomic(container: ContainerProxy) -> None:
    """A batch is done whole, or fails at the operation that is to blame and leaves nothing."""
    await container.create_item({"id": "guard", "t": "t1", "w": "w1"})
    create = ("create", ({"id": "1", "t": "t1", "w": "w1"},))
    results = await container.execute_item_batch([("read", ("guard",)), create], ["t1", "w1"])
    assert [result["statusCode"] for result in results] == [200, 201]
    await container.delete_item("guard", ["t1", "w1"])
    with pytest.raises(CosmosBatchOperationError) as caught:
        await container.execute_item_batch(
            [("read", ("guard",)), ("create", ({"id": "2", "t": "t1", "w": "w1"},))], ["t1", "w1"]
        )
    assert (caught.value.error_index, caught.value.status_code) == (0, 404)
    assert await rows(container.query_items("SELECT VALUE c.id FROM c", partition_key=["t1", "w1"])) == ["1"]


async def test_queries_by_key(container: ContainerProxy) -> None:
    """A query with a full key, with a prefix and without any sees exactly the items of these keys."""
    for tenant, workflow in (("t1", "w1"), ("t1", "w2"), ("t10", "w1")):
        await container.create_item({"id": "x", "t": tenant, "w": workflow})
    text = "SELECT VALUE c.w FROM c WHERE c.id = @id"
    parameters = [{"name": "@id", "value": "x"}]
    full = container.query_items(text, parameters=parameters, partition_key=["t1", "w1"])
    prefix = container.query_items(text, parameters=parameters, partition_key=["t1"])
    crossing = container.query_items(text, parameters=parameters)
    assert await rows(full) == ["w1"]
    assert sorted(await rows(prefix)) == ["w1", "w2"]
    assert len(await rows(crossing)) == 3
    assert len(await rows(container.read_all_items())) == 3
    assert await rows(container.query_items("SELECT VALUE COUNT(1) FROM c", partition_key=["t1"])) == [2]


async def test_newest_of_a_range(container: ContainerProxy) -> None:
    """The query for the newest item of a range gives it, in the form the SDK asks for it."""
    for number in range(20):
        await container.create_item({"id": f"{number}", "t": "t1", "w": "w1", "sort_key": f"{number % 2}|{number:02}"})
    latest = container.query_items(
        "SELECT * FROM c WHERE c.t=@t AND c.w=@w AND c.sort_key >= @lo AND c.sort_key < @hi"
        " ORDER BY c.sort_key DESC OFFSET 0 LIMIT 1",
        parameters=[
            {"name": "@t", "value": "t1"},
            {"name": "@w", "value": "w1"},
            {"name": "@lo", "value": "0|"},
            {"name": "@hi", "value": "0}"},
        ],
        partition_key=["t1", "w1"],
    )
    assert [row["id"] for row in await rows(latest)] == ["18"]


@pytest.mark.parametrize("key", [None, ["t1"], ["t1", "w1"]], ids=["crossing", "prefix", "full"])
async def test_pages_resume(container: ContainerProxy, key: list[str] | None) -> None:
    """Pages follow one another by continuation tokens, each in a query of its own."""
    for number in range(10):
        await container.create_item({"id": f"{number}", "t": "t1", "w": "w1", "n": number})
    routing = {} if key is None else {"partition_key": key}
    token: str | None = None
    found: list[int] = []
    while True:
        query = container.query_items("SELECT VALUE c.n FROM c ORDER BY c.n", max_item_count=3, **routing)
        pages = query.by_page(token)
        found += [row async for row in await anext(pages)]
        token = pages.continuation_token
        if not token:
            break
    assert found == list(range(10))


async def test_clients_share_an_engine(account: EmbeddedAccount) -> None:
    """Two clients see each other's writes, and closing one leaves the other and the engine open."""
    async with client_of(account) as first:
        async with client_of(account) as second:
            await (await container_of(second)).create_item({"id": "1", "t": "t1", "w": "w1"})
        container = await container_of(first)
        assert (await container.read_item("1", ["t1", "w1"]))["id"] == "1"


async def test_accounts_are_apart(account: EmbeddedAccount) -> None:
    """Two accounts in one process share neither items nor what their clients remember of containers."""
    other = await open_embedded(None)
    assert other.endpoint != account.endpoint
    async with client_of(account) as first, client_of(other) as second:
        ours, theirs = await container_of(first), await container_of(second)
        await ours.create_item({"id": "1", "t": "t1", "w": "w1"})
        assert await rows(theirs.query_items("SELECT * FROM c", partition_key=["t1"])) == []
        assert len(await rows(ours.query_items("SELECT * FROM c", partition_key=["t1"]))) == 1
    await other.close()


async def test_recreated_container_is_found_again(account: EmbeddedAccount) -> None:
    """A client that knows a container which another one has deleted and made again goes on with the new one."""
    async with client_of(account) as first, client_of(account) as second:
        container = await container_of(first)
        await container.create_item({"id": "1", "t": "t1", "w": "w1"})
        await second.get_database_client("db").delete_container("c")
        await container_of(second)
        await container.create_item({"id": "1", "t": "t1", "w": "w1"})
        assert len(await rows(container.query_items("SELECT * FROM c", partition_key=["t1"]))) == 1


async def test_containers_of_any_key(account: EmbeddedAccount) -> None:
    """Single keys of both versions and keys of three levels store, find and separate items."""
    keys = {
        "v1": (PartitionKey("/t", version=1), "t1", "t2"),
        "v2": (PartitionKey("/t"), "t1", "t2"),
        "three": (PartitionKey(["/t", "/w", "/x"], kind="MultiHash"), ["t1", "w", 1.5], ["t1", "w", True]),
    }
    async with client_of(account) as client:
        database = await client.create_database("db")
        for name, (key, own, other) in keys.items():
            container = await database.create_container(name, partition_key=key)
            await container.create_item({"id": "1", "t": "t1", "w": "w", "x": 1.5})
            assert (await container.read_item("1", own))["id"] == "1"
            assert len(await rows(container.query_items("SELECT * FROM c", partition_key=own))) == 1
            assert await rows(container.query_items("SELECT * FROM c", partition_key=other)) == []
            ranged = container.query_items(
                "SELECT * FROM c", feed_range=await container.feed_range_from_partition_key(own)
            )
            assert len(await rows(ranged)) == 1
            assert (await container.read())["partitionKey"]["version"] == key["version"]


async def test_metadata_lists(account: EmbeddedAccount) -> None:
    """Databases and containers are listed, replaced and deleted through the client."""
    async with client_of(account) as client:
        await container_of(client)
        database = client.get_database_client("db")
        assert [each["id"] async for each in client.list_databases()] == ["db"]
        assert [each["id"] async for each in database.list_containers()] == ["c"]
        await database.replace_container("c", partition_key=KEY, default_ttl=60)
        assert (await database.get_container_client("c").read())["defaultTtl"] == 60
        await client.delete_database("db")
        assert [each async for each in client.list_databases()] == []


async def test_many_writes_at_once(container: ContainerProxy) -> None:
    """Writes that run at the same time are all done."""
    items = [{"id": f"{number}", "t": f"t{number % 5}", "w": "w"} for number in range(100)]
    await asyncio.gather(*(container.create_item(item) for item in items))
    assert await rows(container.query_items("SELECT VALUE COUNT(1) FROM c")) == [100]


async def test_closed_account_says_so(account: EmbeddedAccount) -> None:
    """A client that outlives its account gets the engine's own error at once; closing twice is allowed."""
    async with client_of(account) as client:
        container = await container_of(client)
        await account.close()
        await account.close()
        with pytest.raises(EngineClosedError):
            await container.create_item({"id": "1", "t": "t1", "w": "w1"})


async def test_compact_bodies_and_minimal_answers(account: EmbeddedAccount) -> None:
    """The client's compact UTF-8 bodies and answers without content work as with the service."""
    async with client_of(account, enable_compact_utf8_item_writes=True, no_response_on_write=True) as client:
        container = await container_of(client)
        answer = await container.create_item({"id": "é", "t": "t1", "w": "漢"})
        assert dict(answer) == {}
        assert answer.get_response_headers()["etag"]
        assert (await container.read_item("é", ["t1", "漢"]))["w"] == "漢"


async def test_responses_read_like_others(account: EmbeddedAccount) -> None:
    """A response gives its body to azure-core's policies in every way they ask for it."""
    async with account.transport() as transport:
        await transport.open()
        response = await transport.send(HttpRequest("GET", account.endpoint, headers={"Accept": "*/*"}))
    assert response.body() == await response.read() == response.text().encode()
    assert (response.status_code, response.reason, response.content_type) == (200, "OK", "application/json")
    assert response.headers["X-MS-Request-Charge"] == "1"
