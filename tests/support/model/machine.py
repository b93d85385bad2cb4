"""The rules by which hypothesis lets processes work on one store, and what must be true whatever it chooses."""

from __future__ import annotations

import random
import uuid
from types import SimpleNamespace
from typing import Any, Final
from unittest import mock

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from .operations import Kind, Operations, Order, Place
from .states import MAX_WHOLE_BYTES, PART_BYTES, Change
from .timeline import ViolationError
from .truth import unreferenced
from .world import Fate, Running, World

_PLACES: Final[tuple[Place, ...]] = (("a", ""), ("a", "s"), ("b", ""))
_MOST_RUNNING: Final = 4
_MANY: Final = 1000
_DAY: Final = 24 * 3600

# What comes often is where most goes on: process 0 continues conversations, the others come in between.
_which = st.integers(0, 7)
_requests = st.integers(0, 12)
_behind = st.sampled_from([0, 0, 1, 1, 2, 3, 5, 8])
_seconds = st.sampled_from([60, 700, 3700, _DAY // 2, _DAY // 2, _DAY // 2, _DAY + 60, 3 * _DAY])
_places = st.sampled_from([*(6 * _PLACES[:1]), *_PLACES[1:]])
_names = st.sampled_from(["c0", "c0", "c0", "c1", "c2"])
_ttls = st.sampled_from([*(5 * [None]), 600, 2 * _DAY])
_continuing = st.builds(
    Order,
    kind=st.just(Kind.SAVE),
    number=st.just(0),
    place=_places,
    name=_names,
    change=st.sampled_from([*(6 * [Change.NEXT]), *Change]),
    ttl=_ttls,
)
_replacing = st.builds(
    Order,
    kind=st.sampled_from([Kind.SAVE, Kind.SAVE, Kind.SAVE_AGAIN]),
    number=st.integers(1, 2),
    place=_places,
    name=_names,
    change=st.sampled_from([*(3 * [Change.SMALL]), *Change]),
    ttl=_ttls,
)
_reading = st.builds(
    Order,
    kind=st.sampled_from([Kind.LOAD, Kind.GET_LATEST, Kind.LIST]),
    number=st.integers(0, 2),
    place=_places,
    name=_names,
)
_collecting = st.builds(
    Order,
    kind=st.sampled_from([Kind.DELETE, Kind.DELETE, Kind.DELETE, Kind.SWEEP, Kind.SWEEP, Kind.ERASE]),
    number=st.sampled_from([0, 1, 1, 2, 2]),
    place=_places,
    name=_names,
)
_orders = st.one_of(_continuing, _continuing, _replacing, _reading, _collecting)


class Processes(RuleBasedStateMachine):
    """Processes that save, read, delete, sweep and erase at the same time, are killed, and lose requests."""

    def __init__(self) -> None:
        """Start with an empty store; ids are the same in each run of the same steps."""
        super().__init__()
        chance = random.Random(0)
        self.world = World()
        self._operations = Operations(self.world)
        self._patches: list[Any] = [
            mock.patch("cosmos_workflow_state._lineage.time", SimpleNamespace(monotonic=self.world.store.clock)),
            mock.patch("cosmos_workflow_state._keyframes.MAX_WHOLE_BYTES", MAX_WHOLE_BYTES),
            mock.patch("cosmos_workflow_state._items.PART_BYTES", PART_BYTES),
            mock.patch("uuid.uuid4", side_effect=lambda: uuid.UUID(int=chance.getrandbits(128), version=4)),
        ]
        for patch in self._patches:
            patch.start()

    def begin_one(self, order: Order) -> Running:
        """Begin an operation, run to its first request, and return it."""
        return self._operations.begin(order)

    @initialize(order=_continuing)
    def start(self, order: Order) -> None:
        """Have something stored that the others can be about."""
        self.do(order)

    @precondition(lambda self: len(self.world.running) < _MOST_RUNNING)
    @rule(order=_orders)
    def begin(self, order: Order) -> None:
        """Begin an operation."""
        self.begin_one(order)

    @rule(order=_orders, behind=_behind)
    def do(self, order: Order, behind: int = 0) -> None:
        """Do an operation from its beginning to its end. Its replica may be behind, as far as the session allows."""
        self._go_on(self.begin_one(order), _MANY, behind)

    @rule(order=_orders, requests=_requests, between=st.one_of(_orders, _seconds), behind=_behind)
    def interrupt(self, order: Order, requests: int, between: Order | int, behind: int) -> None:
        """Do an operation, and between two of its requests another one; or let time pass there."""
        running = self.begin_one(order)
        self._go_on(running, requests, behind)
        self._do_or_wait(between)
        self._go_on(running, _MANY, behind)

    @rule(
        before=st.one_of(_replacing, _seconds),
        order=_collecting,
        requests=_requests,
        between=st.one_of(_continuing, _continuing, _seconds),
        behind=_behind,
    )
    def interrupt_collector(
        self, before: Order | int, order: Order, requests: int, between: Order | int, behind: int
    ) -> None:
        """Do the same where most can go wrong: somebody collects, and somebody goes on with what may be collected."""
        self._do_or_wait(before)
        self.interrupt(order, requests, between, behind)

    @rule(order=_continuing, limit=st.sampled_from([_DAY, _DAY, 3600]), collector=_collecting, behind=_behind)
    def collect_after_limit(self, order: Order, limit: int, collector: Order, behind: int) -> None:
        """Do an operation just before a limit, and collect just after it."""
        self.world.wait(limit - 60)
        self.do(order)
        self.world.wait(120)
        self.do(collector, behind)

    @precondition(lambda self: self.world.running)
    @rule(which=_which, requests=_requests, behind=_behind)
    def go_on(self, which: int, requests: int, behind: int) -> None:
        """Let some requests of one operation through."""
        self._go_on(self.world.running[which % len(self.world.running)], requests, behind)

    @precondition(lambda self: self.world.pending)
    @rule(which=_which, fate=st.sampled_from([Fate.ANSWER_LOST, Fate.LOST, Fate.LATE]))
    def lose(self, which: int, fate: Fate) -> None:
        """Lose a request, or its answer."""
        self.world.release(self.world.pending[which % len(self.world.pending)], fate)

    @precondition(lambda self: self.world.late)
    @rule(which=_which)
    def arrive_late(self, which: int) -> None:
        """Let a request arrive for which nobody waits any more."""
        self.world.deliver_late(self.world.late[which % len(self.world.late)])

    @precondition(lambda self: self.world.processes)
    @rule(number=st.sampled_from([0, 1, 1, 2, 2]))
    def kill(self, number: int) -> None:
        """Kill a process; the next that is begun there starts with nothing remembered."""
        if number in self.world.processes:
            self.world.kill(number)

    @precondition(lambda self: self.world.running)
    @rule(which=_which)
    def cancel(self, which: int) -> None:
        """Cancel an operation."""
        self.world.cancel(self.world.running[which % len(self.world.running)])

    @rule(seconds=_seconds)
    def wait(self, seconds: int) -> None:
        """Let the time of the service pass."""
        self.world.wait(seconds)

    @rule(number=st.integers(0, 2), place=st.sampled_from(_PLACES[::-1]))
    def erase_alone(self, number: int, place: Place) -> None:
        """Erase a scope to which nobody writes: nothing of it is left, and nothing else is touched."""
        self.world.finish()
        self.world.late.clear()
        before = self.world.store.items()
        self.do(Order(Kind.ERASE, number, place))
        after = self.world.store.items()
        expected = {key: item for key, item in before.items() if (item["tenant_id"], item["scope"]) != place}
        if after != expected:
            raise ViolationError(f"erasing {place} did not end as it must: {sorted(after.keys() ^ expected.keys())}")

    def teardown(self) -> None:
        """Let everything end; after all limits one sweep leaves nothing that is not needed, and all is readable."""
        try:
            if not self.world.timeline.violations:
                self._end()
        finally:
            self.world.close()
            for patch in self._patches:
                patch.stop()

    def _end(self) -> None:
        self.world.finish()
        self.world.late.clear()
        for place in _PLACES:
            self.do(Order(Kind.LIST, 9, place))
        self.world.wait(30 * _DAY)
        for place in _PLACES[1:]:
            self.do(Order(Kind.SWEEP, 9, place))
        left = unreferenced(self.world.store.items())
        if left:
            raise ViolationError(f"a sweep has left {left}")

    def _do_or_wait(self, what: Order | int) -> None:
        if isinstance(what, int):
            self.world.wait(what)
        else:
            self.do(what)

    def _go_on(self, running: Running, requests: int, behind: int) -> None:
        for _ in range(requests):
            mine = next((pending for pending in self.world.pending if pending.running is running), None)
            if mine is None:
                return
            past = self.world.store.past(mine.least_lsn, behind) if behind and mine.reads else None
            self.world.release(mine, Fate.DELIVERED if past is None else past)


class AgedProcesses(Processes):
    """The same, beginning where a keyframe is remembered, referred to by nothing, and soon too old to be."""

    @initialize(order=st.just(Order(Kind.SAVE, 1, change=Change.SMALL)))
    def age(self, order: Order) -> None:
        """Replace what was stored at the start, and let time pass."""
        self.do(Order(Kind.SAVE, 0))
        self.do(order)
        self.world.wait(_DAY // 2)
