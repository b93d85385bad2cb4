"""The server at the level of bytes: hosts, sizes, hostile requests, opening and closing."""

from __future__ import annotations

import asyncio
import base64
import json
import random
import socket
import sys
import time
from email.utils import formatdate
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from cosmos_workflow_state import emulator
from cosmos_workflow_state.emulator import CosmosEmulator, Fault
from cosmos_workflow_state.emulator._engine._engine import Engine
from cosmos_workflow_state.emulator._gateway._auth import Authenticator, _payloads, sign
from cosmos_workflow_state.emulator._gateway._gateway import Gateway
from cosmos_workflow_state.emulator._hosts import RemoteAccessError
from cosmos_workflow_state.emulator._server import Server
from cosmos_workflow_state.emulator._service import Service
from cosmos_workflow_state.emulator._tokens import issue_token
from cosmos_workflow_state.emulator._values import Request
from support.servers import emulator_process, loaded_by

ITEMS = "/dbs/db/colls/items/docs"
MAX_BODY = 2 * 1024 * 1024
PROMPTLY = 5.0


class Line:
    """Raw requests to an emulator, a connection each."""

    def __init__(self, endpoint: str, key: str) -> None:
        """Set the emulator's endpoint and key."""
        self._port = urlsplit(endpoint).port
        self._secret = base64.b64decode(key)
        self.key = key

    async def raw(self, data: bytes) -> bytes:
        """Send bytes and return all that comes back until the connection ends."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            writer.write(data)
            return await asyncio.wait_for(reader.read(), PROMPTLY)
        except ConnectionError:
            # The server was done with the request before it had read all of it.
            return b""
        finally:
            writer.close()

    async def status(self, data: bytes) -> int:
        """Send bytes and return the status of the answer; 0 for none."""
        answer = await self.raw(data)
        return int(answer.split(b" ", 2)[1]) if answer else 0

    async def ask(
        self, method: str, path: str, body: bytes = b"", *, signed: str | None = None, **headers: str
    ) -> tuple[int, bytes]:
        """Send a signed request and return status and body."""
        date = formatdate(usegmt=True)
        payload = _payloads(Request(method, signed or path, {"x-ms-date": date}, b""))[0]
        signature = sign(self._secret, payload)
        sent = {
            "host": "localhost",
            "connection": "close",
            "content-length": str(len(body)),
            "x-ms-date": date,
            "authorization": f"type=master&ver=1.0&sig={signature.decode()}",
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in sent.items()), "", ""]
        answer = await self.raw("\r\n".join(lines).encode("utf-8", "surrogateescape") + body)
        head, _, content = answer.partition(b"\r\n\r\n")
        return int(head.split(b" ", 2)[1]), content


async def prepare(line: Line) -> None:
    """Create database and container."""
    assert (await line.ask("POST", "/dbs", b'{"id":"db"}'))[0] == 201
    container = b'{"id":"items","partitionKey":{"paths":["/k"],"kind":"Hash","version":2}}'
    assert (await line.ask("POST", "/dbs/db/colls", container))[0] == 201


async def prepared(emulator: CosmosEmulator) -> Line:
    """Return the line to an emulator with database and container."""
    line = Line(emulator.endpoint, emulator.key)
    await prepare(line)
    return line


@pytest.mark.parametrize(
    ("host", "status"), [("localhost", 401), ("127.0.0.1:1", 401), ("evil.example.org", 400), ("[::1", 400)]
)
async def test_the_host_header_is_checked(host: str, status: int) -> None:
    """A request under a name that is not the emulator's is refused before anything is looked at."""
    async with CosmosEmulator() as emulator:
        request = f"GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        assert await Line(emulator.endpoint, emulator.key).status(request.encode()) == status


async def test_clients_are_sent_to_where_they_came_by() -> None:
    """Behind a mapped port or another name of this machine, the account is where the client reached it."""
    async with CosmosEmulator() as opened:
        for host in ("localhost:1234", "127.0.0.1"):
            _, account = await Line(opened.endpoint, opened.key).ask("GET", "/", host=host)
            assert f'"databaseAccountEndpoint":"http://{host}/"'.encode() in account


async def test_a_whole_url_as_target() -> None:
    """Clients that take the emulator for a proxy send the whole URL; its path counts, without query and fragment."""
    async with CosmosEmulator() as emulator:
        line = await prepared(emulator)
        for target in ("http://localhost/dbs/db", "/dbs/db?x=1", "/dbs/db/#x"):
            assert (await line.ask("GET", target, signed="/dbs/db"))[0] == 200


