"""The way out: find items, check whose they are, and rebuild checkpoints from them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from agent_framework import WorkflowCheckpoint

from . import _queries
from ._codec import decode_payload
from ._documents import belongs_to, read_checkpoint
from ._gateway import Item, Meter
from ._identity import checkpoint_item_id, full_key, possible_checkpoint_id, tenant_prefix
from ._logging import CHECKPOINT_UNDECODABLE, ISOLATION_VIOLATED, emit
from ._maf import FORMAT, deserialize
from ._ordering import time_of
from ._records import EncodedPayload, StoredCheckpoint, UnreadableError
from ._threads import off_loop
from ._view import CheckpointView
from .errors import (
    AmbiguousCheckpointError,
    CheckpointCorruptError,
    CheckpointNotRestorableError,
    CheckpointTooLargeError,
)


async def find(view: CheckpointView, checkpoint_id: str, meter: Meter, *, hinted: bool) -> Item | None:
    """Return the item of an id without looking into it, so that what cannot be read can still be deleted.

    Args:
        view: Where to look.
        checkpoint_id: Which one.
        meter: Counts what it costs.
        hinted: Whether the workflow in which this process saw the id may be asked first, a point read; another
            process may have saved the same id in a second workflow since.

    Raises:
        AmbiguousCheckpointError: Several workflows of the tenant have one.
        InvalidIdentifierError: The id is not a str.
    """
    possible = possible_checkpoint_id(checkpoint_id)
    if possible is None:
        return None
    item_id = checkpoint_item_id(view.scope, possible)
    hint = view.backend.lineage.workflow_of(view.tenant, view.scope, possible) if hinted else None
    workflow_name = view.workflow_name or hint
    if workflow_name is not None:
        item = await view.backend.gateway.read(full_key(view.tenant, workflow_name), item_id, meter)
        if item is not None and owns(view, item, possible):
            return item
    # What was seen in a workflow may have moved to another; a view narrowed to one cannot see that.
    return None if view.workflow_name else await _find_in_tenant(view, item_id, possible, meter)


async def in_order(view: CheckpointView, query: str, workflow_name: str, meter: Meter) -> AsyncIterator[Item]:
    """Yield the items of a workflow in the order of the query.

    Raises:
        InvalidIdentifierError: The workflow name is refused.
    """
    name = view.accept_workflow(workflow_name)
    parameters = _queries.in_scope(view.tenant, name, view.scope)
    async for item in view.backend.gateway.query(query, parameters, full_key(view.tenant, name), meter):
        if owns(view, item):
            yield item


def owns(view: CheckpointView, item: Item, checkpoint_id: str | None = None) -> bool:
    """Check an item that was read: another's is an event for whoever watches, and reads as not there."""
    expected = checkpoint_id is None or item.get("checkpoint_id") == checkpoint_id
    if expected and belongs_to(item, view.tenant, view.scope):
        return True
    emit(view.backend.logger.error, ISOLATION_VIOLATED, tenant_id=view.tenant.value, scope=view.scope.value)
    return False


def parse(view: CheckpointView, item: Item) -> StoredCheckpoint:
    """Return what is in an item.

    Raises:
        CheckpointCorruptError: It is no checkpoint item of a schema this version knows.
    """
    with view.about(item.get("workflow_name"), item.get("checkpoint_id")):
        stored = read_checkpoint(item, view.tenant, view.scope)
        time_of(stored.sort_key)
    return stored


async def restore(view: CheckpointView, stored: StoredCheckpoint) -> WorkflowCheckpoint:
    """Rebuild a checkpoint from its payload alone, checked against its header.

    Raises:
        CheckpointCorruptError: The payload cannot be read, or is another's.
        CheckpointNotRestorableError: It holds a type that is not allowed here.
        CheckpointTooLargeError: It is over this process's ``max_payload_bytes``.
    """
    key, payload = stored.header.key, stored.payload
    view.check_size(payload.size, view.backend.max_payload_bytes, key)
    with view.about(key.workflow_name, key.checkpoint_id):
        raw = await off_loop(payload.size, lambda: _undo(payload))
        checkpoint = deserialize(raw, key, view.backend.policy)
        view.backend.lineage.remember(key, time_of(stored.sort_key))
    return checkpoint


async def check_payload(view: CheckpointView, stored: StoredCheckpoint) -> None:
    """Check that what is stored is what its digest says.

    Raises:
        CheckpointCorruptError: It is not.
    """
    key, payload = stored.header.key, stored.payload
    with view.about(key.workflow_name, key.checkpoint_id):
        await off_loop(payload.size, lambda: _undo(payload))


async def restore_or_skip(view: CheckpointView, item: Item) -> WorkflowCheckpoint | None:
    """Rebuild a checkpoint from its item; None, with one warning event, when it cannot be read and may be skipped.

    Raises:
        CheckpointError: As `parse` and `restore`, when ``on_undecodable`` is ``raise``.
    """
    try:
        return await restore(view, parse(view, item))
    except (CheckpointCorruptError, CheckpointNotRestorableError, CheckpointTooLargeError) as error:
        if view.backend.on_undecodable == "raise":
            raise
        emit(
            view.backend.logger.warning,
            CHECKPOINT_UNDECODABLE,
            tenant_id=error.tenant_id,
            scope=error.scope,
            workflow_name=error.workflow_name,
            checkpoint_id=error.checkpoint_id,
            error_type=type(error).__name__,
        )
        return None


def note(view: CheckpointView, workflow_name: str, item: Mapping[str, Any]) -> str:
    """Return the id in a listed item, remembering where and when it is.

    Raises:
        CheckpointCorruptError: It lacks its id or its place in the order.
    """
    checkpoint_id, sort_key = item.get("checkpoint_id"), item.get("sort_key")
    with view.about(workflow_name, checkpoint_id):
        if not isinstance(checkpoint_id, str) or not isinstance(sort_key, str):
            raise UnreadableError("an item lacks its id or its place in the order")
        view.backend.lineage.remember(view.key(workflow_name, checkpoint_id), time_of(sort_key))
    return checkpoint_id


async def _find_in_tenant(view: CheckpointView, item_id: str, checkpoint_id: str, meter: Meter) -> Item | None:
    items = view.backend.gateway.query(
        _queries.BY_ID, _queries.by_id(view.tenant, item_id), tenant_prefix(view.tenant), meter
    )
    found = [item async for item in items if owns(view, item, checkpoint_id)]
    if len(found) > 1:
        workflows = ", ".join(sorted(repr(item.get("workflow_name")) for item in found))
        raise AmbiguousCheckpointError(
            f"the workflows {workflows} each have a checkpoint with this id; use for_workflow(name)",
            **view.which(checkpoint_id=checkpoint_id),
        )
    return found[0] if found else None


def _undo(payload: EncodedPayload) -> bytes:
    if payload.format != FORMAT:
        raise UnreadableError("the payload has a format that this version does not know")
    return decode_payload(payload)
