"""Where the errors of the Cosmos DB client become ours: which kind, whether it may pass, what to do about it.

It knows statuses and headers, nothing of requests, retries or items.
"""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from typing import Any, Final, cast

from azure.core.exceptions import ClientAuthenticationError, ServiceRequestError, ServiceResponseError
from azure.cosmos.exceptions import CosmosBatchOperationError, CosmosHttpResponseError

from ._remedies import ENDPOINT, KEY, Access, Refusal, Remedy, nothing_to_send, remedy_for
from .errors import (
    AccessDeniedError,
    CosmosStateError,
    ProvisioningError,
    ServiceError,
    ServiceFields,
    ServiceUnavailableError,
    ThrottledError,
)

_RETRY_AFTER_MS: Final = "x-ms-retry-after-ms"
_ACTIVITY_ID: Final = "x-ms-activity-id"
_DATE: Final = "date"

_UNAUTHORIZED: Final = 401
_FORBIDDEN: Final = 403
_NOT_FOUND: Final = 404
_REQUEST_TIMEOUT: Final = 408
_TOO_LARGE: Final = 413
_TOO_MANY_REQUESTS: Final = 429
_SERVER_ERROR: Final = 500
_INSUFFICIENT_STORAGE: Final = 507
_NOT_APPLIED: Final = frozenset({410, 449})

_OWNER_MISSING: Final = (_NOT_FOUND, 1003)
_PARTITION_FULL: Final = (_FORBIDDEN, 1014)
_MOVING: Final = frozenset({(_FORBIDDEN, 3), (_FORBIDDEN, 1008), (_NOT_FOUND, 1002)})
"""Not done, and soon possible: writes are moving to another region, or the replica asked lags behind the session."""

_Kind = tuple[type[ServiceError], str]


@contextmanager
def translated(access: Access | None = None) -> Generator[None]:
    """Turn whatever the client raises into our errors; the cause is kept where it quotes no answer.

    Beside its own errors the client lets others through: KeyError where a session token was cleared twice, ValueError
    once its transport is closed, TypeError and more on answers that are not the service's.

    Args:
        access: Who asks, for the remedy when the service refuses; without it there is none.

    Raises:
        CosmosStateError: Instead of any other exception.
    """
    try:
        yield
    except CosmosStateError:
        raise
    except (CosmosHttpResponseError, CosmosBatchOperationError) as error:
        raise _answer(error, access) from error
    except ClientAuthenticationError as error:
        raise AccessDeniedError(
            f"the credential gave no token ({type(error).__name__})",
            remedy=nothing_to_send(KEY if access is None else access.keys),
        ) from error
    except (ServiceRequestError, ServiceResponseError) as error:
        raise _no_answer(error, access) from error
    except Exception as error:  # noqa: BLE001 - it is raised again as one of ours, without what it may quote
        raise _no_answer(error, access) from None


def _no_answer(error: Exception, access: Access | None) -> ServiceUnavailableError:
    return ServiceUnavailableError(
        f"the service could not be reached, or its answer not be understood ({type(error).__name__}); is "
        f"{ENDPOINT if access is None else access.named_by} right?",
        outcome_unknown=True,
    )


def outcome_unknown(status: int) -> bool:
    """Say whether a write that was answered with this status may have been applied."""
    return status == _REQUEST_TIMEOUT or (status >= _SERVER_ERROR and status != _INSUFFICIENT_STORAGE)


def number(text: object) -> float | None:
    """Return a header's number; None for anything that is no amount, so that it spoils no sum and no wait."""
    try:
        value = float(cast("Any", text))
    except (TypeError, ValueError):
        return None
    return value if math.isfinite(value) and value >= 0 else None


def seconds_ahead(date: str | None, now: float) -> float | None:
    """Return the seconds that a clock, which shows ``now``, is ahead of a ``Date`` header; None where that is none."""
    try:
        return None if date is None else now - parsedate_to_datetime(date).timestamp()
    except (ValueError, OverflowError):
        return None


def _answer(error: CosmosHttpResponseError | CosmosBatchOperationError, access: Access | None) -> CosmosStateError:
    loose = cast("Any", error)
    status: int = loose.status_code
    sub_status: int | None = loose.sub_status
    headers: Mapping[str, str] = loose.headers or {}
    if (status, sub_status) == _OWNER_MISSING:
        return ProvisioningError("the database or container does not exist")
    kind, message = _kind(status, sub_status)
    message = f"{message} (status {status}, sub-status {sub_status})"
    retry_after = number(headers.get(_RETRY_AFTER_MS))
    fields = ServiceFields(
        status_code=status,
        sub_status=sub_status,
        activity_id=headers.get(_ACTIVITY_ID),
        retry_after=None if retry_after is None else retry_after / 1000,
        outcome_unknown=outcome_unknown(status),
    )
    if kind is not AccessDeniedError:
        return kind(message, **fields)
    said = str(getattr(error, "http_error_message", None))
    remedy = _remedy(Refusal(status, sub_status, said, seconds_ahead(headers.get(_DATE), time.time())), access)
    return AccessDeniedError(message, remedy=remedy.text, missing_actions=remedy.missing_actions, **fields)


def _remedy(refusal: Refusal, access: Access | None) -> Remedy:
    return Remedy("") if access is None else remedy_for(refusal, access)


def _kind(status: int, sub_status: int | None) -> _Kind:
    if (status, sub_status) in _MOVING or status in _NOT_APPLIED or outcome_unknown(status):
        return ServiceUnavailableError, "the service could not complete the request"
    if status == _TOO_MANY_REQUESTS:
        return ThrottledError, "the service is throttling: more request units are asked for than provisioned"
    return _refusal(status, sub_status)


def _refusal(status: int, sub_status: int | None) -> _Kind:
    if status == _INSUFFICIENT_STORAGE:
        return (
            ServiceError,
            "the state file of the embedded engine cannot be used, for example because the disk is full",
        )
    if (status, sub_status) == _PARTITION_FULL:
        return ServiceError, "the logical partition is full: this workflow of this tenant has stored 20 GB"
    if status in {_UNAUTHORIZED, _FORBIDDEN}:
        return AccessDeniedError, "the service did not accept the key or identity, or it lacks the right"
    if status == _TOO_LARGE:
        return ServiceError, "the service refused the request as too large: it takes 2 MiB"
    return ServiceError, "the service refused the request"