@pytest.mark.parametrize("padding", [MAX_BODY, 3 * MAX_BODY])
async def test_a_body_that_is_too_large_is_413(padding: int) -> None:
    """Not more than the limit is kept of a body; the answer is the service's, and the server goes on."""
    async with CosmosEmulator() as emulator:
        line = await prepared(emulator)
        key = {"x_ms_documentdb_partitionkey": '["k"]'}
        body = b'{"id":"a","k":"k","text":"%b"}' % (b"x" * padding)
        status, answer = await line.ask("POST", ITEMS, body, **key)
        assert (status, b"RequestEntityTooLarge" in answer) == (413, True)
        assert (await line.ask("POST", ITEMS, b'{"id":"a","k":"k"}', **key))[0] == 201


def hand_made() -> list[dict[str, Any]]:
    """Return requests that somebody with the key thought of."""
    query = {"x_ms_documentdb_isquery": "true", "x_ms_documentdb_query_enablecrosspartition": "True"}
    key = {"x_ms_documentdb_partitionkey": '["k"]'}
    batch = {"x_ms_cosmos_is_batch_request": "True", **key}
    bodies = [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"id":1}', b'{"id":"a"}', b'{"id":""}', b'{"id":NaN}']
    bodies += [b"[" * 100_000, b'{"id":"a","k":"k","x":' + b"[" * 500 + b"]" * 500 + b"}", b'{"id":"a/b","k":"k"}']
    texts = [b"", b"SELECT", b"SELECT * FROM", b"DROP TABLE c", b"SELECT * FROM c WHERE " + b"(" * 10_000]
    texts += [b"SELECT * FROM c WHERE c.x = '" + b"x" * 512 * 1024, b"SELECT " + b"-" * 100_000 + b"c FROM c"]
    texts += [b"SELECT * FROM c WHERE " + b"NOT " * 50_000 + b"true", b"\\u0000", b"SELECT @missing FROM c"]
    keys = ["", "[", "k", "{}", '["a","b"]', "[[]]", "[" * 50_000, '[{"a":1}]']
    requests: list[dict[str, Any]] = [
        *({"method": "POST", "path": ITEMS, "body": body, **key} for body in bodies),
        *({"method": "POST", "path": ITEMS, "body": body, **batch} for body in bodies),
        *({"method": "POST", "path": ITEMS, "body": body, **query} for body in bodies),
        *({"method": "POST", "path": ITEMS, "body": b'{"query":"%b"}' % text, **query} for text in texts),
        *(
            {"method": "POST", "path": ITEMS, "body": b'{"id":"a","k":"k"}', "x_ms_documentdb_partitionkey": text}
            for text in keys
        ),
        *({"method": "POST", "path": path, "body": body} for path in ("/dbs", "/dbs/db/colls") for body in bodies[:6]),
    ]
    tricks = ["/.", "/..", "/dbs/..", "/dbs/%2e%2e", "/dbs/db%2fcolls", "/x//", "/dbs//db/x", f"{ITEMS}/%00", "/%ff"]
    tricks += [f"{ITEMS}/..%2f..", f"{ITEMS}/{'x' * 5000}", "/dbs/db/colls/items/sprocs", "/etc/passwd", "/dbs/" + "é"]
    requests += [{"method": method, "path": path} for method in ("GET", "PUT", "DELETE", "TRACE") for path in tricks]
    return requests


async def test_hostile_requests_are_refused_and_change_nothing() -> None:
    """Each of 200 malformed requests is answered promptly with a 4xx, and the server is as it was."""
    async with CosmosEmulator() as emulator:
        line = await prepared(emulator)
        requests = hand_made()
        for request in requests:
            status, _ = await line.ask(**request)
            shown = {name: value[:80] for name, value in request.items()}
            assert 400 <= status < 500, shown
        generator = random.Random(7)
        line_and_host = b"GET /dbs/db/colls HTTP/1.1\r\nHost: localhost\r\n"
        rest = b"Connection: close\r\nContent-Length: 12\r\n\r\n" + b'{"id":"abcd"}'
        for _ in range(200):
            data = bytearray(line_and_host)
            for _ in range(generator.randrange(1, 8)):
                data[generator.randrange(len(data))] = generator.randrange(256)
            assert await line.status(data + rest) in {0, *range(400, 500)}, bytes(data)
        head = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        assert await line.status(head + b"X: " + b"x" * 1_000_000 + b"\r\n\r\n") in {0, 400, 431}
        assert await line.status(head + b"X: x\r\n" * 100_000 + b"\r\n") in {0, 400, 401, 431}
        assert (await line.ask("GET", "/dbs/db/colls/items"))[0] == 200
        _, items = await line.ask("GET", ITEMS)
        assert b'"_count":0' in items


