"""What must be true after an operation that something has happened to: the judge of the fault matrix."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from agent_framework import WorkflowCheckpoint

from cosmos_workflow_state._logging import SWEEP
from support.operations import HOUR, Kind, Place
from support.troubles import Outcome, Scene, Trouble, outcome_of
from support.worlds import Image, Process, World, world_of
from unit.support.jumping import JumpingLoop

Contents = dict[Place, list[WorkflowCheckpoint]]
Events = list[MutableMapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Baseline:
    """How an operation goes undisturbed.

    Attributes:
        image: The world that it begins in.
        before: What is stored before.
        after: What is stored afterwards.
        outcome: How it ends.
        requests: Its requests for items.
        left: The items that are there afterwards.
    """

    image: Image
    before: Contents
    after: Contents
    outcome: Outcome
    requests: list[str]
    left: list[dict[str, Any]]


_BASELINES: Final[dict[str, Baseline]] = {}
_CONTENTS: Final[dict[tuple[str, str], Contents]] = {}


def run(story: Callable[[], Awaitable[None]]) -> None:
    """Run a story on a loop whose time jumps."""

    async def whole() -> None:
        await story()

    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        runner.run(whole())


async def baseline_of(kind: Kind) -> Baseline:
    """Run an operation undisturbed, once."""
    if kind.name not in _BASELINES:
        async with world_of() as world:
            async with world.process() as first:
                await first.storage.list_workflows()
            for given in kind.given:
                await given(world)
            image = world.image()
        async with world_of(image) as world, world.process() as process:
            await warm_up(kind, world, process)
            before = await contents_of(world, kind)
            outcome = await outcome_of(Scene(), lambda: kind.call(process.storage))
            requests, after = list(process.transport.sent), await contents_of(world, kind)
            _BASELINES[kind.name] = Baseline(image, before, after, outcome, requests, world.items())
    return _BASELINES[kind.name]


async def warm_up(kind: Kind, world: World, process: Process) -> None:
    """Let a process have opened its container, and done what it has done before."""
    await process.storage.list_checkpoint_ids(workflow_name="another")
    if kind.warm is not None:
        await kind.warm(world, process.storage)
    process.transport.sent.clear()


async def contents_of(world: World, kind: Kind) -> Contents:
    """Return what a process that has just been started finds, in order; the same items are read only once."""
    stored = repr([item for item in world.items() if not item["type"].endswith("_guard")])
    which = (kind.name, hashlib.sha256(stored.encode()).hexdigest())
    if which not in _CONTENTS:
        async with world.process() as process:
            _CONTENTS[which] = {
                (scope, workflow): await process.storage.scoped(scope).list_checkpoints(workflow_name=workflow)
                for scope, workflow in kind.places
            }
    return _CONTENTS[which]


def unused(items: Sequence[dict[str, Any]]) -> list[str]:
    """Return the ids of the items that serve no checkpoint."""
    checkpoints = [item["payload"] for item in items if item["type"] == "checkpoint"]
    keyframes = [item for item in items if item["type"] == "keyframe"]
    used = {payload.get("keyframe") for payload in checkpoints}
    used |= {holder.get("write_id") for holder in (*checkpoints, *keyframes)}
    return [
        item["id"]
        for item in items
        if item["type"] != "checkpoint" and item.get("keyframe_id", item.get("write_id")) not in used
    ]


@dataclass(frozen=True, slots=True)
class Ordeal:
    """An operation that something has happened to.

    Attributes:
        kind: The operation.
        trouble: What has happened.
        world: Where.
        process: In which process.
        scene: What may still be on its way.
        baseline: How the operation goes undisturbed.
    """

    kind: Kind
    trouble: Trouble
    world: World
    process: Process
    scene: Scene
    baseline: Baseline

    async def judge(self, outcome: Outcome) -> None:
        """Check what it has left: all of it or nothing, and nothing that a plain repeat does not put right."""
        assert self.process.storage.failures.count == (self.kind.is_save and outcome.error is not None)
        self._check_outcome(outcome)
        await self._check_contents(outcome)
        if self.scene.late and not self.trouble.lands_last:
            await self.scene.land()
            await self._check_contents(Outcome(was_cancelled=True))
        await self._repeat()
        assert await contents_of(self.world, self.kind) == self.baseline.after, "the repeat did not do it"
        await self.scene.land()
        await self._check_that_nothing_is_left()

    def _check_outcome(self, outcome: Outcome) -> None:
        """Check that it has ended as its trouble lets it end."""
        error, undisturbed = outcome.error, self.baseline.outcome
        if outcome.was_cancelled:
            assert self.trouble.raises == ()
        elif type(error) is type(undisturbed.error):
            assert outcome.value == undisturbed.value
        else:
            assert not self.trouble.absorbed, repr(error)
            assert isinstance(error, self.trouble.raises), repr(error)
            assert not (self.trouble.known and outcome.is_unknown), "nothing can have been done, and it cannot say so"
            assert self.kind.names.writes or not outcome.is_unknown, "what only reads has no outcome to be unknown"

    async def _check_contents(self, outcome: Outcome) -> None:
        """Check what is stored against what the outcome says."""
        found = await contents_of(self.world, self.kind)
        before, after = self.baseline.before, self.baseline.after
        if self.kind.in_steps and not outcome.is_done:
            for place, checkpoints in found.items():
                assert checkpoints == [one for one in before[place] if one in checkpoints], "something is new"
                assert all(one in checkpoints for one in after[place]), "something else is gone"
        elif outcome.is_done:
            assert found == after, "it says that it was done"
        elif outcome.is_unknown:
            assert found in (before, after), "it is half done"
        else:
            assert found == before, f"{outcome.error!r} says that nothing was done"

    async def _repeat(self) -> None:
        """Repeat it plainly, in the process that it failed in."""
        undisturbed = self.baseline.outcome
        outcome = await outcome_of(Scene(), lambda: self.kind.call(self.process.storage))
        assert type(outcome.error) is type(undisturbed.error), repr(outcome.error)
        if not self.kind.is_removal:
            assert outcome.value == undisturbed.value, "the repeat has another result"

    async def _check_that_nothing_is_left(self) -> None:
        """Sweep once nothing can be under way any more: what serves nobody is gone, and everything else is there."""
        self.world.clock.advance(25 * HOUR)
        if unused(self.world.items()):
            async with self.world.process() as sweeper:
                await sweeper.storage.sweep()
            assert unused(self.world.items()) == [], "the sweep has left something"
        assert await contents_of(self.world, self.kind) == self.baseline.after, "the sweep has taken something"


def check_events(kind: Kind, outcome: Outcome, events: Events) -> None:
    """Check that there was exactly one event of the operation, and none of anything unexpected."""
    name = kind.names.failed if outcome.error is not None or outcome.was_cancelled else kind.names.done
    seen = [event["event"] for event in events]
    # A deletion is followed by a sweep, which is an operation of its own: cancelled there, the deletion is done.
    swept = [event for event in seen if kind.name.startswith("delete") and event in {SWEEP.done, SWEEP.failed}]
    if outcome.was_cancelled and kind.names.done in seen and kind.name.startswith("delete"):
        name = kind.names.done
    assert len(swept) <= 1, seen
    assert [event for event in seen if event not in swept] == [name], seen
