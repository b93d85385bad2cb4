"""The factory: one client, entered once, owned and closed, and cheap for each request."""

from __future__ import annotations

import asyncio
import dataclasses
import gc
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any, Self, get_args

import pytest
from azure.core.credentials import AccessToken
from azure.cosmos import PartitionKey
from azure.cosmos.aio import CosmosClient
from azure.identity import ClientSecretCredential as SynchronousClientSecret
from azure.identity import CredentialUnavailableError

from cosmos_workflow_state import CosmosStateFactory, CosmosStateSettings, DefaultAuth, TenantState, errors
from cosmos_workflow_state._auth_settings import ExcludedCredential
from cosmos_workflow_state._embedded import open_embedded
from support.faults import OvertakenTransport, RefusingTransport
from support.states import ALLOWED_TYPES, WORKFLOW, checkpoint

CHAIN = get_args(ExcludedCredential)


@pytest.fixture
def settings() -> CosmosStateSettings:
    """Return settings of the embedded engine, whatever other tests run against: these are about the factory."""
    return CosmosStateSettings(endpoint="embedded:", allowed_checkpoint_types=ALLOWED_TYPES)


async def test_for_tenant_is_frozen_and_does_no_io(settings: CosmosStateSettings) -> None:
    """A tenant's state is built before anything is opened, and cannot be changed."""
    factory = CosmosStateFactory(settings)
    state = factory.for_tenant("contoso")

    assert isinstance(state, TenantState)
    assert state.tenant_id == state.checkpoints.tenant_id == "contoso"
    with pytest.raises(dataclasses.FrozenInstanceError):
        state.checkpoints = state.checkpoints.scoped("other")  # type: ignore[misc]
    # No ResourceWarning (an error here) follows, since nothing was opened.


async def test_many_tasks_open_one_client(
    settings: CosmosStateSettings, events: list[MutableMapping[str, Any]]
) -> None:
    """First use by many tasks and tenants at once opens one connection."""
    async with CosmosStateFactory(settings) as factory:
        stores = [factory.for_tenant(f"t{number}").checkpoints for number in range(20)]
        await asyncio.gather(*(store.save(checkpoint("cp-1")) for store in stores))

    assert [event["event"] for event in events].count("factory.opened") == 1
    assert [event["event"] for event in events].count("factory.closed") == 1


async def test_after_close_everything_says_so(settings: CosmosStateSettings) -> None:
    """Demand 23: a storage used after its factory was closed names the cause; closing twice is fine."""
    async with CosmosStateFactory(settings) as factory:
        storage = factory.for_tenant("contoso").checkpoints
        await storage.save(checkpoint("cp-1"))
    await factory.close()

    with pytest.raises(errors.FactoryClosedError, match="async with"):
        await storage.load("cp-1")
    with pytest.raises(errors.FactoryClosedError):
        factory.for_tenant("contoso")
    with pytest.raises(errors.FactoryClosedError):
        async with factory:
            pytest.fail("entered a closed factory")


async def test_a_close_while_another_task_opens(settings: CosmosStateSettings) -> None:
    """Closing during the first operation leaves nothing open and both ends say what happened."""
    factory = CosmosStateFactory(settings)
    first = asyncio.create_task(factory.for_tenant("a").checkpoints.save(checkpoint("cp-1")))
    second = asyncio.create_task(factory.for_tenant("b").checkpoints.save(checkpoint("cp-1")))
    await asyncio.sleep(0)
    await factory.close()
    for outcome in await asyncio.gather(first, second, return_exceptions=True):
        assert outcome == "cp-1" or isinstance(outcome, errors.CosmosStateError)


def test_another_event_loop_is_refused(settings: CosmosStateSettings) -> None:
    """Demand 23: a factory belongs to the loop it was opened on."""
    factory = CosmosStateFactory(settings)
    storage = factory.for_tenant("contoso").checkpoints

    async def use() -> None:
        await storage.save(checkpoint("cp-1"))

    async def misuse() -> None:
        with pytest.raises(errors.FactoryClosedError, match="event loop"):
            await storage.load("cp-1")
        await factory.close()

    with asyncio.Runner() as first, asyncio.Runner() as second:
        first.run(use())
        second.run(misuse())


def _forget(held: list[CosmosStateFactory]) -> None:
    """Drop the last reference; the client's retry policy keeps errors with their frames until a collection."""
    held.clear()
    gc.collect()


async def test_a_factory_left_open_warns(settings: CosmosStateSettings) -> None:
    """Demand 22: forgetting to close is a ResourceWarning."""
    factory = CosmosStateFactory(settings)
    await factory.for_tenant("contoso").checkpoints.save(checkpoint("cp-1"))
    opened = factory._connection._opened
    held = [factory]
    del factory
    with pytest.warns(ResourceWarning, match="left open"):
        _forget(held)
    assert opened is not None
    await opened.aclose()