MEMORY = Path("/proc/self/status")


@pytest.mark.skipif(not MEMORY.exists(), reason="only Linux tells the memory of a process in this way")
async def test_hostile_requests_leave_no_memory_behind() -> None:
    """Five times as many hostile requests need no more memory than the first ones did."""

    def used(process: int) -> int:
        """Return the memory of a process in KiB."""
        status = Path(f"/proc/{process}/status").read_text("utf-8")
        return int(status.split("VmRSS:", 1)[1].split()[0])

    with emulator_process() as server:
        line = Line(server.shown("endpoint"), server.shown("key"))
        await prepare(line)
        for request in hand_made():
            await line.ask(**request)
        before = used(server.process.pid)
        for request in hand_made() * 5:
            await line.ask(**request)
        assert used(server.process.pid) - before < 32 * 1024
        server.process.kill()


@pytest.mark.parametrize("coding", ["gzip", "deflate", "zstd", "br"])
async def test_a_body_that_is_not_what_its_headers_say(coding: str) -> None:
    """Junk in place of compressed bytes is refused, whoever sends it."""
    async with CosmosEmulator() as emulator:
        line = Line(emulator.endpoint, emulator.key)
        assert (await line.ask("POST", "/dbs", b"junk", content_encoding=coding))[0] == 400


async def test_a_signature_that_is_no_text() -> None:
    """Bytes that are no UTF-8 in a signature are a wrong signature."""
    async with CosmosEmulator() as emulator:
        line = Line(emulator.endpoint, emulator.key)
        head = b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nauthorization: type=master&ver=1.0&sig=\xff"
        assert await line.status(head + b"\r\n\r\n") == 401


async def test_a_client_that_waits_to_be_asked_for_its_body() -> None:
    """Expect: 100-continue is answered before the body is read."""
    async with CosmosEmulator() as emulator:
        line = Line(emulator.endpoint, emulator.key)
        head = "POST /dbs HTTP/1.1", "host: localhost", "connection: close", "expect: 100-continue", "content-length: 2"
        answer = await line.raw("\r\n".join((*head, "", "{}")).encode())
        assert answer.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 401 ")


@pytest.mark.parametrize("name", ["\0", "a\nb", "a\x1fb", "a\x7fb"])
async def test_names_that_no_header_can_hold(name: str) -> None:
    """A control character in a container's name is refused, before anything is in the container."""
    async with CosmosEmulator() as emulator:
        line = await prepared(emulator)
        container = json.dumps({"id": name, "partitionKey": {"paths": ["/k"], "kind": "Hash", "version": 2}})
        assert (await line.ask("POST", "/dbs/db/colls", container.encode()))[0] == 400


@pytest.mark.parametrize("kind", [["Create"], {}, 1, None])
async def test_a_batch_of_no_operation(kind: object) -> None:
    """The kind of an operation is a text of a list, or the batch is refused."""
    async with CosmosEmulator() as emulator:
        line = await prepared(emulator)
        batch = json.dumps([{"operationType": kind}]).encode()
        flags = {"x_ms_cosmos_is_batch_request": "True", "x_ms_documentdb_partitionkey": '["k"]'}
        assert (await line.ask("POST", ITEMS, batch, **flags))[0] == 400


async def test_a_dropped_connection_has_no_answer() -> None:
    """Not a byte comes back."""
    async with CosmosEmulator() as emulator:
        line = await prepared(emulator)
        emulator.faults.add(Fault(drop="before", operation="list"))
        with pytest.raises(IndexError):
            await line.ask("GET", ITEMS)
        assert (await line.ask("GET", ITEMS))[0] == 200


