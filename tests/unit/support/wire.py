"""A Cosmos DB account made of respx routes: the real client connects to it, and each test says what items answer."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import httpx
import respx
from azure.core.credentials_async import AsyncTokenCredential
from azure.cosmos.aio import ContainerProxy, CosmosClient

from cosmos_workflow_state._clients import CLIENT_OPTIONS
from cosmos_workflow_state._gateway import Gateway, Item
from cosmos_workflow_state._remedies import Access
from unit.support.httpx_transport import HttpxTransport

KEY: Final = ["contoso", "invoice-approval"]
CONTAINER: Final = "dbs/state/colls/checkpoints"
_RID: Final = "AAAAAQAAAAM="
SELF: Final = f"dbs/AAAAAQ==/colls/{_RID}/docs/AAAAAQAAAAMAAAAAAAAABw==/"
_COLLECTION: Final = {
    "id": "checkpoints",
    "_rid": _RID,
    "_self": f"dbs/AAAAAQ==/colls/{_RID}/",
    "partitionKey": {"paths": ["/tenant_id", "/workflow_name"], "kind": "MultiHash", "version": 2},
}
_RANGES: Final = {"PartitionKeyRanges": [{"id": "0", "minInclusive": "", "maxExclusive": "FF"}]}
_RANGES_VERSION: Final = '"r1"'

Answer = httpx.Response | Exception | Callable[[httpx.Request], Awaitable[httpx.Response]]


def item(item_id: str, **fields: Any) -> Item:
    """Return an item of the tenant and workflow that all tests use."""
    return {"id": item_id, "tenant_id": KEY[0], "workflow_name": KEY[1], **fields}


def answer(status: int, body: Any = None, *, sub_status: int | None = None, **headers: str | None) -> httpx.Response:
    """Return an answer of the service; ``_`` in header names stands for ``-``, None leaves a header out.

    Args:
        status: The status.
        body: JSON to be, or bytes as they are.
        sub_status: The sub-status.
        headers: More headers, or others in place of the usual ones.
    """
    content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    usual: dict[str, str | None] = {
        "content-type": "application/json",
        "x-ms-request-charge": "1.5",
        "x-ms-activity-id": "a-1",
        "x-ms-alt-content-path": CONTAINER,
        "x-ms-documentdb-partitionkeyrangeid": "0",
        "x-ms-substatus": None if sub_status is None else str(sub_status),
    }
    sent = usual | {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.Response(
        status, content=content, headers={name: value for name, value in sent.items() if value is not None}
    )


def failed(status: int, sub_status: int | None = None, **headers: str | None) -> httpx.Response:
    """Return the service's answer that something failed."""
    return answer(status, {"code": "Injected", "message": "injected"}, sub_status=sub_status, **headers)


def written(lsn: int = 1, **headers: str | None) -> httpx.Response:
    """Return the answer to a write of one item."""
    return answer(201, **{"etag": f'"{lsn}"', "x_ms_session_token": f"0:-1#{lsn}", **headers})


def found(one: Item, lsn: int = 1, **headers: str | None) -> httpx.Response:
    """Return the answer to a read."""
    return answer(200, one, **{"etag": f'"{lsn}"', "x_ms_session_token": f"0:-1#{lsn}", **headers})


def deleted(lsn: int = 1, **headers: str | None) -> httpx.Response:
    """Return the answer to a delete."""
    return answer(204, **{"x_ms_session_token": f"0:-1#{lsn}", **headers})


def page(*items: Any, continuation: str | None = None, lsn: int = 1, **headers: str | None) -> httpx.Response:
    """Return one page of a query's result."""
    body = {"_rid": _RID, "Documents": list(items), "_count": len(items)}
    return answer(200, body, **{"x_ms_continuation": continuation, "x_ms_session_token": f"0:-1#{lsn}", **headers})


def done(*statuses: int, lsn: int = 1, **headers: str | None) -> httpx.Response:
    """Return the answer to a batch: 200 when each step worked, 207 when one did not."""
    body = [{"statusCode": status, "requestCharge": 1.0} for status in statuses]
    status = 207 if any(status >= 400 for status in statuses) else 200
    return answer(status, body, **{"x_ms_session_token": f"0:-1#{lsn}", **headers})


