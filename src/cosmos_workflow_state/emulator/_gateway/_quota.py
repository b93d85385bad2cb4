"""How much is in a container, in the words of the service.

Owns the forms of quota headers and statistics. Must not count.
"""

from __future__ import annotations

from typing import Final

from cosmos_workflow_state.emulator._engine._containers import Container
from cosmos_workflow_state.emulator._engine._transaction import Transaction
from cosmos_workflow_state.emulator._engine._usage import usage_of
from cosmos_workflow_state.emulator._values import Json

__all__ = ["quota_headers", "statistics"]

_KILOBYTE = 1024
_PARTITION_KILOBYTES: Final = 50 * 1024 * 1024
"""What one physical partition can hold: https://learn.microsoft.com/azure/cosmos-db/partitioning-overview."""


def quota_headers(transaction: Transaction, container: Container) -> dict[str, str]:
    """Give the headers that tell how much is used of what there is; sizes are in KB, one quota for a container.

    The index is up to date with every write, so its transformation is always done.
    """
    usages = usage_of(transaction, container)
    size = sum(usage.size for usage in usages) // _KILOBYTE
    count = sum(usage.items for usage in usages)
    quota = _PARTITION_KILOBYTES * container.partitions
    return {
        "x-ms-resource-quota": f"documentsSize={quota};collectionSize={quota};documentsCount=-1;",
        "x-ms-resource-usage": f"documentsSize={size};collectionSize={size};documentsCount={count};",
        "x-ms-documentdb-collection-index-transformation-progress": "100",
    }


def statistics(transaction: Transaction, container: Container) -> list[Json]:
    """Describe each physical partition."""
    return [
        {
            "id": str(number),
            "sizeInKB": usage.size // _KILOBYTE,
            "documentCount": usage.items,
            "sampledDistinctPartitionKeyCount": usage.keys,
            "partitionKeys": [],
        }
        for number, usage in enumerate(usage_of(transaction, container))
    ]
