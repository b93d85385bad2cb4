"""Migrating checkpoints: workflow by workflow, each checkpoint read back and compared before the next one is written.

So of what an earlier run has left, only what was written last of a workflow can be something that nobody has compared:
that alone is read again, the rest is known by its header. Which was written last is the service's own word (``_ts``).
Nothing that is there is replaced or deleted, and what cannot be migrated is reported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from agent_framework import WorkflowCheckpoint

from cosmos_workflow_state import _queries as queries
from cosmos_workflow_state._checkpoints import TenantCheckpointStorage
from cosmos_workflow_state._definitions import CHECKPOINTS
from cosmos_workflow_state._factory import CosmosStateFactory
from cosmos_workflow_state._identity import TenantId, accept_checkpoint_id, accept_workflow_name, full_key
from cosmos_workflow_state._maf import RestorePolicy, header_of, serialize
from cosmos_workflow_state._ordering import hybrid_time
from cosmos_workflow_state._records import CheckpointKey, RefusedTypesError
from cosmos_workflow_state.errors import CheckpointError, InvalidIdentifierError

from ._ends import Ends, Layout, in_turn, opened_ends
from ._equality import same
from ._job import Job, UnequalError, UnfitError, present
from ._tally import Failure, Tally
from ._upstream import HEADERS, Header, decode, in_order, read_header

LAYOUT: Final = Layout("CosmosCheckpointStorage", "/workflow_name", CHECKPOINTS)

_OF_ONE_CHECKPOINT: Final = (UnfitError, CheckpointError, InvalidIdentifierError)
"""Errors that are about one checkpoint: the others go on."""


@dataclass(frozen=True, slots=True)
class _Workflow:
    """The checkpoints of one workflow that go to one tenant, in order."""

    tenant: TenantId
    name: str
    headers: tuple[Header, ...]


@dataclass(frozen=True, slots=True)
class _There:
    """What is stored of a workflow already.

    Attributes:
        headers: What identifies each checkpoint, by its id.
        last: Those that were written in the second in which something of the source was written last.
    """

    headers: Mapping[str, tuple[object, ...]]
    last: frozenset[str]


async def migrate_checkpoints(job: Job, tally: Tally) -> None:
    """Write every checkpoint of a container of the framework's own storage into this package's container.

    Args:
        job: What is to be done.
        tally: Counts what was done; also right when this raises, after which a repeat goes on.

    Raises:
        ProvisioningError: The source is missing or is no such container, or the target is not as it must be.
        ServiceError: The service refused, throttled or could not be reached.
        SettingsError: A key is none, or there is no identity.
    """
    async with opened_ends(job, LAYOUT) as ends:
        migration = _Migration(job, ends, tally)
        await in_turn(await migration.workflows(), migration.migrate)


class _Migration:
    """One migration, and what it works with."""

    def __init__(self, job: Job, ends: Ends, tally: Tally) -> None:
        self._job, self._ends, self._tally = job, ends, tally
        self._policy = RestorePolicy(frozenset(job.settings.allowed_checkpoint_types))

    async def workflows(self) -> list[_Workflow]:
        """Read the headers of all checkpoints of the source; those that are none, or nobody's, have failed here."""
        found: dict[tuple[TenantId, str], list[Header]] = {}
        async for row in self._ends.source.scan(HEADERS.format(self._job.assignment.column)):
            self._tally.find()
            tenant: TenantId | None = None
            try:
                tenant = self._job.assignment.tenant_of(row)
                name = accept_workflow_name(present(row, "workflow_name", "checkpoint"))
                found.setdefault((tenant, name), []).append(read_header(row))
            except _OF_ONE_CHECKPOINT as error:
                tenant_id = None if tenant is None else tenant.value
                place = str(row.get("workflow_name") or "")
                self._tally.fail(Failure(str(row.get("id")), place, tenant_id, str(error)))
        return [_Workflow(tenant, name, tuple(in_order(headers))) for (tenant, name), headers in found.items()]

    async def migrate(self, workflow: _Workflow) -> None:
        """Write what is missing of a workflow."""
        try:
            there = await self._there(workflow)
        except CheckpointError as error:
            for header in workflow.headers:
                self._fail(workflow, header, error)
            return
        ended: UnfitError | None = None
        for header in workflow.headers:
            try:
                if ended is not None and header.checkpoint_id not in there.headers:
                    raise ended
                await self._migrate_one(workflow, header, there)
            except _OF_ONE_CHECKPOINT as error:
                self._fail(workflow, header, error)
                if isinstance(error, UnequalError):
                    ended = UnfitError(f"not tried, because {header.item_id} of the same workflow has failed so")

    async def _there(self, workflow: _Workflow) -> _There:
        target, storage = self._ends.target, self._storage(self._ends.writer, workflow)
        # The listing also tells the writer the time of each, which the time of a child has to be after.
        if target is None or not await storage.list_checkpoint_ids(workflow_name=workflow.name):
            return _There({}, frozenset())
        parameters = queries.in_scope(workflow.tenant, workflow.name, self._job.scope)
        key = full_key(workflow.tenant, workflow.name)
        ours = {header.checkpoint_id for header in workflow.headers}
        rows = [
            row
            async for row in target.find(key, queries.HEADERS_OLDEST_FIRST, parameters)
            if row.get("tenant_id") == workflow.tenant.value and row.get("checkpoint_id") in ours
        ]
        last = max((row["_ts"] for row in rows), default=0)
        return _There(
            {row["checkpoint_id"]: _identity_of_row(row) for row in rows},
            frozenset(row["checkpoint_id"] for row in rows if row["_ts"] == last),
        )

    async def _migrate_one(self, workflow: _Workflow, header: Header, there: _There) -> None:
        tenant_id, checkpoint_id = workflow.tenant.value, header.checkpoint_id
        if checkpoint_id not in there.headers:
            checkpoint = await self._read(workflow, header)
            await self._write(workflow, checkpoint)
            self._tally.write(tenant_id)
            return
        if there.headers[checkpoint_id] != _identity_of(header):
            raise UnfitError("another checkpoint of this id is there already, and was left as it is")
        if checkpoint_id in there.last:
            await self._compare(workflow, await self._read(workflow, header))
        self._tally.skip(tenant_id)

    async def _read(self, workflow: _Workflow, header: Header) -> WorkflowCheckpoint:
        item = await self._ends.source.item(workflow.name, header.item_id)
        if item is None:
            raise UnfitError("it was deleted from the source in the meantime")
        return decode(item, self._policy)

    async def _write(self, workflow: _Workflow, checkpoint: WorkflowCheckpoint) -> None:
        if self._job.dry_run:
            self._rehearse(workflow, checkpoint)
            return
        await self._storage(self._ends.writer, workflow).save(checkpoint)
        await self._compare(workflow, checkpoint)

    def _rehearse(self, workflow: _Workflow, checkpoint: WorkflowCheckpoint) -> None:
        """Do what a save does before it sends anything."""
        checkpoint_id = accept_checkpoint_id(checkpoint.checkpoint_id)
        key = CheckpointKey(workflow.tenant, self._job.scope, workflow.name, checkpoint_id)
        limit = self._job.settings.max_payload_bytes
        try:
            size = len(serialize(checkpoint, key, self._policy))
            hybrid_time(header_of(checkpoint, key).timestamp, None)
        except RefusedTypesError as error:
            raise UnfitError(f"{error}: {', '.join(error.types)}" if error.types else str(error)) from None
        if size > limit:
            raise UnfitError(f"it has {size} bytes before compression, the limit is {limit}")

    async def _compare(self, workflow: _Workflow, checkpoint: WorkflowCheckpoint) -> None:
        """Read back what is stored, and compare it with what the source has.

        Raises:
            UnequalError: It is not the same, or cannot be read.
        """
        try:
            found = await self._storage(self._ends.reader, workflow).load(checkpoint.checkpoint_id)
        except CheckpointError as error:
            raise UnequalError(f"what is there now cannot be read back: {error}") from None
        if not same(checkpoint, found):
            raise UnequalError("what is there now is not what the source has")

    def _storage(self, factory: CosmosStateFactory, workflow: _Workflow) -> TenantCheckpointStorage:
        checkpoints = factory.for_tenant(workflow.tenant.value).checkpoints
        return checkpoints.scoped(self._job.scope.value).for_workflow(workflow.name)

    def _fail(self, workflow: _Workflow, header: Header, error: Exception) -> None:
        newest = header is workflow.headers[-1]
        self._tally.fail(Failure(header.item_id, workflow.name, workflow.tenant.value, str(error), newest=newest))


def _identity_of(header: Header) -> tuple[object, ...]:
    return header.previous_checkpoint_id, header.timestamp, header.iteration_count


def _identity_of_row(row: Mapping[str, Any]) -> tuple[object, ...]:
    return row.get("previous_checkpoint_id"), row.get("timestamp"), row.get("iteration_count")
