"""What the gateway refuses, and how it says so."""

from __future__ import annotations

import pytest

from cosmos_workflow_state.emulator._engine._engine import Engine
from cosmos_workflow_state.emulator._engine._errors import BusyError, EngineClosedError, StorageError
from cosmos_workflow_state.emulator._gateway._failures import failure_of
from cosmos_workflow_state.emulator._gateway._gateway import Gateway
from cosmos_workflow_state.emulator._values import Request
from support.service import DOCS, KEY, Service, content


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("GET", "/dbs/db/users/u/", {}, 400),
        ("POST", "/dbs/db/colls/c/operations/partitionkeydelete", KEY, 400),
        ("PUT", "/dbs/db/", {}, 405),
        ("POST", "/offers", {}, 405),
        ("GET", DOCS, {"a-im": "Incremental Feed"}, 400),
    ],
    ids=["users", "delete by key", "put", "post", "change feed"],
)
async def test_what_is_not_supported_says_so(
    service: Service, method: str, path: str, headers: dict[str, str], status: int
) -> None:
    """What the engine does not have is refused in words, never answered wrongly."""
    response = await service.send(method, path, {"id": "x"}, headers)
    assert response.status == status
    assert "embedded engine" in content(response)["message"]


async def test_failures_name_the_request(service: Service) -> None:
    """A failure has a code, a message and the activity id it was asked with, or one made up."""
    response = await service.send("GET", DOCS + "1/", headers=KEY | {"x-ms-activity-id": "abc"})
    assert content(response)["code"] == "NotFound"
    assert "ActivityId: abc" in content(response)["message"]
    assert (await service.send("GET", "/")).headers["x-ms-activity-id"]


def test_busy_files_can_be_tried_again() -> None:
    """A file held by others for too long is a 503, other failures of storage a 500."""
    assert failure_of(BusyError("busy")).status == 503
    assert failure_of(StorageError("disk full")).status == 507


async def test_closed_engines_are_an_error_of_their_own() -> None:
    """A request to a closed engine is no response: nothing was asked of the service."""
    engine = Engine.open(None)
    engine.close()
    with pytest.raises(EngineClosedError):
        await Gateway(engine).handle(Request("GET", "/", {}, b""))
