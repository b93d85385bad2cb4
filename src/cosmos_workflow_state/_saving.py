"""The way in: a live checkpoint to bytes, to an item, into the container."""

from __future__ import annotations

import re
from typing import Final

from agent_framework import WorkflowCheckpoint

from ._codec import encode_payload
from ._documents import MAX_ITEM_BYTES, checkpoint_item, item_bytes
from ._gateway import Item, Meter
from ._identity import accept_checkpoint_id, full_key
from ._logging import WORKFLOW_UNSTABLE_NAME, OperationFields, emit
from ._maf import FORMAT, header_of, serialize
from ._ordering import SortKey, hybrid_time, time_of
from ._reading import check_payload, owns, parse
from ._records import CheckpointHeader, CheckpointKey
from ._threads import off_loop
from ._view import CheckpointView
from .errors import CheckpointConflictError, CheckpointCorruptError

_MAX_TRIES: Final = 5
_UNSTABLE_NAME: Final = re.compile(r"WorkflowBuilder-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


async def save(view: CheckpointView, checkpoint: WorkflowCheckpoint, meter: Meter, event: OperationFields) -> str:
    """Store a checkpoint: create its item, or replace what is there if that differs; return its id.

    Raises:
        CosmosStateError: As `TenantCheckpointStorage.save` documents.
    """
    header, raw = _serialized(view, checkpoint)
    sort_key = str(_place(view, header))
    payload = await off_loop(len(raw), lambda: encode_payload(raw, payload_format=FORMAT))
    item = checkpoint_item(header, sort_key, payload)
    stored_bytes = item_bytes(item)
    event.add(raw_bytes=payload.size, stored_bytes=stored_bytes)
    view.check_size(stored_bytes, MAX_ITEM_BYTES, header.key)
    kept = await _write(view, header.key, item, meter)
    view.backend.lineage.remember(header.key, time_of(kept))
    _warn_of_unstable_name(view, header.key.workflow_name)
    return header.key.checkpoint_id


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


async def _write(view: CheckpointView, key: CheckpointKey, item: Item, meter: Meter) -> str:
    """Create the item, or replace what is there if it differs; return the sort key that is in force."""
    gateway = view.backend.gateway
    for _ in range(_MAX_TRIES):
        if await gateway.create(item, meter):
            return str(item["sort_key"])
        found = await gateway.read(full_key(key.tenant, key.workflow_name), item["id"], meter)
        if found is None:
            continue
        if not owns(view, found, key.checkpoint_id):
            raise CheckpointCorruptError(
                "the item with the id of this checkpoint is another's",
                **view.which(key.workflow_name, key.checkpoint_id),
            )
        there = parse(view, found)
        if there.payload.digest == item["payload"]["digest"]:
            await check_payload(view, there)
            return there.sort_key
        if await gateway.replace({**item, "sort_key": there.sort_key}, there.etag, meter):
            return there.sort_key
    raise CheckpointConflictError(
        "other writers kept replacing or deleting this checkpoint",
        **view.which(key.workflow_name, key.checkpoint_id),
    )


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
