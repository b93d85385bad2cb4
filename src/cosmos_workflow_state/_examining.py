"""What can be learned of an account by asking it, one small question at a time; and the two things that change it.

It judges nothing and repeats nothing: each question is one request or a few, and what went wrong is raised. Nothing is
stored here, and no item of anybody's is read: what is asked for is under a partition key that no tenant can have.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeVar, cast

from azure.cosmos.aio import ContainerProxy, CosmosClient
from azure.cosmos.exceptions import CosmosResourceNotFoundError
from pydantic import SecretStr

from ._clients import enter_client
from ._credentials import account_keys, where_keys_are
from ._definitions import CHECKPOINTS, ContainerDefinition
from ._provisioning import Repair, open_container, repair_container
from ._remedies import Access
from ._service_errors import number, seconds_ahead, translated
from ._throughput import Throughput
from .errors import AccessDeniedError, OperationTimeoutError
from .settings import CosmosStateSettings

_Value = TypeVar("_Value")

_UNAUTHORIZED: Final = 401
_NOBODY: Final = "-"
"""No tenant and no workflow: the default pattern of tenant ids does not take it."""
_ABSENT: Final = "cosmos-workflow-state-doctor"
_QUERY: Final = "SELECT TOP 1 c.id FROM c WHERE c.tenant_id = @tenant_id"

Proof = Literal["embedded", "key", "secondary key", "token"]


@dataclass(frozen=True, slots=True)
class AccountFacts:
    """What an account says of itself.

    Attributes:
        consistency: Its default consistency, as the service writes it.
        write_regions: Where it writes; empty where it does not say.
        many_writers: Whether more than one region is written to.
        ahead: Seconds that the clock of this machine is ahead of the service's; None where it does not say.
    """

    consistency: str
    write_regions: tuple[str, ...]
    many_writers: bool
    ahead: float | None


@dataclass(frozen=True, slots=True)
class RoundTrip:
    """One answered request.

    Attributes:
        milliseconds: How long it took.
        request_charge: Request units (RU).
    """

    milliseconds: float
    request_charge: float


class Examination:
    """An open client that asks."""

    def __init__(self, settings: CosmosStateSettings, client: CosmosClient, access: Access, proof: Proof) -> None:
        """Keep who asks whom."""
        self._settings = settings
        self._client = client
        self._access = access
        self.proof: Final = proof

    async def account(self) -> AccountFacts:
        """Return what the account says of itself.

        Raises:
            ServiceError: The service refused, could not be reached or was too slow. So may the other questions.
        """
        connection = cast("Any", self._client.client_connection)
        begun = time.time()
        account: Any = await self._ask(connection.GetDatabaseAccount())
        policy: Mapping[str, object] = account.ConsistencyPolicy or {}
        headers: Mapping[str, str] = connection.last_response_headers
        locations = connection._global_endpoint_manager.location_cache  # noqa: SLF001 - as the gateway asks
        return AccountFacts(
            consistency=str(policy.get("defaultConsistencyLevel", "unknown")),
            write_regions=tuple(str(region["name"]) for region in account.WritableLocations),
            many_writers=bool(locations.enable_multiple_writable_locations),
            ahead=seconds_ahead(headers.get("Date"), (begun + time.time()) / 2),
        )

    async def has_database(self) -> bool:
        """Return whether the database is there."""
        database = self._client.get_database_client(self._settings.database)
        return await self._ask(_unless_missing(database.read())) is not None

    async def container(self, wanted: ContainerDefinition) -> Mapping[str, Any] | None:
        """Return the definition of a container as the service has it, None where there is none."""
        return await self._ask(_unless_missing(self._container(wanted).read()), wanted)

    async def query(self, wanted: ContainerDefinition) -> None:
        """Query a container as listing does."""
        parameters: list[dict[str, object]] = [{"name": "@tenant_id", "value": _NOBODY}]

        async def send() -> None:
            container = self._container(wanted)
            async for _ in container.query_items(query=_QUERY, parameters=parameters, partition_key=[_NOBODY]):
                pass

        await self._ask(send(), wanted)

    async def read_nothing(self, wanted: ContainerDefinition) -> RoundTrip:
        """Read an item that does not exist by its key."""
        charges: list[float] = []

        def hear(response: Any) -> None:
            charges.append(number(response.http_response.headers.get("x-ms-request-charge")) or 0.0)

        begun = time.perf_counter()
        read = self._container(wanted).read_item(_ABSENT, [_NOBODY, _NOBODY], raw_response_hook=hear)
        await self._ask(_unless_missing(read), wanted)
        return RoundTrip((time.perf_counter() - begun) * 1000, sum(charges))

    async def repair(self, wanted: ContainerDefinition) -> Repair:
        """Replace what of a container's indexing policy and default TTL is not as it must be.

        Raises:
            ProvisioningError: The container is missing.
        """
        settings = self._settings
        return await repair_container(
            self._client,
            database=settings.database,
            container=settings.name_of(wanted),
            wanted=wanted,
            access=self._access_to(wanted),
        )

    async def create(self, wanted: ContainerDefinition) -> None:
        """Create a container, and before it the database, where they are missing, and verify it.

        Raises:
            ProvisioningError: It was there, and is not as it must be.
        """
        settings = self._settings
        await open_container(
            self._client,
            database=settings.database,
            container=settings.name_of(wanted),
            mode="create",
            wanted=wanted,
            throughput=Throughput.parse(settings.throughput),
            access=self._access_to(wanted),
        )

    def _container(self, wanted: ContainerDefinition) -> ContainerProxy:
        settings = self._settings
        return self._client.get_database_client(settings.database).get_container_client(settings.name_of(wanted))

    def _access_to(self, wanted: ContainerDefinition) -> Access:
        return replace(self._access, container=self._settings.name_of(wanted), definition=wanted)

    async def _ask(self, asked: Awaitable[_Value], wanted: ContainerDefinition = CHECKPOINTS) -> _Value:
        """Send a question; one that is about no container is asked by who uses the first of them."""
        with translated(self._access_to(wanted)):
            return await _in_time(asked, self._settings.operation_timeout)


@asynccontextmanager
async def examined(settings: CosmosStateSettings) -> AsyncGenerator[Examination]:
    """Open a client with the first of the keys that the service accepts, or with what else the settings say.

    Raises:
        ProvisioningError: The state file of the embedded engine cannot be opened.
        ServiceError: The service refused or could not be reached.
        SettingsError: A key is none, there is no identity, or no token may be sent to the endpoint.
    """
    async with AsyncExitStack() as opening:
        if settings.is_embedded:
            yield await _open(settings, opening, (), "embedded")
        else:
            keys = account_keys(settings)
            yield await _open(settings, opening, keys, "key" if keys else "token")


async def _open(
    settings: CosmosStateSettings, opening: AsyncExitStack, keys: tuple[SecretStr, ...], proof: Proof
) -> Examination:
    who: Literal["key", "token"] = "token" if proof == "token" else "key"
    throughput = Throughput.parse(settings.throughput)
    access = Access(
        settings.endpoint,
        settings.database,
        settings.checkpoint_container,
        who,
        throughput,
        keys=where_keys_are(settings),
    )
    key = keys[0] if keys else None
    try:
        entering = enter_client(settings, opening, access=access, key=key, credential=None)
        client = await _in_time(entering, settings.operation_timeout)
        return Examination(settings, client, access, proof)
    except AccessDeniedError as error:
        if error.status_code != _UNAUTHORIZED or not keys[1:]:
            raise
    return await _open(settings, opening, keys[1:], "secondary key")


async def _unless_missing(asked: Awaitable[_Value]) -> _Value | None:
    try:
        return await asked
    except CosmosResourceNotFoundError:
        return None


async def _in_time(asked: Awaitable[_Value], seconds: float) -> _Value:
    try:
        async with asyncio.timeout(seconds):
            return await asked
    except TimeoutError:
        pass
    raise OperationTimeoutError(f"the service has not answered within {seconds:g} seconds", timeout=seconds)
