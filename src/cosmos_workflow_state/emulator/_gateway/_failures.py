"""Failures as clients see them: status, sub-status, code and message.

Owns which error of the engine gets which status. Must not put contents of items into messages.
"""

from __future__ import annotations

from typing import Final

from cosmos_workflow_state.emulator._engine import _errors as engine
from cosmos_workflow_state.emulator._engine._json import dump
from cosmos_workflow_state.emulator._values import JsonObject, Response

__all__ = ["ServiceError", "bad_request", "failure_of", "failure_response", "wrong_partition_key"]

_CODES: Final = {
    304: "NotModified",
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    409: "Conflict",
    410: "Gone",
    412: "PreconditionFailed",
    413: "RequestEntityTooLarge",
    500: "InternalServerError",
    503: "ServiceUnavailable",
    507: "InsufficientStorage",
}
_STATUSES: Final[tuple[tuple[type[engine.EngineError], int, int | None], ...]] = (
    (engine.MissingOwnerError, 404, 1003),
    (engine.MissingError, 404, None),
    (engine.ExistsError, 409, None),
    (engine.PreconditionError, 412, None),
    (engine.InvalidError, 400, None),
    # The client sends a write again after a 503: safe here, nothing of it was written.
    (engine.BusyError, 503, None),
    # Not one of the service's: tells a full disk or a damaged file, which waiting does not mend, from a passing fault.
    (engine.StorageError, 507, None),
)
_FAILED_CHARGE: Final = "1"


class ServiceError(Exception):
    """A request is answered with a failure.

    Attributes:
        status: HTTP status.
        sub_status: The service's refinement of it, None for none.
        message: What is wrong, for a person.
    """

    def __init__(self, status: int, message: str, sub_status: int | None = None) -> None:
        """Set the attributes."""
        super().__init__(message)
        self.status = status
        self.sub_status = sub_status
        self.message = message


def bad_request(message: str) -> ServiceError:
    """Make the failure of a request that cannot be meant."""
    return ServiceError(400, message)


def wrong_partition_key() -> ServiceError:
    """Make the failure of a partition key that does not fit the container or the item."""
    return ServiceError(
        400,
        "Partition key provided either doesn't correspond to definition in the collection or doesn't match"
        " partition key field values specified in the document.",
        1001,
    )


def failure_of(error: engine.EngineError) -> ServiceError:
    """Give an error of the engine its status."""
    found = ((status, sub_status) for kind, status, sub_status in _STATUSES if isinstance(error, kind))
    status, sub_status = next(found, (500, None))
    return ServiceError(status, str(error), sub_status)


def failure_response(error: ServiceError, activity_id: str) -> Response:
    """Build the response of a failure.

    Args:
        error: The failure.
        activity_id: The request's.

    Returns:
        The response; without a body for 304.
    """
    headers = {"content-type": "application/json", "x-ms-activity-id": activity_id}
    headers["x-ms-request-charge"] = _FAILED_CHARGE
    if error.sub_status is not None:
        headers["x-ms-substatus"] = str(error.sub_status)
    message = f"{error.message}\r\nActivityId: {activity_id}"
    body: JsonObject = {"code": _CODES[error.status], "message": message}
    return Response(error.status, headers, dump(body))
