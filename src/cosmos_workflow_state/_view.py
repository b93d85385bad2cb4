"""What the storages of all tenants share, and one storage's view of it: a tenant, a scope, perhaps a workflow.

The view is where a stage's no becomes the error a caller knows, and where each operation becomes one event.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from structlog.typing import FilteringBoundLogger

from ._gateway import Gateway, Meter
from ._identity import Scope, TenantId, accept_workflow_name
from ._lineage import LineageMemory
from ._logging import Operation, OperationFields, Scalar, operation
from ._maf import RestorePolicy
from ._ordering import SaveClock
from ._records import CheckpointKey, RefusedTypesError, UnreadableError
from .errors import (
    CheckpointCorruptError,
    CheckpointFields,
    CheckpointNotRestorableError,
    CheckpointTooLargeError,
    InvalidIdentifierError,
)


@dataclass(slots=True)
class CheckpointBackend:
    """What the checkpoint storages of all tenants share.

    Attributes:
        gateway: The container.
        policy: Which types may be restored.
        max_payload_bytes: Bytes of a checkpoint before compression.
        on_undecodable: What ``list_checkpoints`` does with a checkpoint it cannot read.
        logger: Where events go.
        lineage: What this process has seen.
        clock: Times of saves.
        warned_of_unstable_name: Whether the one warning about an unstable workflow name was given.
    """

    gateway: Gateway
    policy: RestorePolicy
    max_payload_bytes: int
    on_undecodable: Literal["skip", "raise"]
    logger: FilteringBoundLogger
    lineage: LineageMemory = field(default_factory=LineageMemory)
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
    """

    backend: CheckpointBackend
    tenant: TenantId
    scope: Scope
    workflow_name: str | None

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

    def check_size(self, size: int, limit: int, key: CheckpointKey) -> None:
        """Compare bytes with a limit.

        Raises:
            CheckpointTooLargeError: They are over it.
        """
        if size > limit:
            raise CheckpointTooLargeError(
                f"the checkpoint has {size} bytes, the limit is {limit}",
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

    @contextmanager
    def operation(self, names: Operation, meter: Meter, **fields: Scalar) -> Generator[OperationFields]:
        """Emit the one event of an operation, with what it has cost."""
        known = {"tenant_id": self.tenant.value, "scope": self.scope.value, **fields}
        with operation(self.backend.logger, names, **known) as event:
            try:
                yield event
            finally:
                event.add(request_charge=round(meter.request_charge, 2), requests=meter.requests)
