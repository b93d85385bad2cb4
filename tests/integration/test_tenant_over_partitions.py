"""A tenant so large that the service has split it over several physical partitions: the client merges nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
from azure.cosmos import PartitionKey
from azure.cosmos.aio import CosmosClient

from cosmos_workflow_state import CosmosStateFactory, CosmosStateSettings, TenantCheckpointStorage
from cosmos_workflow_state._definitions import CHECKPOINTS
from cosmos_workflow_state._embedded import open_embedded
from cosmos_workflow_state.emulator import _partition
from support.states import ALLOWED_TYPES, checkpoint

TENANT = "contoso"
NAMES = [f"workflow-{number}" for number in range(12)]
START = datetime(2026, 11, 29, 10, tzinfo=UTC)


def _split_within_the_tenant(key: _partition.PartitionKey, _count: int) -> tuple[_partition.KeyRange, ...]:
    """Cut the keys in the middle of the tenant's; the engine cuts them evenly, which never meets one tenant."""
    middle = key.effective((TENANT,)) + b"\x20"
    return (_partition.KeyRange(b"", middle), _partition.KeyRange(middle, _partition.EVERYTHING.end))


@pytest.fixture
async def client(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[CosmosClient]:
    """Yield a client of a container in which the tenant has two physical partitions."""
    monkeypatch.setattr(_partition.PartitionKey, "split", _split_within_the_tenant)
    account = await open_embedded(None)
    async with CosmosClient(account.endpoint, account.key, transport=account.transport()) as opened:
        database = await opened.create_database("workflow-state")
        await database.create_container(
            "checkpoints",
            PartitionKey(list(CHECKPOINTS.partition_key_paths), kind="MultiHash"),
            indexing_policy=CHECKPOINTS.indexing_policy,
            default_ttl=-1,
            offer_throughput=20_000,
        )
        yield opened
    await account.close()


@pytest.fixture
async def storage(client: CosmosClient) -> AsyncIterator[TenantCheckpointStorage]:
    """Yield the storage of the tenant, with a checkpoint and its child in each of twelve workflows."""
    settings = CosmosStateSettings(endpoint="embedded:", allowed_checkpoint_types=ALLOWED_TYPES, _env_file=None)
    async with CosmosStateFactory(settings, client=client) as factory:
        storage = factory.for_tenant(TENANT).checkpoints
        for number, name in enumerate(NAMES):
            timestamp = (START + timedelta(seconds=number)).isoformat()
            await storage.save(checkpoint("root", workflow=name))
            await storage.save(
                checkpoint(f"cp-{number}", workflow=name, previous_checkpoint_id="root", timestamp=timestamp)
            )
        await factory.for_tenant("fabrikam").checkpoints.save(checkpoint("other", previous_checkpoint_id="root"))
        yield storage


async def test_the_tenant_has_several_partitions(client: CosmosClient, storage: TenantCheckpointStorage) -> None:
    """The two physical partitions have workflows of the tenant each, and the client only joins what they answer."""
    del storage
    container = client.get_database_client("workflow-state").get_container_client("checkpoints")
    query = "SELECT VALUE c.workflow_name FROM c WHERE c.checkpoint_id != 'root' ORDER BY c.sort_key"
    ranges = [each async for each in container.read_feed_ranges()]
    parts = [[name async for name in container.query_items(query, feed_range=each)] for each in ranges]
    assert len(parts) == 2
    assert all(set(part) & set(NAMES) for part in parts)
    joined = [name async for name in container.query_items(query, partition_key=[TENANT])]
    assert sorted(joined) == sorted(NAMES)
    assert joined != NAMES  # which is the order that was asked for


async def test_names_and_children_are_merged(storage: TenantCheckpointStorage) -> None:
    """What comes from several partitions is each once, and in one order."""
    assert await storage.list_workflows() == sorted(NAMES)
    children = await storage.list_children("root")
    assert [child.checkpoint_id for child in children] == [f"cp-{number}" for number in range(len(NAMES))]
    assert [child.workflow_name for child in children] == NAMES


async def test_one_workflow_is_found_among_them(storage: TenantCheckpointStorage) -> None:
    """A lineage and an iteration are those of one workflow, in whichever partition it is."""
    for number, name in enumerate(NAMES):
        lineage = await storage.lineage(f"cp-{number}")
        assert [one.checkpoint_id for one in lineage] == ["root", f"cp-{number}"]
        assert [one.checkpoint_id async for one in storage.iter_checkpoint_headers(name)] == ["root", f"cp-{number}"]