async def test_the_admin_route_only_when_asked_for() -> None:
    """Faults are set over HTTP by who has the key, on emulators that were opened for it."""
    for admin, status in ((False, 401), (True, 200)):
        async with CosmosEmulator(admin=admin) as emulator:
            line = Line(emulator.endpoint, emulator.key)
            bearer = {"authorization": f"Bearer {line.key}"}
            assert (await line.ask("GET", "/_emulator/settings", **bearer))[0] == status


async def test_a_port_that_is_taken() -> None:
    """The error is the system's, and nothing stays open."""
    async with CosmosEmulator() as emulator:
        with pytest.raises(OSError, match="address already in use"):
            await CosmosEmulator(port=emulator._port).__aenter__()
        with pytest.raises(OSError, match="address already in use"), CosmosEmulator(port=emulator._port):
            pass


async def test_opening_and_closing_in_every_order() -> None:
    """Open once, close as often as you like; there is no endpoint before, and a second time is possible."""
    emulator = CosmosEmulator()
    with pytest.raises(RuntimeError, match="not open"):
        _ = emulator.endpoint
    await emulator.__aexit__(None, None, None)
    emulator.__exit__(None, None, None)
    async with emulator:
        first = emulator.endpoint
        with pytest.raises(RuntimeError, match="open already"):
            await emulator.__aenter__()
    async with emulator:
        assert emulator.endpoint == first


def test_what_cannot_be_meant_is_refused_at_once() -> None:
    """No other machines by mistake, no partitions below 1, no key that is none."""
    with pytest.raises(RemoteAccessError):
        CosmosEmulator(host="0.0.0.0")  # noqa: S104 - refused
    with pytest.raises(ValueError, match="partitions"):
        CosmosEmulator(partitions=0)
    with pytest.raises(ValueError, match="base64"):
        CosmosEmulator(key="no key")


async def test_other_machines_when_allowed() -> None:
    """Listening everywhere, the endpoint still is one that works here, and addresses are accepted as host."""
    async with CosmosEmulator(host="0.0.0.0", allow_remote=True) as emulator:  # noqa: S104 - allowed
        assert emulator.endpoint.startswith("http://127.0.0.1:")
        request = b"GET / HTTP/1.1\r\nHost: 10.1.2.3\r\nConnection: close\r\n\r\n"
        assert await Line(emulator.endpoint, emulator.key).status(request) == 401


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this machine has no IPv6")
async def test_the_newer_kind_of_address() -> None:
    """IPv6 works, and its endpoint has brackets."""
    async with CosmosEmulator(host="::1") as emulator:
        assert emulator.endpoint.startswith("http://[::1]:")


async def test_tls_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to install."""
    monkeypatch.setitem(sys.modules, "trustme", None)
    with pytest.raises(ModuleNotFoundError, match=r"cosmos-workflow-state\[emulator\]"):
        await CosmosEmulator(tls=True).__aenter__()


async def test_an_engine_that_is_closed_is_503() -> None:
    """A request that comes while the emulator closes gets an answer that clients repeat."""
    key = base64.b64encode(b"key").decode()
    engine = Engine.open(None)
    service = Service(Authenticator(key), lambda _: Gateway(engine))
    engine.close()
    token = issue_token(key, "reader", time.time())
    request = Request("GET", "/dbs/db", {"authorization": f"type=aad&ver=1.0&sig={token}"}, b"")
    assert (await service.handle(request)).status == 503


async def test_a_server_that_never_started_can_be_stopped() -> None:
    """Stopping is always possible."""

    async def nobody(_: Any) -> Any:
        raise AssertionError

    await Server(nobody, CosmosEmulator()._hosts).stop()


def test_neither_azure_nor_the_framework_is_loaded() -> None:
    """Importing and running the emulator, with TLS, loads neither."""
    program = (
        "import asyncio, sys\n"
        "from cosmos_workflow_state.emulator import CosmosEmulator\n"
        "async def main():\n"
        "    async with CosmosEmulator(tls=True) as emulator: emulator.token()\n"
        "asyncio.run(main())"
    )
    assert loaded_by(program, "azure", "agent_framework", "pydantic") == []


def test_the_embedded_engine_loads_no_server() -> None:
    """What only the server needs is not loaded for the engine, and there is nothing else by a public name."""
    program = "import cosmos_workflow_state.emulator._gateway._gateway"
    assert loaded_by(program, "aiohttp", "trustme") == []
    with pytest.raises(AttributeError, match="Nothing"):
        _ = emulator.Nothing
