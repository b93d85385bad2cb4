"""Iterating over checkpoints and their headers: order, pages, what cannot be read, and leaving early."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, MutableMapping
from contextlib import aclosing
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, TypeVar

import pytest
from agent_framework import WorkflowEvent

from cosmos_workflow_state import CosmosStateFactory, CosmosStateSettings, TenantCheckpointStorage, errors
from cosmos_workflow_state.typing import CheckpointSummary
from support.items import stored_items
from support.states import WORKFLOW, chain, checkpoint
from support.targets import factory_of

_Value = TypeVar("_Value")

START = datetime(2026, 11, 29, 10, tzinfo=UTC)
SEVERAL_PAGES = 101
"""Checkpoints; 100 are asked for a page."""


@pytest.fixture
def storage(factory: CosmosStateFactory) -> TenantCheckpointStorage:
    """Return the storage of one tenant."""
    return factory.for_tenant("contoso").checkpoints


async def all_of(values: AsyncIterator[_Value]) -> list[_Value]:
    """Collect what is iterated over."""
    return [value async for value in values]


def ids(summaries: list[CheckpointSummary]) -> list[str]:
    """Return which checkpoints they are about."""
    return [summary.checkpoint_id for summary in summaries]


async def test_checkpoints_in_either_order(storage: TenantCheckpointStorage) -> None:
    """Whole checkpoints come in the order of the lists, and in the reverse of it."""
    made = chain(4)
    for one in (made[2], made[0], made[3], made[1]):
        await storage.save(one)

    assert await all_of(storage.iter_checkpoints(WORKFLOW)) == made
    assert await all_of(storage.iter_checkpoints(WORKFLOW, newest_first=True)) == made[::-1]
    assert ids(await all_of(storage.iter_checkpoint_headers(WORKFLOW))) == [one.checkpoint_id for one in made]
    assert await all_of(storage.iter_checkpoints("nothing")) == []


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param({"limit": 2}, [0, 1], id="the first"),
        pytest.param({"limit": 2, "newest_first": True}, [4, 3], id="the last"),
        pytest.param({"limit": 9}, [0, 1, 2, 3, 4], id="more than there are"),
        pytest.param({"since": START + timedelta(seconds=3)}, [3, 4], id="inclusive"),
        pytest.param({"since": START + timedelta(seconds=3, microseconds=1)}, [4], id="just after"),
        pytest.param(
            {"since": (START + timedelta(seconds=3)).astimezone(timezone(-timedelta(hours=9)))}, [3, 4], id="zone"
        ),
        pytest.param(
            {"since": datetime.min.replace(tzinfo=timezone(timedelta(hours=9)))}, [0, 1, 2, 3, 4], id="the first moment"
        ),
        pytest.param({"since": datetime.max.replace(tzinfo=UTC)}, [], id="the last moment"),
        pytest.param({"since": START + timedelta(seconds=1), "limit": 1, "newest_first": True}, [4], id="all three"),
    ],
)
async def test_a_part_of_a_workflow(
    storage: TenantCheckpointStorage, arguments: dict[str, Any], expected: list[int]
) -> None:
    """How many, from which end and from when on: whole checkpoints and headers are the same ones."""
    made = chain(5)
    for one in made:
        await storage.save(one)

    wanted = [made[number] for number in expected]
    assert await all_of(storage.iter_checkpoints(WORKFLOW, **arguments)) == wanted
    headers = await all_of(storage.iter_checkpoint_headers(WORKFLOW, **arguments))
    assert ids(headers) == [one.checkpoint_id for one in wanted]


async def test_since_is_about_the_place_in_the_order(storage: TenantCheckpointStorage) -> None:
    """Demand 5: a child whose node has a slow clock is after its parent, so it is there when its parent is."""
    parent = checkpoint("cp-0", timestamp=START.isoformat())
    slow = checkpoint("cp-1", previous_checkpoint_id="cp-0", timestamp=(START - timedelta(hours=1)).isoformat())
    for one in (parent, slow):
        await storage.save(one)

    assert await all_of(storage.iter_checkpoints(WORKFLOW, since=START)) == [parent, slow]


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"limit": 0}, "limit"),
        ({"limit": -1}, "limit"),
        ({"limit": True}, "limit"),
        ({"limit": 1.0}, "limit"),
        ({"limit": 2**31}, "limit"),
        ({"since": datetime(2026, 11, 29)}, "since"),  # noqa: DTZ001 - what is tested
        ({"since": "2026-11-29T10:00:00+00:00"}, "since"),
    ],
    ids=repr,
)
async def test_refused_arguments(factory: CosmosStateFactory, arguments: dict[str, Any], name: str) -> None:
    """A limit that is no number of checkpoints and a time that is no moment are refused by name."""
    storage = factory.for_tenant("contoso").checkpoints
    for values in (
        storage.iter_checkpoints(WORKFLOW, **arguments),
        storage.iter_checkpoint_headers(WORKFLOW, **arguments),
    ):
        with pytest.raises(errors.InvalidArgumentError, match=name):
            await anext(values)


async def test_refused_names(storage: TenantCheckpointStorage) -> None:
    """A storage that is narrowed to one workflow iterates over no other."""
    narrowed = storage.for_workflow(WORKFLOW)
    for values in (narrowed.iter_checkpoints("another"), narrowed.iter_checkpoint_headers("")):
        with pytest.raises(errors.InvalidIdentifierError, match="workflow_name"):
            await anext(values)


async def test_pages(settings: CosmosStateSettings, events: list[MutableMapping[str, Any]]) -> None:
    """More than a page is read page by page, nothing is left out or doubled, and one event says what all of it cost."""
    async with factory_of(settings) as factory:
        storage = factory.for_tenant("contoso").checkpoints
        made = chain(SEVERAL_PAGES, state={})
        for one in made:
            await storage.save(one)
        assert await all_of(storage.iter_checkpoints(WORKFLOW)) == made
        assert len(await all_of(storage.iter_checkpoint_headers(WORKFLOW))) == SEVERAL_PAGES
        async with aclosing(storage.iter_checkpoints(WORKFLOW)) as values:
            assert [await anext(values), await anext(values)] == made[:2]

    whole, headers, left = [event for event in events if event["event"].startswith(("checkpoint.it", "checkpoint.h"))]
    assert [event["event"] for event in (whole, headers, left)] == [
        "checkpoint.iterated",
        "checkpoint.headers_listed",
        "checkpoint.iterated",
    ]
    assert [event["count"] for event in (whole, headers, left)] == [SEVERAL_PAGES, SEVERAL_PAGES, 2]
    assert (whole["requests"], headers["requests"], left["requests"]) == (2, 1, 1)
    assert left["log_level"] == "info"
    assert whole["workflow_name"] == WORKFLOW
    assert whole["request_charge"] > headers["request_charge"] > 0
    assert whole["duration_ms"] > 0


async def test_deleting_on_the_way(storage: TenantCheckpointStorage) -> None:
    """What is deleted while it is iterated over neither ends the iteration nor hides what comes after it."""
    made = chain(SEVERAL_PAGES + 1, state={})
    for one in made:
        await storage.save(one)

    seen = []
    async for one in storage.iter_checkpoints(WORKFLOW):
        seen.append(one.checkpoint_id)
        assert await storage.delete(one.checkpoint_id)
    assert seen == [one.checkpoint_id for one in made]
    assert await storage.list_checkpoint_ids(workflow_name=WORKFLOW) == []


async def test_others_get_their_turn(storage: TenantCheckpointStorage) -> None:
    """Decoding a page of checkpoints lets other tasks run in between, although nothing is waited for."""
    for one in chain(5):
        await storage.save(one)
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    seen = [turns async for _ in storage.iter_checkpoints(WORKFLOW)]
    task.cancel()
    assert len(set(seen)) == 5


async def test_leaving_early_leaves_nothing_open(storage: TenantCheckpointStorage) -> None:
    """Neither a task nor a generator is left when an iteration is closed, also one that was never begun."""
    for one in chain(3):
        await storage.save(one)
    unbegun = storage.iter_checkpoints(WORKFLOW)
    values = storage.iter_checkpoint_headers(WORKFLOW)
    await anext(values)
    await values.aclose()
    await unbegun.aclose()
    assert asyncio.all_tasks() == {asyncio.current_task()}
    with pytest.raises(StopAsyncIteration):
        await anext(values)


async def _go_on(values: AsyncIterator[_Value], seen: list[_Value]) -> None:
    async for value in values:
        seen.append(value)  # noqa: PERF401 - what came before the error is looked at


async def test_a_factory_closed_on_the_way(settings: CosmosStateSettings) -> None:
    """Demand 23: the page that is there is given out, the next one says that the factory is closed."""
    factory = factory_of(settings)
    storage = factory.for_tenant("contoso").checkpoints
    for one in chain(SEVERAL_PAGES, state={}):
        await storage.save(one)
    values = storage.iter_checkpoints(WORKFLOW)
    seen = [await anext(values)]
    await factory.close()
    with pytest.raises(errors.FactoryClosedError):
        await _go_on(values, seen)
    assert len(seen) == SEVERAL_PAGES - 1


async def test_time_between_steps_is_the_callers(
    settings: CosmosStateSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The deadline is that of a step: who takes an hour over a checkpoint can go on iterating."""
    loop, later = asyncio.get_running_loop(), 0.0
    now = loop.time
    monkeypatch.setattr(loop, "time", lambda: now() + later)
    async with factory_of(settings) as factory:
        storage = factory.for_tenant("contoso").checkpoints
        for one in chain(3):
            await storage.save(one)
        seen = 0
        async for _ in storage.iter_checkpoints(WORKFLOW):
            seen += 1
            later += 3600.0
            await asyncio.sleep(0)
    assert seen == 3


