"""What each operation costs in requests: counted at the transport, and the same in the event that tells of it."""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final

import pytest
from agent_framework import WorkflowCheckpoint
from azure.core.pipeline.transport import HttpRequest

from cosmos_workflow_state import TenantCheckpointStorage
from support.engines import MovedAccount, moved_account
from support.references import missing, unreferenced
from support.states import WORKFLOW, checkpoint

INLINE: Final = 1_000
"""Random bytes that are a checkpoint without a keyframe."""
KEYFRAME: Final = 50_000
"""Random bytes that are a keyframe in one item, and a difference of next to nothing."""
PARTS: Final = 3_000_000
"""Random bytes that are a keyframe in eleven parts."""
ONE_BATCH: Final = ["batch"]

Events = list[MutableMapping[str, Any]]


class Wire:
    """The requests that a storage has sent since somebody looked.

    Attributes:
        storage: The storage; cold, it has seen nothing.
    """

    def __init__(self, events: Events) -> None:
        self.storage: TenantCheckpointStorage
        self._sent: list[str] = []
        self._events = events

    def watch(self, request: HttpRequest) -> None:
        """Note a request for items."""
        kinds = {"x-ms-cosmos-is-batch-request": "batch", "x-ms-documentdb-isquery": "query"}
        given = [kind for header, kind in kinds.items() if request.headers.get(header) in {"True", "true", True}]
        methods = {"POST": "create", "GET": "read", "PUT": "replace", "DELETE": "delete"}
        self._sent.append((given or [methods[request.method]])[0])

    async def sent(self, operation: Awaitable[object]) -> list[str]:
        """Return what an operation sends; its one event says as much."""
        self._sent.clear()
        self._events.clear()
        await operation
        assert [event["requests"] for event in self._events if "requests" in event] == [len(self._sent)]
        return list(self._sent)


OpenWire = Callable[[], AbstractAsyncContextManager[Wire]]


@pytest.fixture
async def account() -> AsyncIterator[MovedAccount]:
    """Yield an account in memory."""
    async with moved_account() as opened:
        yield opened


@pytest.fixture
def cold(account: MovedAccount, events: Events) -> OpenWire:
    """Return what opens one process's storage after another."""

    @asynccontextmanager
    async def opened() -> AsyncGenerator[Wire]:
        wire = Wire(events)
        async with account.factory(wire.watch) as factory:
            wire.storage = factory.for_tenant("contoso").checkpoints
            # Connecting, and the application's own first operation, are not what is counted.
            await wire.storage.list_checkpoint_ids(workflow_name="another")
            yield wire

    return opened


def state(number: int, size: int, *, changed: int = 0) -> WorkflowCheckpoint:
    """Return the ``number``-th of a lineage, with so many bytes that stay and so many that are new in it."""
    return checkpoint(
        f"cp-{number:03}",
        previous_checkpoint_id=f"cp-{number - 1:03}" if number else None,
        timestamp=f"2026-11-29T10:00:{number:02}+00:00",
        state={"stays": random.Random(size).randbytes(size), "new": random.Random(-number).randbytes(changed)},
    )


async def test_every_save_of_a_small_state_is_one_request(cold: OpenWire) -> None:
    """A state that is too small for a keyframe: one batch of one create."""
    async with cold() as wire:
        for number in range(5):
            assert await wire.sent(wire.storage.save(state(number, INLINE))) == ONE_BATCH


async def test_every_save_of_a_growing_state_is_one_request(cold: OpenWire, account: MovedAccount) -> None:
    """Demand 29: a new keyframe with its guard and its checkpoint is one batch, as each difference to it is."""
    async with cold() as wire:
        for number in range(20):
            saved = state(number, KEYFRAME, changed=3_000 * number)
            assert await wire.sent(wire.storage.save(saved)) == ONE_BATCH

    types = [item["type"] for item in await account.items()]
    assert types.count("checkpoint") == 20
    assert 1 < types.count("keyframe") == types.count("keyframe_guard") < 20


