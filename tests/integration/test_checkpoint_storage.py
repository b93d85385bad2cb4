"""The six methods of the framework's protocol, on the real client and the embedded engine."""

from __future__ import annotations

import asyncio
import copy
import random
from datetime import timedelta

import pytest
from agent_framework.exceptions import WorkflowCheckpointException

from cosmos_workflow_state import CosmosStateFactory, CosmosStateSettings, TenantCheckpointStorage, errors
from support.states import WORKFLOW, Invoice, Unregistered, chain, checkpoint
from support.targets import factory_of


@pytest.fixture
def storage(factory: CosmosStateFactory) -> TenantCheckpointStorage:
    """Return the storage of one tenant."""
    return factory.for_tenant("contoso").checkpoints


async def test_a_saved_checkpoint_loads_equal(storage: TenantCheckpointStorage) -> None:
    """Save returns the checkpoint's own id, and load gives back an equal copy."""
    original = checkpoint("cp-1")

    assert await storage.save(original) == "cp-1"
    loaded = await storage.load("cp-1")

    assert loaded == original
    assert loaded.state["invoice"] is not original.state["invoice"]


async def test_load_by_a_process_that_has_not_seen_the_id(file_settings: CosmosStateSettings) -> None:
    """A second factory finds a checkpoint by id alone, with the query within the tenant."""
    original = checkpoint("cp-1")
    async with factory_of(file_settings) as first:
        await first.for_tenant("contoso").checkpoints.save(original)

    async with factory_of(file_settings) as second:
        assert await second.for_tenant("contoso").checkpoints.load("cp-1") == original


async def test_state_may_change_while_a_save_is_under_way(storage: TenantCheckpointStorage) -> None:
    """Demand 15: what is stored is the state at the call, whatever happens to it before the save returns."""
    live = checkpoint("cp-1", state={"items": ["first"], "invoice": Invoice(1)})
    before = copy.deepcopy(live)

    saving = asyncio.create_task(storage.save(live))
    await asyncio.sleep(0)  # lets the save run to its first suspension
    live.state["items"].append("second")
    live.state["invoice"].number = 99
    await saving

    assert await storage.load("cp-1") == before


@pytest.mark.parametrize("missing", ["nope", "", "a\0b", "\ud800", "cp-1 "])
async def test_an_id_that_was_never_saved_is_not_found(storage: TenantCheckpointStorage, missing: str) -> None:
    """Load says not found and delete says False, also for ids that cannot exist."""
    await storage.save(checkpoint("cp-1"))

    with pytest.raises(errors.CheckpointNotFoundError) as caught:
        await storage.load(missing)
    assert (caught.value.tenant_id, caught.value.checkpoint_id) == ("contoso", missing)
    assert isinstance(caught.value, WorkflowCheckpointException)
    assert await storage.delete(missing) is False


async def test_ids_of_another_kind_are_refused_by_name(storage: TenantCheckpointStorage) -> None:
    """A bug in the caller is not reported as a missing checkpoint."""
    with pytest.raises(errors.InvalidIdentifierError, match="checkpoint_id must be a str, not int"):
        await storage.load(7)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "hostile", ["a/b", "a\\b", "a?b", "a#b", "..", ".", "%2f", "a:b", "~7E", "ü" * 400, "x" * 5000, " ", "\n"]
)
async def test_hostile_ids_and_scopes_work(storage: TenantCheckpointStorage, hostile: str) -> None:
    """Demand 12: what the service forbids in ids saves, loads, lists and deletes."""
    scoped = storage.scoped(hostile[:200])
    await scoped.save(checkpoint(hostile))

    assert (await scoped.load(hostile)).checkpoint_id == hostile
    assert await scoped.list_checkpoint_ids(workflow_name=WORKFLOW) == [hostile]
    assert await scoped.delete(hostile) is True
    assert await scoped.delete(hostile) is False


