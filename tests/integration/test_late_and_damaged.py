"""Requests that arrive after they were given up, and items that somebody else has damaged: what follows is unharmed."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from typing import Any

import pytest

from cosmos_workflow_state import CosmosStateFactory, CosmosStateSettings, TenantCheckpointStorage, errors
from cosmos_workflow_state.typing import EraseProgress
from support.faults import FaultyTransport, Late, faulty_client, let_pass, then
from support.items import StoredItems
from support.references import missing, unreferenced
from support.states import ALLOWED_TYPES, WORKFLOW, checkpoint

Wire = tuple[TenantCheckpointStorage, FaultyTransport, StoredItems]


def noise(size: int, seed: int = 0) -> dict[str, bytes]:
    """Return a state that does not compress."""
    return {"noise": random.Random(seed).randbytes(size)}


KEYFRAME, PARTS = noise(100_000), noise(700_000)


@pytest.fixture
async def wire(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Wire]:
    """Yield a storage on an engine in memory, the transport under it, and the way behind its back."""
    monkeypatch.setattr("cosmos_workflow_state._gateway._FIRST_DELAY", 0.0)
    monkeypatch.setattr("cosmos_workflow_state._reading._DELAYS", (0.0, 0.0))
    settings = CosmosStateSettings(endpoint="embedded:", allowed_checkpoint_types=ALLOWED_TYPES)
    async with faulty_client() as (client, transport), CosmosStateFactory(settings, client=client) as factory:
        storage = factory.for_tenant("contoso").checkpoints
        await storage.save(checkpoint("cp-0", state=KEYFRAME))
        container = client.get_database_client(settings.database).get_container_client(settings.checkpoint_container)
        yield storage, transport, StoredItems(container)


async def test_a_guard_that_arrives_late_guards_nothing(wire: Wire) -> None:
    """A guard whose answer was lost is not used: standing there again, it would let parts be named that are gone."""
    storage, transport, items = wire
    late = Late()
    transport.faults = [late]
    await storage.save(checkpoint("cp-1", state=PARTS))
    used = {item["write_id"] for item in await items.all() if item["type"] == "part"}

    # The repeat of it has worked: the guard stands there, for nothing, until it expires.
    assert await late.arrive() == 409
    (guard,) = [item for item in await items.all() if item["type"] == "upload_guard"]
    assert guard["write_id"] not in used
    assert (await storage.load("cp-1")).state == PARTS


async def test_a_delete_that_arrives_late_deletes_nothing_newer(wire: Wire) -> None:
    """A delete names the version it means; what was saved under the id since is another one."""
    storage, transport, _ = wire
    late = Late()
    transport.faults = [let_pass, late]
    assert await storage.delete("cp-0") is True
    again = checkpoint("cp-0", state={"again": 1})
    await storage.save(again)

    assert await late.arrive() == 207
    assert await storage.load("cp-0") == again


async def test_a_replacement_that_arrives_late_replaces_nothing_newer(wire: Wire) -> None:
    """Demand 16: a save under an id that is there names the version it means; what was saved since is another one."""
    storage, transport, _ = wire
    late = Late()
    transport.faults = [let_pass, let_pass, late]
    await storage.save(checkpoint("cp-0", state={"version": 1}))
    newer = checkpoint("cp-0", state={"version": 2})
    await storage.save(newer)

    assert await late.arrive() == 207
    assert await storage.load("cp-0") == newer


async def test_a_delete_meets_the_version_that_replaced_what_it_read(wire: Wire) -> None:
    """Replaced between the reading and the deleting: read again, and deleted."""
    storage, transport, items = wire
    other = checkpoint("cp-0", state=PARTS)
    transport.faults = [let_pass, then(lambda: _saved(storage, transport, other))]

    assert await storage.delete("cp-0") is True
    assert [item for item in await items.all() if item["type"] in {"checkpoint", "part"}] == []


async def test_a_delete_that_is_overtaken_by_another_is_false(wire: Wire) -> None:
    """Deleted by somebody else between the reading and the deleting."""
    storage, transport, items = wire

    async def delete() -> None:
        transport.faults.clear()
        assert await storage.delete("cp-0")

    transport.faults = [let_pass, then(delete)]
    assert await storage.delete("cp-0") is False
    assert unreferenced(await items.all()) == set()


async def test_a_delete_that_never_meets_the_version_it_read(wire: Wire) -> None:
    """Replaced each time: a conflict, nothing deleted."""
    storage, transport, _ = wire
    versions = iter(range(20))

    async def replace() -> None:
        kept, transport.faults = transport.faults, []
        await storage.save(checkpoint("cp-0", state={"version": next(versions)}))
        transport.faults = kept

    transport.faults = [let_pass, *[then(replace), let_pass] * 5]
    with pytest.raises(errors.CheckpointConflictError):
        await storage.delete("cp-0")
    assert (await storage.load("cp-0")).state == {"version": 4}


async def test_what_is_saved_anew_while_a_scope_is_erased_stays(wire: Wire) -> None:
    """Saved between the listing and the deleting of its id: it is whole afterwards."""
    storage, transport, items = wire
    anew = checkpoint("cp-0", state=noise(100_000, seed=1))
    # Two listings of guards and the batch that deletes them, the listing of checkpoints, and then their batch.
    transport.faults = [*[let_pass] * 4, then(lambda: _saved(storage, transport, anew))]

    told: list[EraseProgress] = []
    done = await storage.erase(progress=told.append)
    assert (done.guards, done.checkpoints, done.keyframes) == (1, 0, 1)
    assert (told[0], told[-1]) == (EraseProgress(guards=1), done)
    assert await storage.load("cp-0") == anew
    assert missing(await items.all()) == unreferenced(await items.all()) == set()


async def _saved(storage: TenantCheckpointStorage, transport: FaultyTransport, one: Any) -> None:
    kept, transport.faults = transport.faults, []
    await storage.save(one)
    transport.faults = kept


async def test_erasing_says_what_it_could_not_read(wire: Wire) -> None:
    """What a later version has stored is not taken for erased: the rest is gone, and an error counts what is left."""
    storage, _, items = wire
    await storage.save(checkpoint("cp-1", state={**KEYFRAME, "a": 1}))
    await items.overwrite("contoso", "cp-1", schema=2)

    with pytest.raises(errors.CheckpointCorruptError, match=r"^1 items of this scope cannot be read"):
        await storage.erase()
    left = await items.all()
    assert sorted(item["type"] for item in left) == ["checkpoint", "keyframe"]
    assert missing(left) == set(), "what the checkpoint that is left refers to is left, too"


@pytest.mark.parametrize("name", ["", "../kf", "a/b", "a?b#c", "\ud800", "x" * 2000], ids=ascii)
@pytest.mark.parametrize("field", ["keyframe", "write_id"])
async def test_an_id_that_nobody_wrote_is_damage(wire: Wire, field: str, name: str) -> None:
    """Demand 30: ids inside items become URLs: a strange one is a damaged checkpoint, not a refused request."""
    storage, transport, items = wire
    stored = await items.read("contoso", "cp-0")
    await items.overwrite("contoso", "cp-0", payload={**stored["payload"], "parts": 1, field: name})

    with pytest.raises(errors.CheckpointCorruptError):
        await storage.load("cp-0")
    transport.sent.clear()
    assert await storage.list_checkpoints(workflow_name=WORKFLOW) == []
    assert transport.sent == ["POST"]


async def test_a_damaged_part_does_not_keep_a_tenant_from_being_swept(wire: Wire) -> None:
    """What cannot be read is left alone; everything else is swept."""
    storage, _, items = wire
    await storage.save(checkpoint("cp-1", state=PARTS))
    part = next(item for item in await items.all() if item["type"] == "part")
    await items._container.upsert_item({**part, "id": "pt:elsewhere:0000", "owner": "", "write_id": "elsewhere"})
    await storage.for_workflow(WORKFLOW).delete("cp-0")

    report = await storage.sweep()
    assert report.uploads == 0
    assert (await storage.load("cp-1")).state == PARTS


async def test_the_same_with_another_life_is_another_checkpoint(wire: Wire) -> None:
    """Demand 8: pinning what would expire takes effect, although its content is there already."""
    storage, _, items = wire
    one = checkpoint("cp-1", state={"a": 1})
    await storage.with_ttl(60).save(one)
    await storage.save(one)
    assert "ttl" not in await items.read("contoso", "cp-1")


async def test_what_hears_of_progress_is_an_ordinary_function(wire: Wire) -> None:
    """Refused before anything is deleted."""
    storage, _, items = wire

    async def progress(_: EraseProgress) -> None:
        """Be awaited by nobody."""

    for wrong in (progress, "progress"):
        with pytest.raises(errors.InvalidArgumentError, match=r"^progress must be an ordinary function"):
            await storage.erase(progress=wrong)  # type: ignore[arg-type]
    assert [item["type"] for item in await items.all()].count("checkpoint") == 1
