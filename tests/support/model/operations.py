"""The operations of the model: each begins on a process of the world, and says what its outcome may be."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from agent_framework import WorkflowCheckpoint

from cosmos_workflow_state import errors
from cosmos_workflow_state._codec import digest
from cosmos_workflow_state._identity import Scope, TenantId
from cosmos_workflow_state._maf import RestorePolicy, serialize
from cosmos_workflow_state._records import CheckpointKey

from .states import WORKFLOW, Change, State, checkpoint
from .timeline import Right
from .truth import CheckpointId
from .world import Process, Running, World

Place = tuple[str, str]
"""Tenant and scope."""


_MANY_VERSIONS: Final = 5
"""As many as must have come and gone during a delete that gives up."""


class Kind(Enum):
    """What a process can do."""

    SAVE = "save"
    SAVE_AGAIN = "save again"
    LOAD = "load"
    GET_LATEST = "get_latest"
    LIST = "list"
    DELETE = "delete"
    SWEEP = "sweep"
    ERASE = "erase"


@dataclass(frozen=True, slots=True)
class Order:
    """An operation that is to be begun.

    Attributes:
        kind: What is to be done.
        number: By which process.
        place: Where.
        name: To the checkpoint of this id, where it is about one.
        change: What becomes of the process's last state, where one is saved.
        ttl: Seconds that the checkpoint will live, where one is saved; None for ever.
    """

    kind: Kind
    number: int
    place: Place = ("a", "")
    name: str = "c0"
    change: Change = Change.NEXT
    ttl: int | None = None


@dataclass(frozen=True, slots=True)
class _Last:
    """What a process has saved or read last in a place."""

    checkpoint: WorkflowCheckpoint
    state: State


class Operations:
    """Begins operations in a world."""

    def __init__(self, world: World) -> None:
        """Start with nothing saved."""
        self._world = world
        self._serial = 0
        self._saved: dict[str, _Last] = {}
        self._last: dict[tuple[Process, Place], _Last] = {}

    def begin(self, order: Order) -> Running:
        """Begin an operation and run it to its first request."""
        process, place = self._world.process(order.number), order.place
        begin: dict[Kind, Callable[[], Running]] = {
            Kind.SAVE: lambda: self._save_next(process, order),
            Kind.SAVE_AGAIN: lambda: self._save_again(process, order),
            Kind.LOAD: lambda: self._load(process, place, order.name),
            Kind.GET_LATEST: lambda: self._get_latest(process, place),
            Kind.LIST: lambda: self._list_checkpoints(process, place),
            Kind.DELETE: lambda: self._delete(process, place, order.name),
            Kind.SWEEP: lambda: self._sweep(process, place),
            Kind.ERASE: lambda: self._erase(process, place),
        }
        return begin[order.kind]()

    def _save_next(self, process: Process, order: Order) -> Running:
        """Save what follows the process's last checkpoint, under an id that may be there already."""
        self._serial += 1
        last = self._last.get((process, order.place))
        parent = None if last is None else last.checkpoint.checkpoint_id
        state = (State((0, 1)) if last is None else last.state).changed(order.change, self._serial)
        saved = checkpoint(order.name, parent, state, self._serial)
        return self._save(process, order.place, _Last(saved, state), order.ttl)

    def _save_again(self, process: Process, order: Order) -> Running:
        """Save the process's last checkpoint again."""
        last = self._last.get((process, order.place))
        return self._save_next(process, order) if last is None else self._save(process, order.place, last, order.ttl)

    def _load(self, process: Process, place: Place, checkpoint_id: str) -> Running:
        """Load a checkpoint by id."""
        storage, which = process.storage(*place), CheckpointId(*place, checkpoint_id)

        def problem(running: Running) -> str | None:
            if isinstance(running.outcome, errors.CheckpointNotFoundError):
                return self._unlike(which, None, running)
            if isinstance(running.outcome, Exception):
                return _unexpected(running)
            return self._misread(process, place, running.outcome, running) or (
                None if running.outcome.checkpoint_id == checkpoint_id else "it has another id"
            )

        return self._start(
            process, f"load {checkpoint_id}", Right(*place), lambda: storage.load(checkpoint_id), problem
        )

    def _get_latest(self, process: Process, place: Place) -> Running:
        """Read the newest checkpoint, as a resumed run does."""
        storage = process.storage(*place)

        def problem(running: Running) -> str | None:
            found = running.outcome
            if isinstance(found, Exception):
                return None if isinstance(found, errors.CheckpointConflictError) else _unexpected(running)
            which = None if found is None else CheckpointId(*place, found.checkpoint_id)
            if which not in self._world.timeline.newest(*place, running.since):
                return f"{which} was never the newest"
            return None if found is None else self._misread(process, place, found, running)

        return self._start(
            process, "get_latest", Right(*place), lambda: storage.get_latest(workflow_name=WORKFLOW), problem
        )

    def _list_checkpoints(self, process: Process, place: Place) -> Running:
        """List all checkpoints."""
        storage = process.storage(*place)

        def problem(running: Running) -> str | None:
            if isinstance(running.outcome, Exception):
                return _unexpected(running)
            found = [CheckpointId(*place, one.checkpoint_id) for one in running.outcome]
            missing = self._world.timeline.always(*place, running.since) - set(found)
            if missing or len(set(found)) != len(found):
                return f"{missing} are missing, or some come twice"
            wrong = (self._unlike_any(place, one, running) for one in running.outcome)
            return next((one for one in wrong if one is not None), None)

        return self._start(
            process,
            "list_checkpoints",
            Right(*place),
            lambda: storage.list_checkpoints(workflow_name=WORKFLOW),
            problem,
        )

    def _delete(self, process: Process, place: Place, checkpoint_id: str) -> Running:
        """Delete a checkpoint by id; the first time in a process it sweeps as well."""
        storage, which = process.storage(*place), CheckpointId(*place, checkpoint_id)

        def problem(running: Running) -> str | None:
            replaced = len(self._world.timeline.versions(which, running.since))
            if isinstance(running.outcome, errors.CheckpointConflictError) and replaced >= _MANY_VERSIONS:
                return None
            if isinstance(running.outcome, Exception):
                return _unexpected(running)
            return self._unlike(which, None, running)

        right = Right(*place, removes=frozenset({checkpoint_id}))
        return self._start(process, f"delete {checkpoint_id}", right, lambda: storage.delete(checkpoint_id), problem)

    def _sweep(self, process: Process, place: Place) -> Running:
        """Collect what nothing of the tenant refers to."""
        return self._start(process, "sweep", Right(*place), process.storage(*place).sweep, _if_unexpected)

    def _erase(self, process: Process, place: Place) -> Running:
        """Delete everything of a scope."""
        right = Right(*place, removes=None)
        return self._start(process, "erase", right, process.storage(*place).erase, _if_unexpected)

    def _save(self, process: Process, place: Place, last: _Last, ttl: int | None) -> Running:
        saved = last.checkpoint
        storage, which = process.storage(*place, ttl), CheckpointId(*place, saved.checkpoint_id)
        key = CheckpointKey(TenantId(which.tenant), Scope(which.scope), WORKFLOW, which.checkpoint_id)
        expected = digest(serialize(saved, key, RestorePolicy(frozenset())))
        self._saved[expected] = self._last[process, place] = last

        def problem(running: Running) -> str | None:
            error = running.outcome
            if isinstance(error, errors.CheckpointConflictError):
                return None
            if isinstance(error, Exception):
                if getattr(error, "outcome_unknown", True) is False and running.right.changed:
                    return f"it says that it has done nothing: {error!r}"
                return _unexpected(running)
            return self._unlike(which, expected, running)

        right = Right(*place, stores=saved.checkpoint_id, digest=expected)
        return self._start(process, f"save {saved.checkpoint_id}", right, lambda: storage.save(saved), problem)

    def _start(
        self,
        process: Process,
        name: str,
        right: Right,
        action: Callable[[], Awaitable[Any]],
        problem: Callable[[Running], str | None],
    ) -> Running:
        running = Running(f"{name} in {right.tenant}/{right.scope}", right, self._world.timeline.now)
        self._world.start(process, running, action, problem)
        return running

    def _misread(self, process: Process, place: Place, found: WorkflowCheckpoint, running: Running) -> str | None:
        """Say what is wrong with a checkpoint that was read; remember it as the one that the process goes on from."""
        for saved in self._saved.values():
            if saved.checkpoint == found:
                self._last[process, place] = saved
        return self._unlike_any(place, found, running)

    def _unlike_any(self, place: Place, found: WorkflowCheckpoint, running: Running) -> str | None:
        which = CheckpointId(*place, found.checkpoint_id)
        versions = self._world.timeline.versions(which, running.since)
        if any(self._saved[one].checkpoint == found for one in versions if one is not None):
            return None
        return f"{which} was never like this since the operation began"

    def _unlike(self, which: CheckpointId, expected: str | None, running: Running) -> str | None:
        if expected in self._world.timeline.versions(which, running.since):
            return None
        return f"{which} was never {'absent' if expected is None else 'stored'} since the operation began"


def _if_unexpected(running: Running) -> str | None:
    return _unexpected(running) if isinstance(running.outcome, Exception) else None


def _unexpected(running: Running) -> str | None:
    """Say what is wrong with an error: only what was lost on the way may fail an operation."""
    if running.faults and isinstance(running.outcome, errors.ServiceError):
        return None
    return repr(running.outcome)
