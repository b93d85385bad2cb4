"""What ``doctor`` says of the way to the service: names, certificates, silence, proxies and clocks, on loopback."""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import ssl
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import structlog
import trustme

from cosmos_workflow_state.emulator import CosmosEmulator
from support.commands import PREFIX, Run, by_key, checked, runner

ELSEWHERE = "127.0.0.2"
"""An address of this machine that is treated as any other one: its certificate counts."""
WITH_CLOCK_OFF = """
import sys, time
now, ahead = time.time, int(sys.argv.pop(1))
time.time = lambda: now() + ahead
from cosmos_workflow_state._cli import main
sys.exit(main())
"""


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Run]:
    """Yield a function that runs a command with these settings only: exit code, output and complaints."""
    monkeypatch.chdir(tmp_path)
    yield runner(monkeypatch, capsys)
    structlog.reset_defaults()


@pytest.fixture
async def emulator() -> AsyncIterator[CosmosEmulator]:
    """Yield an emulator over TLS, without a container."""
    async with CosmosEmulator(tls=True) as opened:
        yield opened


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> trustme.CA:
    """Return an authority that this machine trusts."""
    made = trustme.CA()
    made.cert_pem.write_to_path(tmp_path / "authority.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    return made


@asynccontextmanager
async def tls_server(certificate: trustme.LeafCert, asked: list[bytes]) -> AsyncGenerator[int]:
    """Yield the port of a server that shows a certificate, keeps what it is asked, and hangs up."""

    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.read(1))
        writer.close()

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    async with await asyncio.start_server(hang_up, ELSEWHERE, 0, ssl=context) as server:
        yield server.sockets[0].getsockname()[1]


@pytest.mark.parametrize(
    ("name", "trusted", "said"),
    [
        (ELSEWHERE, False, "the certificate is not trusted: "),
        ("contoso.example", True, f"certificate is not valid for '{ELSEWHERE}'"),
    ],
    ids=["unknown authority", "other name"],
)
async def test_certificates_that_are_not_trusted(
    run: Run, authority: trustme.CA, name: str, said: str, *, trusted: bool
) -> None:
    """An endpoint that is not of this machine must prove who it is; where it cannot, nothing is sent to it."""
    certificate = (authority if trusted else trustme.CA()).issue_cert(name)
    asked: list[bytes] = []
    async with tls_server(certificate, asked) as port:
        code, statuses, document = await checked(run, ENDPOINT=f"https://{ELSEWHERE}:{port}", KEY="a2V5")
    tls = document["checks"][1]

    assert (code, list(statuses), tls["status"]) == (5, ["dns", "tls", "versions"], "failed")
    assert said in tls["found"]
    assert "SSL_CERT_FILE" in tls["remedy"]
    assert asked == []


async def test_a_certificate_that_is_trusted(run: Run, authority: trustme.CA) -> None:
    """With the authority in SSL_CERT_FILE, as the remedy says, TLS is right; that this is no account shows later."""
    async with tls_server(authority.issue_cert(ELSEWHERE), []) as port:
        settings = {"ENDPOINT": f"https://{ELSEWHERE}:{port}", "KEY": "a2V5", "OPERATION_TIMEOUT": "1"}
        code, statuses, document = await checked(run, **settings)

    assert (code, statuses["tls"], statuses["service"]) == (5, ["ok"], ["failed"])
    assert document["checks"][1]["found"].endswith("the certificate is verified")


@pytest.mark.parametrize(("scheme", "failed"), [("https", "tls"), ("http", "service")])
async def test_an_endpoint_that_never_answers(run: Run, scheme: str, failed: str) -> None:
    """What takes connections and then says nothing is given up in the time of the settings, and may work later."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = f"{scheme}://127.0.0.1:{silent.getsockname()[1]}"
        code, statuses, document = await checked(run, ENDPOINT=endpoint, KEY="a2V5", OPERATION_TIMEOUT="0.3")

    assert (code, statuses[failed]) == (5, ["failed"])
    assert scheme == "http" or "(no answer in 0.3 seconds)" in json.dumps(document)


async def test_a_name_that_is_not_there(run: Run) -> None:
    """A mistyped account, or a private endpoint without its zone: said so, and nothing more is tried."""
    code, statuses, document = await checked(run, ENDPOINT="https://no-such-account.invalid/", KEY="a2V5")
    dns = document["checks"][0]

    assert (code, statuses) == (5, {"dns": ["failed"], "versions": ["ok"]})
    assert dns["found"] == "no-such-account.invalid has no address"
    assert "private DNS zone" in dns["remedy"]


@pytest.mark.parametrize(
    ("ahead", "code", "check", "said"),
    [
        (120, 0, "clock: warning", "this machine is 1(19|2[01]) seconds ahead of the service"),
        (-120, 0, "clock: warning", "this machine is 1(19|2[01]) seconds behind the service"),
        (1200, 4, "auth: failed", "The clock of this machine is 20 minutes ahead of the service's, and 15 are allowed"),
        (-1200, 4, "auth: failed", "The clock of this machine is 20 minutes behind the service's"),
    ],
)
async def test_clocks_that_disagree(emulator: CosmosEmulator, ahead: int, code: int, check: str, said: str) -> None:
    """Two minutes are a warning; twenty, and the service lets nobody in: the clock is named, and not the key."""
    settings = {f"{PREFIX}{name}": value for name, value in by_key(emulator).items()}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", WITH_CLOCK_OFF, str(ahead), "doctor", "--json"),
        env={**os.environ, **settings, f"{PREFIX}PROVISIONING": "create"},
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate()
    checks = {f"{one['name']}: {one['status']}": one for one in json.loads(output)["checks"]}

    assert process.returncode == code
    assert re.search(said, json.dumps(checks[check]))


async def test_what_does_not_speak_tls(run: Run) -> None:
    """It fails at TLS, not with a traceback of the client."""
    async with CosmosEmulator() as emulator:
        endpoint = emulator.endpoint.replace("http:", "https:")
        code, statuses, document = await checked(run, ENDPOINT=endpoint, KEY=emulator.key)

    assert (code, statuses["tls"]) == (5, ["failed"])
    assert "does not speak TLS" in json.dumps(document)


async def test_through_a_proxy(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind a proxy names and TLS are the proxy's, so they are not tried."""
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv(f"{PREFIX}OPERATION_TIMEOUT", "2")
    code, statuses, _ = await checked(run, ENDPOINT="https://no-such-account.invalid", KEY="a2V5")

    assert (code, statuses) == (5, {"network": ["ok"], "service": ["failed"], "versions": ["ok"]})
