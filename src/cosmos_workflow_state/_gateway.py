"""The only place that awaits Cosmos DB items, and where the service's errors become ours.

It knows items as dicts with keys and etags, nothing of checkpoints. "Not there" and "there already" are results here,
not errors; everything else is raised as one of `errors`. All retries are made here, and each is safe: an item is
created, replaced at a known etag or deleted, so a repeated write that had worked shows itself as 409, 412 or 404.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Final, Protocol, TypeVar, cast

from azure.core import MatchConditions
from azure.core.exceptions import ClientAuthenticationError, DecodeError
from azure.cosmos.aio import ContainerProxy
from azure.cosmos.exceptions import CosmosHttpResponseError

from ._remedies import NOTHING_TO_SEND, Access, Refusal, Remedy, remedy_for
from .errors import (
    AccessDeniedError,
    CosmosStateError,
    ProvisioningError,
    ServiceError,
    ServiceUnavailableError,
    ThrottledError,
)

Item = dict[str, Any]
_Result = TypeVar("_Result")

_CHARGE: Final = "x-ms-request-charge"
_RETRY_AFTER_MS: Final = "x-ms-retry-after-ms"
_ACTIVITY_ID: Final = "x-ms-activity-id"
_ETAG: Final = "etag"
_DATE: Final = "date"

_NOT_FOUND: Final = 404
_NO_SUCH_ITEM: Final = frozenset({_NOT_FOUND})
_ITEM_EXISTS: Final = frozenset({409})
_NO_SUCH_VERSION: Final = frozenset({_NOT_FOUND, 412})
_TOO_MANY_REQUESTS: Final = 429
_INSUFFICIENT_STORAGE: Final = 507
_UNAUTHORIZED: Final = 401
_ACCESS_DENIED: Final = frozenset({_UNAUTHORIZED, 403})
_NOT_APPLIED: Final = frozenset({410, 449})
_OUTCOME_UNKNOWN: Final = frozenset({408, 500, 502, 503, 504})
_OWNER_MISSING: Final = 1003
_SESSION_NOT_AVAILABLE: Final = 1002

_MAX_TRIES: Final = 6
_REPEATED_BY_THE_CLIENT: Final = frozenset({404, 408, 500, 502, 503, 504})
_MAX_TRIES_OF_REPEATED: Final = 3
"""The client sends these twice, in queries four times, whatever its options say: three of our tries are up to twelve
requests."""
_FIRST_DELAY: Final = 0.1
_MAX_DELAY: Final = 5.0
"""Seconds; the wait before try n is drawn evenly from 0 to ``min(_MAX_DELAY, _FIRST_DELAY * 2**n)``, so that many
throttled writers do not come back together."""


@dataclass(slots=True)
class Meter:
    """What one operation has cost so far.

    Attributes:
        request_charge: Request units (RU), failed requests included.
        requests: Answers from the service; a query page is one.
        unknown_outcomes: Tries after which nobody can say whether the service has done what was asked.
    """

    request_charge: float = 0.0
    requests: int = 0
    unknown_outcomes: int = 0

    def add(self, headers: Mapping[str, str], _body: object = None) -> None:
        """Count one answer; this is the shape of the client's ``response_hook``."""
        self.request_charge += _number(headers.get(_CHARGE)) or 0.0
        self.requests += 1


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

        Raises:
            CosmosStateError: Closed.
        """
        ...


class Gateway:
    """Point operations and queries on one container."""

    def __init__(self, connection: Connection) -> None:
        """Keep the connection; nothing is sent before the first operation."""
        self._connection = connection

    async def read(self, key: list[str], item_id: str, meter: Meter) -> Item | None:
        """Return the item, or None when there is none. One request.

        Raises:
            ServiceError: The service refused, throttled or could not be reached.
        """

        async def send(container: ContainerProxy) -> Item:
            item = await container.read_item(item_id, partition_key=key, response_hook=meter.add)
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
            await container.create_item(item, no_response=True, response_hook=_acknowledged(meter))
            return True

        return await self._unless(_ITEM_EXISTS, send, meter) is not None

    async def replace(self, item: Item, etag: str, meter: Meter) -> bool:
        """Replace the version ``etag`` of the item; return False when that is no longer there. One request.

        Raises:
            ServiceError: As for `create`.
        """

        async def send(container: ContainerProxy) -> bool:
            await container.replace_item(
                item["id"],
                item,
                etag=etag,
                match_condition=MatchConditions.IfNotModified,
                no_response=True,
                response_hook=_acknowledged(meter),
            )
            return True

        return await self._unless(_NO_SUCH_VERSION, send, meter) is not None

    async def delete(self, key: list[str], item_id: str, meter: Meter) -> bool:
        """Delete the item; return False when it was not there. One request.

        A repeated try that no longer finds it, after one whose answer was lost, has found its own work.

        Raises:
            ServiceError: As for `create`.
        """

        async def send(container: ContainerProxy) -> bool:
            await container.delete_item(item_id, partition_key=key, response_hook=meter.add)
            return True

        unknown_before = meter.unknown_outcomes
        deleted = await self._unless(_NO_SUCH_ITEM, send, meter) is not None
        return deleted or meter.unknown_outcomes > unknown_before

    async def query(
        self, text: str, parameters: list[dict[str, object]], key: list[str], meter: Meter
    ) -> AsyncIterator[Item]:
        """Yield what a query finds under a full key or a key prefix. One request a page.

        Raises:
            ServiceError: As for `read`.
        """
        token: str | None = None
        while True:

            async def send(container: ContainerProxy, start: str | None = token) -> tuple[list[Item], str | None]:
                found = container.query_items(
                    query=text, parameters=parameters, partition_key=key, response_hook=meter.add
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

    async def _unless(
        self,
        expected: frozenset[int],
        send: Callable[[ContainerProxy], Awaitable[_Result]],
        meter: Meter,
    ) -> _Result | None:
        """Send; None when the service answers with one of these statuses about the item itself."""
        try:
            return await self._send(send, meter)
        except ServiceError as error:
            if error.status_code in expected and not error.retryable:
                return None
            raise

    async def _send(self, send: Callable[[ContainerProxy], Awaitable[_Result]], meter: Meter) -> _Result:
        tries = 0
        while True:
            container = await self._connection.container()
            try:
                with translated(meter, self._connection.access):
                    return await send(container)
            except ServiceError as error:
                if error.status_code == _UNAUTHORIZED and await self._connection.replaces(container):
                    continue
                tries += 1
                meter.unknown_outcomes += error.outcome_unknown
                if not error.retryable or tries >= _max_tries(error):
                    raise
                delay = max(_jitter(tries), error.retry_after or 0.0)
            await asyncio.sleep(delay)


@contextmanager
def translated(meter: Meter | None = None, access: Access | None = None) -> Generator[None]:
    """Turn whatever the client raises into our errors, the cause kept.

    Beside its own errors the client lets others through: KeyError where a session token was cleared twice, ValueError
    once its transport is closed, TypeError and more on answers that are not the service's.

    Raises:
        CosmosStateError: Instead of any other exception.
    """
    try:
        yield
    except CosmosStateError:
        raise
    except CosmosHttpResponseError as error:
        if meter is not None:
            meter.add(_headers(error))
        raise _denied(error, access) if error.status_code in _ACCESS_DENIED else _answer(error) from error
    except ClientAuthenticationError as error:
        raise AccessDeniedError(
            f"the credential gave no token ({type(error).__name__})", remedy=NOTHING_TO_SEND
        ) from error
    except Exception as error:
        raise ServiceUnavailableError(
            f"the service could not be reached, or its answer not be understood ({type(error).__name__}); is "
            "COSMOS_WORKFLOW_STATE_ENDPOINT right?",
            outcome_unknown=True,
        ) from error


def _acknowledged(meter: Meter) -> Callable[[Mapping[str, str], object], None]:
    """Return a ``response_hook`` that takes only the service's word for a write: every version has an ETag."""

    def hook(headers: Mapping[str, str], _body: object) -> None:
        meter.add(headers)
        if _ETAG not in headers:
            raise DecodeError("the answer to a write has no ETag")

    return hook


