"""The real credentials of azure-identity against an emulator over TLS, and what is said when one does not get in."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from cosmos_workflow_state import errors
from cosmos_workflow_state._definitions import DATA_ACTIONS
from cosmos_workflow_state.emulator import CosmosEmulator
from support.identities import (
    APP_SERVICE,
    MACHINE,
    by,
    identity,
    provisioned_emulator,
    refused,
    use,
    without_identities,
)
from support.states import ALLOWED_TYPES
from support.tokens import EmulatorCredential

ASSIGN = "az cosmosdb sql role assignment create --account-name '<account>' --resource-group '<resource-group>'"
NAMES = {
    APP_SERVICE: {"client_id": "client_id", "object_id": "object_id", "resource_id": "mi_res_id"},
    MACHINE: {"client_id": "client_id", "object_id": "object_id", "resource_id": "msi_res_id"},
}
"""By shape, what each setting is called there."""


@pytest.fixture(autouse=True)
def _no_identity_around(monkeypatch: pytest.MonkeyPatch) -> None:
    without_identities(monkeypatch)


@pytest.fixture
async def emulator() -> AsyncIterator[CosmosEmulator]:
    """Yield an emulator over TLS whose container is there."""
    async with provisioned_emulator() as opened:
        yield opened


@pytest.mark.parametrize("shape", [APP_SERVICE, MACHINE])
@pytest.mark.parametrize(
    "names", [{}, {"client_id": "c"}, {"object_id": "o"}, {"resource_id": "/subscriptions/s"}], ids=str
)
async def test_managed_identities(
    emulator: CosmosEmulator, monkeypatch: pytest.MonkeyPatch, shape: str, names: dict[str, str]
) -> None:
    """The identity that the settings name is the one that is asked for, on App Service and on a virtual machine.

    Neither endpoint objects to a name that it does not know: it gives the token of the system-assigned identity.
    """
    async with identity(emulator, monkeypatch, shape) as asked:
        assert await use(by(emulator, mode="managed_identity", **names)) == "cp-1"
    named = {NAMES[shape][name]: value for name, value in names.items()}
    assert asked
    assert all(
        one.keys() == {"api-version", "resource"} | named.keys() and named.items() <= one.items() for one in asked
    )


async def test_the_default_credential(emulator: CosmosEmulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a word about authentication, the chain finds the identity that the process has."""
    async with identity(emulator, monkeypatch):
        assert await use(by(emulator)) == "cp-1"


async def test_a_key_over_tls(emulator: CosmosEmulator) -> None:
    """The account key, a secondary one behind a key of yesterday and a connection string do, too."""
    assert await use(by(emulator, key=emulator.key)) == "cp-1"
    assert await use(by(emulator, key="d3Jvbmc=", secondary_key=emulator.key)) == "cp-1"
    text = f"AccountEndpoint={emulator.endpoint};AccountKey={emulator.key};"
    assert await use(by(emulator, mode="connection_string", connection_string=text)) == "cp-1"


async def test_a_credential_object_wins(emulator: CosmosEmulator) -> None:
    """What the caller gives is used, whatever the settings say, and is not closed."""
    credential = _Watched(emulator)
    assert await use(by(emulator, key="d3Jvbmc="), credential=credential) == "cp-1"
    assert not credential.closed
    assert (await refused(by(emulator, key="d3Jvbmc="))).status_code == 401


class _Watched(EmulatorCredential):
    """A credential that knows whether it was closed."""

    closed = False

    async def close(self) -> None:
        self.closed = True

    async def __aexit__(self, *_error: object) -> None:
        self.closed = True


WORKLOAD = """
import asyncio, gc
from cosmos_workflow_state import CosmosStateFactory

async def main():
    async with CosmosStateFactory() as factory:
        storage = factory.for_tenant("contoso").checkpoints
        print(await storage.list_checkpoint_ids(workflow_name="w"))

asyncio.run(main())
gc.collect()
"""


async def run(program: str, variables: Mapping[str, str]) -> tuple[int, str, str]:
    """Run a program in a process with these variables only, every warning an error; return code and outputs."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-W", "error", "-c", program),
        env={"PYTHONPATH": ":".join(path for path in sys.path if path), **variables},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, complaints = await process.communicate()
    return process.returncode or 0, output.decode(), complaints.decode()


@pytest.mark.parametrize("assertion", ["the file's", "another"])
async def test_a_workload_identity(emulator: CosmosEmulator, tmp_path: Path, assertion: str) -> None:
    """A pod changes its token file for a token at the authority, over TLS that it verifies; a wrong file is refused.

    In a process of its own: the certificate is trusted by SSL_CERT_FILE, which is read when a process starts.
    """
    async with emulator.identity_endpoint() as endpoint:
        (tmp_path / "token").write_text(endpoint.federated_token if assertion == "the file's" else assertion)
        (tmp_path / "ca.pem").write_bytes(emulator.certificate or b"")
        code, printed, complaints = await run(
            WORKLOAD,
            {
                **endpoint.workload_identity_environment,
                "AZURE_FEDERATED_TOKEN_FILE": str(tmp_path / "token"),
                "SSL_CERT_FILE": str(tmp_path / "ca.pem"),
                "COSMOS_WORKFLOW_STATE_ENDPOINT": emulator.endpoint,
                "COSMOS_WORKFLOW_STATE_AUTH__MODE": "workload_identity",
            },
        )
    if assertion == "another":
        assert "AccessDeniedError: the credential gave no token (ClientAuthenticationError)" in complaints
        assert "COSMOS_WORKFLOW_STATE_AUTH__MODE" in complaints
    else:
        assert (code, printed, complaints) == (0, "[]\n", "")


@pytest.mark.parametrize("missing", DATA_ACTIONS)
async def test_the_role_has_no_action_too_many(
    emulator: CosmosEmulator, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    """With the role's actions everything works; take any one away, and the service refuses and it is named."""
    async with identity(emulator, monkeypatch, role=None, actions=DATA_ACTIONS):
        assert await use(by(emulator, mode="managed_identity")) == "cp-1"
    async with identity(emulator, monkeypatch, role=None, actions=_without(missing)):
        error = await refused(by(emulator, mode="managed_identity"))
    assert (error.status_code, error.sub_status) == (403, 5301)
    assert error.missing_actions == (missing,)
    assert f"{ASSIGN} --role-definition-name cosmos-workflow-state --principal-id 0000" in error.remedy


