"""Every kind of drift in every mode: what is said, what is created, and that nothing that exists is changed unasked."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from azure.cosmos.aio import ContainerProxy, CosmosClient

from cosmos_workflow_state import errors
from cosmos_workflow_state._definitions import CHECKPOINTS
from cosmos_workflow_state._embedded import open_embedded
from cosmos_workflow_state._provisioning import ProvisioningMode, open_container, repair_container
from cosmos_workflow_state._throughput import Throughput

DATABASE = "workflow-state"
NAME = "checkpoints"
RIGHT = CHECKPOINTS.properties(NAME)
POLICY = RIGHT["indexingPolicy"]
SORT_KEY = {"path": "/sort_key/?"}


@pytest.fixture
async def client() -> AsyncIterator[CosmosClient]:
    """Yield an open client of an engine in memory."""
    account = await open_embedded(None)
    async with CosmosClient(account.endpoint, account.key, transport=account.transport()) as opened:
        yield opened
    await account.close()


def key(*paths: str, kind: str = "MultiHash", version: int = 2) -> dict[str, Any]:
    """Return a change of the partition key."""
    return {"partitionKey": {"paths": list(paths), "kind": kind, "version": version}}


def policy(**changes: Any) -> dict[str, Any]:
    """Return a change of the indexing policy."""
    return {"indexingPolicy": POLICY | changes}


DRIFT: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "nothing": ({}, ()),
    "other paths": (key("/tenant_id", "/scope"), ("partition key is ['/tenant_id', '/scope'] (MultiHash",)),
    "order": (key("/workflow_name", "/tenant_id"), ("in another order",)),
    "kind": (key("/tenant_id", kind="Hash"), ("['/tenant_id'] (Hash, version 2)",)),
    "version": (key("/workflow_name", kind="Hash", version=1), ("(Hash, version 1)",)),
    "TTL off": ({"defaultTtl": None}, ("time to live is off, so the service ignores the TTL of items",)),
    "TTL positive": ({"defaultTtl": 3600}, ("default TTL is 3600 seconds",)),
    "payload indexed": (
        policy(includedPaths=[*POLICY["includedPaths"], {"path": "/payload/data/?"}]),
        ("indexes the payload (/payload/data)",),
    ),
    "everything indexed": (
        policy(includedPaths=[{"path": "/*"}], excludedPaths=[{"path": '/"_etag"/?'}]),
        ("includes /*",),
    ),
    "sort_key not indexed": (
        policy(includedPaths=[path for path in POLICY["includedPaths"] if path != SORT_KEY]),
        ("does not index /sort_key/? (to find the latest",),
    ),
    "the framework's own container": (
        {
            **key("/workflow_name", kind="Hash"),
            "defaultTtl": None,
            **policy(includedPaths=[{"path": "/*"}], excludedPaths=[]),
        },
        ("as the framework's own store has it", "time to live is off", "includes /*"),
    ),
}


async def made(client: CosmosClient, changes: dict[str, Any]) -> ContainerProxy:
    """Create the database, and in it a container as it must be except for some changes."""
    await client.create_database(DATABASE)
    definition = {name: value for name, value in (RIGHT | changes).items() if value is not None}
    await client.client_connection.CreateContainer(f"dbs/{DATABASE}", definition)
    return client.get_database_client(DATABASE).get_container_client(NAME)


async def opened(client: CosmosClient, mode: ProvisioningMode, **arguments: Any) -> ContainerProxy:
    """Open the container."""
    return await open_container(client, database=DATABASE, container=NAME, mode=mode, **arguments)


@pytest.mark.parametrize("mode", ["verify", "create", "skip"])
@pytest.mark.parametrize("drift", DRIFT)
async def test_drift(client: CosmosClient, drift: str, mode: ProvisioningMode) -> None:
    """All that differs is in one error, with remedies; skip looks at nothing; the container stays as it was."""
    changes, said = DRIFT[drift]
    container = await made(client, changes)
    before = await container.read()
    if mode == "skip" or not said:
        assert (await opened(client, mode)).id == NAME
    else:
        with pytest.raises(errors.ProvisioningError) as caught:
            await opened(client, mode)
        assert len(caught.value.problems) == len(said)
        for expected, problem in zip(said, caught.value.problems, strict=True):
            assert expected in problem
            assert problem in str(caught.value)
            assert ": " in problem
    assert await container.read() == before


@pytest.mark.parametrize("drift", DRIFT)
async def test_repair(client: CosmosClient, drift: str) -> None:
    """What can be repaired is, once; a partition key is named as remaining; the rest of the definition stays."""
    unique = {"uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/number"]}]}}
    changes, said = DRIFT[drift]
    container = await made(client, changes | unique)
    before = await container.read()
    repair = await repair_container(client, database=DATABASE, container=NAME)
    assert [str(one) for one in (*repair.remaining, *repair.changed)] != [] or not said
    assert all(one.subject == "partition key" for one in repair.remaining)
    assert len(repair.remaining) + len(repair.changed) == len(said)
    after = await container.read()
    assert after["partitionKey"] == before["partitionKey"]
    assert after["uniqueKeyPolicy"] == unique["uniqueKeyPolicy"]
    again = await repair_container(client, database=DATABASE, container=NAME)
    assert (again.changed, again.remaining) == ((), repair.remaining)
    assert await container.read() == after
    if not repair.changed:
        assert after == before
    if not repair.remaining:
        assert await opened(client, "verify") is not None


async def test_repair_keeps_items_and_other_indexes(client: CosmosClient) -> None:
    """Items stay, and so do the indexes of several properties that somebody has added."""
    included = [*POLICY["includedPaths"], {"path": "/iteration_count/?"}]
    composite = [[{"path": "/a", "order": "ascending"}, {"path": "/b", "order": "ascending"}]]
    container = await made(client, policy(compositeIndexes=composite, includedPaths=included) | {"defaultTtl": 3600})
    before = await container.read()
    await container.create_item({"id": "x", "tenant_id": "t", "workflow_name": "w"})
    repair = await repair_container(client, database=DATABASE, container=NAME)
    assert [one.subject for one in repair.changed] == ["default TTL"]
    assert (await container.read())["indexingPolicy"] == before["indexingPolicy"]
    assert (await container.read_item("x", ["t", "w"]))["id"] == "x"


async def test_repair_of_nothing(client: CosmosClient) -> None:
    """A container that is not there is no container to repair."""
    with pytest.raises(errors.ProvisioningError, match="there is no container"):
        await repair_container(client, database=DATABASE, container=NAME)


@pytest.mark.parametrize(
    ("throughput", "offered"),
    [
        ("serverless", (None, None)),
        ("manual:500", (500, None)),
        ("autoscale:2000", (None, 2000)),
    ],
)
async def test_throughput_of_a_new_container(
    client: CosmosClient, throughput: str, offered: tuple[int | None, int | None]
) -> None:
    """A container is created with what is asked for; without a word the service decides."""
    container = await opened(client, "create", throughput=Throughput.parse(throughput))
    if throughput != "serverless":
        found = await container.get_throughput()
        assert found.auto_scale_max_throughput == offered[1]
        assert offered[0] in {None, found.offer_throughput}
    assert await opened(client, "verify", throughput=Throughput.parse("manual:400")) is not None
