"""Checkpoints that expire, with the clock moved second by second: what is visible is whole, nothing is left over."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterable
from typing import Any, Final

import pytest
from agent_framework import WorkflowCheckpoint
from azure.cosmos import PartitionKey
from azure.cosmos.aio import CosmosClient
from hypothesis import given, settings
from hypothesis import strategies as st

from cosmos_workflow_state import CosmosStateFactory, CosmosStateSettings, errors
from cosmos_workflow_state._definitions import CHECKPOINTS
from cosmos_workflow_state._embedded import open_embedded
from support.engines import MovedAccount, moved_account
from support.references import missing
from support.states import WORKFLOW, checkpoint

_REUSE: Final = 24 * 3600
"""Seconds in which a keyframe may be referred to anew."""
_MARGIN: Final = 3600
_LONGEST: Final = 2**31 - 1
_LAST_WITH_A_LIMIT: Final = _LONGEST - _REUSE - _MARGIN
"""The longest time to live whose keyframe still has one itself."""
_KEYFRAME: Final = 20_000
_PARTS: Final = 400_000


@pytest.fixture
async def account() -> AsyncIterator[MovedAccount]:
    """Yield an account in memory, whose time stands still until it is moved."""
    async with moved_account(still=True) as opened:
        yield opened


def state(number: int, size: int, *, changed: int = 100) -> WorkflowCheckpoint:
    """Return the ``number``-th of a lineage, with so many bytes that stay and so many that are new in it."""
    return checkpoint(
        f"cp-{number:03}",
        previous_checkpoint_id=f"cp-{number - 1:03}" if number else None,
        timestamp=f"2026-11-29T10:{number // 60:02}:{number % 60:02}+00:00",
        state={"stays": random.Random(size).randbytes(size), "new": random.Random(-number).randbytes(changed)},
    )


def keyframe_of(items: Iterable[dict[str, Any]], number: int) -> str:
    """Return the keyframe that a checkpoint refers to."""
    (found,) = [item for item in items if item.get("checkpoint_id") == f"cp-{number:03}"]
    return str(found["payload"]["keyframe"])


def expires(item: dict[str, Any]) -> float:
    """Return the second at which an item is gone."""
    return float("inf") if item.get("ttl", -1) == -1 else item["_ts"] + item["ttl"]


async def expect_whole(account: MovedAccount, saved: dict[str, tuple[WorkflowCheckpoint, float]]) -> None:
    """Check, as a process that has seen nothing, that what has not expired is there and loads, and nothing else."""
    async with account.factory() as factory:
        storage = factory.for_tenant("contoso").checkpoints.for_workflow(WORKFLOW)
        expected = [one for one, until in saved.values() if account.clock() < until]
        assert await storage.list_checkpoints(workflow_name=WORKFLOW) == expected
    assert missing(await account.items()) == set()


@pytest.mark.parametrize("size", [_KEYFRAME, _PARTS], ids=["inline", "parts"])
async def test_what_is_visible_is_whole_at_any_second(account: MovedAccount, size: int) -> None:
    """Demand 7: saved around the last second of a guard, read around every limit: none outlives its keyframe."""
    ttl, saved, starts = 900, dict[str, tuple[WorkflowCheckpoint, float]](), int(account.clock())
    async with account.factory() as factory:
        storage = factory.for_tenant("contoso").checkpoints.with_ttl(ttl)
        for number, second in enumerate((0, 1, _REUSE - 2, _REUSE - 1, _REUSE, _REUSE + 1)):
            account.clock.offset = float(second)
            # The third has parts of its own.
            one = state(number, size, changed=350_000 if number == 2 and size == _PARTS else 100)
            await storage.save(one)
            saved[one.checkpoint_id] = one, int(account.clock()) + ttl
    items = await account.items()
    assert keyframe_of(items, 2) == keyframe_of(items, 3) != keyframe_of(items, 4) == keyframe_of(items, 5)

    limits = {_REUSE, _REUSE + ttl, _REUSE + ttl + _MARGIN, 2 * _REUSE}
    for second in sorted(limit + step for limit in limits for step in range(-3, 4) if limit + step > _REUSE):
        account.clock.offset = float(second)
        await expect_whole(account, saved)
    # Nobody has swept: all of it goes by itself.
    account.clock.offset = float(int(max(map(expires, items))) - starts)
    assert await account.items() == []


async def test_time_to_live_of_everything_that_is_stored(account: MovedAccount) -> None:
    """Demands 7 and 8: a checkpoint for ever has no such field; what serves one says so, or lives longer than it."""
    async with account.factory(checkpoint_ttl=60) as factory:
        storage = factory.for_tenant("contoso").checkpoints
        await storage.scoped("setting").save(state(0, _PARTS))
        await storage.scoped("override").with_ttl(90).save(state(0, _PARTS))
        await storage.scoped("never").with_ttl(None).save(state(0, _PARTS))

    found = {(item["scope"], item["type"]): item.get("ttl", "left out") for item in await account.items()}
    assert found == {
        ("setting", "checkpoint"): 60,
        ("setting", "keyframe"): _REUSE + 60 + _MARGIN,
        ("setting", "keyframe_guard"): _REUSE,
        ("setting", "part"): _REUSE + 60 + 2 * _MARGIN,
        ("override", "checkpoint"): 90,
        ("override", "keyframe"): _REUSE + 90 + _MARGIN,
        ("override", "keyframe_guard"): _REUSE,
        ("override", "part"): _REUSE + 90 + 2 * _MARGIN,
        ("never", "checkpoint"): "left out",
        ("never", "keyframe"): -1,
        ("never", "keyframe_guard"): _REUSE,
        ("never", "part"): -1,
    }


@pytest.mark.parametrize("later", [61, _LONGEST, None])
async def test_who_lives_longer_gets_a_keyframe_of_its_own(account: MovedAccount, later: int | None) -> None:
    """A checkpoint refers to its parent's keyframe when that outlives it, otherwise to a new one, which serves both."""
    async with account.factory() as factory:
        storage = factory.for_tenant("contoso").checkpoints
        for number, ttl in enumerate((60, 59, 60, later, 60)):
            await storage.with_ttl(ttl).save(state(number, _KEYFRAME))

    items = await account.items()
    keyframes = [keyframe_of(items, number) for number in range(5)]
    assert keyframes[0] == keyframes[1] == keyframes[2] != keyframes[3] == keyframes[4]
    account.clock.advance(_REUSE + 60 + _MARGIN + 1)
    async with account.factory() as factory:
        loaded = await factory.for_tenant("contoso").checkpoints.list_checkpoints(workflow_name=WORKFLOW)
        assert loaded == ([] if later == 61 else [state(3, _KEYFRAME)])