@pytest.fixture
async def damaged(file_settings: CosmosStateSettings) -> CosmosStateSettings:
    """Store four checkpoints: the second has a payload, the third a header that cannot be read."""
    async with factory_of(file_settings) as factory:
        for one in chain(4):
            await factory.for_tenant("contoso").checkpoints.save(one)
    async with stored_items(file_settings) as items:
        payload = (await items.read("contoso", "cp-001"))["payload"]
        await items.overwrite("contoso", "cp-001", payload={**payload, "data": payload["data"][:-8]})
        await items.overwrite("contoso", "cp-002", iteration_count="many")
    return file_settings


async def test_what_cannot_be_read_is_left_out_with_a_warning(
    damaged: CosmosStateSettings, events: list[MutableMapping[str, Any]]
) -> None:
    """Demand 4: iterators leave out what they cannot read, each with an event; a header needs no payload."""
    async with factory_of(damaged) as factory:
        storage = factory.for_tenant("contoso").checkpoints
        whole = await all_of(storage.iter_checkpoints(WORKFLOW))
        limited = await all_of(storage.iter_checkpoints(WORKFLOW, limit=2))
        headers = await all_of(storage.iter_checkpoint_headers(WORKFLOW))
        children = await storage.list_children("cp-001")

    assert [one.checkpoint_id for one in whole] == ["cp-000", "cp-003"]
    assert [one.checkpoint_id for one in limited] == ["cp-000"]
    assert ids(headers) == ["cp-000", "cp-001", "cp-003"]
    assert children == []
    warned = [event["checkpoint_id"] for event in events if event["event"] == "checkpoint.undecodable"]
    assert warned == ["cp-001", "cp-002", "cp-001", "cp-002", "cp-002"]


