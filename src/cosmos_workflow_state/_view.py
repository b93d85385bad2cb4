"""What the storages of all tenants share, and one storage's view of it: a tenant, a scope, perhaps a workflow.

The view is where a stage's no becomes the error a caller knows.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Final, Literal

from structlog.typing import FilteringBoundLogger

from ._documents import belongs_to
from ._gateway import Gateway, Item, Meter
from ._identity import Scope, TenantId, accept_workflow_name
from ._keyframes import KeyframeMemory
from ._lineage import LineageMemory, SweepSchedule
from ._logging import (
    CHECKPOINT_LARGE,
    CHECKPOINT_UNDECODABLE,
    ISOLATION_VIOLATED,
    Operation,
    OperationFields,
    Scalar,
    emit,
)
from ._maf import RestorePolicy
from ._operations import Operations
from ._ordering import SaveClock
from ._records import CheckpointKey, RefusedTypesError, UnreadableError
from .errors import (
    CheckpointCorruptError,
    CheckpointError,
    CheckpointFields,
    CheckpointNotRestorableError,
    CheckpointTooLargeError,
    InvalidArgumentError,
    InvalidIdentifierError,
)
from .settings import MAX_TTL
from .typing import SaveFailedHook

_BEFORE_COMPRESSION: Final = "state before compression (setting max_payload_bytes)"


def accept_whole_number(name: str, value: object) -> int:
    """Return an argument that is a whole number of 1 or more.

    Raises:
        InvalidArgumentError: It is not an int, or out of range.
    """
    # A bool is an int to Python: ``limit=True`` is a mistake.
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MAX_TTL:
        raise InvalidArgumentError(f"{name} must be None or an int from 1 to {MAX_TTL}")
    return value


@dataclass(slots=True)
class CheckpointBackend:
    """What the checkpoint storages of all tenants share.

    Attributes:
        gateway: The container.
        policy: Which types may be restored.
        max_payload_bytes: Bytes of a checkpoint before compression.
        warn_bytes: Bytes of a checkpoint before compression above which its save is an event.
        operations: What each operation of a storage runs in.
        on_undecodable: What lists and iterators do with a checkpoint they cannot read.
        logger: Where events go.
        on_save_failed: What the application wants called for each failed save.
        lineage: What this process has seen of checkpoints.
        keyframes: What it has seen of keyframes.
        sweeps: What it has swept.
        clock: Times of saves.
        warned_of_unstable_name: Whether the one warning about an unstable workflow name was given.
    """

    gateway: Gateway
    policy: RestorePolicy
    max_payload_bytes: int
    warn_bytes: int
    operations: Operations
    on_undecodable: Literal["skip", "raise"]
    logger: FilteringBoundLogger
    on_save_failed: SaveFailedHook | None = None
    lineage: LineageMemory = field(default_factory=LineageMemory)
    keyframes: KeyframeMemory = field(default_factory=KeyframeMemory)
    sweeps: SweepSchedule = field(default_factory=SweepSchedule)
    clock: SaveClock = field(default_factory=SaveClock)
    warned_of_unstable_name: bool = False


@dataclass(frozen=True, slots=True)
class CheckpointView:
    """What one storage sees.

    Attributes:
        backend: What all share.
        tenant: Whose checkpoints.
        scope: Which scope of the tenant; ``""`` is the unnamed one, not all of them.
        workflow_name: The one workflow it is narrowed to, None when it is not.
        ttl: Seconds after its save that a checkpoint expires, None for never.
    """

    backend: CheckpointBackend
    tenant: TenantId
    scope: Scope
    workflow_name: str | None
    ttl: int | None

    def accept_workflow(self, workflow_name: str) -> str:
        """Return the name unchanged.

        Raises:
            InvalidIdentifierError: It is refused, or is not the one this view is narrowed to.
        """
        name = accept_workflow_name(workflow_name)
        if self.workflow_name not in {None, name}:
            raise InvalidIdentifierError("workflow_name differs from the one this storage is narrowed to")
        return name

    def key(self, workflow_name: str, checkpoint_id: str) -> CheckpointKey:
        """Return the identity of a checkpoint in this view."""
        return CheckpointKey(self.tenant, self.scope, workflow_name, checkpoint_id)

    def which(self, workflow_name: str | None = None, checkpoint_id: str | None = None) -> CheckpointFields:
        """Return the fields of an error about a checkpoint in this view."""
        return CheckpointFields(
            tenant_id=self.tenant.value,
            scope=self.scope.value,
            workflow_name=workflow_name,
            checkpoint_id=checkpoint_id,
        )

    def owns(self, item: Item, checkpoint_id: str | None = None) -> bool:
        """Check an item that was read: another's is an event for whoever watches, and reads as not there."""
        expected = checkpoint_id is None or item.get("checkpoint_id") == checkpoint_id
        if expected and belongs_to(item, self.tenant, self.scope):
            return True
        emit(self.backend.logger.error, ISOLATION_VIOLATED, tenant_id=self.tenant.value, scope=self.scope.value)
        return False

    def check_size(self, size: int, limit: int, key: CheckpointKey, *, what: str = _BEFORE_COMPRESSION) -> None:
        """Compare bytes with a limit; ``what`` says in the error's message which bytes they are.

        Raises:
            CheckpointTooLargeError: They are over it.
        """
        if size > limit:
            raise CheckpointTooLargeError(
                f"the checkpoint has {size} bytes of {what}, the limit is {limit}",
                size=size,
                limit=limit,
                **self.which(key.workflow_name, key.checkpoint_id),
            )

    @contextmanager
    def about(self, workflow_name: str | None, checkpoint_id: str | None) -> Generator[None]:
        """Turn a stage's no into the error a caller knows, with the checkpoint it is about.

        Raises:
            CheckpointCorruptError: Instead of `UnreadableError`.
            CheckpointNotRestorableError: Instead of `RefusedTypesError`.
        """
        which = self.which(workflow_name, checkpoint_id)
        try:
            yield
        except UnreadableError as error:
            raise CheckpointCorruptError(str(error), **which) from None
        except RefusedTypesError as error:
            # Its context is what the state's own code has raised, which may quote the state.
            error.__context__ = None
            raise CheckpointNotRestorableError(str(error), types=error.types, **which) from None

    def warn_if_large(self, size: int, key: CheckpointKey) -> None:
        """Emit a warning event about a checkpoint of more than ``warn_bytes`` bytes before compression."""
        if size > self.backend.warn_bytes:
            sizes = {"raw_bytes": size, "warn_bytes": self.backend.warn_bytes}
            self.tell(self.backend.logger.warning, CHECKPOINT_LARGE, key.workflow_name, key.checkpoint_id, **sizes)

    def skips(self, error: CheckpointError) -> bool:
        """Return whether a checkpoint that cannot be read is left out, as ``on_undecodable`` says, with an event."""
        if self.backend.on_undecodable == "raise":
            return False
        about, kind = (error.workflow_name, error.checkpoint_id), type(error).__name__
        self.tell(self.backend.logger.warning, CHECKPOINT_UNDECODABLE, *about, error_type=kind)
        return True

    def tell(
        self,
        log: Callable[..., object],
        event: str,
        workflow_name: str | None,
        checkpoint_id: str | None,
        **fields: Scalar,
    ) -> None:
        """Emit an event about a checkpoint in this view; ``log`` is the logger's method for the level."""
        which = {"workflow_name": workflow_name, "checkpoint_id": checkpoint_id}
        emit(log, event, tenant_id=self.tenant.value, scope=self.scope.value, **which, **fields)

    def operation(
        self, names: Operation, meter: Meter, **fields: Scalar
    ) -> AbstractAsyncContextManager[OperationFields]:
        """Emit the one event of an operation in this view, and give it up when it takes too long; see `Operations`."""
        return self.backend.operations.run(names, meter, **self._about_me(fields))

    def measured(self, names: Operation, meter: Meter, **fields: Scalar) -> AbstractContextManager[OperationFields]:
        """Emit the one event of an operation in this view; see `Operations`."""
        return self.backend.operations.measured(names, meter, **self._about_me(fields))

    def bounded(self, names: Operation, meter: Meter) -> AbstractAsyncContextManager[None]:
        """Give up what takes too long; see `Operations`."""
        return self.backend.operations.bounded(names, meter)

    def _about_me(self, fields: Mapping[str, Scalar]) -> dict[str, Scalar]:
        return {"tenant_id": self.tenant.value, "scope": self.scope.value, **fields}
