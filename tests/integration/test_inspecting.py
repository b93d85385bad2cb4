"""Looking at one checkpoint without restoring it, and finding checkpoints by the beginning of their ids."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import MutableMapping
from typing import Any

import pytest

from cosmos_workflow_state import CosmosStateFactory, CosmosStateSettings, TenantCheckpointStorage, errors
from cosmos_workflow_state.typing import CheckpointOutline, PickledValue
from support.faults import faulty_client, let_pass, then
from support.items import stored_items
from support.states import WORKFLOW, Invoice, chain, checkpoint
from support.targets import factory_of

TEXT = "".join(hashlib.sha256(str(number).encode()).hexdigest() for number in range(20_000))
"""What compression leaves too large for one item."""


@pytest.fixture
def storage(factory: CosmosStateFactory) -> TenantCheckpointStorage:
    """Return the storage of one tenant."""
    return factory.for_tenant("contoso").checkpoints


async def test_an_outline_has_everything_but_the_pickles(storage: TenantCheckpointStorage) -> None:
    """What JSON holds is there, a pickle is its type, size and digest, and the header is the listed one."""
    invoice = Invoice(7, ["paper"])
    one = checkpoint("cp-1", state={"invoice": invoice, "deep": [{"total": 2**70}], "none": None})
    await storage.save(one)

    outline = await storage.inspect("cp-1")

    segment = pickle.dumps(invoice, protocol=pickle.HIGHEST_PROTOCOL)
    pickled = PickledValue("support.states:Invoice", len(segment), hashlib.sha256(segment).hexdigest())
    assert outline.fields["state"] == {"invoice": pickled, "deep": [{"total": 2**70}], "none": None}
    assert outline.fields["checkpoint_id"] == "cp-1"
    assert [outline.summary] == [header async for header in storage.iter_checkpoint_headers(WORKFLOW)]


async def test_no_type_need_be_allowed(file_settings: CosmosStateSettings) -> None:
    """A process that may restore nothing can look at everything."""
    async with factory_of(file_settings) as factory:
        for one in chain(3):
            await factory.for_tenant("contoso").checkpoints.save(one)
    async with factory_of(file_settings.model_copy(update={"allowed_checkpoint_types": ()})) as factory:
        storage = factory.for_tenant("contoso").checkpoints
        outlines = [await storage.inspect(f"cp-{number:03}") for number in range(3)]
        with pytest.raises(errors.CheckpointNotRestorableError):
            await storage.load("cp-002")
    assert [outline.fields["state"]["total"] for outline in outlines] == [2**70] * 3


async def test_a_state_in_parts_has_an_outline(storage: TenantCheckpointStorage) -> None:
    """What is too large for one item is looked at as well, and its size is the header's."""
    await storage.save(checkpoint("cp-1", state={"text": TEXT}))

    outline = await storage.inspect("cp-1")

    assert outline.fields["state"] == {"text": TEXT}
    assert [outline.summary] == [header async for header in storage.iter_checkpoint_headers(WORKFLOW)]


@pytest.mark.parametrize("found", ["another tenant", "another scope", "another id"])
async def test_what_is_not_there_is_not_found(factory: CosmosStateFactory, found: str) -> None:
    """Demand 9: another tenant's or scope's checkpoint reads as one that does not exist."""
    await factory.for_tenant("contoso").checkpoints.save(checkpoint("cp-1"))
    storage = factory.for_tenant("fabrikam" if found == "another tenant" else "contoso").checkpoints
    if found == "another scope":
        storage = storage.scoped("session-1")

    with pytest.raises(errors.CheckpointNotFoundError):
        await storage.inspect("cp-2" if found == "another id" else "cp-1")
    assert await storage.find_checkpoints("cp-1") == [] or found == "another id"


async def test_what_is_erased_while_it_is_read_is_not_found() -> None:
    """A state whose parts go while they are read is not damaged: its checkpoint is not there any more."""
    settings = CosmosStateSettings(endpoint="embedded:", _env_file=None)
    async with (
        faulty_client() as (client, transport),
        CosmosStateFactory(settings, client=client) as writing,
        CosmosStateFactory(settings, client=client) as reading,
    ):
        written = writing.for_tenant("contoso").checkpoints
        await written.save(checkpoint("cp-1", state={"text": TEXT}))

        async def erase() -> None:
            assert (await written.erase()).checkpoints == 1

        transport.faults = [let_pass, then(erase)]
        with pytest.raises(errors.CheckpointNotFoundError):
            await reading.for_tenant("contoso").checkpoints.for_workflow(WORKFLOW).inspect("cp-1")


async def test_damage_is_no_outline(file_settings: CosmosStateSettings) -> None:
    """Demand 30: a payload that cannot be read is an error that says so, and not one that is not there."""
    async with factory_of(file_settings) as factory:
        await factory.for_tenant("contoso").checkpoints.save(checkpoint("cp-1"))
    async with stored_items(file_settings) as items:
        payload = (await items.read("contoso", "cp-1"))["payload"]
        await items.overwrite("contoso", "cp-1", payload={**payload, "data": "AAAA"})
    async with factory_of(file_settings) as factory:
        with pytest.raises(errors.CheckpointCorruptError):
            await factory.for_tenant("contoso").checkpoints.inspect("cp-1")


async def test_ids_are_found_by_their_beginning(storage: TenantCheckpointStorage) -> None:
    """In the order of all lists, in all workflows or in one, letter for letter."""
    for one in (*chain(3), checkpoint("CP-9"), checkpoint("cp-01", workflow="other")):
        await storage.save(one)

    found = await storage.find_checkpoints("cp-0")

    assert sorted(header.checkpoint_id for header in found) == ["cp-000", "cp-001", "cp-002", "cp-01"]
    assert [header.checkpoint_id for header in await storage.for_workflow(WORKFLOW).find_checkpoints("cp-00")] == [
        "cp-000",
        "cp-001",
        "cp-002",
    ]


@pytest.mark.parametrize("prefix", ["", "\ud800", "a\0b", "nothing", "%", "cp_"], ids=repr)
async def test_what_no_id_begins_with_finds_nothing(storage: TenantCheckpointStorage, prefix: str) -> None:
    """Nothing in a prefix is a pattern, and an empty one does not mean everything."""
    await storage.save(checkpoint("cp-1"))

    assert await storage.find_checkpoints(prefix) == []


async def test_each_is_one_event(settings: CosmosStateSettings, events: list[MutableMapping[str, Any]]) -> None:
    """Both methods tell what they have done and cost, and never what is in a state."""
    async with factory_of(settings) as factory:
        storage = factory.for_tenant("contoso").checkpoints
        await storage.save(checkpoint("cp-1", state={"text": "secret"}))
        outline = await storage.inspect("cp-1")
        await storage.find_checkpoints("cp")

    told = {event["event"]: event for event in events}
    assert isinstance(outline, CheckpointOutline)
    assert told["checkpoint.inspected"]["workflow_name"] == WORKFLOW
    assert told["checkpoint.ids_found"]["count"] == 1
    assert "secret" not in str(events)
