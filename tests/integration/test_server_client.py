"""The emulator as the azure-cosmos client sees it: over http and https, by key and by token, with faults."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import aiohttp
import pytest
from agent_framework import Message
from agent_framework_azure_cosmos import CosmosHistoryProvider
from azure.core.exceptions import ServiceRequestError
from azure.cosmos import CosmosClient as SyncClient
from azure.cosmos import PartitionKey
from azure.cosmos.aio import ContainerProxy, CosmosClient
from azure.cosmos.exceptions import CosmosBatchOperationError, CosmosHttpResponseError, CosmosResourceNotFoundError
from azure.identity.aio import ManagedIdentityCredential

from cosmos_workflow_state import CosmosStateFactory, errors
from cosmos_workflow_state.emulator import CosmosEmulator, Fault
from cosmos_workflow_state.emulator._tokens import Role
from support.states import ALLOWED_TYPES, WORKFLOW, checkpoint
from support.tokens import EmulatorCredential

KEYS: Any = PartitionKey(["/tenant", "/workflow"], kind="MultiHash")
# Once is enough where a test says what one request comes to.
ONCE: dict[str, Any] = {"retry_total": 0, "retry_throttle_total": -1}


@pytest.fixture(params=[False, True], ids=["http", "https"])
async def emulator(request: pytest.FixtureRequest) -> AsyncIterator[CosmosEmulator]:
    """Yield an open emulator in memory."""
    async with CosmosEmulator(tls=request.param) as opened:
        yield opened


@pytest.fixture
async def secure() -> AsyncIterator[CosmosEmulator]:
    """Yield an open emulator in memory that speaks TLS and has a container."""
    async with CosmosEmulator(tls=True) as opened:
        async with CosmosClient(opened.endpoint, opened.key) as client:
            await (await made(client)).create_item(item())
        yield opened


async def made(client: CosmosClient, **options: Any) -> ContainerProxy:
    """Create the database and the container."""
    database = await client.create_database_if_not_exists("db")
    return await database.create_container_if_not_exists("items", KEYS, **options)


def there(client: CosmosClient) -> ContainerProxy:
    """Give the container that is there."""
    return client.get_database_client("db").get_container_client("items")


def item(number: int = 1, **values: Any) -> dict[str, Any]:
    """Make an item."""
    return {"id": f"item {number} é", "tenant": "t", "workflow": "w", **values}


async def test_items_by_name_and_by_resource_id(emulator: CosmosEmulator) -> None:
    """Items are written, read by id and by their own link, queried by a part of the key, and deleted."""
    async with CosmosClient(emulator.endpoint, emulator.key) as client:
        container = await made(client)
        created = await container.create_item(item())
        await container.create_item(item(tenant="other"))
        assert await container.read_item(created["id"], ["t", "w"]) == created
        assert await container.read_item(created, ["t", "w"]) == created
        query = container.query_items("SELECT VALUE c.tenant FROM c", partition_key=["t"])
        assert [row async for row in query] == ["t"]
        await container.delete_item(created["id"], ["t", "w"])
        with pytest.raises(CosmosResourceNotFoundError):
            await container.read_item(created["id"], ["t", "w"])


async def test_the_factory_by_the_emulators_settings(emulator: CosmosEmulator) -> None:
    """Settings of the emulator are all a factory needs; what is given by name wins."""
    settings = emulator.settings(allowed_checkpoint_types=ALLOWED_TYPES, database="mine")
    assert (settings.database, settings.provisioning) == ("mine", "create")
    async with CosmosStateFactory(settings) as factory:
        storage = factory.for_tenant("contoso").checkpoints
        saved = checkpoint("cp-1")
        await storage.save(saved)
        assert await storage.get_latest(workflow_name=WORKFLOW) == saved


async def test_another_key_is_refused(emulator: CosmosEmulator) -> None:
    """Who has another key than the emulator's gets nothing."""
    async with CosmosEmulator() as other:
        pass
    client = CosmosClient(emulator.endpoint, other.key, **ONCE)
    with pytest.raises(CosmosHttpResponseError) as caught:
        await client.__aenter__()
    # A client that could not be entered still holds its session.
    await client.close()
    assert caught.value.status_code == 401


async def test_a_batch_is_whole_or_absent(emulator: CosmosEmulator) -> None:
    """A batch that fails at its last operation leaves nothing of the others."""
    async with CosmosClient(emulator.endpoint, emulator.key) as client:
        container = await made(client)
        creates = [("create", (item(number),)) for number in range(99)]
        with pytest.raises(CosmosBatchOperationError) as caught:
            await container.execute_item_batch([*creates, ("read", ("nothing",))], ["t", "w"])
        assert (caught.value.error_index, caught.value.status_code) == (99, 404)
        assert [row async for row in container.read_all_items()] == []
        assert len(await container.execute_item_batch(creates, ["t", "w"])) == 99


