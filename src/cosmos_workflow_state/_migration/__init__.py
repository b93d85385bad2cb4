"""Moving what the framework's own Cosmos stores have written into this package's containers, tenant by tenant.

The source is only ever read. It knows nothing of the command line, which is what asks for it.
"""

from __future__ import annotations

from ._checkpoints import migrate_checkpoints
from ._histories import migrate_histories
from ._job import Assignment, Job, Origin
from ._tally import Failure, Tally, TenantCounts

__all__ = [
    "Assignment",
    "Failure",
    "Job",
    "Origin",
    "Tally",
    "TenantCounts",
    "migrate_checkpoints",
    "migrate_histories",
]
