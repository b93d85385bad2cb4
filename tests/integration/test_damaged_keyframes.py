"""Keyframes and parts that are damaged, foreign or gone, and what was deleted while it was being read."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from typing import Any

import pytest
from azure.cosmos.aio import CosmosClient

from cosmos_workflow_state import CosmosStateFactory, CosmosStateSettings, TenantCheckpointStorage, errors
from cosmos_workflow_state._clients import CLIENT_OPTIONS
from cosmos_workflow_state._embedded import open_embedded
from support.faults import FaultyTransport, faulty_client, let_pass, then
from support.items import StoredItems
from support.references import unreferenced
from support.states import ALLOWED_TYPES, WORKFLOW, checkpoint

SETTINGS = CosmosStateSettings(endpoint="embedded:", allowed_checkpoint_types=ALLOWED_TYPES)
Wire = tuple[TenantCheckpointStorage, FaultyTransport, StoredItems]


def noise(size: int, seed: int = 0) -> dict[str, bytes]:
    """Return a state that does not compress."""
    return {"noise": random.Random(seed).randbytes(size)}


@pytest.fixture
async def wire(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Wire]:
    """Yield a storage that remembers no keyframe, the transport under it, and the way behind its back."""
    monkeypatch.setattr("cosmos_workflow_state._keyframes._MAX_BYTES", 0)
    monkeypatch.setattr("cosmos_workflow_state._keyframes.KeyframeMemory.get", lambda *_: None)
    monkeypatch.setattr("cosmos_workflow_state._reading._DELAYS", (0.0, 0.0))
    async with faulty_client() as (client, transport), CosmosStateFactory(SETTINGS, client=client) as factory:
        storage = factory.for_tenant("contoso").checkpoints
        await storage.save(checkpoint("cp-0", state=noise(100_000)))
        container = client.get_database_client(SETTINGS.database).get_container_client(SETTINGS.checkpoint_container)
        yield storage, transport, StoredItems(container)


async def _change(items: StoredItems, kind: str, **fields: Any) -> None:
    for item in await items.all():
        if item["type"] == kind:
            await items._container.upsert_item({**item, **fields})


@pytest.mark.parametrize(
    "fields",
    [
        {"digest": "sha256:" + "0" * 64},
        {"size": 64 * 1024 * 1024 + 1},
        {"size": 99},
        {"data": "AAAA"},
        {"scope": "another"},
        {"type": "part"},
        {"schema": 2},
    ],
    ids=repr,
)
async def test_a_damaged_keyframe(wire: Wire, fields: dict[str, Any]) -> None:
    """Whatever is wrong with a keyframe, its checkpoint is corrupt; nothing else is read in its place."""
    storage, _, items = wire
    await _change(items, "keyframe", **fields)
    for read in (storage.load("cp-0"), storage.get_latest(workflow_name=WORKFLOW)):
        with pytest.raises(errors.CheckpointCorruptError):
            await read


@pytest.mark.parametrize("kind", ["keyframe", "part"])
async def test_what_is_named_and_not_there(wire: Wire, kind: str) -> None:
    """Looked for again, then corrupt and never "not found"."""
    storage, _, items = wire
    await storage.save(checkpoint("cp-0", state=noise(400_000)))
    for item in await items.all():
        if item["type"] == kind:
            await items._container.delete_item(item["id"], [item["tenant_id"], item["workflow_name"]])
    with pytest.raises(errors.CheckpointCorruptError, match="a keyframe or part that is not there"):
        await storage.load("cp-0")


async def test_a_part_of_another_scope(wire: Wire) -> None:
    """A part whose fields say another owner is nobody's."""
    storage, _, items = wire
    await storage.save(checkpoint("cp-0", state=noise(400_000)))
    await _change(items, "part", scope="another")
    with pytest.raises(errors.CheckpointCorruptError):
        await storage.load("cp-0")


async def test_deleted_while_it_is_read(wire: Wire) -> None:
    """Gone with its keyframe between the two requests of a load: not found, not corrupt."""
    storage, transport, _ = wire
    transport.faults = [let_pass, then(lambda: _gone(storage, transport, "cp-0"))]
    with pytest.raises(errors.CheckpointNotFoundError):
        await storage.load("cp-0")


async def test_the_latest_is_deleted_while_it_is_read(wire: Wire) -> None:
    """The one before it is the latest then; where that goes on, it is a conflict."""
    storage, transport, _ = wire
    for number in range(1, 8):
        await storage.save(checkpoint(f"cp-{number}", timestamp=f"2030-01-0{number}", state=noise(100_000, number)))
    transport.faults = [let_pass, then(lambda: _gone(storage, transport, "cp-7"))]
    latest = await storage.get_latest(workflow_name=WORKFLOW)
    assert latest is not None
    assert latest.checkpoint_id == "cp-6"

    newest = iter(["cp-6", "cp-5", "cp-4", "cp-3", "cp-2"])
    once = [let_pass, then(lambda: _gone(storage, transport, next(newest))), let_pass]
    transport.faults = once * 5
    with pytest.raises(errors.CheckpointConflictError):
        await storage.get_latest(workflow_name=WORKFLOW)


async def _gone(storage: TenantCheckpointStorage, transport: FaultyTransport, checkpoint_id: str) -> None:
    kept, transport.faults = transport.faults, []
    await storage.delete(checkpoint_id)
    await storage.sweep()
    transport.faults = kept


async def test_a_sweep_after_a_delete_is_bounded_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody waits for the delete: it collects so many, the next one goes on, and then an hour passes."""
    monkeypatch.setattr("cosmos_workflow_state._sweeping._AT_MOST", 2)
    async with faulty_client() as (client, _), CosmosStateFactory(SETTINGS, client=client) as factory:
        storage = factory.for_tenant("contoso").checkpoints
        container = client.get_database_client(SETTINGS.database).get_container_client(SETTINGS.checkpoint_container)
        items = StoredItems(container)
        for number in range(5):
            await storage.save(checkpoint(f"cp-{number}", state=noise(5_000, number)))
        left = [item for item in await items.all() if item["type"] == "checkpoint"]
        for item in left[1:]:
            await items._container.delete_item(item["id"], [item["tenant_id"], item["workflow_name"]])
        keyframes = []
        for checkpoint_id in ("cp-0", "cp-9"):
            await storage.delete(checkpoint_id)
            keyframes.append(len([item for item in await items.all() if item["type"] == "keyframe"]))
        assert keyframes == [3, 3], "nothing was deleted the second time, so nothing was swept"
        await storage.save(checkpoint("cp-5", state={"a": 1}))
        await storage.delete("cp-5")
        await storage.save(checkpoint("cp-6", state={"a": 1}))
        await storage.delete("cp-6")
        assert unreferenced(await items.all()) == set()


async def test_an_account_that_does_not_order_reads_is_not_swept() -> None:
    """Without sessions a keyframe in use may look unused: sweep says so, and delete leaves it out."""
    account = await open_embedded(None)
    options: dict[str, Any] = {**CLIENT_OPTIONS, "consistency_level": "Eventual"}
    async with (
        CosmosClient(account.endpoint, account.key, transport=account.transport(), **options) as client,
        CosmosStateFactory(SETTINGS, client=client) as factory,
    ):
        storage = factory.for_tenant("contoso").checkpoints
        await storage.save(checkpoint("cp-0", state=noise(400_000)))
        await storage.save(checkpoint("cp-0", state=noise(400_000, 1)))
        with pytest.raises(errors.ProvisioningError, match="Session"):
            await storage.sweep()
        assert await storage.delete("cp-0") is True
        assert (await storage.erase()).keyframes == 2
    await account.close()