async def test_a_save_in_parts_is_its_parts_and_one_batch(cold: OpenWire) -> None:
    """Demand 1: a guard, the parts, one batch; the saves after it are one request again."""
    async with cold() as wire:
        assert await wire.sent(wire.storage.save(state(0, PARTS))) == [*["create"] * 12, *ONE_BATCH]
        for number in range(1, 4):
            assert await wire.sent(wire.storage.save(state(number, PARTS, changed=9_000))) == ONE_BATCH
        # The difference itself is too large for one item: two parts.
        saved = state(4, PARTS, changed=400_000)
        assert await wire.sent(wire.storage.save(saved)) == [*["create"] * 3, *ONE_BATCH]


async def test_a_save_that_changes_nothing_is_the_batch_and_a_read(cold: OpenWire) -> None:
    """The same again: the service says that it is there, and the digest that it is the same."""
    async with cold() as wire:
        await wire.storage.save(state(0, KEYFRAME))
        await wire.storage.save(state(1, KEYFRAME, changed=50))
        assert await wire.sent(wire.storage.save(state(1, KEYFRAME, changed=50))) == [*ONE_BATCH, "read"]


async def test_a_save_in_parts_that_changes_nothing_leaves_nothing(cold: OpenWire) -> None:
    """Demand 16: a large state that is there already is found out by the commit, compared, and its new parts removed.

    Nothing that was read before the commit is believed: a process's first read may be of a state that is past.
    """
    async with cold() as wire:
        await wire.storage.save(state(0, PARTS))
    async with cold() as wire:
        upload, comparison, removal = ["create"] * 12, ["read"] * 13, [*ONE_BATCH, "read", *["delete"] * 11]
        assert await wire.sent(wire.storage.save(state(0, PARTS))) == [*upload, *ONE_BATCH, *comparison, *removal]


@pytest.mark.parametrize(
    ("size", "further"),
    [(INLINE, []), (KEYFRAME, ["read"]), (PARTS, ["read"] * 12)],
    ids=["inline", "keyframe", "parts"],
)
async def test_a_cold_load_is_one_request_and_one_for_the_keyframe(
    cold: OpenWire, size: int, further: list[str]
) -> None:
    """With the workflow known a point read, without it a query; then the keyframe, if there is one, and its parts."""
    async with cold() as wire:
        await wire.storage.save(state(0, size))
        await wire.storage.save(state(1, size, changed=100))

    async with cold() as wire:
        known = wire.storage.for_workflow(WORKFLOW)
        assert await wire.sent(known.load("cp-001")) == ["read", *further]
        # The keyframe is remembered now, and so is where the id lives.
        assert await wire.sent(wire.storage.load("cp-001")) == ["read"]
    async with cold() as wire:
        assert await wire.sent(wire.storage.load("cp-001")) == ["query", *further]
    async with cold() as wire:
        await wire.storage.list_checkpoint_ids(workflow_name=WORKFLOW)
        assert await wire.sent(wire.storage.load("cp-001")) == ["read", *further]
    async with cold() as wire:
        assert await wire.sent(wire.storage.get_latest(workflow_name=WORKFLOW)) == ["query", *further]
        assert await wire.sent(wire.storage.get_latest(workflow_name=WORKFLOW)) == ["query"]


async def test_a_load_from_where_the_id_has_moved_is_one_request_more(cold: OpenWire) -> None:
    """The workflow in which an id was seen is only a hint: a query follows when it is no longer there."""
    async with cold() as wire, cold() as other:
        await wire.storage.save(checkpoint("cp-1"))
        await other.storage.delete("cp-1")
        await other.storage.save(checkpoint("cp-1", workflow="another"))
        assert await wire.sent(wire.storage.load("cp-1")) == ["read", "query"]