@pytest.mark.parametrize("name", ["a/b?c#d", "  spaced  ", "名前", "😀", "x" * 1024])
async def test_workflow_names_need_no_escaping(storage: TenantCheckpointStorage, name: str) -> None:
    """A workflow name is a partition key value: any text works unchanged."""
    await storage.save(checkpoint("cp-1", workflow=name))

    latest = await storage.get_latest(workflow_name=name)
    assert latest is not None
    assert latest.workflow_name == name
    assert [found.workflow_name for found in await storage.list_checkpoints(workflow_name=name)] == [name]


@pytest.mark.parametrize("name", ["", "\0", "\udfff", "x" * 1025])
async def test_refused_workflow_names(storage: TenantCheckpointStorage, name: str) -> None:
    """What cannot be a workflow name is refused by name in every method that takes one."""
    with pytest.raises(errors.InvalidIdentifierError, match="workflow_name"):
        await storage.save(checkpoint("cp-1", workflow=name))
    for method in (storage.get_latest, storage.list_checkpoints, storage.list_checkpoint_ids):
        with pytest.raises(errors.InvalidIdentifierError, match="workflow_name"):
            await method(workflow_name=name)


async def test_latest_and_lists_use_one_order(storage: TenantCheckpointStorage) -> None:
    """Lists are oldest first whatever the order of saving, and the latest is their last."""
    made = chain(5)
    for saved in (made[3], made[0], made[4], made[2], made[1]):
        await storage.save(saved)

    assert await storage.list_checkpoint_ids(workflow_name=WORKFLOW) == [one.checkpoint_id for one in made]
    assert await storage.list_checkpoints(workflow_name=WORKFLOW) == made
    assert await storage.get_latest(workflow_name=WORKFLOW) == made[-1]


async def test_a_child_saved_on_a_slower_clock_is_the_latest(storage: TenantCheckpointStorage) -> None:
    """Demand 5: a resume on a node whose clock is 2 s behind still makes the child the latest."""
    parent, child = chain(2, step=timedelta(seconds=-2))
    await storage.save(parent)
    await storage.save(child)

    assert await storage.get_latest(workflow_name=WORKFLOW) == child


async def test_a_child_on_a_slower_clock_after_a_load_elsewhere(file_settings: CosmosStateSettings) -> None:
    """Demand 5: the parent's time is known from get_latest or load, not only from an own save."""
    parent, child, grandchild = chain(3, step=timedelta(seconds=-2))
    async with factory_of(file_settings) as first:
        await first.for_tenant("contoso").checkpoints.save(parent)
    async with factory_of(file_settings) as second:
        storage = second.for_tenant("contoso").checkpoints
        assert await storage.get_latest(workflow_name=WORKFLOW) == parent
        await storage.save(child)
    async with factory_of(file_settings) as third:
        storage = third.for_tenant("contoso").checkpoints
        await storage.load(child.checkpoint_id)
        await storage.save(grandchild)
        assert await storage.get_latest(workflow_name=WORKFLOW) == grandchild


async def test_equal_timestamps_keep_the_order_of_saving(storage: TenantCheckpointStorage) -> None:
    """Demand 5: with equal timestamps the last one saved is the latest, parents known or not."""
    same = [checkpoint(f"cp-{n}", timestamp="2026-11-29T10:00:00+00:00") for n in range(4)]
    for one in same:
        await storage.save(one)

    assert await storage.list_checkpoints(workflow_name=WORKFLOW) == same
    assert await storage.get_latest(workflow_name=WORKFLOW) == same[-1]


async def test_a_new_workflow_has_nothing(storage: TenantCheckpointStorage) -> None:
    """No checkpoints: None and empty lists."""
    assert await storage.get_latest(workflow_name="new") is None
    assert await storage.list_checkpoints(workflow_name="new") == []
    assert await storage.list_checkpoint_ids(workflow_name="new") == []


async def test_saving_again_changes_nothing(storage: TenantCheckpointStorage) -> None:
    """A repeated save of an equal checkpoint succeeds and leaves one checkpoint."""
    one = checkpoint("cp-1")
    await storage.save(one)
    await storage.save(one)

    assert await storage.list_checkpoints(workflow_name=WORKFLOW) == [one]


