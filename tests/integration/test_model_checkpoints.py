"""A model of several processes on one store, whose requests hypothesis orders, loses and delays; see `support.model`.

What is run is the storage itself, the real client and the engine. That the model is able to find what it looks for is
shown by variants of the storage that lack one thing each.
"""

from __future__ import annotations

import logging
from contextlib import ExitStack

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from support.model.machine import AgedProcesses, Processes
from support.model.timeline import ViolationError
from support.model.variants import (
    Variant,
    asks_before_it_takes_the_guard,
    forgets_the_session,
    keyframes_for_any_time,
    never_asks,
    trusts_the_clock,
    uploads_without_end,
    without_guard_read,
)

VARIANTS: list[tuple[Variant, type[Processes], int]] = [
    (without_guard_read, Processes, 1),
    (asks_before_it_takes_the_guard, Processes, 8),
    (never_asks, Processes, 1),
    (uploads_without_end, Processes, 20),
    (trusts_the_clock, AgedProcesses, 8),
    (forgets_the_session, Processes, 1),
    (keyframes_for_any_time, Processes, 1),
]
"""Each with the seed at which the search begins, one where it ends soon; it goes on with the seeds after that."""

_ROUNDS = 100

_settings = settings(
    database=None,
    deadline=None,
    report_multiple_bugs=False,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    print_blob=False,
)


@pytest.fixture(autouse=True)
def _no_warnings_of_lost_requests() -> None:
    """Keep the client from writing a line for each request that is lost on purpose."""
    logging.getLogger("azure.cosmos").setLevel(logging.ERROR)


@pytest.mark.parametrize("machine", [Processes, AgedProcesses])
def test_nothing_is_lost_whatever_happens_between_two_requests(machine: type[Processes], *, full_size: bool) -> None:
    """Writers, readers, collectors and erasers that are killed, cancelled or lose requests: all is as it must be."""
    runs = 5_000 if full_size else 40
    run_state_machine_as_test(
        machine, settings=settings(_settings, max_examples=runs, stateful_step_count=25, derandomize=not full_size)
    )


@pytest.mark.parametrize(("variant", "machine", "first"), [pytest.param(*one, id=one[0].__name__) for one in VARIANTS])
def test_what_a_naive_variant_loses_is_found(variant: Variant, machine: type[Processes], first: int) -> None:
    """Each variant lacks one thing that the scheme says it needs, and without it something is lost."""
    with ExitStack() as patches:
        variant(patches)
        with pytest.raises(ViolationError, match=r"is not there|expires before|kept replacing"):
            _search(machine, first)


def _search(machine: type[Processes], first: int) -> None:
    """Run with one seed after another: many short searches find more than a long one."""
    quick = settings(_settings, max_examples=12, stateful_step_count=25, phases=[Phase.generate])
    for number in range(first, first + _ROUNDS):
        # The seed is kept on the class.
        seeded = seed(number)(type("Seeded", (machine,), {}))
        run_state_machine_as_test(seeded, settings=quick)
