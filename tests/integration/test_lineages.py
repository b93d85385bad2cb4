"""Lineages, children and names of workflows: what is known of checkpoints without reading their states."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cosmos_workflow_state import CosmosStateFactory, CosmosStateSettings, TenantCheckpointStorage, errors
from cosmos_workflow_state.typing import CheckpointSummary
from support.items import stored_items
from support.states import WORKFLOW, chain, checkpoint
from support.targets import factory_of

START = datetime(2026, 11, 29, 10, tzinfo=UTC)


@pytest.fixture
def storage(factory: CosmosStateFactory) -> TenantCheckpointStorage:
    """Return the storage of one tenant."""
    return factory.for_tenant("contoso").checkpoints


def ids(summaries: list[CheckpointSummary]) -> list[str]:
    """Return which checkpoints they are about."""
    return [summary.checkpoint_id for summary in summaries]


async def test_lineage_from_the_root(storage: TenantCheckpointStorage) -> None:
    """The chain ends with the checkpoint that was asked for, whatever was saved after it."""
    for one in chain(5):
        await storage.save(one)
    assert ids(await storage.lineage("cp-003")) == ["cp-000", "cp-001", "cp-002", "cp-003"]
    assert ids(await storage.for_workflow(WORKFLOW).lineage("cp-000")) == ["cp-000"]


async def test_a_lineage_begins_where_an_ancestor_is_gone(storage: TenantCheckpointStorage) -> None:
    """Demand 7: what was deleted or has expired ends the chain, and is no error."""
    for one in chain(5):
        await storage.save(one)
    await storage.delete("cp-002")
    assert ids(await storage.lineage("cp-004")) == ["cp-003", "cp-004"]


@pytest.mark.parametrize("length", [1, 2, 3])
async def test_a_lineage_in_a_circle_ends(storage: TenantCheckpointStorage, length: int) -> None:
    """Parents that name one another, or themselves, are each listed once."""
    names = [f"cp-{number}" for number in range(length)]
    for number, name in enumerate(names):
        await storage.save(checkpoint(name, previous_checkpoint_id=names[number - 1]))
    assert ids(await storage.lineage(names[-1])) == names


async def test_a_lineage_never_leaves_out(file_settings: CosmosStateSettings) -> None:
    """Demand 30: an ancestor that cannot be read is not one that is gone; what is not in the chain does not matter."""
    async with factory_of(file_settings) as factory:
        for one in chain(4):
            await factory.for_tenant("contoso").checkpoints.save(one)
    async with stored_items(file_settings) as items:
        await items.overwrite("contoso", "cp-002", iteration_count="many")
    async with factory_of(file_settings) as factory:
        storage = factory.for_tenant("contoso").checkpoints
        with pytest.raises(errors.CheckpointCorruptError) as caught:
            await storage.lineage("cp-003")
        assert caught.value.checkpoint_id == "cp-002"
        assert ids(await storage.lineage("cp-001")) == ["cp-000", "cp-001"]


async def test_a_fork_is_seen(storage: TenantCheckpointStorage) -> None:
    """Demand 24: two writers that went on from one checkpoint are two children, and each has its own lineage."""
    for one in chain(2):
        await storage.save(one)
    for number, name in enumerate(["left", "right"], start=5):
        timestamp = (START + timedelta(seconds=number)).isoformat()
        await storage.save(checkpoint(name, previous_checkpoint_id="cp-001", timestamp=timestamp))
    assert ids(await storage.list_children("cp-001")) == ["left", "right"]
    assert ids(await storage.lineage("left")) == ["cp-000", "cp-001", "left"]
    assert ids(await storage.lineage("right")) == ["cp-000", "cp-001", "right"]
    assert await storage.list_children("left") == []


async def test_a_lineage_is_one_query(settings: CosmosStateSettings, events: list[MutableMapping[str, Any]]) -> None:
    """However many ancestors there are, it is a query of the workflow and not one request each."""
    async with factory_of(settings) as factory:
        storage = factory.for_tenant("contoso").checkpoints
        for one in chain(30):
            await storage.save(one)
        await storage.lineage("cp-000")
        assert len(await storage.lineage("cp-029")) == 30

    event = [event for event in events if event["event"] == "checkpoint.lineage_read"][-1]
    assert (event["requests"], event["count"], event["workflow_name"]) == (1, 30, WORKFLOW)


async def test_lineage_in_a_process_that_has_not_seen_it(file_settings: CosmosStateSettings) -> None:
    """Where an id lives is asked of the tenant when this process does not know."""
    async with factory_of(file_settings) as factory:
        for one in chain(3):
            await factory.for_tenant("contoso").checkpoints.save(one)
    async with factory_of(file_settings) as factory:
        assert ids(await factory.for_tenant("contoso").checkpoints.lineage("cp-001")) == ["cp-000", "cp-001"]


async def test_a_lineage_that_has_moved(file_settings: CosmosStateSettings) -> None:
    """What this process remembers of an id is a hint: another process has put it into another workflow since."""
    async with factory_of(file_settings) as factory, factory_of(file_settings) as other:
        storage, elsewhere = (each.for_tenant("contoso").checkpoints for each in (factory, other))
        await storage.save(checkpoint("cp-1"))
        await elsewhere.delete("cp-1")
        await elsewhere.save(checkpoint("cp-1", workflow="another"))
        (found,) = await storage.lineage("cp-1")
        assert found.workflow_name == "another"


@pytest.mark.parametrize("checkpoint_id", ["nothing", "", "\ud800", "cp-1 "])
async def test_lineage_of_nothing(storage: TenantCheckpointStorage, checkpoint_id: str) -> None:
    """No such checkpoint is the error that ``load`` raises, also for ids that cannot be; children there are none."""
    await storage.save(checkpoint("cp-1"))
    for asked in (storage, storage.for_workflow(WORKFLOW), storage.for_workflow("another")):
        with pytest.raises(errors.CheckpointNotFoundError):
            await asked.lineage(checkpoint_id)
        assert await asked.list_children(checkpoint_id) == []


@pytest.mark.parametrize("method", ["lineage", "list_children"])
async def test_an_id_of_another_kind(storage: TenantCheckpointStorage, method: str) -> None:
    """What is not text is refused, as everywhere."""
    ask: Callable[[Any], Any] = getattr(storage, method)
    with pytest.raises(errors.InvalidIdentifierError, match="checkpoint_id must be a str"):
        await ask(7)


async def test_an_id_in_two_workflows(file_settings: CosmosStateSettings) -> None:
    """A lineage is that of one workflow; children are found in all, each with the name of its own, in order."""
    async with factory_of(file_settings) as factory:
        storage = factory.for_tenant("contoso").checkpoints
        for second, name in enumerate(["b", "a", "c"]):
            timestamp = (START + timedelta(seconds=second)).isoformat()
            await storage.save(checkpoint("root", workflow=name))
            await storage.save(checkpoint("cp", workflow=name, previous_checkpoint_id="root", timestamp=timestamp))
    async with factory_of(file_settings) as factory:
        storage = factory.for_tenant("contoso").checkpoints
        with pytest.raises(errors.AmbiguousCheckpointError, match="'a', 'b', 'c'"):
            await storage.lineage("cp")
        assert ids(await storage.for_workflow("a").lineage("cp")) == ["root", "cp"]
        assert [found.workflow_name for found in await storage.list_children("root")] == ["b", "a", "c"]
        assert [found.workflow_name for found in await storage.for_workflow("a").list_children("root")] == ["a"]
        assert await storage.for_workflow("d").list_children("root") == []


async def test_workflows_of_a_scope(storage: TenantCheckpointStorage) -> None:
    """Names are sorted, each once, only of this scope; a narrowed storage knows its own, if it has checkpoints."""
    for number, name in enumerate(["b", "a/b", "a", "ä", "b"]):
        await storage.save(checkpoint(f"cp-{number}", workflow=name))
    await storage.scoped("s-1").save(checkpoint("cp-1", workflow="of a session"))

    assert await storage.list_workflows() == ["a", "a/b", "b", "ä"]
    assert await storage.scoped("s-1").list_workflows() == ["of a session"]
    assert await storage.scoped("s-2").list_workflows() == []
    assert await storage.for_workflow("a").list_workflows() == ["a"]
    assert await storage.for_workflow("of a session").list_workflows() == []
