"""The way out: find items, check whose they are, and rebuild checkpoints from them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

from agent_framework import WorkflowCheckpoint

from . import _queries
from ._documents import read_checkpoint
from ._gateway import Item, Meter
from ._identity import checkpoint_item_id, full_key, possible_checkpoint_id, tenant_prefix
from ._keyframes import Base
from ._maf import deserialize
from ._ordering import time_of
from ._payloads import fetch
from ._records import CheckpointKey, StoredCheckpoint, UnreadableError
from ._uploads import MissingItemError
from ._view import CheckpointView
from .errors import (
    AmbiguousCheckpointError,
    CheckpointCorruptError,
    CheckpointNotRestorableError,
    CheckpointTooLargeError,
)

_DELAYS: Final = (0.0, 0.1, 0.3)
"""Seconds before what an item names is looked for again."""


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
        if item is not None and view.owns(item, possible):
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
        if view.owns(item):
            yield item


def parse(view: CheckpointView, item: Item) -> StoredCheckpoint:
    """Return what is in an item.

    Raises:
        CheckpointCorruptError: It is no checkpoint item of a schema this version knows.
    """
    with view.about(item.get("workflow_name"), item.get("checkpoint_id")):
        stored = read_checkpoint(item, view.tenant, view.scope)
        time_of(stored.sort_key)
    return stored


async def restore(
    view: CheckpointView, stored: StoredCheckpoint, meter: Meter
) -> tuple[WorkflowCheckpoint, str] | None:
    """Rebuild a checkpoint from its payload alone, checked against its header; None when it was deleted meanwhile.

    Returns:
        The checkpoint, and the digest of the bytes that it was rebuilt from.

    Raises:
        CheckpointCorruptError: The payload cannot be read, or is another's.
        CheckpointNotRestorableError: It holds a type that is not allowed here.
        CheckpointTooLargeError: It is over this process's ``max_payload_bytes``.
        ServiceError: The service refused, throttled or could not be reached.
    """
    key = stored.header.key
    fetched = await fetch_current(view, stored, meter)
    if fetched is None:
        return None
    raw, base, current = fetched
    with view.about(key.workflow_name, key.checkpoint_id):
        checkpoint = deserialize(raw, key, view.backend.policy)
        view.backend.lineage.remember(key, time_of(current.sort_key))
    if base is not None:
        view.backend.keyframes.remember(key, base)
    return checkpoint, current.payload.digest


async def fetch_current(
    view: CheckpointView, stored: StoredCheckpoint, meter: Meter
) -> tuple[bytes, Base | None, StoredCheckpoint] | None:
    """Return a checkpoint's payload, what its children may be stored against and its item; None when it is gone.

    What the item names may have been deleted since the item was read, with it or with the version it was replaced by;
    or a replica has not seen it yet. So the item is read again before anything is called lost.

    Raises:
        CheckpointCorruptError: The payload cannot be read, or is not there although the item is.
        CheckpointTooLargeError: It is over this process's ``max_payload_bytes``.
        ServiceError: The service refused, throttled or could not be reached.
    """
    key, delays = stored.header.key, iter(_DELAYS)
    while True:
        try:
            return *await fetch(view, stored, meter), stored
        except MissingItemError:
            again = await _read_again(view, key, meter)
        if again is None:
            return None
        # A version that another one has replaced may well lack its parts; one that stays may not.
        delays, stored = (delays if again.etag == stored.etag else iter(_DELAYS)), again
        delay = next(delays, None)
        if delay is None:
            raise CheckpointCorruptError(
                "the checkpoint names a keyframe or part that is not there",
                **view.which(key.workflow_name, key.checkpoint_id),
            )
        await asyncio.sleep(delay)


async def _read_again(view: CheckpointView, key: CheckpointKey, meter: Meter) -> StoredCheckpoint | None:
    item_id = checkpoint_item_id(key.scope, key.checkpoint_id)
    item = await view.backend.gateway.read(full_key(key.tenant, key.workflow_name), item_id, meter)
    return parse(view, item) if item is not None and view.owns(item, key.checkpoint_id) else None


async def restore_or_skip(view: CheckpointView, item: Item, meter: Meter) -> WorkflowCheckpoint | None:
    """Rebuild a checkpoint from its item; None, with one warning event, when it cannot be read and may be skipped.

    Raises:
        CheckpointError: As `parse` and `restore`, when ``on_undecodable`` is ``raise``.
        ServiceError: The service refused, throttled or could not be reached.
    """
    try:
        restored = await restore(view, parse(view, item), meter)
    except (CheckpointCorruptError, CheckpointNotRestorableError, CheckpointTooLargeError) as error:
        if not view.skips(error):
            raise
        return None
    return None if restored is None else restored[0]


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
    found = [item async for item in items if view.owns(item, checkpoint_id)]
    if len(found) > 1:
        workflows = ", ".join(sorted(repr(item.get("workflow_name")) for item in found))
        raise AmbiguousCheckpointError(
            f"the workflows {workflows} each have a checkpoint with this id; use for_workflow(name)",
            **view.which(checkpoint_id=checkpoint_id),
        )
    return found[0] if found else None