@pytest.mark.parametrize("ttl", [_LAST_WITH_A_LIMIT - 1, _LAST_WITH_A_LIMIT, _LAST_WITH_A_LIMIT + 1, _LONGEST])
async def test_the_longest_times_to_live(account: MovedAccount, ttl: int) -> None:
    """Demand 8: what would have to outlive 2,147,483,647 seconds never expires; no number is over what is taken."""
    async with account.factory(checkpoint_ttl=ttl) as factory:
        storage = factory.for_tenant("contoso").checkpoints
        await storage.save(state(0, _PARTS))
        await storage.save(state(1, _PARTS, changed=350_000))

    items = await account.items()
    ends = {item["id"]: expires(item) for item in items}
    for item in items:
        assert item.get("ttl", 1) <= _LONGEST
        if item["type"] == "part":
            assert ends[item["id"]] >= ends[item["owner"]]
        if item["type"] == "checkpoint":
            assert ends[f"kf:{item['payload']['keyframe']}"] > ends[item["id"]]
    account.clock.offset = float(ttl - 1)
    await expect_whole(account, {str(n): (state(n, _PARTS, changed=100 if n == 0 else 350_000), 1e18) for n in (0, 1)})
    account.clock.offset = float(ttl)
    await expect_whole(account, {})


async def test_saving_again_starts_the_time_anew_only_when_it_is_changed(account: MovedAccount) -> None:
    """The same again is not written, so it keeps its time; another state under the id is, and gets the whole of it."""
    async with account.factory() as factory:
        storage = factory.for_tenant("contoso").checkpoints.with_ttl(100)
        await storage.save(state(0, _KEYFRAME))
        await storage.save(state(1, _KEYFRAME))
        account.clock.advance(99)
        await storage.save(state(0, _KEYFRAME))
        changed = state(1, _KEYFRAME, changed=101)
        await storage.save(changed)
        account.clock.advance(1)
        await expect_whole(account, {"1": (changed, 1e18)})
        account.clock.advance(99)
        await expect_whole(account, {})
        # An id that has expired is free again.
        await storage.save(state(0, _KEYFRAME))
        await expect_whole(account, {"0": (state(0, _KEYFRAME), 1e18)})


