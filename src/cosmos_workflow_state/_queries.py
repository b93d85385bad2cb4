"""The texts of all queries, always parameterised, always with the tenant as a predicate beside the partition key.

Key and predicate, both: some emulator builds ignore a partial key and return every tenant's items. The range of
``sort_key`` is the scope; one property is both range and order, so no composite index is needed. Only checkpoints have
that property, so a query with the range finds nothing else.
"""

from __future__ import annotations

from typing import Final

from ._identity import Scope, TenantId
from ._ordering import scope_range

Parameters = list[dict[str, object]]

_SCOPE: Final = "c.sort_key >= @low AND c.sort_key < @high"
_IN_TENANT: Final = f"FROM c WHERE c.tenant_id = @tenant AND {_SCOPE}"
_IN_SCOPE: Final = (
    f"FROM c WHERE c.tenant_id = @tenant AND c.workflow_name = @workflow AND {_SCOPE} ORDER BY c.sort_key"
)

WHOLE: Final = "*"
HEADER: Final = (
    "c.tenant_id, c.scope, c.workflow_name, c.checkpoint_id, c.previous_checkpoint_id, c.sort_key, c.type, c.schema, "
    "c.timestamp, c.iteration_count, c.pending_request_ids, c.pending_request_count, c.ttl, c._ts, "
    "c.payload.size AS raw_bytes, LENGTH(c.payload.data) AS data_bytes, c.payload.stored AS parts_bytes"
)
"""Everything of a checkpoint item but its payload, of which only the sizes leave the service."""

LATEST: Final = f"SELECT {WHOLE} {_IN_SCOPE} DESC OFFSET 0 LIMIT 1"
OLDEST_FIRST: Final = f"SELECT {WHOLE} {_IN_SCOPE} ASC"
IDS_OLDEST_FIRST: Final = f"SELECT c.tenant_id, c.scope, c.checkpoint_id, c.sort_key {_IN_SCOPE} ASC"
HEADERS_OLDEST_FIRST: Final = f"SELECT {HEADER} {_IN_SCOPE} ASC"
BY_ID: Final = "SELECT * FROM c WHERE c.tenant_id = @tenant AND c.id = @id"
PLACES_OF_ID: Final = (
    "SELECT c.tenant_id, c.scope, c.workflow_name, c.checkpoint_id FROM c WHERE c.tenant_id = @tenant AND c.id = @id"
)
CHILDREN: Final = f"SELECT {HEADER} {_IN_TENANT} AND c.previous_checkpoint_id = @parent"
BY_PREFIX: Final = f"SELECT {HEADER} {_IN_TENANT} AND STARTSWITH(c.checkpoint_id, @prefix)"
WORKFLOWS: Final = f"SELECT DISTINCT c.tenant_id, c.scope, c.workflow_name {_IN_TENANT}"


AUXILIARIES: Final = (
    "SELECT c.id, c.tenant_id, c.workflow_name, c.scope, c.schema, c.keyframe_id, c.write_id, c.parts, c.owner, "
    "c._etag FROM c WHERE c.tenant_id = @tenant AND c.type = @type"
)
"""Items that serve checkpoints, of one type, without their data."""
REFERENCES: Final = (
    "SELECT TOP 1 c.id FROM c WHERE c.tenant_id = @tenant AND c.workflow_name = @workflow "
    "AND c.payload.keyframe = @keyframe"
)
REFERRED_TO: Final = (
    "SELECT DISTINCT c.payload.keyframe, c.payload.write_id FROM c "
    "WHERE c.tenant_id = @tenant AND c.workflow_name = @workflow AND c.type = @type"
)


def ordered(columns: str, *, newest_first: bool, limited: bool) -> str:
    """Return a query for a workflow's checkpoints in order; its parameters are those of `in_scope`, and ``@limit``.

    Args:
        columns: `WHOLE` or `HEADER`.
        newest_first: Which end comes first.
        limited: Whether ``@limit`` bounds how many are read.
    """
    direction, end = "DESC" if newest_first else "ASC", " OFFSET 0 LIMIT @limit" if limited else ""
    return f"SELECT {columns} {_IN_SCOPE} {direction}{end}"


def in_one_workflow(query: str) -> str:
    """Return `BY_PREFIX`, `CHILDREN`, `WORKFLOWS` or `AUXILIARIES` for one workflow, which is a parameter as well."""
    return f"{query} AND c.workflow_name = @workflow"


def in_one_scope(query: str) -> str:
    """Return `AUXILIARIES` for one scope, which is a parameter as well."""
    return f"{query} AND c.scope = @scope"


def in_scope(
    tenant: TenantId, workflow_name: str, scope: Scope, *, least: str | None = None, limit: int | None = None
) -> Parameters:
    """Return the parameters of `LATEST`, `OLDEST_FIRST`, `IDS_OLDEST_FIRST`, `HEADERS_OLDEST_FIRST` and `ordered`.

    Args:
        tenant: Whose.
        workflow_name: In which logical partition.
        scope: Which scope.
        least: The first sort key, where not all are wanted.
        limit: How many at most, for an `ordered` query that is limited.
    """
    low, high = scope_range(scope)
    values: dict[str, object] = {} if limit is None else {"limit": limit}
    return _parameters(tenant=tenant.value, workflow=workflow_name, low=least or low, high=high, **values)


def by_id(tenant: TenantId, item_id: str) -> Parameters:
    """Return the parameters of `BY_ID` and `PLACES_OF_ID`."""
    return _parameters(tenant=tenant.value, id=item_id)


def references(tenant: TenantId, workflow_name: str, keyframe_id: str) -> Parameters:
    """Return the parameters of `REFERENCES`."""
    return _parameters(tenant=tenant.value, workflow=workflow_name, keyframe=keyframe_id)


def of_type(kind: str, tenant: TenantId, workflow_name: str | None, scope: Scope | None) -> Parameters:
    """Return the parameters of `REFERRED_TO`, and of `AUXILIARIES` with or without a workflow or scope."""
    narrowed = {} if workflow_name is None else {"workflow": workflow_name}
    return _parameters(tenant=tenant.value, type=kind, **narrowed, **({} if scope is None else {"scope": scope.value}))


def in_tenant(tenant: TenantId, scope: Scope, workflow_name: str | None, **values: object) -> Parameters:
    """Return the parameters of `WORKFLOWS`, of `BY_PREFIX` with ``prefix``, and of `CHILDREN` with ``parent``.

    Args:
        tenant: Whose.
        scope: Which scope.
        workflow_name: The one of `in_one_workflow`, None for the query as it is.
        **values: Further parameters by name.
    """
    low, high = scope_range(scope)
    narrowed: dict[str, object] = {} if workflow_name is None else {"workflow": workflow_name}
    return _parameters(tenant=tenant.value, low=low, high=high, **values, **narrowed)


def _parameters(**values: object) -> Parameters:
    return [{"name": f"@{name}", "value": value} for name, value in values.items()]
