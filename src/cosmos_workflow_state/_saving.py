"""The way in: a live checkpoint to bytes, before the first await, and to its place in the order."""

from __future__ import annotations

import re
from typing import Final

from agent_framework import WorkflowCheckpoint

from ._committing import Commit, Draft
from ._gateway import Meter
from ._identity import Scope, TenantId, accept_checkpoint_id
from ._keyframes import Base
from ._logging import WORKFLOW_UNSTABLE_NAME, OperationFields, emit
from ._maf import RestorePolicy, header_of, serialize
from ._ordering import SortKey, hybrid_time, time_of
from ._records import CheckpointHeader, CheckpointKey, RefusedTypesError
from ._view import CheckpointView
from .errors import CheckpointNotRestorableError

_NOWHERE: Final = CheckpointKey(TenantId(""), Scope(""), "checked", "checked")
"""Of the checkpoint that a value is tried in. It is never stored, so it needs no tenant that a rule has accepted."""

_UNSTABLE_NAME: Final = re.compile(r"WorkflowBuilder-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


async def save(view: CheckpointView, checkpoint: WorkflowCheckpoint, meter: Meter, event: OperationFields) -> str:
    """Store a checkpoint: create its item, or replace what is there if that differs; return its id.

    Raises:
        CosmosStateError: As `TenantCheckpointStorage.save` documents.
    """
    header, raw = _serialized(view, checkpoint)
    draft = Draft(header, raw, str(_place(view, header)))
    event.add(raw_bytes=len(raw))
    view.warn_if_large(len(raw), header.key)
    stored = await Commit(view, draft, meter).run(_base(view, header))
    event.add(stored_bytes=stored.stored_bytes, new_keyframe=stored.new_keyframe)
    view.backend.lineage.remember(header.key, time_of(stored.sort_key))
    if stored.base is not None:
        view.backend.keyframes.remember(header.key, stored.base)
    _warn_of_unstable_name(view, header.key.workflow_name)
    return header.key.checkpoint_id


def check_restorable(value: object, policy: RestorePolicy) -> None:
    """Check that a value could be part of a checkpoint that is saved and loaded.

    Raises:
        CheckpointNotRestorableError: It could not: it holds types that are not allowed, which are named.
    """
    checkpoint = WorkflowCheckpoint(
        workflow_name=_NOWHERE.workflow_name,
        graph_signature_hash="",
        checkpoint_id=_NOWHERE.checkpoint_id,
        state={"value": value},
    )
    try:
        serialize(checkpoint, _NOWHERE, policy)
    except RefusedTypesError as error:
        # Its context is what the value's own code has raised, which may quote the value.
        error.__context__ = None
        raise CheckpointNotRestorableError(str(error), types=error.types) from None


def _serialized(view: CheckpointView, checkpoint: WorkflowCheckpoint) -> tuple[CheckpointHeader, bytes]:
    """Copy the state into bytes: everything of a save that must happen before the first await."""
    name = view.accept_workflow(checkpoint.workflow_name)
    key = view.key(name, accept_checkpoint_id(checkpoint.checkpoint_id))
    with view.about(key.workflow_name, key.checkpoint_id):
        # First of all: what does not survive this has no header either.
        raw = serialize(checkpoint, key, view.backend.policy)
        header = header_of(checkpoint, key)
    view.check_size(len(raw), view.backend.max_payload_bytes, key)
    return header, raw


def _place(view: CheckpointView, header: CheckpointHeader) -> SortKey:
    """Return where in the order the checkpoint goes: always after its parent, where this process knows that."""
    name, parent = header.key.workflow_name, header.previous_checkpoint_id
    parent_time = None if parent is None else view.backend.lineage.time_of(view.key(name, parent))
    with view.about(name, header.key.checkpoint_id):
        time = hybrid_time(header.timestamp, parent_time)
    return SortKey(view.scope, time, view.backend.clock.next())


def _base(view: CheckpointView, header: CheckpointHeader) -> Base | None:
    """Return what the checkpoint may be stored against: its parent's keyframe, or the last one of its workflow."""
    name, parent = header.key.workflow_name, header.previous_checkpoint_id
    keyframes = view.backend.keyframes
    known = None if parent is None else keyframes.base_of(view.key(name, parent))
    # Runs do not always know the one before: a workflow that is built anew for each turn starts a lineage of its own.
    return known or keyframes.last_of(header.key.place)


def _warn_of_unstable_name(view: CheckpointView, workflow_name: str) -> None:
    if view.backend.warned_of_unstable_name or not _UNSTABLE_NAME.fullmatch(workflow_name):
        return
    view.backend.warned_of_unstable_name = True
    emit(
        view.backend.logger.warning,
        WORKFLOW_UNSTABLE_NAME,
        tenant_id=view.tenant.value,
        workflow_name=workflow_name,
        remedy="name the workflow: this name is new in every process, so what is saved under it is never found again",
    )
