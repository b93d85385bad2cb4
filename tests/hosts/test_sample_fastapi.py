"""The FastAPI sample, asked over HTTP with real tokens: who is let in, and what he finds."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import uuid4

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from cosmos_workflow_state.errors import FactoryClosedError
from support.hosting import client_of

SAMPLE = Path(__file__).parents[2] / "samples" / "multi_tenant" / "fastapi_app.py"
KEY = "0123456789abcdef" * 4
AUDIENCE = "https://trips.example"


@pytest.fixture(autouse=True)
def _environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set what the sample's reader sets, in a directory of its own."""
    for name in [name for name in os.environ if "COSMOS" in name]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("COSMOS_WORKFLOW_STATE_ENDPOINT", f"embedded:{tmp_path / 'state.db'}")
    monkeypatch.setenv("TOKEN_KEY", KEY)


def sample() -> ModuleType:
    """Return the sample, loaded anew."""
    spec = spec_from_file_location("fastapi_app", SAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@asynccontextmanager
async def served() -> AsyncGenerator[httpx.AsyncClient]:
    """Start the sample's app, as a process does that has just begun."""
    async with client_of(sample().app) as client:
        yield client


def claims_of(tenant: str | None = "contoso", **changes: Any) -> dict[str, Any]:
    """Return the claims of a valid token, changed; what is None is left out."""
    claims = {"aud": AUDIENCE, "exp": int(time.time()) + 60, "tid": tenant} | changes
    return {name: value for name, value in claims.items() if value is not None}


def bearer(token: str) -> dict[str, str]:
    """Return the header that a token goes in."""
    return {"Authorization": f"Bearer {token}"}


def of(tenant: str) -> dict[str, str]:
    """Return the header of a caller with a valid token."""
    return bearer(jwt.encode(claims_of(tenant), KEY, "HS256"))


def unsigned() -> str:
    """Return a token that says it needs no signature."""
    return jwt.encode(claims_of(), None, "none")


def signature_taken_off() -> str:
    """Return a token that says it is signed, and is not."""
    return jwt.encode(claims_of(), KEY, "HS256").rpartition(".")[0] + "."


def changed_afterwards() -> str:
    """Return fabrikam's token with contoso's name written into it."""
    head, _, signature = jwt.encode(claims_of("fabrikam"), KEY, "HS256").split(".")
    body = base64.urlsafe_b64encode(json.dumps(claims_of()).encode()).rstrip(b"=").decode()
    return f"{head}.{body}.{signature}"


def another_algorithm() -> str:
    """Return a token that somebody has signed in another way, with a key of his own."""
    return jwt.encode(claims_of(), rsa.generate_private_key(public_exponent=65537, key_size=2048), "RS256")


async def test_a_trip_outlives_its_process() -> None:
    """It is started in one process and answered in another one; a second answer finds nothing that waits."""
    async with served() as client:
        started = await client.post("/trips", params={"city": "Oslo"}, headers=of("contoso"))
    path = f"/trips/{started.json()['trip_id']}/answer"
    async with served() as client:
        answered = await client.post(path, params={"answer": "yes"}, headers=of("contoso"))
        again = await client.post(path, params={"answer": "yes"}, headers=of("contoso"))

    assert (started.status_code, answered.status_code, again.status_code) == (201, 200, 409)
    assert answered.json() == {"decided": "Oslo: yes"}


async def test_another_tenants_trip_is_not_found() -> None:
    """Its id is of no use to another tenant, who is told what he is told of an id that nobody has."""
    async with served() as client:
        started = await client.post("/trips", params={"city": "Oslo"}, headers=of("contoso"))
        ids = (started.json()["trip_id"], uuid4())
        told = [
            await client.post(f"/trips/{trip_id}/answer", params={"answer": "yes"}, headers=of("fabrikam"))
            for trip_id in ids
        ]
        own = await client.post(f"/trips/{ids[0]}/answer", params={"answer": "yes"}, headers=of("contoso"))

    assert [(response.status_code, response.json()) for response in told] == [(404, {"detail": "no such trip"})] * 2
    assert own.status_code == 200


@pytest.mark.parametrize(
    ("token", "status"),
    [
        pytest.param(lambda: jwt.encode(claims_of(aud="https://other.example"), KEY, "HS256"), 401, id="audience"),
        pytest.param(lambda: jwt.encode(claims_of(aud=None), KEY, "HS256"), 401, id="no audience"),
        pytest.param(lambda: jwt.encode(claims_of(exp=int(time.time()) - 1), KEY, "HS256"), 401, id="expired"),
        pytest.param(lambda: jwt.encode(claims_of(exp=None), KEY, "HS256"), 401, id="never expires"),
        pytest.param(lambda: jwt.encode(claims_of(nbf=int(time.time()) + 60), KEY, "HS256"), 401, id="not yet"),
        pytest.param(lambda: jwt.encode(claims_of(), KEY[::-1], "HS256"), 401, id="another key"),
        pytest.param(lambda: jwt.encode(claims_of(), KEY * 2, "HS512"), 401, id="another hash"),
        pytest.param(another_algorithm, 401, id="another algorithm"),
        pytest.param(unsigned, 401, id="unsigned"),
        pytest.param(signature_taken_off, 401, id="signature taken off"),
        pytest.param(changed_afterwards, 401, id="changed afterwards"),
        pytest.param(lambda: "no-token", 401, id="no token"),
        pytest.param(lambda: jwt.encode(claims_of(None), KEY, "HS256"), 403, id="no claim"),
        pytest.param(lambda: jwt.encode(claims_of(""), KEY, "HS256"), 403, id="empty claim"),
        pytest.param(lambda: jwt.encode(claims_of("con/toso"), KEY, "HS256"), 403, id="refused claim"),
        pytest.param(lambda: jwt.encode(claims_of(tid=["contoso"]), KEY, "HS256"), 403, id="claim of another kind"),
    ],
)
async def test_a_token_that_does_not_name_a_tenant_is_refused(token: Callable[[], str], status: int) -> None:
    """Neither way in is open to it, and the answer says no more than that."""
    async with served() as client:
        for path in ("/trips?city=Oslo", f"/trips/{uuid4()}/answer?answer=yes"):
            refused = await client.post(path, headers=bearer(token()))
            assert (refused.status_code, KEY in refused.text, "contoso" in refused.text) == (status, False, False)


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Basic Y29udG9zbzo="}, {"Authorization": "Bearer"}], ids=str)
async def test_a_request_without_a_token_is_refused(headers: dict[str, str]) -> None:
    """A tenant that is named anywhere else does not count."""
    async with served() as client:
        named = {"tid": "contoso", "tenant": "contoso", "city": "Oslo"}
        refused = await client.post("/trips", params=named, headers=headers | {"X-Tenant-Id": "contoso"})

    assert refused.status_code == 401


async def test_a_trip_that_was_not_saved_is_not_promised(monkeypatch: pytest.MonkeyPatch) -> None:
    """The framework's run goes on when a save fails; the sample asks, and says so."""
    monkeypatch.setenv("COSMOS_WORKFLOW_STATE_MAX_PAYLOAD_BYTES", "1024")
    async with served() as client:
        refused = await client.post("/trips", params={"city": "O" * 5000}, headers=of("contoso"))

    assert (refused.status_code, refused.json()) == (503, {"detail": "the trip could not be saved"})


async def test_the_factory_is_open_as_long_as_the_app_serves() -> None:
    """Both requests of a trip reach the service through one factory, and nothing does once the app has ended."""
    module = sample()
    async with client_of(module.app) as client:
        factory = module.app.state.factory
        started = await client.post("/trips", params={"city": "Oslo"}, headers=of("contoso"))
        path = f"/trips/{started.json()['trip_id']}/answer"
        answered = await client.post(path, params={"answer": "no"}, headers=of("contoso"))

    assert (answered.status_code, module.app.state.factory) == (200, factory)
    with pytest.raises(FactoryClosedError):
        factory.for_tenant("contoso")


def run(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Return the sample run as a script."""
    command = [sys.executable, "-W", "error", str(SAMPLE), *arguments]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("key", [None, ""], ids=["no key", "empty key"])
@pytest.mark.parametrize("command", [["serve"], ["token", "contoso"]], ids=["serve", "token"])
def test_without_a_key_for_tokens_it_does_not_start(
    key: str | None, command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no default that would let everybody in; the reader is told what to do, in one sentence."""
    monkeypatch.delenv("TOKEN_KEY")
    if key is not None:
        monkeypatch.setenv("TOKEN_KEY", key)
    told = run(tmp_path, *command)

    assert (told.returncode, told.stdout) == (1, "")
    assert told.stderr == "set TOKEN_KEY first, as is said at the top of this file\n"


async def test_the_token_that_it_prints_is_accepted(tmp_path: Path) -> None:
    """A reader can try it without an identity provider."""
    printed = run(tmp_path, "token", "contoso")
    async with served() as client:
        started = await client.post("/trips", params={"city": "Oslo"}, headers=bearer(printed.stdout.strip()))

    assert (printed.returncode, printed.stderr, started.status_code) == (0, "", 201)


def test_it_tells_how_it_is_used(tmp_path: Path) -> None:
    """Whoever just runs it is shown the commands."""
    shown = run(tmp_path)

    assert (shown.returncode, shown.stdout) == (2, "")
    assert "python fastapi_app.py serve " in shown.stderr
