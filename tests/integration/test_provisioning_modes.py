"""Repairing a container, and what a new one is created with; what is said of each kind is in the table beside this."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from azure.cosmos.aio import ContainerProxy, CosmosClient

from cosmos_workflow_state import errors
from cosmos_workflow_state._definitions import CHECKPOINTS
from cosmos_workflow_state._embedded import open_embedded
from cosmos_workflow_state._provisioning import ProvisioningMode, Repair, open_container, repair_container
from cosmos_workflow_state._throughput import Throughput
from support.drifts import DRIFTS, Drift, make_drifted

DATABASE = "workflow-state"
NAME = "checkpoints"
RIGHT = CHECKPOINTS.properties(NAME)
POLICY = RIGHT["indexingPolicy"]


@pytest.fixture
async def client() -> AsyncIterator[CosmosClient]:
    """Yield an open client of an engine in memory."""
    account = await open_embedded(None)
    async with CosmosClient(account.endpoint, account.key, transport=account.transport()) as opened:
        yield opened
    await account.close()


def policy(**changes: Any) -> dict[str, Any]:
    """Return a change of the indexing policy."""
    return {"indexingPolicy": POLICY | changes}


async def made(client: CosmosClient, changes: dict[str, Any]) -> ContainerProxy:
    """Create the database, and in it a container as it must be except for some changes."""
    await client.create_database(DATABASE)
    definition = {name: value for name, value in (RIGHT | changes).items() if value is not None}
    await client.client_connection.CreateContainer(f"dbs/{DATABASE}", definition)
    return client.get_database_client(DATABASE).get_container_client(NAME)


async def opened(client: CosmosClient, mode: ProvisioningMode, **arguments: Any) -> ContainerProxy:
    """Open the container."""
    return await open_container(client, database=DATABASE, container=NAME, mode=mode, wanted=CHECKPOINTS, **arguments)


async def repaired(client: CosmosClient) -> Repair:
    """Repair the container."""
    return await repair_container(client, database=DATABASE, container=NAME, wanted=CHECKPOINTS)


@pytest.mark.parametrize("drift", DRIFTS.values(), ids=list(DRIFTS))
async def test_repair(client: CosmosClient, drift: Drift) -> None:
    """What can be repaired is, once, and told; with another partition key nothing is; what is right is not sent."""
    container = await make_drifted(client, DATABASE, NAME, drift)
    before = await container.read()
    repair = await repaired(client)
    assert [one.subject for one in (*repair.remaining, *repair.changed)] == [subject for subject, _ in drift.said]
    assert repair.remaining == () or (repair.changed == () and not drift.repairable)
    after = await container.read()
    assert (after == before) is (not repair.changed)
    again = await repaired(client)
    assert (again.changed, again.remaining) == ((), repair.remaining)
    assert await container.read() == after
    if drift.repairable:
        assert await opened(client, "verify") is not None


async def test_repair_keeps_what_users_define(client: CosmosClient) -> None:
    """Unique keys, which the client's own replacing drops, outlive a repair."""
    unique = {"uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/number"]}]}}
    container = await made(client, unique | {"defaultTtl": None})
    assert (await repaired(client)).changed != ()
    assert (await container.read())["uniqueKeyPolicy"] == unique["uniqueKeyPolicy"]


async def test_repair_keeps_what_others_query(client: CosmosClient) -> None:
    """Their paths and composite indexes outlive a repair of the policy, and still serve; the payload's does not."""
    own, composite = {"path": "/iteration_count/?"}, [[{"path": "/a"}, {"path": "/b"}]]
    paths = [path for path in POLICY["includedPaths"] if path["path"] != "/sort_key/?"]
    wrong = policy(includedPaths=[*paths, own, {"path": "/payload/*"}], compositeIndexes=composite)
    container = await made(client, wrong)
    assert len((await repaired(client)).changed) == 2
    found = (await container.read())["indexingPolicy"]
    assert own in found["includedPaths"]
    assert {"path": "/payload/*"} not in found["includedPaths"]
    assert len(found["compositeIndexes"]) == 1
    query = "SELECT VALUE c.id FROM c ORDER BY c.iteration_count"
    assert [one async for one in container.query_items(query, partition_key=["t", "w"])] == []


async def test_repair_leaves_the_framework_to_itself(client: CosmosClient) -> None:
    """A container of its own store is not ours: its queries, which need its own indexes, go on as before."""
    container = await make_drifted(client, DATABASE, NAME, DRIFTS["the framework's own"])
    before = await container.read()
    assert (await repaired(client)).changed == ()
    assert await container.read() == before
    query = "SELECT * FROM c ORDER BY c.timestamp DESC"
    assert [one async for one in container.query_items(query, partition_key="w")] == []


async def test_repair_keeps_items_and_other_indexes(client: CosmosClient) -> None:
    """Items stay, and so do the indexes of several properties that somebody has added."""
    included = [*POLICY["includedPaths"], {"path": "/iteration_count/?"}]
    composite = [[{"path": "/a", "order": "ascending"}, {"path": "/b", "order": "ascending"}]]
    container = await made(client, policy(compositeIndexes=composite, includedPaths=included) | {"defaultTtl": 3600})
    before = await container.read()
    await container.create_item({"id": "x", "tenant_id": "t", "workflow_name": "w"})
    repair = await repaired(client)
    assert [one.subject for one in repair.changed] == ["default TTL"]
    assert (await container.read())["indexingPolicy"] == before["indexingPolicy"]
    assert (await container.read_item("x", ["t", "w"]))["id"] == "x"


async def test_repair_of_nothing(client: CosmosClient) -> None:
    """A container that is not there is no container to repair."""
    with pytest.raises(errors.ProvisioningError, match="there is no container"):
        await repaired(client)


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
