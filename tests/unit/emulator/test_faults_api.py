"""Faults on demand: which request gets which, the throttle, and the admin's routes."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

import pytest

from cosmos_workflow_state.emulator import Fault
from cosmos_workflow_state.emulator._admin import Admin
from cosmos_workflow_state.emulator._clock import MovableClock
from cosmos_workflow_state.emulator._gateway._faults import ConnectionDroppedError, FaultInjector, Faults
from cosmos_workflow_state.emulator._values import Request, Response

ITEMS = "/dbs/d/colls/c/docs/"
KEY = "a2V5"


def item(method: str = "GET", name: str = "one", **headers: str) -> Request:
    """Make a request for an item."""
    sent = {header.replace("_", "-"): value for header, value in headers.items()}
    return Request(method, ITEMS if method == "POST" else f"{ITEMS}{name}/", sent, b"")


class Wire:
    """Faults in front of a handler that succeeds and keeps what it got."""

    def __init__(self, charge: str | None = "5") -> None:
        """Start at time 0, without faults."""
        self.time = 0.0
        self.faults = Faults(lambda: self.time)
        self.applied: list[Request] = []
        self._headers = {} if charge is None else {"x-ms-request-charge": charge}

    async def answer(self, request: Request) -> Response:
        """Succeed."""
        self.applied.append(request)
        return Response(200, self._headers, b"")

    async def send(self, request: Request) -> Response:
        """Send a request."""
        return await FaultInjector(self.faults, self.answer).handle(request)

    async def statuses(self, *requests: Request) -> list[int]:
        """Send requests and give their statuses."""
        return [(await self.send(request)).status for request in requests]


async def test_the_nth_and_as_many_as_asked_for() -> None:
    """The second and third read fail; other operations neither fail nor count."""
    wire = Wire()
    fault = Fault(operation="read", nth=2, times=2, status=503)
    wire.faults.add(fault)
    assert await wire.statuses(item(), item("DELETE"), item()) == [200, 200, 503]
    assert wire.faults.pending == (fault,)
    assert await wire.statuses(item(), item()) == [503, 200]
    assert wire.faults.pending == ()
    assert len(wire.applied) == 3


async def test_all_from_then_on_until_cleared() -> None:
    """Without an end a fault stays until it is cleared."""
    wire = Wire()
    wire.faults.add(Fault(times=None, status=500))
    assert await wire.statuses(item(), item(), item()) == [500] * 3
    wire.faults.clear()
    assert await wire.statuses(item()) == [200]


async def test_faults_take_turns() -> None:
    """A request goes to the first fault that has something to do; the next request to the next."""
    wire = Wire()
    for status in (500, 503):
        wire.faults.add(Fault(status=status))
    assert await wire.statuses(item(), item(), item()) == [500, 503, 200]


@pytest.mark.parametrize(
    ("fault", "hit"),
    [
        (Fault(status=500), item("POST")),
        (Fault(status=500, operation="create"), item("POST")),
        (Fault(status=500, operation="upsert"), item("POST", x_ms_documentdb_is_upsert="True")),
        (Fault(status=500, operation="batch"), item("POST", x_ms_cosmos_is_batch_request="True")),
        (Fault(status=500, operation="query"), item("POST", x_ms_documentdb_isquery="true")),
        (Fault(status=500, operation="list"), Request("GET", ITEMS, {}, b"")),
        (Fault(status=500, path="dbs/*/colls/c/docs/a b"), item(name="a%20b")),
        (Fault(status=500, resource="account", operation="read"), Request("GET", "/", {}, b"")),
        (Fault(status=500, resource="*", operation="create"), Request("POST", "/dbs", {}, b"")),
    ],
)
async def test_what_matches(fault: Fault, hit: Request) -> None:
    """By resource, operation and path; whatever is left out matches anything."""
    wire = Wire()
    wire.faults.add(fault)
    other = Request("GET", "/dbs/e/colls/", {}, b"")
    assert await wire.statuses(other, hit) == [200, 500]


async def test_the_refusal() -> None:
    """Status, sub-status and time to wait are as asked for; a status without a name is possible, too."""
    wire = Wire()
    wire.faults.add(Fault(status=429, sub_status=3200, retry_after=0.0105))
    response = await wire.send(item())
    assert response.status == 429
    assert response.headers["x-ms-substatus"] == "3200"
    assert response.headers["x-ms-retry-after-ms"] == "11"
    assert json.loads(response.body)["code"] == "TooManyRequests"
    wire.faults.add(Fault(status=449))
    assert json.loads((await wire.send(item())).body)["code"] == "449"


async def test_drops() -> None:
    """A connection is dropped before the operation is applied, or after."""
    wire = Wire()
    wire.faults.add(Fault(drop="before"))
    wire.faults.add(Fault(drop="after"))
    with pytest.raises(ConnectionDroppedError):
        await wire.send(item())
    assert wire.applied == []
    with pytest.raises(ConnectionDroppedError):
        await wire.send(item())
    assert len(wire.applied) == 1


async def test_a_delay_applies_the_operation() -> None:
    """A delay alone only delays."""
    wire = Wire()
    wire.faults.add(Fault(delay=0.001))
    assert await wire.statuses(item()) == [200]


async def test_throttle() -> None:
    """Operations on items spend the budget of a second; below zero they have to wait, and are told how long."""
    wire = Wire(charge="15")
    wire.faults.ru_per_second = 10
    assert await wire.statuses(item()) == [200]
    refused = await wire.send(item())
    assert (refused.status, refused.headers["x-ms-substatus"]) == (429, "3200")
    assert refused.headers["x-ms-retry-after-ms"] == "500"
    assert await wire.statuses(Request("GET", "/dbs/d/", {}, b"")) == [200]
    wire.time = 10.0
    assert await wire.statuses(item(), item()) == [200, 429]
    wire.faults.ru_per_second = None
    assert await wire.statuses(item(), item()) == [200, 200]
    assert len(wire.applied) == 5


async def test_an_answer_without_charge_spends_nothing() -> None:
    """What costs nothing is never throttled; an empty budget waits a millisecond at least."""
    wire = Wire(charge=None)
    wire.faults.ru_per_second = 1
    assert await wire.statuses(item(), item()) == [200, 200]
    wire.faults.spend(1)
    assert (await wire.send(item())).headers["x-ms-retry-after-ms"] == "1"


async def test_partial_keys_are_ignored_when_asked() -> None:
    """Queries lose the range of their partial key; requests without one stay as they are."""
    wire = Wire()
    wire.faults.ignore_partial_keys = True
    query = item("POST", x_ms_start_epk="AA", x_ms_end_epk="AB", x_ms_documentdb_isquery="true")
    plain = item()
    await wire.statuses(query, plain)
    assert wire.applied == [
        Request(
            "POST",
            ITEMS,
            {"x-ms-documentdb-isquery": "true", "x-ms-documentdb-query-enablecrosspartition": "True"},
            b"",
        ),
        plain,
    ]


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"status": 200},
        {"status": 600},
        {"sub_status": 1, "delay": 1.0},
        {"retry_after": 1.0, "delay": 1.0},
        {"status": 500, "drop": "after"},
        {"drop": "during"},
        {"delay": -1.0},
        {"delay": float("inf")},
        {"status": 429, "retry_after": -1.0},
        {"status": 500, "nth": 0},
        {"status": 500, "times": 0},
        {"status": 500, "resource": "documents"},
        {"status": 500, "operation": "write"},
    ],
)
def test_faults_that_cannot_be_meant(fields: Mapping[str, Any]) -> None:
    """A fault that would do nothing or match nothing is refused when it is made, not passed over in a test."""
    with pytest.raises(ValueError, match=r"\.$"):
        Fault(**fields)


@pytest.mark.parametrize("rate", [0, -1, float("inf"), float("nan")])
def test_throttles_that_cannot_be_meant(rate: float) -> None:
    """A rate has to be above 0."""
    with pytest.raises(ValueError, match="above 0"):
        Faults().ru_per_second = rate


class Office:
    """An admin in front of a wire."""

    def __init__(self) -> None:
        """Start without faults."""
        self.wire = Wire()
        self.clock = MovableClock()
        self._handle = Admin(KEY, self.wire.faults, self.clock).before(self.wire.send)

    async def ask(self, method: str, path: str, body: object = b"", key: str = KEY) -> tuple[int, Any]:
        """Send a request and give the status and the body."""
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        response = await self._handle(Request(method, path, {"authorization": f"Bearer {key}"}, sent))
        return response.status, json.loads(response.body or b"null")


async def test_admin_sets_and_clears() -> None:
    """Faults, throttle, mode and clock are set, shown and put back."""
    office = Office()
    assert await office.ask("POST", "/_emulator/faults", {"operation": "read", "status": 503}) == (201, {})
    wanted = {"ru_per_second": 400, "ignore_partial_keys": True, "clock_offset": 60}
    status, shown = await office.ask("PATCH", "/_emulator/settings", wanted)
    assert (status, shown.pop("faults")[0]["status"]) == (200, 503)
    assert shown == wanted
    assert office.wire.faults.ignore_partial_keys
    assert office.clock.offset == 60
    assert (await office.ask("PATCH", "/_emulator/settings", {}))[1]["ru_per_second"] == 400
    assert await office.ask("GET", ITEMS + "one") == (503, {"code": "ServiceUnavailable", "message": "Injected fault."})
    assert await office.ask("DELETE", "/_emulator/faults") == (204, None)
    status, shown = await office.ask("GET", "/_emulator/settings")
    assert shown == {"ru_per_second": None, "ignore_partial_keys": False, "clock_offset": 0.0, "faults": []}


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "faults", {}),
        ("POST", "faults", []),
        ("POST", "faults", b"{"),
        ("POST", "faults", b"[" * 100_000),
        ("POST", "faults", b"\xff"),
        ("POST", "faults", {"status": "500"}),
        ("POST", "faults", {"status": 500, "nth": "1"}),
        ("POST", "faults", {"status": 500, "sub_status": "1\r\nx: y"}),
        ("POST", "faults", {"status": 500, "path": 5}),
        ("POST", "faults", {"status": 500, "nth": True}),
        ("POST", "faults", {"delay": 10**400}),
        ("POST", "faults", {"status": 500, "unknown": 1}),
        ("PATCH", "settings", {"unknown": 1}),
        ("PATCH", "settings", {"ru_per_second": "1"}),
        ("PATCH", "settings", {"ru_per_second": 0}),
        ("PATCH", "settings", {"clock_offset": None}),
        ("PATCH", "settings", {"clock_offset": 10**400}),
        ("PATCH", "settings", {"clock_offset": -1e300}),
        ("PATCH", "settings", b'{"clock_offset": NaN}'),
        ("PATCH", "settings", {"ignore_partial_keys": 1}),
    ],
)
async def test_admin_refuses_what_cannot_be_meant(method: str, path: str, body: object) -> None:
    """A wrong body is a 400 with a message, and nothing of it is taken."""
    office = Office()
    before = await office.ask("GET", "/_emulator/settings")
    status, answer = await office.ask(method, f"/_emulator/{path}", body)
    assert status == 400
    assert answer["message"]
    assert await office.ask("GET", "/_emulator/settings") == before


async def test_admin_takes_every_field_of_a_fault() -> None:
    """What a fault shows can be sent back, so no field is missing over HTTP."""
    office = Office()
    fault = Fault(path="dbs/*", status=429, sub_status=3200, retry_after=1, delay=0.5, times=None)
    assert await office.ask("POST", "/_emulator/faults", dataclasses.asdict(fault)) == (201, {})
    assert office.wire.faults.pending == (fault,)


async def test_admin_needs_the_key_and_a_route_that_is_there() -> None:
    """401 without the key, 404 elsewhere below its path, and everything else is passed on."""
    office = Office()
    assert (await office.ask("GET", "/_emulator/settings", key="other"))[0] == 401
    assert (await office.ask("GET", "/_emulator/faults"))[0] == 404
    assert (await office.ask("GET", "/_emulators/"))[0] == 200
    assert office.wire.faults.pending == ()
