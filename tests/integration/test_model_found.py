"""What was found with the model's processes, step by step."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from agent_framework import WorkflowCheckpoint

from support.model import states
from support.model.machine import Processes
from support.model.operations import Kind, Order
from support.model.states import Change
from support.model.world import Fate, Pending


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Processes]:
    """Yield processes with nothing stored; afterwards all is readable, and one sweep leaves nothing unneeded."""
    monkeypatch.setattr(states, "_LARGE", 40)  # so that many differences fit one keyframe
    found = Processes()
    yield found
    found.teardown()


def test_a_checkpoint_that_is_replaced_while_it_is_read_is_not_corrupt(processes: Processes) -> None:
    """However often its parts go while they are read: what is there instead is read, and given back."""
    world = processes.world
    processes.do(Order(Kind.SAVE, 0, change=Change.LARGE))
    processes.do(Order(Kind.SAVE, 0, change=Change.PARTLY))
    processes.do(Order(Kind.LOAD, 1))
    running = processes.begin_one(Order(Kind.LOAD, 1))
    replaced = 0

    while running in world.running:
        mine = [pending for pending in world.pending if pending.running is running]
        if _is_part(mine[0]) and replaced < 5:
            processes.do(Order(Kind.SAVE, 0, change=Change.PARTLY))
            replaced += 1
        for pending in mine:
            if pending in world.pending:
                world.release(pending, Fate.DELIVERED)

    assert replaced == 5
    assert isinstance(running.outcome, WorkflowCheckpoint)


def test_requests_that_arrive_after_all_do_not_bring_an_upload_back(processes: Processes) -> None:
    """The first tries of the guard and of the commit arrive when the checkpoint is deleted: it stays deleted."""
    world = processes.world
    processes.do(Order(Kind.SAVE, 0, change=Change.LARGE))
    running = processes.begin_one(Order(Kind.SAVE, 0, name="c1", change=Change.PARTLY))

    while running in world.running:
        pending = world.pending[0]
        is_first_try = _what(pending) not in {None, *map(_what, world.late)}
        world.release(pending, Fate.LATE if is_first_try else Fate.DELIVERED)
    assert running.outcome == "c1"
    assert [_what(pending) for pending in world.late] == ["guard", "commit"]
    processes.do(Order(Kind.DELETE, 0, name="c1"))
    for pending in list(world.late):
        world.deliver_late(pending)

    assert {which.checkpoint_id for which in world.timeline.present} == {"c0"}


def _is_part(pending: Pending) -> bool:
    return "/pt" in pending.request.url


def _what(pending: Pending) -> str | None:
    if "x-ms-cosmos-is-batch-request" in pending.request.headers:
        return "commit"
    return "guard" if "upload_guard" in str(pending.request.data) else None