def _answer(error: CosmosHttpResponseError) -> CosmosStateError:
    status, sub_status = error.status_code, cast("int | None", cast("Any", error).sub_status)
    headers = _headers(error)
    if status == _NOT_FOUND and sub_status == _OWNER_MISSING:
        return ProvisioningError("the database or container does not exist")
    kind, message = _kind(status, sub_status)
    retry_after = _number(headers.get(_RETRY_AFTER_MS))
    return kind(
        f"{message} (status {status}, sub-status {sub_status})",
        status_code=status,
        sub_status=sub_status,
        activity_id=headers.get(_ACTIVITY_ID),
        retry_after=None if retry_after is None else retry_after / 1000,
        outcome_unknown=status in _OUTCOME_UNKNOWN,
    )


def _denied(error: CosmosHttpResponseError, access: Access | None) -> AccessDeniedError:
    status, sub_status = cast("int", error.status_code), cast("int | None", cast("Any", error).sub_status)
    headers = _headers(error)
    refusal = Refusal(status, sub_status, str(cast("Any", error).http_error_message), _ahead(headers.get(_DATE)))
    remedy = Remedy("") if access is None else remedy_for(refusal, access)
    return AccessDeniedError(
        f"the service did not accept the key or identity, or it lacks the right (status {status}, sub-status "
        f"{sub_status})",
        remedy=remedy.text,
        missing_actions=remedy.missing_actions,
        status_code=status,
        sub_status=sub_status,
        activity_id=headers.get(_ACTIVITY_ID),
    )


def _ahead(date: str | None) -> float | None:
    """Return the seconds that this machine's clock is ahead of a ``Date`` header."""
    try:
        return None if date is None else time.time() - parsedate_to_datetime(date).timestamp()
    except (ValueError, OverflowError):
        return None


def _headers(error: CosmosHttpResponseError) -> Mapping[str, str]:
    return cast("Mapping[str, str] | None", cast("Any", error).headers) or {}


def _kind(status: int | None, sub_status: int | None) -> tuple[type[ServiceError], str]:
    if status == _INSUFFICIENT_STORAGE:
        return (
            ServiceError,
            "the state file of the embedded engine cannot be used, for example because the disk is full",
        )
    if status == _TOO_MANY_REQUESTS:
        return ThrottledError, "the service is throttling: more request units are asked for than provisioned"
    session_lag = status == _NOT_FOUND and sub_status == _SESSION_NOT_AVAILABLE
    if session_lag or status in _NOT_APPLIED or status in _OUTCOME_UNKNOWN:
        return ServiceUnavailableError, "the service could not complete the request"
    return ServiceError, "the service refused the request"


def _max_tries(error: ServiceError) -> int:
    return _MAX_TRIES_OF_REPEATED if error.status_code in _REPEATED_BY_THE_CLIENT else _MAX_TRIES


def _jitter(tries: int) -> float:
    """Return the seconds to wait after this many failed tries."""
    return random.uniform(0, min(_MAX_DELAY, _FIRST_DELAY * 2 ** (tries - 1)))  # noqa: S311 - jitter, not a secret


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None
