"""The checkpoint storage of one tenant: the framework's six methods, each one event, and how to narrow it.

What else can be asked of it is in `_browsing`; what the methods do is in `_saving` and `_reading`.
"""

from __future__ import annotations

from dataclasses import replace
from inspect import iscoroutinefunction
from typing import Final

from agent_framework import WorkflowCheckpoint

from . import _queries
from ._browsing import CheckpointBrowsing
from ._erasing import delete_checkpoint, erase
from ._failures import SaveFailureCounter
from ._gateway import Meter
from ._identity import Scope
from ._logging import (
    CHECKPOINT_DELETE,
    CHECKPOINT_LIST,
    CHECKPOINT_LIST_IDS,
    CHECKPOINT_LOAD,
    CHECKPOINT_READ_LATEST,
    CHECKPOINT_SAVE,
    ERASE,
    SWEEP,
    Scalar,
)
from ._reading import find, in_order, note, parse, restore, restore_or_skip
from ._records import StoredCheckpoint
from ._saving import save
from ._sweeping import sweep, sweep_if_due
from ._view import CheckpointView, accept_whole_number
from .errors import CheckpointConflictError, CheckpointNotFoundError, CheckpointNotRestorableError, InvalidArgumentError
from .typing import EraseProgress, EraseProgressHook, SaveFailures, SweepReport

_MAX_TRIES: Final = 5