def _without(missing: str) -> Iterable[str]:
    return (action for action in DATA_ACTIONS if action != missing)


async def test_a_role_that_only_reads(emulator: CosmosEmulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """The built-in reader is told which action saving needs."""
    async with identity(emulator, monkeypatch, role="reader"):
        error = await refused(by(emulator, mode="managed_identity"))
    assert error.missing_actions == ("Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/create",)
    assert not error.retryable


async def test_an_identity_without_any_role(emulator: CosmosEmulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may not even ask what the account is; it is told how it gets its role, in words, commands and parameters."""
    async with identity(emulator, monkeypatch, role=None):
        error = await refused(by(emulator, mode="managed_identity"))
    assert (error.status_code, error.sub_status, error.retryable) == (403, 5301, False)
    assert error.missing_actions == ("Microsoft.DocumentDB/databaseAccounts/readMetadata",)
    for text in ("az cosmosdb sql role definition create", ASSIGN, "  param principalIds = [\n    '0000"):
        assert text in error.remedy


@pytest.mark.parametrize("role", ["contributor", "reader"])
async def test_no_token_creates(emulator: CosmosEmulator, monkeypatch: pytest.MonkeyPatch, role: str) -> None:
    """Creating by token is refused by the service; the remedy is Azure's own tools and the other setting."""
    settings = emulator.settings(
        auth={"mode": "managed_identity"},
        checkpoint_container="missing",
        throughput="manual:400",
        allowed_checkpoint_types=ALLOWED_TYPES,
    )
    async with identity(emulator, monkeypatch, role=role):
        error = await refused(settings)
    assert (error.status_code, error.sub_status) == (403, 5300)
    assert "COSMOS_WORKFLOW_STATE_PROVISIONING=verify" in error.remedy
    assert "/containers/missing?api-version=" in error.remedy
    assert '"options": {"throughput": 400}' in error.remedy
    assert "\n  param checkpointContainerName = 'missing'\n" in error.remedy
    assert "\n  param containerOptions = {\n    throughput: 400\n  }\n" in error.remedy


async def test_a_token_that_has_expired(emulator: CosmosEmulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """An expired token is a 401 that says what to compare, without the token."""
    async with identity(emulator, monkeypatch, lifetime=-1):
        error = await refused(by(emulator, mode="managed_identity"))
    assert error.status_code == 401
    assert "may have expired" in error.remedy
    assert "az account get-access-token --resource https://" in error.remedy
    assert "It is not the clock" in error.remedy


async def test_a_token_of_another_directory(emulator: CosmosEmulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """So is the token that somebody else has issued."""
    async with CosmosEmulator(tls=True) as other, identity(other, monkeypatch):
        error = await refused(by(emulator, mode="managed_identity"))
    assert error.status_code == 401
    assert "another Entra tenant" in error.remedy


async def test_a_wrong_key(emulator: CosmosEmulator) -> None:
    """A wrong key is a 401 that names the variable and the command that shows the right one, and no key."""
    error = await refused(by(emulator, key="d3Jvbmc="))
    assert error.status_code == 401
    assert "COSMOS_WORKFLOW_STATE_KEY" in error.remedy
    assert "az cosmosdb keys list" in error.remedy
    assert "d3Jvbmc=" not in str(error)
    assert emulator.key not in str(error)


async def test_a_clock_that_is_wrong(emulator: CosmosEmulator) -> None:
    """An hour between the clocks: refused by the service, and the clock is what the error talks of."""
    emulator._authenticator._clock = lambda: time.time() + 3600
    error = await refused(by(emulator, key=emulator.key))
    assert error.status_code == 403
    assert "clock of this machine differs from the service's by more than 15 minutes" in error.remedy


@pytest.mark.parametrize("given", [True, False], ids=["given", "from settings"])
async def test_no_token_over_plain_http(monkeypatch: pytest.MonkeyPatch, *, given: bool) -> None:
    """A token that others could read is not sent: refused in words before any request, for any credential."""
    async with CosmosEmulator() as emulator:
        arguments: dict[str, Any] = {"credential": EmulatorCredential(emulator)} if given else {}
        async with identity(emulator, monkeypatch):
            with pytest.raises(errors.SettingsError, match="COSMOS_WORKFLOW_STATE_ENDPOINT is plain http"):
                await use(by(emulator, mode="managed_identity"), **arguments)