async def test_the_frameworks_history_store(emulator: CosmosEmulator) -> None:
    """The framework's own history provider runs on the emulator unchanged."""
    async with CosmosClient(emulator.endpoint, emulator.key) as client:
        await client.create_database("db")
    async with CosmosHistoryProvider(
        endpoint=emulator.endpoint, credential=emulator.key, database_name="db", container_name="history"
    ) as history:
        await history.save_messages("session", [Message("user", ["hello"]), Message("assistant", ["hi"])])
        assert [message.text for message in await history.get_messages("session")] == ["hello", "hi"]


def test_without_an_event_loop() -> None:
    """In code that has none, the emulator runs on a thread of its own; the synchronous client works on it."""
    with CosmosEmulator() as emulator, SyncClient(emulator.endpoint, emulator.key) as client:
        container = client.create_database("db").create_container("items", KEYS)
        container.create_item(item())
        assert len(list(container.read_all_items())) == 1
    assert emulator._thread is None


async def test_data_outlives_the_emulator(tmp_path: Path) -> None:
    """A state file is found again by the next emulator, on another port and with another key."""
    for expected in (0, 1):
        async with (
            CosmosEmulator(data=str(tmp_path / "state.db")) as emulator,
            CosmosClient(emulator.endpoint, emulator.key) as client,
        ):
            container = await made(client)
            assert len([row async for row in container.read_all_items()]) == expected
            await container.upsert_item(item())


async def test_the_certificate_can_be_verified(secure: CosmosEmulator) -> None:
    """A client that checks certificates needs only the emulator's; without TLS there is none."""
    certificate = secure.certificate
    assert certificate is not None
    context = ssl.create_default_context(cadata=certificate.decode())
    async with aiohttp.ClientSession() as session, session.get(secure.endpoint, ssl=context) as response:
        assert response.status == 401
    assert CosmosEmulator().certificate is None


@pytest.mark.parametrize(("role", "reads", "writes"), [("contributor", 0, 0), ("reader", 0, 5301), (None, 5301, 5301)])
async def test_tokens(secure: CosmosEmulator, role: Role | None, reads: int, writes: int) -> None:
    """A token does what its role allows: 0 stands for success, other numbers are the sub-status of a 403."""

    async def outcome(call: Any) -> int:
        try:
            await call
        except CosmosHttpResponseError as error:
            return int(error.sub_status or error.status_code or 0)
        return 0

    client = CosmosClient(secure.endpoint, EmulatorCredential(secure, role), **ONCE)
    if role is None:
        assert await outcome(client.__aenter__()) == reads
    else:
        async with client:
            assert await outcome(there(client).upsert_item(item())) == writes
            assert await outcome(there(client).read_item(item()["id"], ["t", "w"])) == reads
            assert await outcome(client.create_database("another")) == 5300
            assert await outcome(client.get_database_client("db").delete_container("items")) == 5300
    await client.close()


async def test_a_token_expires_with_the_clock(secure: CosmosEmulator) -> None:
    """When the clock is moved beyond its lifetime, a token that the client holds is refused."""
    async with CosmosClient(secure.endpoint, EmulatorCredential(secure), **ONCE) as client:
        await there(client).upsert_item(item())
        secure.clock.advance(3601)
        with pytest.raises(CosmosHttpResponseError) as caught:
            await there(client).upsert_item(item())
        assert caught.value.status_code == 401


@pytest.mark.parametrize("shape", ["app_service_environment", "virtual_machine_environment"])
async def test_a_managed_identity(secure: CosmosEmulator, shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real credential finds the stand-in by its environment variables, and its tokens work."""
    async with secure.identity_endpoint("reader") as identity:
        for name, value in getattr(identity, shape).items():
            monkeypatch.setenv(name, value)
        async with ManagedIdentityCredential() as credential:
            token = await credential.get_token("https://localhost/.default")
            assert token.expires_on > 0
            async with CosmosClient(secure.endpoint, credential, **ONCE) as client:
                assert len([row async for row in there(client).read_all_items()]) == 1
                with pytest.raises(CosmosHttpResponseError):
                    await there(client).upsert_item(item())


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("GET", "/msi/token?api-version=1&resource=r", {}, 401),
        ("GET", "/msi/token?api-version=1&resource=r", {"X-IDENTITY-HEADER": "x"}, 401),
        ("GET", "/metadata/identity/oauth2/token?api-version=1&resource=r", {}, 401),
        ("GET", "/metadata/identity/oauth2/token?resource=r", {"Metadata": "true"}, 400),
        ("GET", "/metadata/identity/oauth2/token?api-version=1", {"Metadata": "true"}, 400),
        ("GET", "/other", {}, 404),
        ("POST", "/msi/token", {}, 404),
    ],
)
async def test_the_identity_endpoint_refuses(method: str, path: str, headers: dict[str, str], status: int) -> None:
    """Requests that Azure's endpoints would not answer are not answered here."""
    async with CosmosEmulator() as emulator, emulator.identity_endpoint() as identity:
        base = identity.virtual_machine_environment["AZURE_POD_IDENTITY_AUTHORITY_HOST"]
        async with aiohttp.ClientSession() as session, session.request(method, base + path, headers=headers) as got:
            assert got.status == status
            assert "error" in await got.json()
    await identity.__aexit__(None, None, None)


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({}, 200),
        ({"grant_type": "password"}, 400),
        ({"scope": "https://localhost"}, 400),
        ({"client_assertion": "another"}, 401),
        ({"client_assertion": "Schlüssel"}, 401),
        ({"client_assertion": None}, 401),
    ],
)
async def test_the_authority(secure: CosmosEmulator, changes: dict[str, str | None], status: int) -> None:
    """A token file's content is changed for a token, over TLS only; nothing else is."""
    async with secure.identity_endpoint() as identity:
        url = identity.workload_identity_environment["AZURE_AUTHORITY_HOST"] + "/emulator/oauth2/v2.0/token"
        given = {
            "grant_type": "client_credentials",
            "scope": "https://localhost/.default",
            "client_assertion": identity.federated_token,
            **changes,
        }
        body = urlencode({name: text for name, text in given.items() if text is not None})
        form = {"content-type": "application/x-www-form-urlencoded"}
        async with aiohttp.ClientSession() as session:
            async with session.post(url, data=body, headers=form, ssl=False) as answer:
                assert answer.status == status
                assert ("access_token" in await answer.json()) is (status == 200)
            plain = identity.virtual_machine_environment["AZURE_POD_IDENTITY_AUTHORITY_HOST"]
            async with session.post(f"{plain}/emulator/oauth2/v2.0/token", data=body, headers=form) as answer:
                assert answer.status == 404