async def test_saving_another_under_the_same_id_replaces_it_in_its_place(storage: TenantCheckpointStorage) -> None:
    """The newer content wins, its place in the order stays."""
    first, second = chain(2)
    await storage.save(first)
    await storage.save(second)
    changed = copy.deepcopy(first)
    changed.state["total"] = 1
    await storage.save(changed)

    assert await storage.list_checkpoints(workflow_name=WORKFLOW) == [changed, second]


async def test_the_same_id_in_two_workflows(storage: TenantCheckpointStorage) -> None:
    """Load and delete by id refuse to guess, name both workflows, and delete nothing."""
    a, b = checkpoint("cp-1", workflow="a"), checkpoint("cp-1", workflow="b")
    await storage.save(a)
    await storage.save(b)

    for method in (storage.load, storage.delete):
        with pytest.raises(errors.AmbiguousCheckpointError, match="'a', 'b'"):
            await method("cp-1")
    assert await storage.for_workflow("a").load("cp-1") == a
    assert await storage.for_workflow("b").delete("cp-1") is True
    assert await storage.load("cp-1") == a


async def test_a_narrowed_storage_refuses_other_workflows(storage: TenantCheckpointStorage) -> None:
    """What is narrowed to one workflow takes no other name and finds no other's checkpoint."""
    await storage.save(checkpoint("cp-1", workflow="other"))
    narrowed = storage.for_workflow(WORKFLOW)

    with pytest.raises(errors.CheckpointNotFoundError):
        await narrowed.load("cp-1")
    for attempt in (
        lambda: narrowed.save(checkpoint("cp-2", workflow="other")),
        lambda: narrowed.get_latest(workflow_name="other"),
    ):
        with pytest.raises(errors.InvalidIdentifierError, match="narrowed"):
            await attempt()
    with pytest.raises(errors.InvalidIdentifierError, match="narrowed"):
        narrowed.for_workflow("other")
    assert await narrowed.scoped("s").for_workflow(WORKFLOW).list_checkpoint_ids(workflow_name=WORKFLOW) == []


async def test_what_moved_to_another_workflow_is_still_found(file_settings: CosmosStateSettings) -> None:
    """An id that this process saw in one workflow, and another process moved, is found by the query."""
    async with factory_of(file_settings) as first, factory_of(file_settings) as second:
        here, there = (factory.for_tenant("contoso").checkpoints for factory in (first, second))
        await here.save(checkpoint("cp-1", workflow="old"))
        moved = checkpoint("cp-1", workflow="new")
        await there.delete("cp-1")
        await there.save(moved)

        assert await here.load("cp-1") == moved


async def test_an_unregistered_class_is_refused_by_save(storage: TenantCheckpointStorage) -> None:
    """Demand 3: save refuses what load would, names the type, says nothing of the content, writes nothing."""
    with pytest.raises(errors.CheckpointNotRestorableError) as caught:
        await storage.save(checkpoint("cp-1", state={"deep": [{"value": Unregistered("hunter2")}]}))

    assert caught.value.types == ("support.states:Unregistered",)
    assert "support.states:Unregistered" in str(caught.value)
    assert "hunter2" not in repr(caught.value) + str(caught.value.__dict__)
    assert await storage.list_checkpoint_ids(workflow_name=WORKFLOW) == []


async def test_what_is_no_checkpoint_is_refused(storage: TenantCheckpointStorage) -> None:
    """An untyped caller's mistake is named."""
    with pytest.raises(errors.CheckpointNotRestorableError, match="must be a WorkflowCheckpoint, not dict"):
        await storage.save({"workflow_name": WORKFLOW})  # type: ignore[arg-type]