_TTLS = st.sampled_from([None, 1, 2, 60, 3599, 3601, 86399, 86401, _LONGEST])
_MOVES = st.sampled_from([0, 1, 2, 59, 60, 3598, 3599, 3600, 3601, 7200, 86398, 86399, 86400, 86401, 90000])
_STEPS = st.lists(
    st.tuples(_MOVES, _TTLS, st.sampled_from(["save", "replace", "resume", "sweep", "delete"])), max_size=14
)


@pytest.mark.parametrize("size", [_KEYFRAME, _PARTS], ids=["inline", "parts"])
def test_whatever_is_saved_with_whatever_time_to_live_is_whole_while_it_lives(size: int, full_size: bool) -> None:
    """Demand 7: any times to live, moves of the clock, resumes and sweeps: what is visible loads, and equals."""

    @settings(deadline=None, max_examples=400 if full_size else 10)
    @given(_STEPS)
    def check(steps: list[tuple[int, int | None, str]]) -> None:
        asyncio.run(_run(size, steps))

    check()


async def _run(size: int, steps: list[tuple[int, int | None, str]]) -> None:
    saved: dict[str, tuple[WorkflowCheckpoint, float]] = {}
    async with moved_account(still=True) as account, account.factory() as factory, account.factory() as resumed:
        storages = [one.for_tenant("contoso").checkpoints for one in (factory, resumed)]
        for number, (move, ttl, what) in enumerate(steps):
            account.clock.advance(move)
            storage = storages[what == "resume"]
            visible = [one for one, until in saved.values() if account.clock() < until]
            if what == "sweep":
                await storage.sweep()
            elif what == "delete" and visible:
                assert await storage.delete(visible[-1].checkpoint_id)
                del saved[visible[-1].checkpoint_id]
            else:
                if what == "resume":
                    assert await storage.get_latest(workflow_name=WORKFLOW) == (visible[-1] if visible else None)
                one = state(number, size, changed=5_000 if number % 3 else 100)
                if what == "replace" and visible:
                    one.checkpoint_id, one.timestamp = visible[-1].checkpoint_id, visible[-1].timestamp
                await storage.with_ttl(ttl).save(one)
                ends = float("inf") if ttl is None else int(account.clock()) + ttl
                saved[one.checkpoint_id] = one, ends
            await expect_whole(account, saved)


@pytest.mark.parametrize(("default_ttl", "sentence"), [(3600, "its default TTL is 3600 seconds"), (None, "is off")])
async def test_a_container_that_would_expire_what_is_needed_is_refused(default_ttl: int | None, sentence: str) -> None:
    """Demand 28: a positive default would expire keyframes under their checkpoints, without one nothing expires."""
    account = await open_embedded(None)
    async with CosmosClient(account.endpoint, account.key, transport=account.transport()) as client:
        defaults = CosmosStateSettings(endpoint="embedded:", _env_file=None)
        included = [{"path": path} for path in CHECKPOINTS.indexed]
        policy: dict[str, Any] = {"includedPaths": included, "excludedPaths": [{"path": "/*"}]}
        database = await client.create_database(defaults.database)
        await database.create_container(
            defaults.checkpoint_container,
            PartitionKey(["/tenant_id", "/workflow_name"], kind="MultiHash"),
            indexing_policy=policy,
            default_ttl=default_ttl,
        )
        async with CosmosStateFactory(defaults, client=client) as factory:
            with pytest.raises(errors.ProvisioningError, match=sentence) as raised:
                await factory.for_tenant("contoso").checkpoints.save(checkpoint(state={}))
    await account.close()
    assert "-1" in raised.value.problems[0]