@dataclass(frozen=True, slots=True)
class Sent:
    """A request for items.

    Attributes:
        at: Loop time.
        method: Its method.
        headers: Its headers.
        body: Its body.
    """

    at: float
    method: str
    headers: httpx.Headers
    body: bytes

    @property
    def session(self) -> str | None:
        """The session token it carries."""
        return self.headers.get("x-ms-session-token")


@dataclass(slots=True)
class Wire:
    """What lies under a client.

    Attributes:
        endpoint: Where the account is.
        transport: What leads there, for other clients too.
        client: The real client.
        account: The route of the account.
        answers: What the next requests for items get, first come first served.
        sent: All requests for items, in order.
    """

    endpoint: str
    transport: HttpxTransport
    client: CosmosClient
    account: respx.Route
    answers: list[Answer] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)

    @property
    def open_container(self) -> ContainerProxy:
        """The container, which is there."""
        return self.client.get_database_client("state").get_container_client("checkpoints")

    @property
    def gateway(self) -> Gateway:
        """A gateway on the container."""
        return Gateway(self)

    @property
    def methods(self) -> list[str]:
        """The methods of all requests for items."""
        return [one.method for one in self.sent]

    @property
    def waits(self) -> list[float]:
        """Seconds between each request for items and the next."""
        return [after.at - before.at for before, after in zip(self.sent, self.sent[1:], strict=False)]

    @property
    def access(self) -> Access:
        """Who asks."""
        return Access("https://contoso.documents.azure.com", "state", "checkpoints")

    async def container(self) -> ContainerProxy:
        """Return the container, as a connection does."""
        return self.open_container

    async def replaces(self, refused: ContainerProxy) -> bool:
        """There is one key only."""
        del refused
        return False

    async def answer(self, request: httpx.Request) -> httpx.Response:
        """Answer a request for items."""
        self.sent.append(Sent(asyncio.get_running_loop().time(), request.method, request.headers, request.content))
        following = self.answers.pop(0) if self.answers else failed(400)
        if isinstance(following, Exception):
            raise following
        return following if isinstance(following, httpx.Response) else await following(request)


@asynccontextmanager
async def wire(
    credential: str | AsyncTokenCredential = "a2V5",
    *,
    consistency: str = "Session",
    regions: int = 1,
    entered: bool = True,
) -> AsyncIterator[Wire]:
    """Yield an account with one container, and a client of it.

    Args:
        credential: The client's.
        consistency: The account's.
        regions: In how many the account takes writes.
        entered: Whether the client was, so that it knows the account.
    """
    # The client shares what it knows of partitions among all clients of one endpoint in the process.
    endpoint = f"https://{uuid.uuid4().hex}.invalid:443"
    router = respx.MockRouter(assert_all_called=False, base_url=endpoint)
    account = router.get("/").respond(json=_account(endpoint, consistency, regions))
    router.get(f"/{CONTAINER}/").respond(json=_COLLECTION)
    router.get(f"/{CONTAINER}/pkranges/").mock(side_effect=_ranges)
    transport = HttpxTransport(httpx.AsyncClient(transport=httpx.MockTransport(router.async_handler)))
    client = CosmosClient(endpoint, credential, transport=transport, **CLIENT_OPTIONS)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(client.close)
        if entered:
            await client.__aenter__()
        wired = Wire(endpoint, transport, client, account)
        router.route(path__startswith=f"/{CONTAINER}/docs/").mock(side_effect=wired.answer)
        yield wired


def _account(endpoint: str, consistency: str, regions: int) -> dict[str, object]:
    locations = [{"name": f"Region {number}", "databaseAccountEndpoint": endpoint} for number in range(regions)]
    return {
        "id": "account",
        "userConsistencyPolicy": {"defaultConsistencyLevel": consistency},
        "enableMultipleWriteLocations": regions > 1,
        "writableLocations": locations,
        "readableLocations": locations,
    }


def _ranges(request: httpx.Request) -> httpx.Response:
    """Answer as the change feed of ranges does: all of them, and nothing new to whoever has them."""
    if request.headers.get("if-none-match") == _RANGES_VERSION:
        return httpx.Response(304, headers={"etag": _RANGES_VERSION})
    return httpx.Response(200, json=_RANGES, headers={"etag": _RANGES_VERSION})