class _NoToken:
    """A token credential of somebody who is not logged in anywhere."""

    async def get_token(self, *_scopes: str, **_options: Any) -> AccessToken:
        raise CredentialUnavailableError("not logged in")

    async def close(self) -> None:
        """Do nothing."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        """Do nothing."""


async def test_a_credential_without_a_token_is_no_outage() -> None:
    """Not logged in is not "unreachable": nothing is repeated, and the message is about the credential."""
    settings = CosmosStateSettings(endpoint="https://localhost:9/", _env_file=None)
    async with CosmosStateFactory(settings, credential=_NoToken()) as factory:
        with pytest.raises(errors.AccessDeniedError, match="the credential gave no token") as caught:
            await factory.for_tenant("contoso").checkpoints.load("cp-1")
        assert not caught.value.retryable


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"settings": "embedded:"}, "settings must be CosmosStateSettings, not str"),
        ({"client": "https://x"}, "client must be azure.cosmos.aio.CosmosClient, not str"),
        ({"credential": "a2V5"}, "credential must be an asynchronous token credential, .* not str"),
        (
            {"credential": SynchronousClientSecret("t", "c", "s")},
            "credential must be an asynchronous token credential.*azure.identity.aio",
        ),
    ],
    ids=["settings", "client", "credential", "synchronous credential"],
)
def test_arguments_of_another_kind(settings: CosmosStateSettings, arguments: dict[str, Any], name: str) -> None:
    """A wrong argument is named when the factory is built, not when a customer's request comes in."""
    with pytest.raises(TypeError, match=name):
        CosmosStateFactory(**{"settings": settings, **arguments})


async def test_a_given_client_is_used_and_not_closed(settings: CosmosStateSettings) -> None:
    """Demand 22: who opened a client closes it."""
    account = await open_embedded(None)
    async with CosmosClient(account.endpoint, account.key, transport=account.transport()) as client:
        for _ in range(2):
            async with CosmosStateFactory(settings, client=client) as factory:
                await factory.for_tenant("contoso").checkpoints.save(checkpoint("cp-1"))
        async with CosmosStateFactory(settings, client=client) as factory:
            ids = await factory.for_tenant("contoso").checkpoints.list_checkpoint_ids(workflow_name=WORKFLOW)
        assert ids == ["cp-1"]
        assert [found["id"] async for found in client.list_databases()] == [settings.database]
    await account.close()


class _BrokenCloseClient(CosmosClient):
    """A client whose closing fails after it has closed."""

    async def close(self) -> None:
        await super().close()
        raise OSError("the socket was gone")


