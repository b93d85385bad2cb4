"""What is stored but cannot be read: never "missing", never an older one in its place."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

import pytest

from cosmos_workflow_state import CosmosStateSettings, errors
from support.items import stored_items
from support.states import WORKFLOW, chain
from support.targets import factory_of


@pytest.fixture
async def damaged(file_settings: CosmosStateSettings) -> CosmosStateSettings:
    """Return a state file with three checkpoints of which the newest has a damaged payload."""
    async with factory_of(file_settings) as factory:
        for one in chain(3):
            await factory.for_tenant("contoso").checkpoints.save(one)
    async with stored_items(file_settings) as items:
        item = await items.read("contoso", "cp-002")
        await items.overwrite("contoso", "cp-002", payload={**item["payload"], "data": item["payload"]["data"][:-8]})
    return file_settings


async def test_load_and_get_latest_raise(damaged: CosmosStateSettings) -> None:
    """Demand 4: the newest cannot be read, so nothing older is returned."""
    async with factory_of(damaged) as factory:
        storage = factory.for_tenant("contoso").checkpoints
        for attempt in (storage.load("cp-002"), storage.get_latest(workflow_name=WORKFLOW)):
            with pytest.raises(errors.CheckpointCorruptError) as caught:
                await attempt
            assert (caught.value.checkpoint_id, caught.value.workflow_name) == ("cp-002", WORKFLOW)
            assert caught.value.retryable is False


async def test_lists_skip_with_one_warning_and_ids_show_it(
    damaged: CosmosStateSettings, events: list[MutableMapping[str, Any]]
) -> None:
    """Demand 4: list_checkpoints warns once for each and goes on, list_checkpoint_ids still shows it."""
    async with factory_of(damaged) as factory:
        storage = factory.for_tenant("contoso").checkpoints
        listed = await storage.list_checkpoints(workflow_name=WORKFLOW)
        ids = await storage.list_checkpoint_ids(workflow_name=WORKFLOW)

    assert [one.checkpoint_id for one in listed] == ["cp-000", "cp-001"]
    assert ids == ["cp-000", "cp-001", "cp-002"]
    (warning,) = [event for event in events if event["event"] == "checkpoint.undecodable"]
    assert (warning["log_level"], warning["checkpoint_id"]) == ("warning", "cp-002")
    assert warning["error_type"] == "CheckpointCorruptError"


async def test_lists_raise_when_asked_to(damaged: CosmosStateSettings) -> None:
    """The setting on_undecodable=raise turns the skip into the error."""
    strict = damaged.model_copy(update={"on_undecodable": "raise"})
    async with factory_of(strict) as factory:
        with pytest.raises(errors.CheckpointCorruptError):
            await factory.for_tenant("contoso").checkpoints.list_checkpoints(workflow_name=WORKFLOW)


async def test_what_cannot_be_read_can_be_deleted(damaged: CosmosStateSettings) -> None:
    """A damaged checkpoint does not block its workflow for ever."""
    async with factory_of(damaged) as factory:
        storage = factory.for_tenant("contoso").checkpoints
        assert await storage.delete("cp-002") is True
        latest = await storage.get_latest(workflow_name=WORKFLOW)
        assert latest is not None
        assert latest.checkpoint_id == "cp-001"


async def test_a_save_does_not_replace_what_it_cannot_read(damaged: CosmosStateSettings) -> None:
    """Fail closed: an item of an unknown schema under the same id stays as it is."""
    async with stored_items(damaged) as items:
        await items.overwrite("contoso", "cp-001", schema=99)
    async with factory_of(damaged) as factory:
        with pytest.raises(errors.CheckpointCorruptError):
            await factory.for_tenant("contoso").checkpoints.save(chain(2)[1])
    async with stored_items(damaged) as items:
        assert (await items.read("contoso", "cp-001"))["schema"] == 99


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"sort_key": "x"}, id="sort key malformed"),
        pytest.param({"payload": None}, id="no payload"),
        pytest.param({"schema": 2}, id="newer schema"),
        pytest.param({"type": "keyframe"}, id="another type"),
    ],
)
async def test_damaged_headers(file_settings: CosmosStateSettings, change: dict[str, Any]) -> None:
    """A header that is not what it must be is corrupt, never missing."""
    async with factory_of(file_settings) as factory:
        storage = factory.for_tenant("contoso").checkpoints
        await storage.save(chain(1)[0])
        async with stored_items(file_settings) as items:
            await items.overwrite("contoso", "cp-000", **change)
        with pytest.raises(errors.CheckpointCorruptError):
            await storage.load("cp-000")


async def test_an_id_listed_without_its_place_is_corrupt(file_settings: CosmosStateSettings) -> None:
    """A list of ids is complete or an error: an item within the range whose key is malformed raises."""
    async with factory_of(file_settings) as factory:
        storage = factory.for_tenant("contoso").checkpoints
        await storage.save(chain(1)[0])
        async with stored_items(file_settings) as items:
            item = await items.read("contoso", "cp-000")
            await items.overwrite("contoso", "cp-000", sort_key=item["sort_key"][:40])
        with pytest.raises(errors.CheckpointCorruptError):
            await storage.list_checkpoint_ids(workflow_name=WORKFLOW)


async def test_a_type_that_is_no_longer_allowed(file_settings: CosmosStateSettings) -> None:
    """Demand 6: what another process may restore, one without the type on its list refuses by name."""
    async with factory_of(file_settings) as factory:
        await factory.for_tenant("contoso").checkpoints.save(chain(1)[0])
    strict = file_settings.model_copy(update={"allowed_checkpoint_types": ()})
    async with factory_of(strict) as factory:
        with pytest.raises(errors.CheckpointNotRestorableError) as caught:
            await factory.for_tenant("contoso").checkpoints.get_latest(workflow_name=WORKFLOW)
        assert caught.value.types == ("support.states:Invoice",)


async def test_a_payload_over_this_process_s_limit(file_settings: CosmosStateSettings) -> None:
    """A recorded size over max_payload_bytes is refused before anything is expanded."""
    async with factory_of(file_settings) as factory:
        await factory.for_tenant("contoso").checkpoints.save(chain(1, state={"text": "x" * 50_000})[0])
    small = file_settings.model_copy(update={"max_payload_bytes": 10_000})
    async with factory_of(small) as factory:
        with pytest.raises(errors.CheckpointTooLargeError) as caught:
            await factory.for_tenant("contoso").checkpoints.load("cp-000")
        assert caught.value.limit == 10_000


async def test_a_payload_format_of_a_later_version(file_settings: CosmosStateSettings) -> None:
    """Bytes whose meaning this version does not know are corrupt to it, never guessed."""
    async with factory_of(file_settings) as factory:
        storage = factory.for_tenant("contoso").checkpoints
        await storage.save(chain(1)[0])
        async with stored_items(file_settings) as items:
            item = await items.read("contoso", "cp-000")
            await items.overwrite("contoso", "cp-000", payload={**item["payload"], "format": "maf/2"})
        with pytest.raises(errors.CheckpointCorruptError, match="format"):
            await storage.load("cp-000")


async def test_an_id_of_another_kind(file_settings: CosmosStateSettings) -> None:
    """A listed item whose id is no text is corrupt."""
    async with factory_of(file_settings) as factory:
        storage = factory.for_tenant("contoso").checkpoints
        await storage.save(chain(1)[0])
        async with stored_items(file_settings) as items:
            await items.overwrite("contoso", "cp-000", checkpoint_id=7)
        with pytest.raises(errors.CheckpointCorruptError):
            await storage.list_checkpoint_ids(workflow_name=WORKFLOW)


async def test_saving_again_over_a_damaged_payload(damaged: CosmosStateSettings) -> None:
    """A digest that still fits says nothing about the data beside it: the save does not report success."""
    async with factory_of(damaged) as factory:
        with pytest.raises(errors.CheckpointCorruptError):
            await factory.for_tenant("contoso").checkpoints.save(chain(3)[2])


async def test_a_malformed_place_in_the_order_is_not_kept(file_settings: CosmosStateSettings) -> None:
    """A save does not replace an item whose sort key is malformed, and the error is one of ours."""
    async with factory_of(file_settings) as factory:
        storage = factory.for_tenant("contoso").checkpoints
        await storage.save(chain(1)[0])
        async with stored_items(file_settings) as items:
            await items.overwrite("contoso", "cp-000", sort_key="x")
        with pytest.raises(errors.CheckpointCorruptError):
            await storage.save(chain(1, state={"changed": True})[0])


async def test_a_parent_at_the_end_of_time(file_settings: CosmosStateSettings) -> None:
    """The greatest time there can be has no later one: a child of such a parent is still stored and found."""
    parent, child = chain(2)
    async with factory_of(file_settings) as factory:
        storage = factory.for_tenant("contoso").checkpoints
        await storage.save(parent)
        async with stored_items(file_settings) as items:
            token = (await items.read("contoso", "cp-000"))["sort_key"].partition("|")[0]
            await items.overwrite("contoso", "cp-000", sort_key=f"{token}|{'9' * 18}.{'0' * 20}")
        await storage.load("cp-000")
        await storage.save(child)
        assert await storage.get_latest(workflow_name=WORKFLOW) == child
        assert await storage.list_checkpoint_ids(workflow_name=WORKFLOW) == ["cp-000", "cp-001"]