async def test_what_cannot_be_read_is_raised_where_it_is_asked_for(damaged: CosmosStateSettings) -> None:
    """With on_undecodable=raise nothing is left out, and the error says which checkpoint it is about."""
    strict = damaged.model_copy(update={"on_undecodable": "raise"})
    async with factory_of(strict) as factory:
        storage = factory.for_tenant("contoso").checkpoints
        with pytest.raises(errors.CheckpointCorruptError) as caught:
            await all_of(storage.iter_checkpoints(WORKFLOW))
        assert caught.value.checkpoint_id == "cp-001"
        for attempt in (all_of(storage.iter_checkpoint_headers(WORKFLOW)), storage.list_children("cp-001")):
            with pytest.raises(errors.CheckpointCorruptError) as caught:
                await attempt
            assert caught.value.checkpoint_id == "cp-002"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("type", "keyframe"),
        ("schema", 2),
        ("timestamp", None),
        ("iteration_count", True),
        ("previous_checkpoint_id", 7),
        ("pending_request_ids", "r-1"),
        ("pending_request_ids", ["r-1", 2]),
        ("pending_request_count", "1"),
        ("payload", {"size": 5}),
        ("payload", {"data": "QUJD"}),
    ],
    ids=repr,
)
async def test_a_header_that_is_not_one(file_settings: CosmosStateSettings, field: str, value: object) -> None:
    """A field of another kind, or of a version that is not known, is never a default."""
    strict = file_settings.model_copy(update={"on_undecodable": "raise"})
    async with factory_of(strict) as factory:
        storage = factory.for_tenant("contoso").checkpoints
        await storage.save(checkpoint("cp-1"))
        async with stored_items(file_settings) as items:
            await items.overwrite("contoso", "cp-1", **{field: value})
        with pytest.raises(errors.CheckpointCorruptError) as caught:
            await all_of(storage.iter_checkpoint_headers(WORKFLOW))
    assert caught.value.checkpoint_id == "cp-1"


