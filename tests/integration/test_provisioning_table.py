"""Every kind of drift, whatever looks at it: what is said and done, and that what is there stays, to the byte."""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
import structlog
from azure.cosmos.aio import CosmosClient

from cosmos_workflow_state import CosmosStateFactory, errors
from cosmos_workflow_state._definitions import CHECKPOINTS
from cosmos_workflow_state.emulator import CosmosEmulator
from cosmos_workflow_state.emulator._gateway._auth import sign
from support.commands import Run, by_key, runner
from support.drifts import DRIFTS, Drift, make_drifted

NAME = "checkpoints"
OF_REPAIR = {"default TTL": "defaultTtl", "indexing policy": "indexingPolicy"}
OF_EVERY_CHANGE = {"_etag", "_ts"}

every_drift = pytest.mark.parametrize("drift", DRIFTS.values(), ids=list(DRIFTS))


@dataclass(frozen=True)
class Account:
    """An emulator, in it a database with one container that may have drifted, and the command line that reaches it."""

    emulator: CosmosEmulator
    database: str
    command: Run

    async def make(self, drift: Drift) -> None:
        """Create the database and the container."""
        async with CosmosClient(self.emulator.endpoint, self.emulator.key) as client:
            await make_drifted(client, self.database, NAME, drift)

    async def raw(self) -> bytes:
        """Return the container's definition as the emulator sends it, asked without any client of Cosmos DB."""
        path, date = f"dbs/{self.database}/colls/{NAME}", formatdate(usegmt=True)
        signature = sign(base64.b64decode(self.emulator.key), f"get\ncolls\n{path}\n{date.lower()}\n\n".encode())
        proof = quote(f"type=master&ver=1.0&sig={signature.decode()}", safe="")
        headers = {"authorization": proof, "x-ms-date": date, "x-ms-version": "2020-07-15"}
        async with httpx.AsyncClient() as http:
            answer = await http.get(f"{self.emulator.endpoint}{path}", headers=headers)
        return answer.raise_for_status().content

    async def run(self, *arguments: str) -> tuple[int, str, str]:
        """Run a command: exit code, output and complaints."""
        return await self.command(*arguments, DATABASE=self.database, **by_key(self.emulator))

    async def checked(self, *arguments: str) -> tuple[int, list[dict[str, Any]]]:
        """Run the doctor; return its exit code and what it says of the container."""
        code, output, complaints = await self.run("doctor", "--json", *arguments)
        assert complaints == ""
        found = [check for check in json.loads(output)["checks"] if check["name"] == "container"]
        assert [check["status"] for check in found[-2:]] == [
            "note",
            "note",
        ]  # history and sessions, which are not there
        return code, found[:-2]


@pytest.fixture(scope="module")
def emulator() -> Iterator[CosmosEmulator]:
    """Yield an emulator over http."""
    with CosmosEmulator() as opened:
        yield opened


@pytest.fixture
def account(
    emulator: CosmosEmulator, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Iterator[Account]:
    """Yield a database of the test's own, not created yet."""
    monkeypatch.chdir(tmp_path)
    yield Account(emulator, f"state-{uuid.uuid4().hex[:12]}", runner(monkeypatch, capsys))
    structlog.reset_defaults()


@every_drift
@pytest.mark.parametrize("mode", ["verify", "create", "skip"])
async def test_opening(account: Account, drift: Drift, mode: str) -> None:
    """All that differs is in one error, each with its remedy; `skip` looks at nothing; the container stays as it is."""
    await account.make(drift)
    before = await account.raw()
    settings = account.emulator.settings(database=account.database, provisioning=mode)
    async with CosmosStateFactory(settings) as factory:
        if mode == "skip" or not drift.said:
            await factory._connection.container(CHECKPOINTS)
        else:
            with pytest.raises(errors.ProvisioningError) as caught:
                await factory.for_tenant("contoso").checkpoints.load("cp-1")
            _check(drift, list(caught.value.problems))
            assert all(problem in str(caught.value) for problem in caught.value.problems)
            assert not caught.value.retryable
    assert await account.raw() == before


def _check(drift: Drift, problems: list[str]) -> None:
    """Check that the problems are those of the drift, in order, each with a remedy behind a colon."""
    assert len(problems) == len(drift.said)
    for (subject, text), problem in zip(drift.said, problems, strict=True):
        found, colon, remedy = problem.partition(": ")
        assert text in found
        assert colon
        assert ("use another container" in remedy) is (subject == "partition key")


@every_drift
async def test_doctor(account: Account, drift: Drift) -> None:
    """One check for each difference, which says whether `--fix` helps; looking changes nothing."""
    await account.make(drift)
    before = await account.raw()
    code, found = await account.checked()
    assert code == (6 if drift.said else 0)
    if drift.said:
        of_it = f"{account.database}/{NAME}: "
        assert all(check["found"].startswith(of_it) for check in found)
        _check(drift, [f"{check['found'].removeprefix(of_it)}: {check['remedy']}" for check in found])
        for check in found:
            assert check["status"] == "failed"
            assert ("`doctor --fix`" in check["remedy"]) is drift.repairable
    assert await account.raw() == before


@every_drift
async def test_provision(account: Account, drift: Drift) -> None:
    """What is there is verified only: an error with every difference, and the way to repair it where there is one."""
    await account.make(drift)
    before = await account.raw()
    code, _, complaints = await account.run("provision", "--yes")
    assert code == (6 if drift.said else 0)
    assert all(text in complaints for _, text in drift.said)
    assert ("`doctor --fix`" in complaints) is (bool(drift.said) and drift.repairable)
    assert await account.raw() == before


@every_drift
async def test_fix(account: Account, drift: Drift) -> None:
    """Only what is wrong of indexing policy and TTL changes, once; under another key nothing does, and all is said."""
    await account.make(drift)
    before = await account.raw()
    refused = await account.run("doctor", "--fix")
    assert await account.raw() == before
    code, found = await account.checked("--fix", "--yes")
    after = await account.raw()
    assert code == (0 if drift.repairable else 6)
    assert _changed(before, after) == _to_be_changed(drift)
    assert refused[0] == (2 if _to_be_changed(drift) else code)
    assert [check["status"] for check in found] == (["ok"] if drift.repairable else ["failed"] * len(drift.said))
    assert (await account.checked("--fix", "--yes"))[0] == code
    assert await account.raw() == after


def _to_be_changed(drift: Drift) -> set[str]:
    named = {OF_REPAIR[subject] for subject, _ in drift.said if drift.repairable}
    return named | OF_EVERY_CHANGE if named else set()


def _changed(before: bytes, after: bytes) -> set[str]:
    """Return the names of what is different; the time, which has whole seconds, counts as changed where the tag is."""
    one, other = json.loads(before), json.loads(after)
    changed = {name for name in one.keys() | other.keys() if one.get(name) != other.get(name)}
    return changed | {"_ts"} if "_etag" in changed else changed
