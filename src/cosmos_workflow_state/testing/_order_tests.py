"""Tests of the order: which checkpoint is the latest, and what happens when that one cannot be read."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import pytest
from agent_framework import CheckpointStorage, WorkflowCheckpoint, WorkflowCheckpointException

from ._capabilities import Capability, covers
from ._claims import Claims, Reopen
from ._making import START, WORKFLOW, chain, checkpoint
from ._values import Retired

TIMES: Final = {
    "offsets": ("2026-11-29T12:00:00+02:00", "2026-11-29T10:30:00+00:00", "2026-11-29T06:00:00-05:00"),
    "fractions": ("2026-11-29T10:00:00+00:00", "2026-11-29T10:00:00.5+00:00", "2026-11-29T10:00:00.500001+00:00"),
    "zulu": ("2026-11-29T10:00:00Z", "2026-11-29T10:00:00.250Z", "2026-11-29T10:00:00.500000+00:00"),
    "years": ("1999-12-31T23:59:59+00:00", "2026-11-29T10:00:00+00:00", "2100-01-01T00:00:00+00:00"),
}
"""Timestamps by what is special about them, the oldest first."""


LATEST, LISTS = "latest", "lists"

each_view = pytest.mark.parametrize("view", [LATEST, LISTS])
"""The latest and the lists are two things to get right."""


async def assert_order(storage: CheckpointStorage, view: str, expected: list[WorkflowCheckpoint]) -> None:
    """Assert that the latest is the last of these, or that both lists are these.

    Args:
        storage: What is asked.
        view: `LATEST` or `LISTS`.
        expected: The oldest first.
    """
    if view == LATEST:
        assert await storage.get_latest(workflow_name=WORKFLOW) == expected[-1]
    else:
        assert await storage.list_checkpoint_ids(workflow_name=WORKFLOW) == [one.checkpoint_id for one in expected]
        assert await storage.list_checkpoints(workflow_name=WORKFLOW) == expected


class OrderTests(Claims):
    """Lists are oldest first, and the latest is the last of them."""

    @covers(Capability.ORDERING)
    @each_view
    async def test_the_order_is_that_of_time(self, storage: CheckpointStorage, view: str) -> None:
        """Whatever the order of saving, which is not that of the ids either."""
        made = list(reversed(chain(8, step=timedelta(seconds=-1))))
        for place in (3, 0, 7, 5, 2, 1, 6, 4):
            made[place].previous_checkpoint_id = None
            await storage.save(made[place])
        await assert_order(storage, view, made)

    @covers(Capability.ORDERING)
    @each_view
    @pytest.mark.parametrize("special", TIMES)
    async def test_timestamps_are_times_not_text(self, storage: CheckpointStorage, special: str, view: str) -> None:
        """The instant counts, however it is written."""
        made = [checkpoint(f"cp-{number}", timestamp=time) for number, time in enumerate(TIMES[special])]
        for place in (1, 2, 0):
            await storage.save(made[place])
        await assert_order(storage, view, made)

    @covers(Capability.ORDERING)
    @each_view
    async def test_equal_timestamps(self, storage: CheckpointStorage, view: str) -> None:
        """The order is that of saving: a clock may be coarse, and a parent must never come after its child."""
        made = chain(12, step=timedelta())
        for one in made:
            await storage.save(one)
        await assert_order(storage, view, made)

    @covers(Capability.ORDERING)
    @each_view
    async def test_equal_timestamps_without_parents(self, storage: CheckpointStorage, view: str) -> None:
        """The order of saving again, not that of the ids."""
        made = [checkpoint(one, timestamp=START.isoformat()) for one in ("z", "a", "m", "B", "0")]
        for one in made:
            await storage.save(one)
        await assert_order(storage, view, made)

    @covers(Capability.ORDERING)
    @each_view
    @pytest.mark.parametrize("seconds", [0.001, 2, 3600])
    async def test_a_child_with_an_earlier_clock(self, storage: CheckpointStorage, seconds: float, view: str) -> None:
        """A resume on a node whose clock is behind continues the lineage all the same."""
        made = chain(6, step=timedelta(seconds=-seconds))
        for one in made:
            await storage.save(one)
        await assert_order(storage, view, made)

    @covers(Capability.ORDERING, Capability.LIFECYCLE)
    @each_view
    @pytest.mark.parametrize("seconds", [0, 2])
    async def test_a_child_of_a_resume_elsewhere(
        self, storage: CheckpointStorage, reopen: Reopen, seconds: float, view: str
    ) -> None:
        """Another process reads the latest and saves its child, on a clock that is not ahead."""
        parent, child, grandchild = chain(3, step=timedelta(seconds=-seconds))
        await storage.save(parent)
        second = await reopen()
        assert await second.get_latest(workflow_name=WORKFLOW) == parent
        await second.save(child)
        third = await reopen()
        await third.load(child.checkpoint_id)
        await third.save(grandchild)
        await assert_order(await reopen(), view, [parent, child, grandchild])

    @covers(Capability.ORDERING)
    async def test_the_latest_is_raised_when_it_cannot_be_read(
        self, storage: CheckpointStorage, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Never an older one in its place, or side effects would run twice. A storage of live objects can read it."""
        await storage.save(checkpoint("older"))
        state = {"retired": Retired(1)}
        await storage.save(checkpoint("newer", timestamp="2026-11-30T00:00:00+00:00", state=state))
        _retire(monkeypatch)
        await _assert_latest_or_refused(storage, "newer")

    @covers(Capability.ORDERING)
    async def test_the_only_one_is_not_missing_when_it_cannot_be_read(
        self, storage: CheckpointStorage, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """``None`` means that there is none: a caller would begin anew."""
        await storage.save(checkpoint("only", state={"retired": Retired(1)}))
        _retire(monkeypatch)
        await _assert_latest_or_refused(storage, "only")

    @covers(Capability.ORDERING)
    async def test_what_cannot_be_read_can_be_deleted(
        self, storage: CheckpointStorage, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It does not block its workflow for ever."""
        await storage.save(checkpoint("older"))
        state = {"retired": Retired(1)}
        await storage.save(checkpoint("newer", timestamp="2026-11-30T00:00:00+00:00", state=state))
        _retire(monkeypatch)
        assert await storage.delete("newer") is True
        await _assert_latest_or_refused(storage, "older")


async def _assert_latest_or_refused(storage: CheckpointStorage, expected: str) -> None:
    """Assert that get_latest returns this one or refuses to, and neither another one nor None."""
    try:
        latest = await storage.get_latest(workflow_name=WORKFLOW)
    except WorkflowCheckpointException:
        return
    assert latest is not None
    assert latest.checkpoint_id == expected


def _retire(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the type away, as a deployment does that does not have it any more."""
    monkeypatch.delattr(f"{Retired.__module__}.{Retired.__qualname__}")
