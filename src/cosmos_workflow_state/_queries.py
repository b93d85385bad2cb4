"""The texts of all queries, always parameterised, always with the tenant as a predicate beside the partition key.

Key and predicate, both: some emulator builds ignore a partial key and return every tenant's items. The range of
``sort_key`` is the scope; one property is both range and order, so no composite index is needed.
"""

from __future__ import annotations

from typing import Final

from ._identity import Scope, TenantId
from ._ordering import scope_range

Parameters = list[dict[str, object]]

_IN_SCOPE: Final = (
    "FROM c WHERE c.tenant_id = @tenant AND c.workflow_name = @workflow "
    "AND c.sort_key >= @low AND c.sort_key < @high ORDER BY c.sort_key"
)

LATEST: Final = f"SELECT * {_IN_SCOPE} DESC OFFSET 0 LIMIT 1"
OLDEST_FIRST: Final = f"SELECT * {_IN_SCOPE} ASC"
IDS_OLDEST_FIRST: Final = f"SELECT c.tenant_id, c.scope, c.checkpoint_id, c.sort_key {_IN_SCOPE} ASC"
BY_ID: Final = "SELECT * FROM c WHERE c.tenant_id = @tenant AND c.id = @id"


def in_scope(tenant: TenantId, workflow_name: str, scope: Scope) -> Parameters:
    """Return the parameters of `LATEST`, `OLDEST_FIRST` and `IDS_OLDEST_FIRST`."""
    low, high = scope_range(scope)
    return _parameters(tenant=tenant.value, workflow=workflow_name, low=low, high=high)


def by_id(tenant: TenantId, item_id: str) -> Parameters:
    """Return the parameters of `BY_ID`."""
    return _parameters(tenant=tenant.value, id=item_id)


def _parameters(**values: object) -> Parameters:
    return [{"name": f"@{name}", "value": value} for name, value in values.items()]
