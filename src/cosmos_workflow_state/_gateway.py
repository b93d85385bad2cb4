"""The only place that awaits Cosmos DB items, and where the service's errors become ours.

It knows items as dicts with keys and etags, nothing of checkpoints. "Not there" and "there already" are results here,
not errors; everything else is raised as one of `errors`. All retries are made here, and each is safe: an item is
created, replaced at a known etag or deleted, so a repeated write that had worked shows itself as 409, 412 or 404.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar, cast

from azure.core.exceptions import DecodeError
from azure.cosmos import CosmosDict
from azure.cosmos.aio import ContainerProxy
from azure.cosmos.exceptions import CosmosBatchOperationError

from ._batches import Create, Delete, Read, Refusal, Replace, Step, Upsert, Versions, operation, refusal, versions
from ._remedies import Access
from ._service_errors import number, outcome_unknown, translated
from .errors import ServiceError

__all__ = [
    "Connection",
    "Create",
    "Delete",
    "Gateway",
    "Item",
    "Meter",
    "Read",
    "Refusal",
    "Replace",
    "Step",
    "Upsert",
    "Versions",
]

Item = dict[str, Any]
_Result = TypeVar("_Result")
_Send = Callable[[ContainerProxy], Awaitable[_Result]]

_CHARGE: Final = "x-ms-request-charge"
_ETAG: Final = "etag"
_SESSION: Final = "x-ms-session-token"
_CONTAINER_RID: Final = "x-ms-cosmos-intended-collection-rid"

_NO_SUCH_ITEM: Final = frozenset({404})
_ITEM_EXISTS: Final = frozenset({409})
_DELETED: Final = 204
_UNAUTHORIZED: Final = 401
_FORBIDDEN: Final = 403
_REQUEST_TIMEOUT: Final = 408
_SERVER_ERROR: Final = 500
_REPEATED: Final = frozenset({(404, 1002), (410, 1002)})

_MAX_TRIES: Final = 6
_MAX_TRIES_OF_REPEATED: Final = 3
"""The client sends what `_is_repeated_by_the_client` knows twice, in queries four times, whatever its options say:
three of our tries are up to twelve requests."""
_FIRST_DELAY: Final = 0.1
_MAX_WAIT: Final = 60.0
"""Seconds that an operation without a deadline waits before a try, whatever the service asks for."""
_MAX_DELAY: Final = 5.0
"""Seconds; behind what the service asks for, the wait after failed try n is drawn evenly from 0 to
``min(_MAX_DELAY, _FIRST_DELAY * 2**(n - 1))``, so that many throttled writers do not come back together."""


@dataclass(slots=True)
class Meter:
    """What one operation may cost, and has cost so far.

    Attributes:
        deadline: Loop time after which no further try is begun; None for none.
        request_charge: Request units (RU), failed requests included.
        requests: Answers from the service; a query page is one.
        unknown_outcomes: Answers, and tries without one (cancelled ones too), after which nobody can say whether the
            service has done what was asked.
    """

    deadline: float | None = None
    request_charge: float = 0.0
    requests: int = 0
    unknown_outcomes: int = 0

    def answered(self, status: int, headers: Mapping[str, str]) -> None:
        """Count one answer."""
        self.request_charge += number(headers.get(_CHARGE)) or 0.0
        self.requests += 1
        self.unknown_outcomes += outcome_unknown(status)


class Connection(Protocol):
    """Gives the container, connecting on first use."""

    @property
    def access(self) -> Access:
        """Who asks, for the remedy when the service refuses."""
        ...

    async def container(self) -> ContainerProxy:
        """Return the container.

        Raises:
            CosmosStateError: Closed, not reachable, not allowed, or not provisioned as needed.
        """
        ...

    async def replaces(self, refused: ContainerProxy) -> bool:
        """Tell whether `container` gives another one now than this, whose key the service does not accept (401).

        The other one is in the same session: what was read or written before is seen by what it reads.

        Raises:
            CosmosStateError: Closed, or the other one cannot be reached or is not allowed in either.
        """
        ...


class Gateway:
    """Point operations and queries on one container."""

    def __init__(self, connection: Connection) -> None:
        """Keep the connection; nothing is sent before the first operation."""
        self._connection = connection

    async def is_sequential(self) -> bool:
        """Return whether a query sees every write that was done before it: by session consistency, in one region.

        Raises:
            CosmosStateError: The container cannot be reached.
        """
        connection = (await self._connection.container()).client_connection
        # What the account can do, not what this client was told to: another process may write to another region.
        locations = cast("Any", connection)._global_endpoint_manager.location_cache  # noqa: SLF001 - said nowhere else
        return connection.session is not None and not locations.enable_multiple_writable_locations

    async def read(self, key: list[str], item_id: str, meter: Meter) -> Item | None:
        """Return the item, or None when there is none. One request.

        Raises:
            ServiceError: The service refused, throttled or could not be reached.
        """

        async def send(container: ContainerProxy) -> Item:
            item = await container.read_item(item_id, partition_key=key, raw_response_hook=_Listener(container, meter))
            if item.get("id") != item_id:
                raise DecodeError("the answer to a read is not the item")
            return item

        return await self._unless(_NO_SUCH_ITEM, send, meter)

    async def create(self, item: Item, meter: Meter) -> bool:
        """Create the item; return False when one with its id is there. One request.

        Raises:
            ServiceError: As for `read`; with ``outcome_unknown`` the item may have been created.
        """

        async def send(container: ContainerProxy) -> bool:
            hook = _Listener(container, meter)
            return _acknowledged(await container.create_item(item, no_response=True, raw_response_hook=hook))

        return await self._unless(_ITEM_EXISTS, send, meter) is not None

    async def delete(self, key: list[str], item_id: str, meter: Meter) -> bool:
        """Delete the item; return False when it was not there. One request.

        A repeated try that no longer finds it, after one whose answer was lost, has found its own work.

        Raises:
            ServiceError: As for `create`.
        """

        async def send(container: ContainerProxy) -> bool:
            listener = _Listener(container, meter)
            await container.delete_item(item_id, partition_key=key, raw_response_hook=listener)
            if listener.status != _DELETED:
                raise DecodeError("the answer to a delete is not that it was done")
            return True

        unknown_before = meter.unknown_outcomes
        deleted = await self._unless(_NO_SUCH_ITEM, send, meter) is not None
        return deleted or meter.unknown_outcomes > unknown_before

    async def batch(self, key: list[str], steps: Sequence[Step], meter: Meter) -> Refusal | None:
        """Do all steps, or none of them, as `commit` does; return why nothing was done, None when everything was.

        Raises:
            ServiceError: As for `create`, of all steps together.
        """
        done = await self.commit(key, steps, meter)
        return done if isinstance(done, Refusal) else None

    async def commit(self, key: list[str], steps: Sequence[Step], meter: Meter) -> Refusal | Versions:
        """Do all steps on items of one logical partition, or none of them. One request.

        A refusal after a try whose answer was lost may be of this batch's own work: `Meter.unknown_outcomes` has grown
        then, and the truth is to be read.

        Args:
            key: The full partition key.
            steps: At most 100 and 2 MiB.
            meter: Counts what it costs.

        Returns:
            The version that each step has read or written, or why nothing was done.

        Raises:
            ServiceError: As for `create`, of all steps together.
        """

        async def send(container: ContainerProxy) -> Refusal | Versions:
            try:
                results = await container.execute_item_batch(
                    [operation(step) for step in steps], key, raw_response_hook=_Listener(container, meter)
                )
            except CosmosBatchOperationError as error:
                return refusal(error, len(steps))
            if len(results) != len(steps):
                raise DecodeError("the answer to a batch is not one result a step")
            return versions(results)

        return await self._send(send, meter)

    async def query(
        self,
        text: str,
        parameters: list[dict[str, object]],
        key: list[str],
        meter: Meter,
        *,
        page_size: int | None = None,
    ) -> AsyncIterator[Item]:
        """Yield what a query finds under a full key or a key prefix. One request a page.

        Args:
            text: The query.
            parameters: Its parameters, each with name and value.
            key: The full partition key or its beginning.
            meter: Counts what it costs.
            page_size: Items in a page at most; the service's choice when it is None.

        Raises:
            ServiceError: As for `read`.
        """
        token: str | None = None
        while True:

            async def send(container: ContainerProxy, start: str | None = token) -> tuple[list[Item], str | None]:
                found = container.query_items(
                    query=text,
                    parameters=parameters,
                    partition_key=key,
                    max_item_count=page_size,
                    response_hook=_check_page,
                    raw_response_hook=_Listener(container, meter),
                )
                pages = found.by_page(start)
                async for page in pages:
                    # The iterator of pages is typed as one without the token that azure-core gives it.
                    return [item async for item in page], getattr(pages, "continuation_token", None)
                return [], None

            items, token = await self._send(send, meter)
            for item in items:
                yield item
            if token is None:
                return

    async def _unless(self, expected: frozenset[int], send: _Send[_Result], meter: Meter) -> _Result | None:
        """Send; None when the service answers with one of these statuses about the item itself."""
        try:
            return await self._send(send, meter)
        except ServiceError as error:
            if error.status_code in expected and not error.retryable:
                return None
            raise

    async def _send(self, send: _Send[_Result], meter: Meter) -> _Result:
        unknown_at_first = meter.unknown_outcomes
        try:
            return await self._repeat(send, meter)
        except ServiceError as error:
            # An earlier try may have been done, whatever the last one says, or opening the other key's client.
            error.outcome_unknown = meter.unknown_outcomes > unknown_at_first
            if error.__cause__ is None:
                # What could not be understood may be an item, and is quoted by what tried.
                error.__context__ = None
            raise

    async def _repeat(self, send: _Send[_Result], meter: Meter) -> _Result:
        tries = 0
        while True:
            container = await self._connection.container()
            unknown_before = meter.unknown_outcomes
            try:
                with translated(self._connection.access):
                    return await send(container)
            except asyncio.CancelledError:
                # Once sent it may be done, whether or not somebody waits for the answer.
                meter.unknown_outcomes += 1
                raise
            except ServiceError as error:
                if error.status_code == _UNAUTHORIZED and await self._connection.replaces(container):
                    continue
                tries += 1
                # Once a try: an answer was counted when it came.
                meter.unknown_outcomes = max(meter.unknown_outcomes, unknown_before + error.outcome_unknown)
                delay = _delay(tries, error)
                if not error.retryable or tries >= _max_tries(error) or _is_late(meter, delay):
                    raise
            await asyncio.sleep(delay)


@dataclass(slots=True)
class _Listener:
    """What azure-core calls with each answer (``raw_response_hook``), also with those the client repeats by itself.

    The session is kept here because the client does not keep the token of a batch, and because it files tokens under no
    container as long as it has only written to it: the first read then makes it forget them all.

    Attributes:
        container: Who is asked.
        meter: Counts the answers.
        status: The last answer's status, 0 before any.
    """

    container: ContainerProxy
    meter: Meter
    status: int = 0

    def __call__(self, response: Any) -> None:
        """Count an answer and keep its session token."""
        answer = response.http_response
        self.status = answer.status_code
        self.meter.answered(answer.status_code, answer.headers)
        client = cast("Any", self.container.client_connection)
        if client.session is not None and _SESSION in answer.headers:
            # Of an item's link the client reads the rid of its container, which is what it asked for.
            link = f"dbs/_/colls/{response.http_request.headers[_CONTAINER_RID]}/docs/_"
            client.session.update_session(client, {"_self": link}, answer.headers)


def _acknowledged(written: CosmosDict) -> bool:
    """Take only the service's word for a write: every version has an ETag.

    Raises:
        DecodeError: There is none.
    """
    if _ETAG not in written.get_response_headers():
        raise DecodeError("the answer to a write has no ETag")
    return True


def _check_page(_headers: Mapping[str, str], body: object) -> None:
    """Refuse what is no page of items; the client takes some of it for an empty one.

    Raises:
        DecodeError: It is none.
    """
    page = cast("dict[str, object]", body if isinstance(body, dict) else {})
    documents = page.get("Documents")
    if not isinstance(documents, list) or not all(isinstance(one, dict) for one in cast("list[object]", documents)):
        raise DecodeError("the answer to a query is no page of items")


def _max_tries(error: ServiceError) -> int:
    if error.status_code == _FORBIDDEN:
        # While writes move to another region the client itself asks for two minutes, once a second.
        return 1
    return _MAX_TRIES_OF_REPEATED if _is_repeated_by_the_client(error) else _MAX_TRIES


def _is_repeated_by_the_client(error: ServiceError) -> bool:
    status = error.status_code or 0
    return status >= _SERVER_ERROR or (status, error.sub_status) in _REPEATED or status == _REQUEST_TIMEOUT


def _delay(tries: int, error: ServiceError) -> float:
    """Return the seconds to wait after this many failed tries: what the service asks for, and some at random."""
    jitter = random.uniform(0, min(_MAX_DELAY, _FIRST_DELAY * 2 ** (tries - 1)))  # noqa: S311 - jitter, not a secret
    return (error.retry_after or 0.0) + jitter


def _is_late(meter: Meter, delay: float) -> bool:
    if meter.deadline is None:
        return delay > _MAX_WAIT
    return asyncio.get_running_loop().time() + delay >= meter.deadline
