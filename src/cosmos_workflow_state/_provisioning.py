"""The container as it must be: verify it, or create it when it is missing.

An existing container is never changed. What it must be is one definition, used both to create and to compare.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from azure.cosmos import PartitionKey
from azure.cosmos.aio import ContainerProxy, CosmosClient
from azure.cosmos.exceptions import CosmosResourceExistsError, CosmosResourceNotFoundError

from ._service_errors import translated
from .errors import ProvisioningError

ProvisioningMode = Literal["verify", "create", "skip"]

PARTITION_KEY_PATHS: Final = ("/tenant_id", "/workflow_name")
INDEXED_PATHS: Final = (
    "/tenant_id/?",
    "/workflow_name/?",
    "/type/?",
    "/scope/?",
    "/sort_key/?",
    "/checkpoint_id/?",
    "/previous_checkpoint_id/?",
    "/payload/keyframe/?",
)
_TTL_ON_NOTHING_EXPIRES: Final = -1


async def open_container(
    client: CosmosClient, *, database: str, container: str, mode: ProvisioningMode
) -> ContainerProxy:
    """Return the checkpoint container, created or verified as asked.

    Args:
        client: An entered client.
        database: Name of the database.
        container: Name of the container.
        mode: ``create`` makes what is missing and then verifies; ``verify`` only verifies; ``skip`` only looks that
            it is there, since "no such container" and "no such checkpoint" must not be confused later.

    Raises:
        ProvisioningError: It is missing, or is not shaped as it must be; every difference is named.
        ServiceError: The service refused or could not be reached.
    """
    with translated():
        if mode == "create":
            await _create_missing(client, database, container)
        proxy = client.get_database_client(database).get_container_client(container)
        properties = await _read(proxy, database, container)
    problems = () if mode == "skip" else differences(properties)
    if problems:
        raise ProvisioningError(
            f"container {container!r} in database {database!r} cannot hold checkpoints: " + "; ".join(problems),
            problems=problems,
        )
    return proxy


def differences(properties: Mapping[str, Any]) -> tuple[str, ...]:
    """Return one sentence, remedy included, for each way in which a container is not as it must be."""
    checks = (
        _partition_key_problem,
        _ttl_problem,
        _index_mode_problem,
        _payload_index_problem,
        _missing_index_problem,
    )
    return tuple(problem for check in checks if (problem := check(properties)) is not None)


async def _create_missing(client: CosmosClient, database: str, container: str) -> None:
    try:
        proxy = await client.create_database_if_not_exists(database)
    except CosmosResourceExistsError:  # another process was quicker between the client's read and its create
        proxy = client.get_database_client(database)
    try:
        await proxy.create_container_if_not_exists(
            container,
            PartitionKey(path=list(PARTITION_KEY_PATHS), kind="MultiHash", version=2),
            indexing_policy=_indexing_policy(),
            default_ttl=_TTL_ON_NOTHING_EXPIRES,
        )
    except CosmosResourceExistsError:  # the same
        return


async def _read(proxy: ContainerProxy, database: str, container: str) -> Mapping[str, Any]:
    try:
        return await proxy.read()
    except CosmosResourceNotFoundError:
        problem = (
            f"there is no container {container!r} in a database {database!r}; create it, or set "
            "COSMOS_WORKFLOW_STATE_PROVISIONING=create with a credential that may"
        )
    raise ProvisioningError(problem, problems=(problem,))


def _indexing_policy() -> dict[str, Any]:
    return {
        "indexingMode": "consistent",
        "automatic": True,
        "includedPaths": [{"path": path} for path in INDEXED_PATHS],
        "excludedPaths": [{"path": "/*"}],
    }


def _partition_key_problem(properties: Mapping[str, Any]) -> str | None:
    found = properties.get("partitionKey", {})
    shape = (tuple(found.get("paths", ())), found.get("kind"), found.get("version", 1))
    if shape == (PARTITION_KEY_PATHS, "MultiHash", 2):
        return None
    return (
        f"its partition key is {list(shape[0])} ({shape[1]}, version {shape[2]}), it must be "
        f"{list(PARTITION_KEY_PATHS)} (MultiHash, version 2) and cannot be changed: use another container"
    )


def _ttl_problem(properties: Mapping[str, Any]) -> str | None:
    found = properties.get("defaultTtl")
    if found == _TTL_ON_NOTHING_EXPIRES:
        return None
    if found is None:
        return "its time to live is off, so no checkpoint could expire: set the default TTL to -1"
    return f"its default TTL is {found} seconds, which would expire what is still needed: set it to -1"


def _index_mode_problem(properties: Mapping[str, Any]) -> str | None:
    policy = properties.get("indexingPolicy", {})
    if policy.get("indexingMode", "consistent") == "consistent" and policy.get("automatic", True):
        return None
    return "it does not index every save at once, so the latest checkpoint is not found: set indexing to consistent"


def _payload_index_problem(properties: Mapping[str, Any]) -> str | None:
    if "/*" in _paths(properties, "excludedPaths"):
        return None
    return "its indexing policy indexes the payload, which every save pays for: exclude /*"


def _missing_index_problem(properties: Mapping[str, Any]) -> str | None:
    included = _paths(properties, "includedPaths")
    missing = [path for path in INDEXED_PATHS if path not in included]
    return f"its indexing policy does not index {', '.join(missing)}: include them" if missing else None


def _paths(properties: Mapping[str, Any], kind: str) -> frozenset[str]:
    entries = properties.get("indexingPolicy", {}).get(kind) or ()
    return frozenset(entry.get("path", "") for entry in entries)
