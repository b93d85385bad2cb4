"""Whoever is logged in to the Azure CLI, and the chain of default credentials, against an emulator over TLS."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from cosmos_workflow_state.emulator import CosmosEmulator
from support.azure_cli import AzureCli, azure_cli
from support.identities import by, identity, provisioned_emulator, refused, use, without_identities

ALL_BUT_CLI = (
    "environment",
    "workload_identity",
    "managed_identity",
    "shared_token_cache",
    "visual_studio_code",
    "azure_powershell",
    "azure_developer_cli",
)
NO_TOKEN = "the credential gave no token"


@pytest.fixture(autouse=True)
def _no_identity_around(monkeypatch: pytest.MonkeyPatch) -> None:
    without_identities(monkeypatch)


@pytest.fixture
async def emulator() -> AsyncIterator[CosmosEmulator]:
    """Yield an emulator over TLS whose container is there."""
    async with provisioned_emulator() as opened:
        yield opened


@pytest.fixture
def az(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AzureCli]:
    """Yield a stand-in for the Azure CLI."""
    with azure_cli(tmp_path / "bin", monkeypatch) as program:
        yield program


def log_in(az: AzureCli, emulator: CosmosEmulator) -> None:
    """Let the Azure CLI give the token of somebody with every right on data."""
    az.answer_token(emulator.token(audience=_audience(emulator)), int(time.time()) + 3600)


def _audience(emulator: CosmosEmulator) -> str:
    return emulator.endpoint.removesuffix("/")


async def test_whoever_is_logged_in(emulator: CosmosEmulator, az: AzureCli) -> None:
    """The Azure CLI is asked for a token for the account, and that token gets in."""
    log_in(az, emulator)
    assert await use(by(emulator, mode="azure_cli")) == "cp-1"
    asked = az.calls()[0]
    assert asked[:2] == ["account", "get-access-token"]
    assert asked[asked.index("--resource") + 1].startswith("https://")


async def test_a_reader_who_is_logged_in(emulator: CosmosEmulator, az: AzureCli) -> None:
    """Who may only read is told which action is missing."""
    az.answer_token(emulator.token("reader"), int(time.time()) + 3600)
    error = await refused(by(emulator, mode="azure_cli"))
    assert (error.status_code, error.sub_status) == (403, 5301)
    assert error.missing_actions == ("Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/create",)


@pytest.mark.parametrize(
    ("output", "complaint"),
    [
        ("", "ERROR: Please run 'az login' to setup account."),
        ("", "ERROR: AADSTS700082: The refresh token has expired due to inactivity. To re-authenticate: az login"),
        ("no JSON", ""),
    ],
    ids=["logged out", "expired", "something else"],
)
async def test_nobody_is_logged_in(emulator: CosmosEmulator, az: AzureCli, output: str, complaint: str) -> None:
    """There is no token, so nothing is sent; what to do is said in our words."""
    az.answer(output, complaint)
    error = await refused(by(emulator, mode="azure_cli"))
    assert str(error).startswith(NO_TOKEN)
    assert (error.status_code, error.retryable) == (None, False)
    assert "`az login` is enough" in error.remedy


async def test_there_is_no_azure_cli(emulator: CosmosEmulator, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine without the program is one without a token."""
    monkeypatch.setenv("PATH", str(tmp_path))
    error = await refused(by(emulator, mode="azure_cli"))
    assert str(error).startswith(NO_TOKEN)
    assert "COSMOS_WORKFLOW_STATE_AUTH__MODE" in error.remedy


async def test_what_is_excluded_is_passed_over(
    emulator: CosmosEmulator, az: AzureCli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A managed identity without a role is in the way of the Azure CLI, until it is excluded."""
    log_in(az, emulator)
    without_identity = [name for name in ALL_BUT_CLI if name != "managed_identity"]
    async with identity(emulator, monkeypatch, role=None) as asked:
        error = await refused(by(emulator, exclude=without_identity))
        assert (error.status_code, error.sub_status, az.calls()) == (403, 5301, [])
        asked.clear()
        assert await use(by(emulator, exclude=ALL_BUT_CLI)) == "cp-1"
        assert asked == []
    assert az.calls() != []


async def test_nothing_of_the_chain_gives_a_token(emulator: CosmosEmulator, az: AzureCli) -> None:
    """The error says that an identity was looked for because there is no key."""
    az.answer(complaint="ERROR: Please run 'az login' to setup account.")
    error = await refused(by(emulator, exclude=ALL_BUT_CLI))
    assert str(error).startswith(NO_TOKEN)
    assert "Without COSMOS_WORKFLOW_STATE_KEY" in error.remedy