async def test_too_large_is_refused_with_both_sizes(settings: CosmosStateSettings) -> None:
    """Demand 1: over the setting, or with ids that leave no room in an item, is a typed error; nothing is written."""
    small = settings.model_copy(update={"max_payload_bytes": 10_000})
    async with factory_of(small) as limited, factory_of(settings) as factory:
        for storage, changes in (
            (limited.for_tenant("t").checkpoints, {"state": {"text": "x" * 10_000}}),
            (factory.for_tenant("t").checkpoints, {"previous_checkpoint_id": "p" * 1_100_000}),
        ):
            with pytest.raises(errors.CheckpointTooLargeError) as caught:
                await storage.save(checkpoint("cp-1", **changes))
            assert caught.value.size > caught.value.limit > 0
            assert await storage.list_checkpoint_ids(workflow_name=WORKFLOW) == []


async def test_a_large_state_that_does_not_compress_is_stored(storage: TenantCheckpointStorage) -> None:
    """Demand 1: 3 MB of noise lie in parts, where the framework's own store fails at 2 MB."""
    one = checkpoint("cp-1", state={"noise": random.Random(0).randbytes(3_000_000)})
    await storage.save(one)

    assert await storage.load("cp-1") == one


async def test_a_large_state_that_compresses_is_stored(storage: TenantCheckpointStorage) -> None:
    """Demand 1: 8 MB of repetitive state fits one item, where the framework's own store fails at 2 MB."""
    one = checkpoint("cp-1", state={"text": "a long conversation " * 400_000})
    await storage.save(one)

    assert await storage.load("cp-1") == one


def test_a_storage_is_true_and_says_what_it_is(factory: CosmosStateFactory) -> None:
    """Demand 32: a falsy storage silently turns checkpointing off in the framework."""
    storage = factory.for_tenant("contoso").checkpoints
    assert bool(storage) is True
    assert not hasattr(storage, "__len__")
    assert repr(storage) == "TenantCheckpointStorage(tenant_id='contoso', scope='')"
    assert repr(storage.scoped("s").for_workflow("w")) == (
        "TenantCheckpointStorage(tenant_id='contoso', scope='s', workflow_name='w')"
    )


async def test_lists_of_several_pages(storage: TenantCheckpointStorage) -> None:
    """A workflow with more than a page of checkpoints (4 MB of the service) lists them all, in order."""
    noise = random.Random(7)
    made = chain(12)
    for one in made:
        one.state["noise"] = noise.randbytes(400_000)
        await storage.save(one)

    assert await storage.list_checkpoints(workflow_name=WORKFLOW) == made


@pytest.mark.parametrize("count", [2**53 + 1, -(2**70)])
async def test_a_count_that_json_does_not_hold_is_refused(storage: TenantCheckpointStorage, count: int) -> None:
    """Demand 3: the service would round it, and load would refuse what comes back."""
    with pytest.raises(errors.CheckpointNotRestorableError, match=r"2\*\*53"):
        await storage.save(checkpoint("cp-1", iteration_count=count))


async def test_delete_by_id_does_not_trust_what_this_process_has_seen(file_settings: CosmosStateSettings) -> None:
    """An id that another process saved in a second workflow is ambiguous, and nothing is deleted."""
    async with factory_of(file_settings) as first, factory_of(file_settings) as second:
        here, there = (factory.for_tenant("contoso").checkpoints for factory in (first, second))
        await here.save(checkpoint("cp-1", workflow="a"))
        await there.save(checkpoint("cp-1", workflow="b"))
        with pytest.raises(errors.AmbiguousCheckpointError):
            await here.delete("cp-1")


class _TwoFacedText(str):
    """Says one thing when it is compared and another when it is encoded."""

    __slots__ = ()

    def encode(self, *_: object) -> bytes:
        """Return another text."""
        return b"victim"


async def test_a_scope_is_what_its_text_is(storage: TenantCheckpointStorage) -> None:
    """A subclass of str cannot stand for two scopes at once."""
    await storage.scoped("victim").save(checkpoint("cp-1"))
    with pytest.raises(errors.CheckpointNotFoundError):
        await storage.scoped(_TwoFacedText("mine")).load("cp-1")