async def test_faults_reach_the_client(emulator: CosmosEmulator) -> None:
    """A status, a dropped connection before and after applying: the client sees what it would see of the service."""
    async with CosmosClient(emulator.endpoint, emulator.key, **ONCE) as client:
        container = await made(client)
        emulator.faults.add(Fault(operation="create", status=449, sub_status=1))
        with pytest.raises(CosmosHttpResponseError) as caught:
            await container.create_item(item(1))
        assert (caught.value.status_code, caught.value.sub_status) == (449, 1)
        for drop, there_after in (("before", False), ("after", True)):
            emulator.faults.add(Fault(operation="create", drop=drop))
            with pytest.raises(ServiceRequestError):
                await container.create_item(item(2))
            query = container.query_items("SELECT VALUE COUNT(1) FROM c", partition_key=["t", "w"])
            assert [row async for row in query] == [int(there_after)]
        assert emulator.faults.pending == ()


async def test_throttling_reaches_the_client(emulator: CosmosEmulator) -> None:
    """Above the rate the client is refused with 429 / 3200 and told when to come again."""
    async with CosmosClient(emulator.endpoint, emulator.key, **ONCE) as client:
        container = await made(client)
        emulator.faults.ru_per_second = 0.01
        await container.upsert_item(item())
        with pytest.raises(CosmosHttpResponseError) as caught:
            await container.upsert_item(item())
        assert (caught.value.status_code, caught.value.sub_status) == (429, 3200)
        assert int(caught.value.headers["x-ms-retry-after-ms"]) > 1000
        emulator.faults.clear()
        await container.upsert_item(item())


async def test_an_emulator_that_ignores_partial_keys(emulator: CosmosEmulator) -> None:
    """The mode shows what an application does on such a build: items of other tenants come back."""
    async with CosmosClient(emulator.endpoint, emulator.key) as client:
        container = await made(client)
        for tenant in ("t", "u"):
            await container.upsert_item(item(tenant=tenant))
        emulator.faults.ignore_partial_keys = True
        query = container.query_items("SELECT VALUE c.tenant FROM c", partition_key=["t"])
        assert sorted([row async for row in query]) == ["t", "u"]


async def test_items_expire_with_the_clock(emulator: CosmosEmulator) -> None:
    """Moving the clock makes items expire at once."""
    async with CosmosClient(emulator.endpoint, emulator.key) as client:
        container = await made(client, default_ttl=60)
        created = await container.upsert_item(item())
        emulator.clock.advance(59)
        await container.read_item(created["id"], ["t", "w"])
        emulator.clock.advance(2)
        with pytest.raises(CosmosResourceNotFoundError):
            await container.read_item(created["id"], ["t", "w"])


async def test_partitions_can_be_forced() -> None:
    """A query over several physical partitions gives the rows of all, in order."""
    async with CosmosEmulator(partitions=3) as emulator, CosmosClient(emulator.endpoint, emulator.key) as client:
        container = await made(client)
        assert len([feed_range async for feed_range in container.read_feed_ranges()]) == 3
        for number in range(10):
            await container.upsert_item(item(number, tenant=f"t{number}", rank=number))
        query = container.query_items("SELECT VALUE c.rank FROM c ORDER BY c.rank DESC")
        assert [row async for row in query] == list(reversed(range(10)))


async def test_our_errors_name_what_the_emulator_refused(secure: CosmosEmulator) -> None:
    """A factory with a reader's credential says that access was denied."""
    settings = secure.settings(
        provisioning="skip", database="db", checkpoint_container="items", allowed_checkpoint_types=ALLOWED_TYPES
    )
    async with CosmosStateFactory(settings, credential=EmulatorCredential(secure, "reader")) as factory:
        with pytest.raises(errors.AccessDeniedError):
            await factory.for_tenant("contoso").checkpoints.save(checkpoint("cp-1"))
