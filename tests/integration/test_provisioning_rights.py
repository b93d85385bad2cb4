"""``provision`` and ``doctor`` under each refusal: what is said, with which exit code, and what to do about it."""

from __future__ import annotations

import json
import re
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import structlog
from azure.cosmos.aio import CosmosClient

from cosmos_workflow_state.emulator import CosmosEmulator
from support.commands import Run, runner
from support.identities import APP_SERVICE, identity, provisioned_emulator, without_identities

IDENTITY = {"AUTH__MODE": "managed_identity"}
COMMANDS = (
    "az cosmosdb sql database create",
    "az rest --method put",
    "az cosmosdb sql role definition create",
    "az cosmosdb sql role assignment create",
)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Iterator[Run]:
    """Yield a way to run commands where there is no identity."""
    without_identities(monkeypatch)
    monkeypatch.chdir(tmp_path)
    yield runner(monkeypatch, capsys)
    structlog.reset_defaults()


@pytest.fixture
async def emulator() -> AsyncIterator[CosmosEmulator]:
    """Yield an emulator over TLS without a database."""
    async with CosmosEmulator(tls=True) as opened:
        yield opened


@pytest.fixture
async def provisioned() -> AsyncIterator[CosmosEmulator]:
    """Yield an emulator over TLS whose container is there."""
    async with provisioned_emulator() as opened:
        yield opened


@pytest.mark.parametrize("role", [None, "reader", "contributor"])
async def test_provision_by_an_identity(
    run: Run, emulator: CosmosEmulator, monkeypatch: pytest.MonkeyPatch, role: str | None
) -> None:
    """Whatever its role, it creates nothing, not even when told yes: the commands for who may are printed."""
    async with identity(emulator, monkeypatch, APP_SERVICE, role=role):
        settings = {"ENDPOINT": emulator.endpoint, "THROUGHPUT": "manual:400", **IDENTITY}
        code, output, complaints = await run("provision", "--yes", **settings)
    assert code == 4
    assert "no role lets a token create databases and containers" in complaints
    # Without any role it is refused before: what the refusal says of who asks, and what to do, is passed on.
    assert ("missing data actions: " in complaints.lower()) is (role is None)
    assert (re.search(r"--principal-id [0-9a-f]{8}-[0-9a-f-]{27}\b", complaints) is not None) is (role is None)
    assert all(command in output for command in COMMANDS)
    assert '"options": {"throughput": 400}' in output
    async with CosmosClient(emulator.endpoint, emulator.key) as client:
        assert [found async for found in client.list_databases()] == []


async def test_the_doctor_under_no_role(run: Run, provisioned: CosmosEmulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the rights that are missing: the first one is named, and all of them are in the command that gives them."""
    async with identity(provisioned, monkeypatch, APP_SERVICE, role=None):
        code, output, _ = await run("doctor", "--json", ENDPOINT=provisioned.endpoint, **IDENTITY)
    check = next(check for check in json.loads(output)["checks"] if check["status"] == "failed")
    assert (code, check["name"]) == (4, "rights")
    assert "readMetadata" in check["found"] + check["remedy"]
    assert "az cosmosdb sql role definition create" in check["remedy"]
    assert "param principalIds = [" in check["remedy"]


@pytest.mark.parametrize("command", ["doctor", "provision"])
@pytest.mark.parametrize("case", ["expired token", "token of another directory", "wrong key", "clock"])
async def test_who_is_not_let_in(
    run: Run, provisioned: CosmosEmulator, monkeypatch: pytest.MonkeyPatch, case: str, command: str
) -> None:
    """Each reason is told apart, with the same exit code; no key and no token is shown."""
    said = {
        "expired token": "may have expired",
        "token of another directory": "another Entra tenant",
        "wrong key": "az cosmosdb keys list",
        "clock": "clock of this machine differs from the service's by more than 15 minutes",
    }[case]
    at = {"ENDPOINT": provisioned.endpoint}
    if case == "expired token":
        async with identity(provisioned, monkeypatch, APP_SERVICE, lifetime=-1):
            code, *shown = await run(command, **at, **IDENTITY)
    elif case == "token of another directory":
        async with CosmosEmulator(tls=True) as other, identity(other, monkeypatch, APP_SERVICE):
            code, *shown = await run(command, **at, **IDENTITY)
    elif case == "wrong key":
        code, *shown = await run(command, **at, KEY="d3Jvbmc=")
    else:
        provisioned._authenticator._clock = lambda: time.time() + 3600
        code, *shown = await run(command, **at, KEY=provisioned.key)
    text = " ".join(" ".join(shown).split())
    assert code == 4
    assert said in text
    assert not any(secret in text for secret in (provisioned.key, "d3Jvbmc=", "eyJ"))
