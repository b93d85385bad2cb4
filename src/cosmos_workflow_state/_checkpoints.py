"""The checkpoint storage of one tenant: the framework's six methods, each one event, and how to narrow it.

What a save and a load do is in `_saving` and `_reading`.
"""

from __future__ import annotations

from agent_framework import WorkflowCheckpoint

from . import _queries
from ._gateway import Meter
from ._identity import Scope, full_key
from ._logging import (
    CHECKPOINT_DELETE,
    CHECKPOINT_LIST,
    CHECKPOINT_LIST_IDS,
    CHECKPOINT_LOAD,
    CHECKPOINT_READ_LATEST,
    CHECKPOINT_SAVE,
    Scalar,
)
from ._reading import find, in_order, note, parse, restore, restore_or_skip
from ._records import StoredCheckpoint
from ._saving import save
from ._view import CheckpointView
from .errors import CheckpointNotFoundError, CheckpointNotRestorableError


class TenantCheckpointStorage:
    """Microsoft Agent Framework's ``CheckpointStorage`` for one tenant and one scope.

    Cheap, immutable and safe to share between tasks; it does no I/O until one of its methods is awaited. Get one from
    ``factory.for_tenant(tenant_id).checkpoints``, narrow it with `scoped` and `for_workflow`. It has no length and is
    always true: the framework takes a storage that is falsy for none.
    """

    __slots__ = ("_view",)

    def __init__(self, view: CheckpointView) -> None:
        """Bind the storage to what it sees."""
        self._view = view

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

    def scoped(self, scope: str) -> TenantCheckpointStorage:
        """Return the storage of another scope (session, conversation) of the same tenant.

        Args:
            scope: Any text of at most 1,024 UTF-8 bytes.

        Raises:
            InvalidIdentifierError: The scope is refused.
        """
        view = self._view
        return TenantCheckpointStorage(
            CheckpointView(view.backend, view.tenant, Scope.accept(scope), view.workflow_name)
        )

    def for_workflow(self, workflow_name: str) -> TenantCheckpointStorage:
        """Return this storage narrowed to one workflow: loads by id are point reads, other names are refused.

        Args:
            workflow_name: Non-empty text of at most 1,024 UTF-8 bytes.

        Raises:
            InvalidIdentifierError: The name is refused, or this storage is narrowed to another one.
        """
        view = self._view
        return TenantCheckpointStorage(
            CheckpointView(view.backend, view.tenant, view.scope, view.accept_workflow(workflow_name))
        )

    async def save(self, checkpoint: WorkflowCheckpoint) -> str:
        """Store a checkpoint and return its id. One request, unless its id is there already.

        Saving the same checkpoint again changes nothing; saving another under its id replaces it and keeps its place
        in the order. The state is copied before the first suspension, so it may go on changing.

        Args:
            checkpoint: At most ``max_payload_bytes`` before and 2 MiB after compression.

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
        if not isinstance(checkpoint, WorkflowCheckpoint):  # pyright: ignore[reportUnnecessaryIsInstance] - untyped callers
            raise CheckpointNotRestorableError(
                f"checkpoint must be a WorkflowCheckpoint, not {type(checkpoint).__name__}", **self._view.which()
            )
        meter = Meter()
        which: dict[str, Scalar] = {
            "workflow_name": checkpoint.workflow_name,
            "checkpoint_id": checkpoint.checkpoint_id,
        }
        with self._view.operation(CHECKPOINT_SAVE, meter, **which) as event:
            return await save(self._view, checkpoint, meter, event)

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
        meter = Meter()
        with self._view.operation(CHECKPOINT_LOAD, meter, checkpoint_id=checkpoint_id) as event:
            item = await find(self._view, checkpoint_id, meter, hinted=True)
            if item is None:
                raise CheckpointNotFoundError(
                    "no checkpoint with this id in this tenant and scope",
                    **self._view.which(checkpoint_id=checkpoint_id),
                )
            stored = parse(self._view, item)
            event.add(**_found(stored))
            return await restore(self._view, stored)

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
        with self._view.operation(CHECKPOINT_LIST, meter, workflow_name=workflow_name) as event:
            items = in_order(self._view, _queries.OLDEST_FIRST, workflow_name, meter)
            found = [await restore_or_skip(self._view, item) async for item in items]
            checkpoints = [checkpoint for checkpoint in found if checkpoint is not None]
            event.add(count=len(checkpoints))
            return checkpoints

    async def delete(self, checkpoint_id: str) -> bool:
        """Delete a checkpoint by id; return False when this tenant and scope have none. Two requests.

        Raises:
            AmbiguousCheckpointError: Several workflows have one of this id; nothing is deleted.
            InvalidIdentifierError: The id is not a str.
            ServiceError: The service refused, throttled or could not be reached.
        """
        meter = Meter()
        with self._view.operation(CHECKPOINT_DELETE, meter, checkpoint_id=checkpoint_id) as event:
            item = await find(self._view, checkpoint_id, meter, hinted=False)
            deleted = item is not None and await self._view.backend.gateway.delete(
                full_key(self._view.tenant, item["workflow_name"]), item["id"], meter
            )
            event.add(deleted=deleted)
            return deleted

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
        with self._view.operation(CHECKPOINT_READ_LATEST, meter, workflow_name=workflow_name) as event:
            async for item in in_order(self._view, _queries.LATEST, workflow_name, meter):
                stored = parse(self._view, item)
                event.add(checkpoint_id=stored.header.key.checkpoint_id, **_found(stored))
                return await restore(self._view, stored)
            return None

    async def list_checkpoint_ids(self, *, workflow_name: str) -> list[str]:
        """Return the ids of a workflow's checkpoints, oldest first, also of those that cannot be read.

        Raises:
            CheckpointCorruptError: An item lacks its id or its place in the order.
            InvalidIdentifierError: The workflow name is refused.
            ServiceError: The service refused, throttled or could not be reached.
        """
        meter = Meter()
        with self._view.operation(CHECKPOINT_LIST_IDS, meter, workflow_name=workflow_name) as event:
            items = in_order(self._view, _queries.IDS_OLDEST_FIRST, workflow_name, meter)
            checkpoint_ids = [note(self._view, workflow_name, item) async for item in items]
            event.add(count=len(checkpoint_ids))
            return checkpoint_ids


def _found(stored: StoredCheckpoint) -> dict[str, Scalar]:
    return {
        "workflow_name": stored.header.key.workflow_name,
        "raw_bytes": stored.payload.size,
        "stored_payload_bytes": len(stored.payload.data),
    }
