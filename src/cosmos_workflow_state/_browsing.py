"""What a storage can be asked beyond the framework's protocol, each method one event. What they do is in `_listing`."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from datetime import datetime

from agent_framework import WorkflowCheckpoint

from ._gateway import Meter
from ._inspecting import inspect
from ._listing import (
    Selection,
    find_checkpoints,
    iterate_checkpoints,
    iterate_headers,
    list_children,
    list_workflows,
    read_lineage,
)
from ._logging import (
    CHECKPOINT_FIND,
    CHECKPOINT_INSPECT,
    CHECKPOINT_LIST_CHILDREN,
    CHECKPOINT_READ_LINEAGE,
    WORKFLOW_LIST,
)
from ._view import CheckpointView
from .typing import CheckpointOutline, CheckpointSummary


class CheckpointBrowsing:
    """The methods of `TenantCheckpointStorage` that look at many checkpoints."""

    __slots__ = ("_view",)

    def __init__(self, view: CheckpointView) -> None:
        """Bind it to what it sees."""
        self._view = view

    def iter_checkpoints(
        self, workflow_name: str, *, newest_first: bool = False, limit: int | None = None, since: datetime | None = None
    ) -> AsyncGenerator[WorkflowCheckpoint]:
        """Iterate over the checkpoints of a workflow, decoding one at a time. One request a page.

        One page of stored items is in memory at a time. Nothing is held open between two steps, so it may be left
        early, and checkpoints may be deleted on the way. ``operation_timeout`` is the time of one step.

        Args:
            workflow_name: The workflow.
            newest_first: Begin with the newest, in place of the oldest.
            limit: How many are read at most, 1 or more; one that cannot be read and is left out counts.
            since: Leave out what is before this moment in the order; with a time zone.

        Raises:
            CheckpointCorruptError: With ``on_undecodable="raise"``: what is stored cannot be read.
            CheckpointNotRestorableError: With ``on_undecodable="raise"``: it holds a type that is not allowed here.
            CheckpointTooLargeError: With ``on_undecodable="raise"``: it is over ``max_payload_bytes``.
            InvalidArgumentError: The limit or the moment is refused.
            InvalidIdentifierError: The workflow name is refused.
            FactoryClosedError: The factory was closed before the next page.
            ServiceError: The service refused, throttled or could not be reached.
        """
        return iterate_checkpoints(self._view, Selection(workflow_name, newest_first, limit, since))

    def iter_checkpoint_headers(
        self, workflow_name: str, *, newest_first: bool = False, limit: int | None = None, since: datetime | None = None
    ) -> AsyncGenerator[CheckpointSummary]:
        """Iterate over what is known of a workflow's checkpoints without their state, which is not even sent.

        Everything else is as for `iter_checkpoints`.

        Raises:
            CheckpointCorruptError: With ``on_undecodable="raise"``: what is stored cannot be read.
            InvalidArgumentError: The limit or the moment is refused.
            InvalidIdentifierError: The workflow name is refused.
            FactoryClosedError: The factory was closed before the next page.
            ServiceError: The service refused, throttled or could not be reached.
        """
        return iterate_headers(self._view, Selection(workflow_name, newest_first, limit, since))

    async def list_workflows(self) -> list[str]:
        """Return the names of the workflows that have checkpoints in this tenant and scope, sorted.

        Raises:
            ServiceError: The service refused, throttled or could not be reached.
        """
        meter = Meter()
        async with self._view.operation(WORKFLOW_LIST, meter) as event:
            names = await list_workflows(self._view, meter)
            event.add(count=len(names))
            return names

    async def lineage(self, checkpoint_id: str) -> list[CheckpointSummary]:
        """Return a checkpoint and its ancestors, the oldest first. One query of headers when its workflow is known.

        It begins where an ancestor is no longer there. Other children of an ancestor are not in it: `list_children`.

        Raises:
            CheckpointNotFoundError: This tenant and scope have none of this id.
            AmbiguousCheckpointError: Several workflows have; use `for_workflow`.
            CheckpointCorruptError: What is stored of one of them cannot be read.
            InvalidIdentifierError: The id is not a str.
            ServiceError: The service refused, throttled or could not be reached.
        """
        meter = Meter()
        async with self._view.operation(CHECKPOINT_READ_LINEAGE, meter, checkpoint_id=checkpoint_id) as event:
            chain = await read_lineage(self._view, checkpoint_id, meter)
            event.add(workflow_name=chain[-1].workflow_name, count=len(chain))
            return chain

    async def list_children(self, previous_checkpoint_id: str) -> list[CheckpointSummary]:
        """Return the checkpoints whose parent has this id, in order: more than one when the lineage forks.

        The parent itself need not be there any more.

        Raises:
            CheckpointCorruptError: With ``on_undecodable="raise"``: what is stored cannot be read.
            InvalidIdentifierError: The id is not a str.
            ServiceError: The service refused, throttled or could not be reached.
        """
        meter, known = Meter(), {"previous_checkpoint_id": previous_checkpoint_id}
        async with self._view.operation(CHECKPOINT_LIST_CHILDREN, meter, **known) as event:
            children = await list_children(self._view, previous_checkpoint_id, meter)
            event.add(count=len(children))
            return children

    async def find_checkpoints(self, prefix: str) -> list[CheckpointSummary]:
        """Return the checkpoints whose id begins with a text, in order: what an abbreviated id may mean.

        Args:
            prefix: The beginning of an id, or all of one; nothing is found for ``""``.

        Raises:
            CheckpointCorruptError: With ``on_undecodable="raise"``: what is stored cannot be read.
            InvalidIdentifierError: The prefix is not a str.
            ServiceError: The service refused, throttled or could not be reached.
        """
        meter = Meter()
        async with self._view.operation(CHECKPOINT_FIND, meter) as event:
            found = await find_checkpoints(self._view, prefix, meter)
            event.add(count=len(found))
            return found

    async def inspect(self, checkpoint_id: str) -> CheckpointOutline:
        """Return a checkpoint as it is stored, without restoring it: no value is unpickled, no type need be allowed.

        Raises:
            CheckpointNotFoundError: This tenant and scope have none of this id.
            AmbiguousCheckpointError: Several workflows have; use `for_workflow`.
            CheckpointCorruptError: What is stored cannot be read.
            CheckpointTooLargeError: It is over this process's ``max_payload_bytes``.
            InvalidIdentifierError: The id is not a str.
            ServiceError: The service refused, throttled or could not be reached.
        """
        meter = Meter()
        async with self._view.operation(CHECKPOINT_INSPECT, meter, checkpoint_id=checkpoint_id) as event:
            outline = await inspect(self._view, checkpoint_id, meter)
            event.add(workflow_name=outline.summary.workflow_name)
            return outline
