"""Processes that use one container at once in a storm, and what each of them may find."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Final, cast

from agent_framework import WorkflowCheckpoint

from cosmos_workflow_state import errors
from support.histories import History, Write
from support.operations import HOUR, saved, state
from support.states import WORKFLOW
from support.storms import Storm
from support.troubles import Outcome
from support.worlds import Process, World

_NO_EXCUSE: Final = (
    errors.AmbiguousCheckpointError,
    errors.CheckpointCorruptError,
    errors.CheckpointNotRestorableError,
    errors.CheckpointTooLargeError,
    errors.FactoryClosedError,
    errors.InvalidIdentifierError,
    errors.ProvisioningError,
)


@dataclass(frozen=True, slots=True)
class Setting:
    """What all actors share.

    Attributes:
        world: Where they act.
        storm: What happens to their requests.
        history: What they have written.
        dice: What decides.
    """

    world: World
    storm: Storm
    history: History
    dice: random.Random


class Actor:
    """A process in a storm, which does one thing after the other."""

    def __init__(self, name: str, process: Process, setting: Setting) -> None:
        """Begin to use a process."""
        self._name, self._storage = name, process.storage
        self._world, self._storm = setting.world, setting.storm
        self._history, self._dice = setting.history, setting.dice
        self._transport = process.transport

    async def act(self, deeds: dict[Callable[[], Awaitable[object]], int], count: int) -> None:
        """Do this many things in the storm, each as often as its weight says."""
        self._transport.weather = self._storm.weather
        for _ in range(count):
            await asyncio.sleep(self._dice.uniform(0, 5))
            await self._dice.choices(list(deeds), list(deeds.values()))[0]()

    async def write(self, write: Write, call: Callable[[], Awaitable[object]]) -> Outcome:
        """Do something that writes, and note what has become of it.

        A save that comes late can bring back what was deleted since. A deletion that comes late deletes nothing once
        it was done: it names the version that it means, and that is gone.
        """

        def landed() -> None:
            write.spent = min(write.spent, self._history.now())

        outcome = await self._endure(call, landed)
        if outcome.is_done:
            write.done = self._history.now()
        if outcome.is_done and write.value is None:
            write.spent = write.done
        return outcome

    async def sweep(self) -> None:
        """Sweep."""
        await self._endure(self._storage.sweep)

    async def erase(self) -> None:
        """Erase everything; an error says nothing of what has been deleted before."""
        await self.write(self._history.erase(), self._storage.erase)

    async def delete(self) -> None:
        """Delete one of the checkpoints that anybody has saved."""
        which = self._any_id()
        write = self._history.delete(which)
        outcome = await self.write(write, lambda: self._storage.delete(which))
        write.failed = outcome.is_refused

    async def load(self) -> None:
        """Load one of the checkpoints that anybody has saved."""
        which, since = self._any_id(), self._history.now()
        outcome = await self._endure(lambda: self._storage.load(which))
        if outcome.is_done or isinstance(outcome.error, errors.CheckpointNotFoundError):
            self._check(which, outcome.value, since)

    async def resume(self) -> WorkflowCheckpoint | None:
        """Read the newest checkpoint, as who goes on with a workflow does."""
        since = self._history.now()
        outcome = await self._endure(lambda: self._storage.get_latest(workflow_name=WORKFLOW))
        if isinstance(outcome.value, WorkflowCheckpoint):
            self._check(outcome.value.checkpoint_id, outcome.value, since)
            return outcome.value
        if outcome.is_done:
            for which in list(self._history.writes):
                self._check(which, None, since)
        return None

    async def look(self) -> None:
        """List all checkpoints."""
        since = self._history.now()
        outcome = await self._endure(lambda: self._storage.list_checkpoints(workflow_name=WORKFLOW))
        if outcome.is_done:
            self.check_all(cast("list[WorkflowCheckpoint]", outcome.value), since)

    def check_all(self, found: list[WorkflowCheckpoint], since: float) -> None:
        """Check all that was found, and what was not."""
        values = {one.checkpoint_id: one for one in found}
        assert len(values) == len(found), "an id is there twice"
        for which in {*self._history.writes, *values}:
            self._check(which, values.get(which), since)

    async def _endure(
        self, call: Callable[[], Awaitable[object]], landed: Callable[[], object] = lambda: None
    ) -> Outcome:
        outcome = await self._storm.endure(call, landed)
        assert not isinstance(outcome.error, _NO_EXCUSE), repr(outcome.error)
        assert outcome.error is None or isinstance(outcome.error, errors.CosmosStateError), repr(outcome.error)
        return outcome

    def _any_id(self) -> str:
        return self._dice.choice(list(self._history.writes) or ["nothing-yet"])

    def _check(self, which: str, value: object, since: float) -> None:
        possible = self._history.possible(which, since)
        assert value in possible, f"{self._name} read of {which} what cannot be there: {_brief(value)}" + "".join(
            f"\n  {_brief(one)}" for one in possible
        )


class Writer(Actor):
    """Saves checkpoint after checkpoint, most of them like the one before."""

    _blocks: tuple[int, ...] = tuple(range(6))
    _last: WorkflowCheckpoint | None = None
    _number: int = 0
    _jumpiness: float = 0.0

    async def run(self, count: int) -> None:
        """Do this many things."""
        self._jumpiness = self._dice.choice([0.1, 0.3, 0.6])
        await self.act({self.save: 12, self.load: 2, self.go_on: 2, self.look: 1, self.delete: 1}, count)

    async def go_on(self) -> None:
        """Go on with the newest checkpoint, whoever has saved it."""
        self._last = await self.resume() or self._last

    async def save(self) -> None:
        """Save something, and perhaps once more when it failed."""
        one = self._next()
        for _ in range(self._dice.randint(1, 2)):
            write = self._history.save(one)
            outcome = await self.write(write, lambda: self._storage.save(one))
            write.failed = outcome.is_refused
            if outcome.is_done:
                self._last = one
                return

    def _next(self) -> WorkflowCheckpoint:
        """Return something new under a new id, or one of one's own, or one that all writers use."""
        self._number += 1
        self._change()
        parent = None if self._last is None else self._last.checkpoint_id
        made = saved(f"{self._name}-{self._number:02}", parent, **state(*self._blocks, by=self._name, n=self._number))
        if self._dice.random() < 0.1:
            return replace(made, state={"by": self._name, "n": self._number})
        if self._dice.random() < 0.3:
            return replace(made, checkpoint_id=self._dice.choice(["shared", parent or "shared"]))
        return made

    def _change(self) -> None:
        """Change the state: mostly nearly nothing, sometimes much, sometimes to a large one."""
        what = self._dice.random()
        if what < self._jumpiness:
            first = self._dice.randrange(1000)
            self._blocks = tuple(range(first, first + self._dice.choice([6, 20, 20])))
        elif what < self._jumpiness + 0.15:
            half = len(self._blocks) // 2
            self._blocks = (*self._blocks[:-half], *(self._dice.randrange(1000) for _ in range(half)))


class Sweeper(Actor):
    """Sweeps, deletes and erases, in each run another of these most; time passes."""

    async def run(self, count: int) -> None:
        """Do this many things."""
        what = (self.sweep, self.pass_time, self.delete, self.erase)
        await self.act({deed: self._dice.choice([1, 2, 8]) for deed in what}, count)

    async def pass_time(self) -> None:
        """Let guards expire."""
        self._world.clock.advance(self._dice.choice([0.5, 2, 25]) * HOUR)


class Meddler(Sweeper):
    """Lets time pass and sweeps, or erases, between two requests of somebody else, who notices nothing of it."""

    async def meddle(self) -> None:
        """Do all of it at once, without a storm."""
        await self.pass_time()
        await self._dice.choices([self.sweep, self.erase], [3, 1])[0]()


def _brief(value: object) -> str:
    if not isinstance(value, WorkflowCheckpoint):
        return "nothing"
    return f"{value.state.get('by')} {value.state.get('n')}"
