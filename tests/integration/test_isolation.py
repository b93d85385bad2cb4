"""Two tenants, and two scopes of one tenant, never meet in any method."""

from __future__ import annotations

import itertools
from collections.abc import MutableMapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from cosmos_workflow_state import CosmosStateFactory, CosmosStateSettings, TenantCheckpointStorage, errors
from support.items import stored_items
from support.states import ALLOWED_TYPES, WORKFLOW, checkpoint
from support.targets import factory_of


async def _assert_sees_nothing_of(mine: TenantCheckpointStorage, other: TenantCheckpointStorage) -> None:
    """Try all methods on what only another storage has saved."""
    theirs = checkpoint("cp-1", state={"owner": repr(other)}, previous_checkpoint_id="cp-0")
    await other.save(theirs)

    with pytest.raises(errors.CheckpointNotFoundError):
        await mine.load("cp-1")
    assert await mine.delete("cp-1") is False
    assert await mine.get_latest(workflow_name=WORKFLOW) is None
    assert await mine.list_checkpoints(workflow_name=WORKFLOW) == []
    assert await mine.list_checkpoint_ids(workflow_name=WORKFLOW) == []
    await _assert_lists_nothing(mine)

    own = checkpoint("cp-1", state={"owner": repr(mine)})
    await mine.save(own)
    assert await mine.load("cp-1") == own
    assert await other.load("cp-1") == theirs
    assert await mine.delete("cp-1") is True
    assert await other.load("cp-1") == theirs
    assert await other.delete("cp-1") is True


async def _assert_lists_nothing(mine: TenantCheckpointStorage) -> None:
    """Try the methods that the framework does not know."""
    assert [one async for one in mine.iter_checkpoints(WORKFLOW)] == []
    assert [one async for one in mine.iter_checkpoint_headers(WORKFLOW)] == []
    assert await mine.list_workflows() == []
    assert await mine.list_children("cp-0") == []
    for narrowed in (mine, mine.for_workflow(WORKFLOW)):
        with pytest.raises(errors.CheckpointNotFoundError):
            await narrowed.lineage("cp-1")


NEIGHBOURS = ["t1", "t10", "T1", "t1."]


@pytest.mark.parametrize(("mine", "other"), list(itertools.permutations(NEIGHBOURS, 2)))
async def test_neighbouring_tenants(factory: CosmosStateFactory, mine: str, other: str) -> None:
    """Demands 9 and 25: tenants whose ids begin alike or differ in case, same workflow, same checkpoint id."""
    await _assert_sees_nothing_of(factory.for_tenant(mine).checkpoints, factory.for_tenant(other).checkpoints)


SCOPES = ["", "a", "a:b", "a:cp", ":", "A", "~", "~~", "a/b", "x" * 200, "x" * 201, "x" * 202]


@pytest.mark.parametrize(("mine", "other"), list(itertools.combinations(SCOPES, 2)))
async def test_scopes_of_one_tenant(factory: CosmosStateFactory, mine: str, other: str) -> None:
    """The unscoped storage is a scope of its own, and no two scopes share anything."""
    storage = factory.for_tenant("contoso").checkpoints
    await _assert_sees_nothing_of(storage.scoped(mine), storage.scoped(other))


TENANTS = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,127}", fullmatch=True)
SCOPE_TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=60)


@given(tenants=st.lists(st.tuples(TENANTS, SCOPE_TEXTS), min_size=2, max_size=2, unique=True))
@hypothesis_settings(max_examples=25, deadline=None)
async def test_any_two_tenants_and_scopes(tenants: list[tuple[str, str]]) -> None:
    """Demand 25: whatever the two (tenant, scope) pairs are, as long as they differ."""
    settings = CosmosStateSettings(endpoint="embedded:", allowed_checkpoint_types=ALLOWED_TYPES)
    async with factory_of(settings) as factory:
        mine, other = (factory.for_tenant(tenant).checkpoints.scoped(scope) for tenant, scope in tenants)
        await _assert_sees_nothing_of(mine, other)


@pytest.mark.parametrize(
    "refused",
    ["", " t1", "t1\n", "t1 ", "../t1", "t/1", "té", "x" * 129, "-t", "t\0", "\ud800", None, 7, b"t1"],
    ids=repr,
)
def test_refused_tenants(factory: CosmosStateFactory, refused: Any) -> None:
    """What does not match the rule as a whole is refused, never normalised; the message does not repeat it."""
    with pytest.raises(errors.InvalidIdentifierError, match="tenant_id") as caught:
        factory.for_tenant(refused)
    assert "../t1" not in str(caught.value)


async def test_an_item_of_another_scope_reads_as_missing(
    events: list[MutableMapping[str, Any]], file_settings: CosmosStateSettings
) -> None:
    """Demand 9: an item whose fields say another owner is an isolation event and reads as not there."""
    async with factory_of(file_settings) as factory:
        storage = factory.for_tenant("contoso").checkpoints
        await storage.save(checkpoint("cp-1"))
        async with stored_items(file_settings) as items:
            await items.overwrite("contoso", "cp-1", scope="another")

        with pytest.raises(errors.CheckpointNotFoundError):
            await storage.load("cp-1")
        assert await storage.get_latest(workflow_name=WORKFLOW) is None
        assert await storage.list_checkpoint_ids(workflow_name=WORKFLOW) == []
        assert await storage.delete("cp-1") is False
        await _assert_lists_nothing(storage)
        with pytest.raises(errors.CheckpointCorruptError, match="another's"):
            await storage.save(checkpoint("cp-1"))

    violations = [event for event in events if event["event"] == "isolation.violated"]
    assert violations
    assert all(event["log_level"] == "error" and event["tenant_id"] == "contoso" for event in violations)


async def test_a_payload_moved_to_another_tenant_is_refused_unread(file_settings: CosmosStateSettings) -> None:
    """Demand 9: bytes copied under another tenant's header are recognised before anything is unpickled."""
    async with factory_of(file_settings) as factory:
        for tenant in ("contoso", "fabrikam"):
            await factory.for_tenant(tenant).checkpoints.save(checkpoint("cp-1", state={"owner": tenant}))
        async with stored_items(file_settings) as items:
            stolen = await items.read("fabrikam", "cp-1")
            await items.overwrite("contoso", "cp-1", payload=stolen["payload"])

        storage = factory.for_tenant("contoso").checkpoints
        with pytest.raises(errors.CheckpointCorruptError, match="disagree"):
            await storage.load("cp-1")
        with pytest.raises(errors.CheckpointCorruptError, match="disagree"):
            await storage.get_latest(workflow_name=WORKFLOW)
