"""The container that is read, and the clients that read and write: opened here, closed here.

Of the source it knows how to ask for items; nothing here can write to it. It knows nothing of what the items mean.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final, Literal

from azure.cosmos.aio import ContainerProxy, CosmosClient
from azure.cosmos.exceptions import CosmosResourceNotFoundError
from pydantic import SecretStr

from cosmos_workflow_state._clients import enter_client
from cosmos_workflow_state._credentials import account_keys, where_keys_are
from cosmos_workflow_state._definitions import ContainerDefinition
from cosmos_workflow_state._gateway import Gateway, Item, Meter
from cosmos_workflow_state._remedies import Access
from cosmos_workflow_state._service_errors import translated
from cosmos_workflow_state.errors import AccessDeniedError, ProvisioningError
from cosmos_workflow_state.settings import CosmosStateSettings

from ._job import Origin

_UNAUTHORIZED: Final = 401
_PAGE_ITEMS: Final = 1000
_BY_ID: Final = "SELECT * FROM c WHERE c.id = @id"


class Items:
    """The items of one container, whatever its partition key: they can be read and nothing else."""

    def __init__(self, container: ContainerProxy, access: Access) -> None:
        """Bind it to a container of a client that is entered and closed elsewhere."""
        self._reader = _Reader(_Opened(container, access))

    async def scan(self, query: str) -> AsyncIterator[Item]:
        """Yield what a query without an order finds in the whole container. One request a page.

        One range of partition keys after the other: a query over all of them cannot go on where a page has ended.

        Raises:
            ServiceError: The service refused, throttled or could not be reached.
        """
        for feed_range in await self._reader.feed_ranges():
            async for item in self._reader.pages(query, [], {"feed_range": feed_range}):
                yield item

    async def find(
        self, partition: str | list[str], query: str, parameters: list[dict[str, object]]
    ) -> AsyncIterator[Item]:
        """Yield what a query finds in one logical partition. One request a page.

        Raises:
            ServiceError: As for `scan`.
        """
        async for item in self._reader.pages(query, parameters, {"partition_key": partition}):
            yield item

    async def item(self, partition: str, item_id: str) -> Item | None:
        """Return an item, also one whose id has characters with which the service cannot be asked for it directly.

        Raises:
            ServiceError: As for `scan`.
        """
        found = self.find(partition, _BY_ID, [{"name": "@id", "value": item_id}])
        return next(iter([item async for item in found if item.get("id") == item_id]), None)


class _Reader(Gateway):
    """A gateway that asks beyond one tenant, too."""

    async def feed_ranges(self) -> list[dict[str, Any]]:
        async def send(container: ContainerProxy) -> list[dict[str, Any]]:
            return [feed_range async for feed_range in container.read_feed_ranges()]

        return await self._send(send, Meter())

    async def pages(
        self, query: str, parameters: list[dict[str, object]], where: dict[str, Any]
    ) -> AsyncIterator[Item]:
        token: str | None = None
        while True:

            async def send(container: ContainerProxy, start: str | None = token) -> tuple[list[Item], str | None]:
                found = container.query_items(query, parameters=parameters, max_item_count=_PAGE_ITEMS, **where)
                pages = found.by_page(start)
                async for page in pages:
                    # The iterator of pages is typed as one without the token that azure-core gives it.
                    return [item async for item in page], getattr(pages, "continuation_token", None)
                return [], None

            items, token = await self._send(send, Meter())
            for item in items:
                yield item
            if token is None:
                return


def access_to_source(origin: Origin) -> Access:
    """Return who asks for the source, for what is said when that is refused."""
    settings, proof = origin.settings, _proof(origin.settings)
    return Access(
        settings.endpoint, origin.database, origin.container, proof, keys=origin.keys, named_by=origin.named_by
    )


def access_to_target(settings: CosmosStateSettings, wanted: ContainerDefinition) -> Access:
    """Return who asks for a container of the target, for what is said when that is refused."""
    return Access(
        settings.endpoint,
        settings.database,
        settings.name_of(wanted),
        _proof(settings),
        definition=wanted,
        keys=where_keys_are(settings),
    )


def _proof(settings: CosmosStateSettings) -> Literal["key", "token"]:
    return "key" if settings.is_embedded or account_keys(settings) else "token"


@asynccontextmanager
async def entered(settings: CosmosStateSettings, access: Access) -> AsyncGenerator[CosmosClient]:
    """Open a client with the first of the keys that the service accepts, or with what else the settings say.

    Args:
        settings: How to reach the account.
        access: Who asks, for what is said when that is refused.

    Raises:
        ProvisioningError: The state file of the embedded engine cannot be opened.
        ServiceError: The service refused or could not be reached.
        SettingsError: A key is none, there is no identity, or no token may be sent to the endpoint.
    """
    keys = () if settings.is_embedded else account_keys(settings)
    async with AsyncExitStack() as opening:
        yield await _enter(settings, opening, access, keys)


async def opened(client: CosmosClient, origin: Origin, key_path: str, written_by: str) -> Items:
    """Return the items of the source, after a look at whether it can be what it is taken for.

    Args:
        client: An entered client.
        origin: Which container.
        key_path: The path of its partition key.
        written_by: What writes containers with this key.

    Raises:
        ProvisioningError: It does not exist, or has another partition key.
        ServiceError: The service refused or could not be reached.
    """
    access = access_to_source(origin)
    container = _container(client, access)
    properties = await _properties(container, access)
    if properties is None:
        raise ProvisioningError(f"there is no container {origin} in {origin.settings.endpoint} to migrate from")
    paths = properties["partitionKey"]["paths"]
    if paths != [key_path]:
        raise ProvisioningError(
            f"the partition key of container {origin} is {', '.join(paths)}; what {written_by} writes has {key_path}"
        )
    return Items(container, access)


async def items_of(client: CosmosClient, access: Access, *, only_existing: bool) -> Items | None:
    """Return the items of a container of the target; None where it has to exist already and does not.

    Raises:
        ServiceError: The service refused or could not be reached.
    """
    proxy = _container(client, access)
    if only_existing and await _properties(proxy, access) is None:
        return None
    return Items(proxy, access)


def gateway_of(client: CosmosClient, access: Access) -> Gateway:
    """Return a container of the target as a gateway."""
    return Gateway(_Opened(_container(client, access), access))


class _Opened:
    """A container of a client that somebody else opens and closes, as a gateway asks for it."""

    def __init__(self, container: ContainerProxy, access: Access) -> None:
        self._container = container
        self.access: Final = access

    async def container(self) -> ContainerProxy:
        return self._container

    async def replaces(self, refused: ContainerProxy) -> bool:
        """Tell that there is no other container than the one that the service refuses."""
        return self._container is not refused


def _container(client: CosmosClient, access: Access) -> ContainerProxy:
    return client.get_database_client(access.database).get_container_client(access.container)


async def _enter(
    settings: CosmosStateSettings, opening: AsyncExitStack, access: Access, keys: tuple[SecretStr, ...]
) -> CosmosClient:
    try:
        return await enter_client(settings, opening, access=access, key=keys[0] if keys else None, credential=None)
    except AccessDeniedError as error:
        if error.status_code != _UNAUTHORIZED or not keys[1:]:
            raise
    return await _enter(settings, opening, access, keys[1:])


async def _properties(container: ContainerProxy, access: Access) -> Mapping[str, Any] | None:
    with translated(access):
        try:
            return await container.read()
        except CosmosResourceNotFoundError:
            return None