@pytest.mark.parametrize("size", [KEYFRAME, PARTS], ids=["keyframe", "parts"])
@pytest.mark.parametrize("how", ["load", "get_latest"])
async def test_the_first_save_after_a_resume_is_a_difference(
    cold: OpenWire, account: MovedAccount, size: int, how: str
) -> None:
    """Demand 29: what a new process has loaded tells it the keyframe, so its first save is one small request."""
    async with cold() as wire:
        await wire.storage.save(state(0, size))
        await wire.storage.save(state(1, size, changed=100))

    async with cold() as wire:
        resumed = wire.storage.load("cp-001") if how == "load" else wire.storage.get_latest(workflow_name=WORKFLOW)
        assert await resumed == state(1, size, changed=100)
        assert await wire.sent(wire.storage.save(state(2, size, changed=200))) == ONE_BATCH

    items = await account.items()
    keyframes = [item["keyframe_id"] for item in items if item["type"] == "keyframe"]
    assert [item["payload"]["keyframe"] for item in items if item["type"] == "checkpoint"] == keyframes * 3
    assert all(100 * len(item["payload"]["data"]) < 2 * size for item in items if item["type"] == "checkpoint")


async def test_a_keyframe_that_may_not_be_referred_to_costs_one_request_more_once(
    cold: OpenWire, account: MovedAccount
) -> None:
    """A guard that has expired refuses the batch whole; a new keyframe is written, and the saves after it are one."""
    async with cold() as wire:
        await wire.storage.save(state(0, KEYFRAME))
        account.clock.advance(24 * 3600 + 1)
        assert await wire.sent(wire.storage.save(state(1, KEYFRAME))) == [*ONE_BATCH, "read", *ONE_BATCH]
        assert await wire.sent(wire.storage.save(state(2, KEYFRAME))) == ONE_BATCH


async def test_parts_that_cannot_be_committed_are_not_left(cold: OpenWire, account: MovedAccount) -> None:
    """Demand 1: a keyframe swept away under a difference in parts: the save writes a new one and removes them."""
    async with cold() as wire, cold() as other:
        await wire.storage.save(state(0, PARTS))
        await other.storage.delete("cp-000")
        sent = await wire.sent(wire.storage.save(state(1, PARTS, changed=400_000)))
        # Refused; the guard of the parts, which is taken first; committed.
        assert (sent.count("batch"), sent.count("delete")) == (3, 2)
        assert await other.storage.load("cp-001") == state(1, PARTS, changed=400_000)
    items = await account.items()
    assert unreferenced(items) == missing(items) == set()


async def test_lists_and_lineage_are_a_request_a_page(cold: OpenWire) -> None:
    """Ids, headers, children, workflows, lineage are a query each; whole checkpoints need their keyframe too, once."""
    async with cold() as wire:
        for number in range(6):
            await wire.storage.save(state(number, KEYFRAME, changed=100))

    async with cold() as wire:
        storage = wire.storage
        assert await wire.sent(storage.list_checkpoint_ids(workflow_name=WORKFLOW)) == ["query"]
        assert await wire.sent(storage.lineage("cp-005")) == ["query"]
        assert await wire.sent(storage.list_children("cp-000")) == ["query"]
        assert await wire.sent(storage.list_workflows()) == ["query"]
        assert await wire.sent(_drained(storage.iter_checkpoint_headers(WORKFLOW))) == ["query"]
        assert await wire.sent(storage.list_checkpoints(workflow_name=WORKFLOW)) == ["query", "read"]
        assert await wire.sent(_drained(storage.iter_checkpoints(WORKFLOW))) == ["query"]


async def _drained(rows: AsyncIterator[object]) -> None:
    async for _ in rows:
        pass


@pytest.mark.parametrize("size", [INLINE, KEYFRAME], ids=["inline", "keyframe"])
async def test_a_delete_is_two_requests(cold: OpenWire, size: int) -> None:
    """Where the id lives, and the delete; the sweep that comes with the first of an hour has an event of its own."""
    async with cold() as wire:
        for number in range(3):
            await wire.storage.save(state(number, size))
        await wire.storage.delete("cp-000")
        assert await wire.sent(wire.storage.delete("cp-001")) == ["query", *ONE_BATCH]
