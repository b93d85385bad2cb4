"""Many checkpoints: iterating over a workflow, headers without state, lineages, children, and names of workflows.

What is handed out page by page is bounded page by page; nothing is held open while the caller works.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, TypeVar, cast

from agent_framework import WorkflowCheckpoint

from . import _queries
from ._documents import CHECKPOINT_TYPE
from ._fields import field, optional, texts
from ._gateway import Item, Meter
from ._identity import checkpoint_item_id, full_key, possible_checkpoint_id, tenant_prefix
from ._items import SCHEMA
from ._logging import CHECKPOINT_ITERATE, CHECKPOINT_LIST_HEADERS, Operation
from ._ordering import SortKey, microseconds
from ._reading import note, restore_or_skip
from ._records import UnreadableError
from ._view import CheckpointView, accept_whole_number
from .errors import (
    AmbiguousCheckpointError,
    CheckpointCorruptError,
    CheckpointNotFoundError,
    InvalidArgumentError,
)
from .typing import CheckpointSummary

_Value = TypeVar("_Value")
_Read = Callable[[CheckpointView, Item, Meter], Awaitable[_Value | None]]

_PAGE_ITEMS: Final = {_queries.WHOLE: 100, _queries.HEADER: 1000}
"""Items in a page at most, by what is asked of each: a page is held in memory, and a thousand headers are not much."""

_NEVER: Final = -1
"""The time to live with which an item says that it never expires."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which checkpoints of a workflow, as the caller has put it; nothing of it is checked yet.

    Attributes:
        workflow_name: The workflow.
        newest_first: Which end of the order comes first.
        limit: How many are read at most, None for all.
        since: The moment in the order from which on they are wanted, None for all.
    """

    workflow_name: str
    newest_first: bool
    limit: int | None
    since: datetime | None


def iterate_checkpoints(view: CheckpointView, selection: Selection) -> AsyncGenerator[WorkflowCheckpoint]:
    """Yield whole checkpoints, decoding one at a time.

    Raises:
        CosmosStateError: As `TenantCheckpointStorage.iter_checkpoints` documents.
    """
    return _iterate(view, CHECKPOINT_ITERATE, selection, _queries.WHOLE, _restored)


def iterate_headers(view: CheckpointView, selection: Selection) -> AsyncGenerator[CheckpointSummary]:
    """Yield what is known of checkpoints without their state.

    Raises:
        CosmosStateError: As `TenantCheckpointStorage.iter_checkpoint_headers` documents.
    """
    return _iterate(view, CHECKPOINT_LIST_HEADERS, selection, _queries.HEADER, _summary_or_skip)


async def list_workflows(view: CheckpointView, meter: Meter) -> list[str]:
    """Return the names of the workflows that have checkpoints in this tenant and scope, sorted.

    Raises:
        CosmosStateError: As `TenantCheckpointStorage.list_workflows` documents.
    """
    items = await _found_in_tenant(view, _queries.WORKFLOWS, meter)
    with view.about(None, None):
        # Each physical partition answers for itself, so a name may come several times.
        return sorted({field(item, "workflow_name", str) for item in items})


async def list_children(view: CheckpointView, previous_checkpoint_id: str, meter: Meter) -> list[CheckpointSummary]:
    """Return the checkpoints whose parent has this id, in order.

    Raises:
        CosmosStateError: As `TenantCheckpointStorage.list_children` documents.
    """
    parent = possible_checkpoint_id(previous_checkpoint_id)
    if parent is None:
        return []
    return await _summaries_in_tenant(view, _queries.CHILDREN, meter, parent=parent)


async def find_checkpoints(view: CheckpointView, prefix: str, meter: Meter) -> list[CheckpointSummary]:
    """Return the checkpoints whose id begins so, in order.

    Raises:
        CosmosStateError: As `TenantCheckpointStorage.find_checkpoints` documents.
    """
    beginning = possible_checkpoint_id(prefix)
    if not beginning:
        return []
    return await _summaries_in_tenant(view, _queries.BY_PREFIX, meter, prefix=beginning)


async def read_lineage(view: CheckpointView, checkpoint_id: str, meter: Meter) -> list[CheckpointSummary]:
    """Return a checkpoint and its ancestors, the oldest first, as far as they are there.

    Raises:
        CosmosStateError: As `TenantCheckpointStorage.lineage` documents.
    """
    headers = await _headers_around(view, checkpoint_id, meter)
    if checkpoint_id not in headers:
        raise CheckpointNotFoundError(
            "no checkpoint with this id in this tenant and scope", **view.which(checkpoint_id=checkpoint_id)
        )
    chain: list[CheckpointSummary] = []
    wanted: str | None = checkpoint_id
    # Taken out, so that a lineage that runs in a circle ends where it began.
    while wanted is not None and (item := headers.pop(wanted, None)) is not None:
        chain.append(summarize(view, item))
        wanted = chain[-1].previous_checkpoint_id
    return chain[::-1]


async def _iterate(
    view: CheckpointView, names: Operation, selection: Selection, columns: str, read: _Read[_Value]
) -> AsyncGenerator[_Value]:
    """Yield what ``read`` makes of the selected items: one event in all, and the time of a step for each step."""
    meter, count = Meter(), 0
    with view.measured(names, meter, workflow_name=selection.workflow_name) as event:
        async with aclosing(_select(view, selection, columns, meter)) as items:
            while True:
                async with view.bounded(names, meter):
                    item = await anext(items, None)
                    value = None if item is None else await read(view, item, meter)
                if item is None:
                    break
                if value is not None:
                    count += 1
                    event.add(count=count)
                    with event.paused():
                        yield value
        event.add(count=count)


async def _select(view: CheckpointView, selection: Selection, columns: str, meter: Meter) -> AsyncGenerator[Item]:
    name, limit = view.accept_workflow(selection.workflow_name), selection.limit
    if limit is not None:
        accept_whole_number("limit", limit)
    text = _queries.ordered(columns, newest_first=selection.newest_first, limited=limit is not None)
    least = None if selection.since is None else _least_sort_key(view, selection.since)
    parameters = _queries.in_scope(view.tenant, name, view.scope, least=least, limit=limit)
    key, page_size = full_key(view.tenant, name), _PAGE_ITEMS[columns]
    found = view.backend.gateway.query(text, parameters, key, meter, page_size=page_size)
    # Typed as an iterator, and a generator: it is closed with this one, not some time later.
    async with aclosing(cast("AsyncGenerator[Item]", found)):
        async for item in found:
            if view.owns(item):
                yield item


def _least_sort_key(view: CheckpointView, since: object) -> str:
    if not isinstance(since, datetime) or since.utcoffset() is None:
        raise InvalidArgumentError("since must be a datetime with a time zone, or None for all")
    return str(SortKey(view.scope, microseconds(since.isoformat()), 0))


async def _restored(view: CheckpointView, item: Item, meter: Meter) -> WorkflowCheckpoint | None:
    checkpoint = await restore_or_skip(view, item, meter)
    # A page of small checkpoints is decoded without waiting for anything: others must get their turn.
    await asyncio.sleep(0)
    return checkpoint


async def _summary_or_skip(view: CheckpointView, item: Item, _meter: Meter) -> CheckpointSummary | None:
    try:
        return summarize(view, item)
    except CheckpointCorruptError as error:
        if not view.skips(error):
            raise
        return None


async def _headers_around(view: CheckpointView, checkpoint_id: str, meter: Meter) -> dict[str, Item]:
    """Return the headers of the workflow that has the checkpoint, by id; none when no workflow has it."""
    possible = possible_checkpoint_id(checkpoint_id)
    if possible is None:
        return {}
    hint = view.backend.lineage.workflow_of(view.tenant, view.scope, possible)
    name = view.workflow_name or hint
    headers = {} if name is None else await _headers_of(view, name, meter)
    if possible in headers or view.workflow_name is not None:
        return headers
    # Not seen here yet, or no longer where it was seen.
    found = await _workflow_with(view, possible, meter)
    return {} if found is None else await _headers_of(view, found, meter)


async def _headers_of(view: CheckpointView, workflow_name: str, meter: Meter) -> dict[str, Item]:
    selection = Selection(workflow_name, newest_first=False, limit=None, since=None)
    items = _select(view, selection, _queries.HEADER, meter)
    return {str(item.get("checkpoint_id")): item async for item in items}


async def _workflow_with(view: CheckpointView, checkpoint_id: str, meter: Meter) -> str | None:
    parameters = _queries.by_id(view.tenant, checkpoint_item_id(view.scope, checkpoint_id))
    items = view.backend.gateway.query(_queries.PLACES_OF_ID, parameters, tenant_prefix(view.tenant), meter)
    names = sorted([str(item.get("workflow_name")) async for item in items if view.owns(item, checkpoint_id)])
    if len(names) > 1:
        raise AmbiguousCheckpointError(
            f"the workflows {', '.join(map(repr, names))} each have a checkpoint with this id; use for_workflow(name)",
            **view.which(checkpoint_id=checkpoint_id),
        )
    return names[0] if names else None


async def _summaries_in_tenant(
    view: CheckpointView, query: str, meter: Meter, **values: object
) -> list[CheckpointSummary]:
    items = await _found_in_tenant(view, query, meter, **values)
    # What several physical partitions answer is concatenated, not merged.
    items.sort(key=lambda item: str(item["sort_key"]))
    found = [await _summary_or_skip(view, item, meter) for item in items]
    return [summary for summary in found if summary is not None]


async def _found_in_tenant(view: CheckpointView, query: str, meter: Meter, **values: object) -> list[Item]:
    """Return what a query finds in the tenant and scope, in the one workflow where the view is narrowed to one."""
    name = view.workflow_name
    text = query if name is None else _queries.in_one_workflow(query)
    key = tenant_prefix(view.tenant) if name is None else full_key(view.tenant, name)
    parameters = _queries.in_tenant(view.tenant, view.scope, name, **values)
    return [item async for item in view.backend.gateway.query(text, parameters, key, meter) if view.owns(item)]


def summarize(view: CheckpointView, item: Item) -> CheckpointSummary:
    """Return what a header says.

    Raises:
        CheckpointCorruptError: It is no header of a checkpoint of a schema this version knows.
    """
    with view.about(item.get("workflow_name"), item.get("checkpoint_id")):
        summary = _read(item)
    note(view, summary.workflow_name, item)
    return summary


def _read(item: Mapping[str, Any]) -> CheckpointSummary:
    if item.get("type") != CHECKPOINT_TYPE or item.get("schema") != SCHEMA:
        raise UnreadableError("the item is not a checkpoint of a schema that this version knows")
    pending = "pending_request_ids"
    return CheckpointSummary(
        checkpoint_id=field(item, "checkpoint_id", str),
        workflow_name=field(item, "workflow_name", str),
        previous_checkpoint_id=optional(item, "previous_checkpoint_id", str),
        timestamp=field(item, "timestamp", str),
        iteration_count=field(item, "iteration_count", int),
        pending_request_ids=texts(item, pending) if pending in item else (),
        pending_request_count=optional(item, "pending_request_count", int) or 0,
        raw_bytes=field(item, "raw_bytes", int),
        stored_bytes=field(item, "data_bytes" if "data_bytes" in item else "parts_bytes", int),
        expires=_expires(item),
    )


def _expires(item: Mapping[str, Any]) -> datetime | None:
    ttl = optional(item, "ttl", int)
    if ttl is None or ttl == _NEVER:
        return None
    return datetime.fromtimestamp(field(item, "_ts", int) + ttl, UTC)