class TenantCheckpointStorage(CheckpointBrowsing):
    """Microsoft Agent Framework's ``CheckpointStorage`` for one tenant and one scope.

    Cheap, immutable but for its count of `failures`, and safe to share between tasks; it does no I/O until one of its
    methods is awaited. Get one from ``factory.for_tenant(tenant_id).checkpoints``, narrow it with `scoped` and
    `for_workflow`. It has no length and is always true: the framework takes a storage that is falsy for none.
    """

    __slots__ = ("_failures",)

    def __init__(self, view: CheckpointView) -> None:
        """Bind the storage to what it sees."""
        super().__init__(view)
        self._failures = SaveFailureCounter(view)

    def __repr__(self) -> str:
        """Name the tenant, the scope and the workflow."""
        narrowed = "" if self._view.workflow_name is None else f", workflow_name={self._view.workflow_name!r}"
        return f"TenantCheckpointStorage(tenant_id={self.tenant_id!r}, scope={self.scope!r}{narrowed})"

    @property
    def tenant_id(self) -> str:
        """The tenant whose checkpoints these are."""
        return self._view.tenant.value

    @property
    def scope(self) -> str:
        """The scope inside the tenant; ``""`` is the unnamed one, not all of them."""
        return self._view.scope.value

    @property
    def failures(self) -> SaveFailures:
        """The saves of this very object that have failed.

        The framework's graph workflows go on when a save fails, so this is how a run is asked afterwards: give it a
        storage of its own and look. `scoped`, `for_workflow` and `with_ttl` return storages that start at none, as a
        second ``for_tenant`` does: what another run fails at is no failure of this one.
        """
        return self._failures.seen

    def scoped(self, scope: str) -> TenantCheckpointStorage:
        """Return the storage of another scope (session, conversation) of the same tenant.

        Args:
            scope: Any text of at most 1,024 UTF-8 bytes.

        Raises:
            InvalidIdentifierError: The scope is refused.
        """
        return TenantCheckpointStorage(replace(self._view, scope=Scope.accept(scope)))

    def for_workflow(self, workflow_name: str) -> TenantCheckpointStorage:
        """Return this storage narrowed to one workflow: loads by id are point reads, other names are refused.

        Args:
            workflow_name: Non-empty text of at most 1,024 UTF-8 bytes.

        Raises:
            InvalidIdentifierError: The name is refused, or this storage is narrowed to another one.
        """
        name = self._view.accept_workflow(workflow_name)
        return TenantCheckpointStorage(replace(self._view, workflow_name=name))

    def with_ttl(self, seconds: int | None) -> TenantCheckpointStorage:
        """Return this storage with saves that expire, in place of the setting ``checkpoint_ttl``.

        What is stored already keeps its time; saving it again, changed, starts a new one.

        Args:
            seconds: 1 to 2,147,483,647 after each save; None for never.

        Raises:
            InvalidArgumentError: The seconds are refused.
        """
        ttl = None if seconds is None else accept_whole_number("seconds", seconds)
        return TenantCheckpointStorage(replace(self._view, ttl=ttl))

    async def save(self, checkpoint: WorkflowCheckpoint) -> str:
        """Store a checkpoint and return its id. One request, unless its id is there already.

        Saving the same checkpoint again changes nothing; saving another under its id replaces it and keeps its place
        in the order. The state is copied before the first suspension, so it may go on changing. A save that fails is
        one error event, counts in `failures` and is told to the factory's ``on_save_failed``.

        Args:
            checkpoint: At most ``max_payload_bytes`` before compression; what is too large for one item lies in parts.

        Returns:
            ``checkpoint.checkpoint_id``, as it was when this was called.

        Raises:
            CheckpointNotRestorableError: ``load`` would refuse it; the types are named and nothing is written.
            CheckpointTooLargeError: It is over a limit.
            InvalidIdentifierError: Its id or workflow name is refused.
            CheckpointConflictError: Other writers kept replacing it.
            CheckpointCorruptError: What is stored under its id cannot be read, so it is not replaced.
            ServiceError: The service refused, throttled or could not be reached.
        """
        meter, which = Meter(), _names(checkpoint)
        try:
            async with self._view.operation(CHECKPOINT_SAVE, meter, **which) as event:
                _check_kind(self._view, checkpoint)
                return await save(self._view, checkpoint, meter, event)
        except Exception as error:
            self._failures.note(which["workflow_name"], which["checkpoint_id"], error)
            raise

    async def load(self, checkpoint_id: str) -> WorkflowCheckpoint:
        """Return a checkpoint by id. A point read when its workflow is known, else a query within the tenant.

        Raises:
            CheckpointNotFoundError: This tenant and scope have none of this id.
            AmbiguousCheckpointError: Several workflows have; use `for_workflow`.
            CheckpointCorruptError: What is stored cannot be read.
            CheckpointNotRestorableError: It holds a type that is not allowed here.
            CheckpointTooLargeError: It is over this process's ``max_payload_bytes``.
            InvalidIdentifierError: The id is not a str.
            ServiceError: The service refused, throttled or could not be reached.
        """
        return (await self.load_with_hash(checkpoint_id))[0]

    async def load_with_hash(self, checkpoint_id: str) -> tuple[WorkflowCheckpoint, str]:
        """Return a checkpoint by id and the digest of its stored bytes; hosts of the framework ask for it by this name.

        The digest was checked against the bytes when they were read. Nothing is encoded again, so it is the same in
        every process and version. The cost is that of `load`.

        Raises:
            CosmosStateError: As for `load`.
        """
        meter = Meter()
        async with self._view.operation(CHECKPOINT_LOAD, meter, checkpoint_id=checkpoint_id) as event:
            item = await find(self._view, checkpoint_id, meter, hinted=True)
            if item is not None:
                stored = parse(self._view, item)
                event.add(**_found(stored))
                restored = await restore(self._view, stored, meter)
                if restored is not None:
                    return restored
            raise CheckpointNotFoundError(
                "no checkpoint with this id in this tenant and scope", **self._view.which(checkpoint_id=checkpoint_id)
            )

    async def list_checkpoints(self, *, workflow_name: str) -> list[WorkflowCheckpoint]:
        """Return the checkpoints of a workflow, oldest first. One request a page.

        One that cannot be read is left out with a warning event, or raised, as the setting ``on_undecodable`` says.

        Raises:
            CheckpointCorruptError: With ``on_undecodable="raise"``: what is stored cannot be read.
            CheckpointNotRestorableError: With ``on_undecodable="raise"``: it holds a type that is not allowed here.
            CheckpointTooLargeError: With ``on_undecodable="raise"``: it is over ``max_payload_bytes``.
            InvalidIdentifierError: The workflow name is refused.
            ServiceError: The service refused, throttled or could not be reached.
        """
        meter = Meter()
        async with self._view.operation(CHECKPOINT_LIST, meter, workflow_name=workflow_name) as event:
            items = in_order(self._view, _queries.OLDEST_FIRST, workflow_name, meter)
            found = [await restore_or_skip(self._view, item, meter) async for item in items]
            checkpoints = [checkpoint for checkpoint in found if checkpoint is not None]
            event.add(count=len(checkpoints))
            return checkpoints

    async def delete(self, checkpoint_id: str) -> bool:
        """Delete a checkpoint by id; return False when this tenant and scope have none. Two requests.

        Raises:
            AmbiguousCheckpointError: Several workflows have one of this id; nothing is deleted.
            CheckpointConflictError: Other writers kept replacing it.
            InvalidIdentifierError: The id is not a str.
            ServiceError: The service refused, throttled or could not be reached.
        """
        meter = Meter()
        async with self._view.operation(CHECKPOINT_DELETE, meter, checkpoint_id=checkpoint_id) as event:
            item = await find(self._view, checkpoint_id, meter, hinted=False)
            deleted = item is not None and await delete_checkpoint(self._view, item, meter)
            event.add(deleted=deleted)
        if item is not None:
            await sweep_if_due(self._view, item["workflow_name"])
        return deleted

    async def sweep(self) -> SweepReport:
        """Delete what nothing of this tenant refers to any more: keyframes, and uploads that were never committed.

        In all scopes and workflows of the tenant, in the one workflow where this storage is narrowed to one. What is
        in use, or may be in a moment, is never deleted, however many processes write. Runs by itself after `delete`,
        once an hour for each workflow.

        Raises:
            ProvisioningError: The account's default consistency is not Session, or several regions are written to.
            ServiceError: The service refused, throttled or could not be reached; a repeat goes on.
        """
        meter = Meter()
        with self._view.measured(SWEEP, meter) as event:
            report = await sweep(self._view, meter, workflow_name=self._view.workflow_name)
            event.add(keyframes=report.keyframes, uploads=report.uploads)
            return report

    async def erase(self, *, progress: EraseProgressHook | None = None) -> EraseProgress:
        """Delete everything of this scope, in all workflows or in the one that this storage is narrowed to.

        Of this one scope: the unscoped storage erases what was saved without a scope, not the tenant.

        It is gone at once, keyframes included, which `delete` leaves to a sweep. Whoever goes on saving meanwhile loses
        nothing of what he saves; so for a scope to be empty afterwards, nobody may be saving. Interrupted, a repeat
        goes on.

        Args:
            progress: Called with what has been deleted so far, after each step; what it raises ends the erasure.

        Returns:
            What was deleted.

        Raises:
            CheckpointCorruptError: Items are left that this version cannot read; all others are deleted.
            InvalidArgumentError: ``progress`` is no ordinary function.
            ServiceError: The service refused, throttled or could not be reached; a repeat goes on.
        """
        untyped: object = progress
        if untyped is not None and (not callable(untyped) or iscoroutinefunction(untyped)):
            raise InvalidArgumentError(f"progress must be an ordinary function or None, not {type(progress).__name__}")
        meter = Meter()
        with self._view.measured(ERASE, meter) as event:
            done = await erase(self._view, meter, progress)
            event.add(checkpoints=done.checkpoints, keyframes=done.keyframes, uploads=done.uploads)
            return done

    async def get_latest(self, *, workflow_name: str) -> WorkflowCheckpoint | None:
        """Return the newest checkpoint of a workflow, None when there is none. One request.

        When the newest cannot be read this raises: an older one is never returned in its place, or side effects would
        run twice.

        Raises:
            CheckpointCorruptError: What is stored as the newest cannot be read.
            CheckpointNotRestorableError: It holds a type that is not allowed here.
            CheckpointTooLargeError: It is over this process's ``max_payload_bytes``.
            InvalidIdentifierError: The workflow name is refused.
            ServiceError: The service refused, throttled or could not be reached.
        """
        meter = Meter()
        async with self._view.operation(CHECKPOINT_READ_LATEST, meter, workflow_name=workflow_name) as event:
            for _ in range(_MAX_TRIES):
                newest = [item async for item in in_order(self._view, _queries.LATEST, workflow_name, meter)]
                if not newest:
                    return None
                stored = parse(self._view, newest[0])
                event.add(checkpoint_id=stored.header.key.checkpoint_id, **_found(stored))
                restored = await restore(self._view, stored, meter)
                # None: deleted since the query; then another one is the newest.
                if restored is not None:
                    return restored[0]
            raise CheckpointConflictError(
                "the newest checkpoint kept being deleted while it was read", **self._view.which(workflow_name)
            )

    async def list_checkpoint_ids(self, *, workflow_name: str) -> list[str]:
        """Return the ids of a workflow's checkpoints, oldest first, also of those that cannot be read.

        Raises:
            CheckpointCorruptError: An item lacks its id or its place in the order.
            InvalidIdentifierError: The workflow name is refused.
            ServiceError: The service refused, throttled or could not be reached.
        """
        meter = Meter()
        async with self._view.operation(CHECKPOINT_LIST_IDS, meter, workflow_name=workflow_name) as event:
            items = in_order(self._view, _queries.IDS_OLDEST_FIRST, workflow_name, meter)
            checkpoint_ids = [note(self._view, workflow_name, item) async for item in items]
            event.add(count=len(checkpoint_ids))
            return checkpoint_ids


def _names(checkpoint: object) -> dict[str, str | None]:
    """Return what an event and a hook can say about a checkpoint before anything of it is checked."""
    if not isinstance(checkpoint, WorkflowCheckpoint):
        return dict.fromkeys(("workflow_name", "checkpoint_id"))
    names: dict[str, object] = {
        "workflow_name": checkpoint.workflow_name,
        "checkpoint_id": checkpoint.checkpoint_id,
    }
    return {field: name if isinstance(name, str) else None for field, name in names.items()}


def _check_kind(view: CheckpointView, checkpoint: object) -> None:
    if not isinstance(checkpoint, WorkflowCheckpoint):
        raise CheckpointNotRestorableError(
            f"checkpoint must be a WorkflowCheckpoint, not {type(checkpoint).__name__}", **view.which()
        )


def _found(stored: StoredCheckpoint) -> dict[str, Scalar]:
    return {
        "workflow_name": stored.header.key.workflow_name,
        "raw_bytes": stored.payload.size,
        "stored_payload_bytes": len(stored.payload.data),
    }
