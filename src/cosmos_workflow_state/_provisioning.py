"""The container as it must be: verify it, create it when it is missing, or repair it when asked to.

Only `repair_container` changes a container that exists. What it must be is a definition of `_definitions`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from azure.cosmos import PartitionKey, ThroughputProperties
from azure.cosmos.aio import ContainerProxy, CosmosClient, DatabaseProxy
from azure.cosmos.exceptions import CosmosResourceExistsError, CosmosResourceNotFoundError

from ._definitions import NOTHING_EXPIRES_BY_ITSELF, ContainerDefinition
from ._drift import Difference, differences, repairable, repaired_policy
from ._remedies import Access
from ._service_errors import translated
from ._throughput import Throughput
from .errors import ProvisioningError

ProvisioningMode = Literal["verify", "create", "skip"]

_SERVERLESS = Throughput("serverless")
_SYSTEM = "_"
"""What the names of properties that the service itself writes begin with."""


@dataclass(frozen=True, slots=True)
class Repair:
    """What a repair did.

    Attributes:
        changed: The differences that are gone; empty when there was nothing to do.
        remaining: All differences, where one of them cannot be repaired: then nothing is changed.
    """

    changed: tuple[Difference, ...]
    remaining: tuple[Difference, ...]


async def open_container(  # noqa: PLR0913 - which, what and how, each by name
    client: CosmosClient,
    *,
    database: str,
    container: str,
    mode: ProvisioningMode,
    wanted: ContainerDefinition,
    throughput: Throughput = _SERVERLESS,
    access: Access | None = None,
) -> ContainerProxy:
    """Return a container, created or verified as asked.

    Args:
        client: An entered client.
        database: Name of the database.
        container: Name of the container.
        mode: ``create`` makes what is missing and then verifies; ``verify`` only verifies; ``skip`` only looks that
            it is there, since "no such container" and "no such checkpoint" must not be confused later.
        wanted: What the container must be.
        throughput: What a container is created with.
        access: Who asks, for the remedy when the service refuses.

    Raises:
        ProvisioningError: It is missing, or is not shaped as it must be; every difference is named.
        ServiceError: The service refused or could not be reached.
    """
    with translated(access=access):
        if mode == "create":
            await _create_missing(client, database, container, wanted, throughput)
        proxy = client.get_database_client(database).get_container_client(container)
        properties = await _read(proxy, database, container)
    problems = () if mode == "skip" else tuple(map(str, differences(properties, wanted)))
    if problems:
        raise ProvisioningError(
            f"container {container!r} in database {database!r} cannot hold {wanted.kind}: " + "; ".join(problems),
            problems=problems,
        )
    return proxy


async def repair_container(
    client: CosmosClient,
    *,
    database: str,
    container: str,
    wanted: ContainerDefinition,
    access: Access | None = None,
) -> Repair:
    """Give an existing container the indexing policy and default TTL it must have; all else of it stays as it is.

    A partition key cannot be changed: a container with another one is not ours, whatever else could be made right of
    it, so nothing is. A second call finds nothing to do and sends no change. The service rebuilds the index in the
    background, at the container's own cost (RU).

    Args:
        client: An entered client that may change containers, which tokens of data-plane roles may not.
        database: Name of the database.
        container: Name of the container.
        wanted: What the container must be.
        access: Who asks, for the remedy when the service refuses.

    Returns:
        What was changed, or what was not.

    Raises:
        ProvisioningError: The container is missing.
        ServiceError: The service refused or could not be reached.
    """
    with translated(access=access):
        proxy = client.get_database_client(database).get_container_client(container)
        properties = await _read(proxy, database, container)
        found = differences(properties, wanted)
        if not repairable(found):
            return Repair((), found)
        if found:
            # Not the client's replace_container: that drops what it has no argument for, such as unique keys.
            await client.client_connection.ReplaceContainer(proxy.container_link, repaired(properties, wanted, found))
    return Repair(found, ())


def repaired(properties: Mapping[str, Any], wanted: ContainerDefinition, found: Iterable[Difference]) -> dict[str, Any]:
    """Return the definition of a container with only what these differences are about made right.

    Composite, spatial and other indexes of the policy and paths that users have added stay, as far as they do not
    index the payload, and so does everything else that users can define.
    """
    subjects = {difference.subject for difference in found}
    kept = {name: value for name, value in properties.items() if not name.startswith(_SYSTEM)}
    if "indexing policy" in subjects:
        kept["indexingPolicy"] = repaired_policy(kept.get("indexingPolicy") or {}, wanted)
    if "default TTL" in subjects:
        kept["defaultTtl"] = NOTHING_EXPIRES_BY_ITSELF
    return kept


async def _create_missing(
    client: CosmosClient, database: str, container: str, wanted: ContainerDefinition, throughput: Throughput
) -> None:
    try:
        proxy = await client.create_database_if_not_exists(database)
    except CosmosResourceExistsError:  # another process was quicker between the client's read and its create
        proxy = client.get_database_client(database)
    try:
        await _create_container(proxy, container, wanted, throughput)
    except CosmosResourceExistsError:  # the same
        return


async def _create_container(
    database: DatabaseProxy, container: str, wanted: ContainerDefinition, throughput: Throughput
) -> None:
    await database.create_container_if_not_exists(
        container,
        PartitionKey(path=list(wanted.partition_key_paths), kind="MultiHash", version=2),
        indexing_policy=wanted.indexing_policy,
        default_ttl=NOTHING_EXPIRES_BY_ITSELF,
        offer_throughput=_offer(throughput),
    )


def _offer(throughput: Throughput) -> int | ThroughputProperties | None:
    if throughput.kind == "serverless":
        return None
    if throughput.kind == "manual":
        return throughput.request_units
    return ThroughputProperties(auto_scale_max_throughput=throughput.request_units)


async def _read(proxy: ContainerProxy, database: str, container: str) -> Mapping[str, Any]:
    try:
        return await proxy.read()
    except CosmosResourceNotFoundError:
        problem = (
            f"there is no container {container!r} in a database {database!r}; `cosmos-workflow-state provision` "
            "creates it, and so does an application with COSMOS_WORKFLOW_STATE_PROVISIONING=create where it may"
        )
    raise ProvisioningError(problem, problems=(problem,))
