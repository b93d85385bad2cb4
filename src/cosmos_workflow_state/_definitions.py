"""What each kind of container must be, and which rights its use needs: the one place, however it is made or checked.

Pure values. They are created from, compared with, printed and explained elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

NOTHING_EXPIRES_BY_ITSELF: Final = -1
"""A default TTL that turns time to live on and leaves it to each item."""

EVERYTHING: Final = "/*"

_ACCOUNT: Final = "Microsoft.DocumentDB/databaseAccounts"
_CONTAINER: Final = f"{_ACCOUNT}/sqlDatabases/containers"

# Docs of the actions: https://learn.microsoft.com/azure/cosmos-db/nosql/reference-data-plane-security
DATA_ACTIONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        f"{_ACCOUNT}/readMetadata": "to read the account, the container and its partitions",
        f"{_CONTAINER}/items/create": "to save",
        f"{_CONTAINER}/items/read": "to load",
        f"{_CONTAINER}/items/upsert": "to delete what nothing refers to any more",
        f"{_CONTAINER}/items/replace": "to save again what changed",
        f"{_CONTAINER}/items/delete": "to delete",
        f"{_CONTAINER}/executeQuery": "to list and to find the latest",
        # The client's queries need both: https://learn.microsoft.com/azure/cosmos-db/how-to-setup-rbac
        f"{_CONTAINER}/readChangeFeed": "to list and to find the latest",
    }
)
"""By data action, what it is needed for: exactly what the client does, and nothing else."""


@dataclass(frozen=True, slots=True)
class ContainerDefinition:
    """A kind of container.

    Attributes:
        kind: What is kept in it, as a word.
        setting: The setting that names it.
        partition_key_paths: The levels of its hierarchical key (MultiHash, version 2), in order.
        indexed: By path, what its index is needed for.
        payload: The path of what is large and asked for by nobody.
    """

    kind: str
    setting: str
    partition_key_paths: tuple[str, ...]
    indexed: Mapping[str, str]
    payload: str

    @property
    def parameter(self) -> str:
        """The parameter of our templates that names it: that of the setting, as Bicep writes names."""
        first, *others = f"{self.setting}_name".split("_")
        return first + "".join(word.capitalize() for word in others)

    @property
    def partition_key(self) -> dict[str, Any]:
        """The partition key as the service writes it."""
        return {"paths": list(self.partition_key_paths), "kind": "MultiHash", "version": 2}

    @property
    def indexing_policy(self) -> dict[str, Any]:
        """The indexing policy as the service writes it."""
        return {
            "indexingMode": "consistent",
            "automatic": True,
            "includedPaths": [{"path": path} for path in self.indexed],
            "excludedPaths": [{"path": EVERYTHING}],
        }

    def properties(self, name: str) -> dict[str, Any]:
        """Return the whole definition of a container of this name, as the service and ARM write it."""
        return {
            "id": name,
            "partitionKey": self.partition_key,
            "indexingPolicy": self.indexing_policy,
            "defaultTtl": NOTHING_EXPIRES_BY_ITSELF,
        }


CHECKPOINTS: Final = ContainerDefinition(
    kind="checkpoints",
    setting="checkpoint_container",
    partition_key_paths=("/tenant_id", "/workflow_name"),
    indexed=MappingProxyType(
        {
            "/tenant_id/?": "to stay inside the tenant",
            "/workflow_name/?": "to find a workflow's checkpoints",
            "/type/?": "to tell checkpoints from what belongs to them",
            "/scope/?": "to stay inside the scope",
            "/sort_key/?": "to find the latest checkpoint and to list in order",
            "/checkpoint_id/?": "to find a checkpoint by its id",
            "/previous_checkpoint_id/?": "to find what follows a checkpoint",
            "/payload/keyframe/?": "to know which keyframes are still needed",
        }
    ),
    payload="/payload/data",
)

_OF_A_SESSION: Final = ("/tenant_id", "/session_id")

HISTORY: Final = ContainerDefinition(
    kind="history",
    setting="history_container",
    partition_key_paths=_OF_A_SESSION,
    indexed=MappingProxyType(
        {
            "/tenant_id/?": "to stay inside the tenant",
            "/session_id/?": "to stay inside the session",
            "/type/?": "to tell messages from what belongs to them",
            "/source_id/?": "to find the sessions of a source",
            "/sort_key/?": "to read messages in order",
        }
    ),
    payload="/payload/data",
)

SESSIONS: Final = ContainerDefinition(
    kind="sessions",
    setting="session_container",
    partition_key_paths=_OF_A_SESSION,
    indexed=MappingProxyType(
        {
            "/tenant_id/?": "to stay inside the tenant",
            "/session_id/?": "to stay inside the session",
            "/type/?": "to tell sessions from what belongs to them",
        }
    ),
    payload="/payload/data",
)

CONTAINERS: Final = (CHECKPOINTS, HISTORY, SESSIONS)
"""Every kind of container. Each is opened when it is first used, so what nobody uses need not be there."""
