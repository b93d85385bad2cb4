"""Containers that are not as they must be."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from azure.cosmos.aio import ContainerProxy, CosmosClient

from cosmos_workflow_state._definitions import CHECKPOINTS, ContainerDefinition
from cosmos_workflow_state._drift import Subject
from cosmos_workflow_state._embedded import open_embedded

RIGHT = CHECKPOINTS.properties("checkpoints")
KEY = "partition key"
TTL = "default TTL"
POLICY = "indexing policy"
EVERYTHING: Final = {"includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": '/"_etag"/?'}]}


@dataclass(frozen=True)
class Drift:
    """One way in which a container is not as it must be.

    Attributes:
        changes: Of its definition; None takes a property away.
        said: By subject, in order, a part of what is said of it.
    """

    changes: dict[str, Any] = field(default_factory=dict[str, Any])
    said: tuple[tuple[Subject, str], ...] = ()

    @property
    def repairable(self) -> bool:
        """Whether it can be made right."""
        return all(subject != KEY for subject, _ in self.said)


def _keyed(*paths: str, kind: str = "MultiHash", **version: int) -> dict[str, Any]:
    return {"partitionKey": {"paths": list(paths), "kind": kind, **({"version": 2} | version)}}


def _indexed(**changes: Any) -> dict[str, Any]:
    return {"indexingPolicy": RIGHT["indexingPolicy"] | changes}


def _included(*more: str, without: str = "") -> dict[str, Any]:
    paths = [path for path in CHECKPOINTS.indexed if path != without]
    return _indexed(includedPaths=[{"path": path} for path in (*paths, *more)])


DRIFTS: Final = {
    "as it must be": Drift(),
    "other paths": Drift(_keyed("/tenant_id", "/scope"), ((KEY, "['/tenant_id', '/scope']"),)),
    "paths in another order": Drift(_keyed("/workflow_name", "/tenant_id"), ((KEY, "in another order"),)),
    "another kind": Drift(_keyed("/tenant_id", kind="Hash"), ((KEY, "(Hash, version 2)"),)),
    "another version": Drift(_keyed("/tenant_id", kind="Hash", version=1), ((KEY, "(Hash, version 1)"),)),
    "TTL off": Drift({"defaultTtl": None}, ((TTL, "its time to live is off"),)),
    "TTL that expires": Drift({"defaultTtl": 60}, ((TTL, "its default TTL is 60 seconds"),)),
    "everything indexed": Drift({"indexingPolicy": EVERYTHING}, ((POLICY, "includes /*"),)),
    "payload indexed": Drift(_included("/payload/*"), ((POLICY, "indexes the payload"),)),
    "sort_key not indexed": Drift(_included(without="/sort_key/?"), ((POLICY, "does not index /sort_key/?"),)),
    "no index": Drift(
        {"indexingPolicy": {"indexingMode": "none", "automatic": False}},
        ((POLICY, "does not index every save at once"), (POLICY, "does not index /tenant_id/?")),
    ),
    "TTL and policy": Drift(
        {"defaultTtl": None, "indexingPolicy": EVERYTHING},
        ((TTL, "its time to live is off"), (POLICY, "includes /*")),
    ),
    "the framework's own": Drift(
        {**_keyed("/workflow_name", kind="Hash"), "defaultTtl": None, "indexingPolicy": EVERYTHING},
        (
            (KEY, "as the framework's own store has it"),
            (TTL, "its time to live is off"),
            (POLICY, "includes /*"),
        ),
    ),
}
"""By name, every kind; what `repair` cannot make right is among them, alone and beside what it could."""


async def make_drifted(
    client: CosmosClient, database: str, name: str, drift: Drift, wanted: ContainerDefinition = CHECKPOINTS
) -> ContainerProxy:
    """Create a database, if it is not there, and in it a container that has drifted."""
    await client.create_database_if_not_exists(database)
    definition = {key: value for key, value in (wanted.properties(name) | drift.changes).items() if value is not None}
    await client.client_connection.CreateContainer(f"dbs/{database}", definition)
    return client.get_database_client(database).get_container_client(name)


async def drifted(path: Path, wanted: ContainerDefinition = CHECKPOINTS, **changes: Any) -> None:
    """Make a state file with a container that is as it must be except for some changes."""
    account = await open_embedded(path)
    async with CosmosClient(account.endpoint, account.key, transport=account.transport()) as client:
        await make_drifted(client, "workflow-state", wanted.kind, Drift(changes), wanted)
    await account.close()