@pytest.fixture
def broken_close(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the factory's own client fail to close."""
    monkeypatch.setattr("cosmos_workflow_state._clients.CosmosClient", _BrokenCloseClient)


@pytest.mark.usefixtures("broken_close")
async def test_a_failing_close_is_raised(settings: CosmosStateSettings) -> None:
    """With nothing else on its way, the failure to close is what the caller gets."""
    with pytest.raises(OSError, match="the socket was gone"):
        async with CosmosStateFactory(settings) as factory:
            await factory.for_tenant("contoso").checkpoints.save(checkpoint("cp-1"))


@pytest.mark.usefixtures("broken_close")
async def test_a_failing_close_does_not_hide_another_error(settings: CosmosStateSettings) -> None:
    """The error that was on its way stays, with a note."""
    with pytest.raises(errors.CheckpointNotFoundError) as caught:
        async with CosmosStateFactory(settings) as factory:
            await factory.for_tenant("contoso").checkpoints.load("cp-1")
    assert caught.value.__notes__ == ["closing the CosmosStateFactory failed as well: OSError"]


async def test_an_account_without_a_key_names_the_variable() -> None:
    """Without a key an identity is asked; where there is none, the error says which variables to set."""
    chain: Any = DefaultAuth(exclude=tuple(name for name in CHAIN if name != "environment"))
    settings = CosmosStateSettings(endpoint="https://localhost:9/", auth=chain, _env_file=None)
    async with CosmosStateFactory(settings) as factory:
        with pytest.raises(errors.AccessDeniedError, match="COSMOS_WORKFLOW_STATE_KEY") as caught:
            await factory.for_tenant("contoso").checkpoints.load("cp-1")
    assert "COSMOS_WORKFLOW_STATE_AUTH__MODE" in caught.value.remedy


async def test_an_account_that_is_not_there() -> None:
    """Nothing listens: a typed, retryable error, promptly, and no client left open."""
    settings = CosmosStateSettings(endpoint="http://127.0.0.1:9/", auth={"mode": "key", "key": "a2V5"}, _env_file=None)
    async with CosmosStateFactory(settings) as factory:
        with pytest.raises(errors.ServiceUnavailableError) as caught:
            await factory.for_tenant("contoso").checkpoints.load("cp-1")
        assert caught.value.retryable


@pytest.mark.parametrize("mode", ["verify", "skip"])
async def test_a_missing_container_is_not_a_missing_checkpoint(mode: str) -> None:
    """Demand 30: no container is a provisioning error, in every mode that does not create it."""
    account = await open_embedded(None)
    settings = CosmosStateSettings(endpoint="https://contoso.documents.azure.com/", provisioning=mode, _env_file=None)  # type: ignore[arg-type]
    async with (
        CosmosClient(account.endpoint, account.key, transport=account.transport()) as client,
        CosmosStateFactory(settings, client=client) as factory,
    ):
        with pytest.raises(errors.ProvisioningError, match="there is no container"):
            await factory.for_tenant("contoso").checkpoints.load("cp-1")
    await account.close()


async def test_a_container_of_another_shape_is_refused_and_left_alone() -> None:
    """Demand 27: verify names every difference with its remedy; create does not change what exists either."""
    account = await open_embedded(None)
    async with CosmosClient(account.endpoint, account.key, transport=account.transport()) as client:
        database = await client.create_database("workflow-state")
        container = await database.create_container("checkpoints", PartitionKey("/workflow_name"), default_ttl=3600)
        before = await container.read()
        for mode in ("verify", "create"):
            settings = CosmosStateSettings(
                endpoint="https://contoso.documents.azure.com/", provisioning=mode, _env_file=None
            )
            async with CosmosStateFactory(settings, client=client) as factory:
                with pytest.raises(errors.ProvisioningError) as caught:
                    await factory.for_tenant("contoso").checkpoints.load("cp-1")
            assert len(caught.value.problems) == 3
        assert await container.read() == before
    await account.close()


async def test_two_processes_create_the_container_at_once(settings: CosmosStateSettings) -> None:
    """Whoever loses the race to create goes on with what the other has created."""
    account = await open_embedded(None)
    transport = OvertakenTransport(account._engine)
    async with (
        CosmosClient(account.endpoint, account.key, transport=transport) as client,
        CosmosStateFactory(settings, client=client) as factory,
    ):
        await factory.for_tenant("contoso").checkpoints.save(checkpoint("cp-1"))
    await account.close()


@pytest.mark.parametrize("content", [b"hello, I am a text file" * 100, b"SQLite format 3\0" + bytes(200)])
async def test_a_file_that_is_no_state_file(tmp_path: Path, content: bytes) -> None:
    """A file of somebody else's is refused by name and left exactly as it was."""
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    async with CosmosStateFactory(CosmosStateSettings(endpoint=f"embedded:{path}", _env_file=None)) as factory:
        with pytest.raises(errors.ProvisioningError, match=r"notes\.txt"):
            await factory.for_tenant("contoso").checkpoints.load("cp-1")
    assert path.read_bytes() == content


async def test_a_state_file_in_a_directory_that_is_not_there(tmp_path: Path) -> None:
    """A path that cannot be created is an error that shows the path."""
    settings = CosmosStateSettings(endpoint=f"embedded:{tmp_path}/missing/state.db", _env_file=None)
    async with CosmosStateFactory(settings) as factory:
        with pytest.raises(errors.ProvisioningError, match=r"missing/state\.db.*its directory does not exist"):
            await factory.for_tenant("contoso").checkpoints.load("cp-1")


async def test_a_state_file_that_is_a_directory(tmp_path: Path) -> None:
    """The error names the setting, the path and what is wrong with it."""
    settings = CosmosStateSettings(endpoint=f"embedded:{tmp_path}", _env_file=None)
    async with CosmosStateFactory(settings) as factory:
        with pytest.raises(errors.ProvisioningError, match=r"COSMOS_WORKFLOW_STATE_ENDPOINT.*it is a directory"):
            await factory.for_tenant("contoso").checkpoints.load("cp-1")


async def test_a_right_that_is_missing_at_opening(settings: CosmosStateSettings) -> None:
    """Demand 11: a refused creation is "access denied" with the service's numbers, and can be tried again."""
    account = await open_embedded(None)
    transport = RefusingTransport(account._engine)
    async with (
        CosmosClient(account.endpoint, account.key, transport=transport) as client,
        CosmosStateFactory(settings, client=client) as factory,
    ):
        with pytest.raises(errors.AccessDeniedError) as caught:
            await factory.for_tenant("contoso").checkpoints.save(checkpoint("cp-1"))
        assert (caught.value.status_code, caught.value.sub_status) == (403, 5300)
    await account.close()