def waiting(count: int) -> dict[str, Any]:
    """Return what a checkpoint keeps of requests that wait for an answer."""
    return {
        f"r-{number}": WorkflowEvent.request_info(f"r-{number}", "desk", "approve?", str) for number in range(count)
    }


@pytest.mark.parametrize(("count", "named"), [(0, 0), (1, 1), (100, 100), (120, 100)])
async def test_pending_requests_are_listed(storage: TenantCheckpointStorage, count: int, named: int) -> None:
    """Demand 18: which requests wait is seen without decoding anything; the count is true beyond the 100 named."""
    await storage.save(checkpoint("cp-1", pending_request_info_events=waiting(count)))
    (found,) = await all_of(storage.iter_checkpoint_headers(WORKFLOW))
    assert found.pending_request_ids == tuple(f"r-{number}" for number in range(named))
    assert found.pending_request_count == count


async def test_a_header_says_what_is_stored(storage: TenantCheckpointStorage) -> None:
    """Id, workflow, parent, time and superstep are the framework's; the sizes are those of the state."""
    state = {"text": "the same again and again " * 10_000}
    saved = checkpoint("cp-1", previous_checkpoint_id="cp-0", iteration_count=4, state=state)
    await storage.save(saved)
    (found,) = await all_of(storage.iter_checkpoint_headers(WORKFLOW))
    assert (found.checkpoint_id, found.workflow_name) == ("cp-1", WORKFLOW)
    assert (found.previous_checkpoint_id, found.timestamp, found.iteration_count) == ("cp-0", saved.timestamp, 4)
    assert found.raw_bytes > 250_000
    assert 0 < found.stored_bytes < 5_000
    assert found.expires is None


async def test_sizes_of_a_state_that_does_not_fit_into_an_item(storage: TenantCheckpointStorage) -> None:
    """Demand 1: what lies in parts of its own is counted as well; the keyframe that several share is not."""
    noise = random.Random(0).randbytes(1_000_000)
    await storage.save(checkpoint("cp-1", state={"noise": noise[:600_000]}))
    await storage.save(checkpoint("cp-2", state={"noise": noise}, previous_checkpoint_id="cp-1"))
    first, second = await all_of(storage.iter_checkpoint_headers(WORKFLOW))
    assert (first.raw_bytes > 600_000, first.stored_bytes < 1_000) == (True, True)
    assert (second.raw_bytes > 1_000_000, 400_000 < second.stored_bytes < 600_000) == (True, True)


async def test_a_header_says_when_it_expires(factory: CosmosStateFactory) -> None:
    """Demand 7: the time to live counts from the save, and another storage's does not change it."""
    storage = factory.for_tenant("contoso").checkpoints
    before = datetime.now(UTC).replace(microsecond=0)
    await storage.with_ttl(3600).save(checkpoint("cp-1"))
    await storage.with_ttl(3600).with_ttl(None).save(checkpoint("cp-2"))
    expires = {found.checkpoint_id: found.expires async for found in storage.iter_checkpoint_headers(WORKFLOW)}
    assert expires["cp-1"] is not None
    assert timedelta(seconds=3590) < expires["cp-1"] - before < timedelta(seconds=3660)
    assert expires["cp-2"] is None


async def test_each_is_one_event(settings: CosmosStateSettings, events: list[MutableMapping[str, Any]]) -> None:
    """Demand 34: tenant, scope, request charge and count are in the event of each operation."""
    async with factory_of(settings) as factory:
        storage = factory.for_tenant("contoso").checkpoints.scoped("s-1")
        for one in chain(2):
            await storage.save(one)
        await all_of(storage.iter_checkpoints(WORKFLOW))
        await all_of(storage.iter_checkpoint_headers(WORKFLOW, limit=1))
        await storage.list_workflows()
        await storage.lineage("cp-001")
        await storage.list_children("cp-001")
        with pytest.raises(errors.InvalidArgumentError):
            await anext(storage.iter_checkpoints(WORKFLOW, limit=0))

    told = [event for event in events if event.get("scope") == "s-1"][2:]
    assert [(event["event"], event.get("count"), event["log_level"]) for event in told] == [
        ("checkpoint.iterated", 2, "info"),
        ("checkpoint.headers_listed", 1, "info"),
        ("workflow.listed", 1, "info"),
        ("checkpoint.lineage_read", 2, "info"),
        ("checkpoint.children_listed", 0, "info"),
        ("checkpoint.iterate_failed", None, "error"),
    ]
    assert all(event["tenant_id"] == "contoso" for event in told)
    assert all(event["request_charge"] > 0 and event["requests"] >= 1 for event in told[:-1])
