"""The fault matrix: every request of every operation, times everything that may happen to it.

Afterwards the state is the one before or the one after, an error says which or that it cannot know, and a plain repeat
succeeds. The everyday size is a part of the matrix, see `_is_everyday`; ``--full`` is all of it.
"""

from __future__ import annotations

import asyncio
from typing import Final, cast

import pytest

from cosmos_workflow_state import errors
from support.faults import Fault, let_pass, status
from support.matrix import Baseline, Events, Ordeal, baseline_of, check_events, run, warm_up
from support.operations import KINDS, SMALL, Kind, save, small_parts
from support.troubles import TROUBLES, Outcome, Scene, Trouble, outcome_of
from support.worlds import World, world_of
from unit.support.jumping import JumpingLoop

_OPENING: Final = 7
"""Requests of the first save of all, those that create the container included."""

_FIRST_SAVE: Final = Kind("save-first", KINDS[0].names, _OPENING, save(SMALL))
_ANY_CANCELLATION: Final = Trouble("cancelled", lambda _: [], raises=())


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    small_parts(monkeypatch)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make the cases, fewer of them without ``--full``."""
    if "trouble" not in metafunc.fixturenames:
        return
    full = bool(metafunc.config.getoption("--full"))
    kinds = [_FIRST_SAVE] if "opening" in metafunc.function.__name__ else KINDS
    cases = [
        pytest.param(kind, request, trouble, id=f"{kind.name}-request-{request}-{trouble.name}")
        for kind in kinds
        for request in range(kind.requests)
        for number, trouble in enumerate(TROUBLES)
        if full or _is_everyday(kind, request, number)
    ]
    metafunc.parametrize(("kind", "request_number", "trouble"), cases)


def _is_everyday(kind: Kind, request: int, trouble: int) -> bool:
    """Return whether a case is one of every day: each operation meets every other trouble, at one of its requests."""
    return (request + trouble) % kind.requests == 0 and (trouble + len(kind.name)) % 2 == 0


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_the_matrix_has_every_request(kind: Kind) -> None:
    """Demand 21: the requests that the matrix goes through are all that each operation takes, undisturbed."""

    async def story() -> None:
        baseline = await baseline_of(kind)
        assert len(baseline.requests) == kind.requests, baseline.requests
        if kind.in_steps:
            assert [item["id"] for item in baseline.left if item["scope"] == ""] == []

    run(story)


def test_opening_is_part_of_the_matrix() -> None:
    """Demand 21: the first save of all has as many requests as its part of the matrix goes through."""

    async def story() -> None:
        async with world_of() as world, world.process() as process:
            process.transport.all_of_them = True
            await process.storage.save(SMALL)
            assert len(process.transport.sent) == _OPENING, process.transport.sent

    run(story)


def test_the_state_is_the_one_before_or_after(
    kind: Kind, request_number: int, trouble: Trouble, events: Events
) -> None:
    """Demand 21: whatever happens to a request, nothing is lost or half, and a plain repeat succeeds."""

    async def story() -> None:
        baseline, scene = await baseline_of(kind), Scene()
        async with world_of(baseline.image) as world, world.process() as process:
            await warm_up(kind, world, process)
            process.transport.faults = [let_pass] * request_number + trouble.faults(scene)
            begun = len(events)
            outcome = await outcome_of(scene, lambda: kind.call(process.storage))
            process.transport.faults = []
            check_events(kind, outcome, events[begun:])
            await Ordeal(kind, trouble, world, process, scene, baseline).judge(outcome)

    run(story)


def test_an_opening_that_fails_can_be_repeated(kind: Kind, request_number: int, trouble: Trouble) -> None:
    """Demand 21: the same where the requests are those that create the container, and the first save."""

    async def story() -> None:
        scene = Scene()
        async with world_of() as world, world.process() as process:
            process.transport.all_of_them = True
            process.transport.faults = [let_pass] * request_number + trouble.faults(scene)
            outcome = await outcome_of(scene, lambda: kind.call(process.storage))
            process.transport.faults = []
            await Ordeal(kind, _with_any_error(trouble), world, process, scene, _first_save(world)).judge(outcome)

    run(story)


def _with_any_error(trouble: Trouble) -> Trouble:
    """Return a trouble that opening need not absorb: it is not repeated before the next operation."""
    raises = (errors.CosmosStateError,) if trouble.raises else ()
    return Trouble(trouble.name, trouble.faults, raises=raises, lands_last=trouble.lands_last)


def _first_save(world: World) -> Baseline:
    """Return how the first save of all goes."""
    place = ("", SMALL.workflow_name)
    return Baseline(world.image(), {place: []}, {place: [SMALL]}, Outcome(SMALL.checkpoint_id), [], [])


@pytest.mark.parametrize("throttled", [False, True], ids=["at-once", "while-it-waits"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_cancelled_at_any_await(kind: Kind, *, throttled: bool, full_size: bool, events: Events) -> None:
    """Demand 21: wherever an operation is cancelled, there is no half state and the factory is as good as before.

    Where it is throttled each request is sent twice, so that there are waits to be cancelled in.
    """
    apart = 1 if full_size else 11

    async def story() -> None:
        turn = 1
        while await _cancel(kind, turn, events, throttled=throttled):
            turn += apart
        assert turn > kind.requests

    run(story)


async def _cancel(kind: Kind, turn: int, events: Events, *, throttled: bool) -> bool:
    """Cancel an operation after some turns of the event loop; return whether it was still running then."""
    baseline, scene = await baseline_of(kind), Scene()
    loop = cast("JumpingLoop", asyncio.get_running_loop())
    was_running: list[bool] = []
    async with world_of(baseline.image) as world, world.process() as process:
        await warm_up(kind, world, process)
        twice: list[Fault] = [status(429, 3200, x_ms_retry_after_ms="100"), let_pass]
        process.transport.faults = twice * kind.requests if throttled else []
        begun = len(events)
        loop.interrupt(turn, lambda: was_running.append(scene.cancel()))
        outcome = await outcome_of(scene, lambda: kind.call(process.storage))
        loop.interrupt(-1, lambda: None)
        process.transport.faults = []
        assert outcome.was_cancelled == any(was_running), f"turn {turn}"
        check_events(kind, outcome, events[begun:])
        try:
            await Ordeal(kind, _ANY_CANCELLATION, world, process, scene, baseline).judge(outcome)
        except Exception as error:
            error.add_note(f"cancelled after turn {turn}")
            raise
    return any(was_running)
