"""What stands between the server and the gateway: who may do what.

Owns the order of the checks and the gateway. Must not know how either works.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable

from cosmos_workflow_state.emulator._engine._errors import EngineClosedError
from cosmos_workflow_state.emulator._gateway._auth import Authenticator
from cosmos_workflow_state.emulator._gateway._failures import ServiceError, failure_response
from cosmos_workflow_state.emulator._gateway._gateway import Gateway
from cosmos_workflow_state.emulator._values import Request, Response

__all__ = ["Service"]


class Service:
    """A gateway that answers only who may ask."""

    def __init__(self, authenticator: Authenticator, gateway_at: Callable[[str], Gateway]) -> None:
        """Set the checks and what answers.

        Args:
            authenticator: The checks.
            gateway_at: Gives the gateway for a Host header. An account tells clients where it is, and that is what they
                reach it by: behind a mapped port or another name, nobody here knows.
        """
        self._authenticator = authenticator
        self._gateway_at = gateway_at

    async def handle(self, request: Request) -> Response:
        """Answer a request.

        Args:
            request: The request.

        Returns:
            The response; what goes wrong is one, too.
        """
        try:
            self._authenticator.check(request)
            return await self._gateway_at(request.headers.get("host", "")).handle(request)
        except ServiceError as error:
            refused = error
        except EngineClosedError as error:
            refused = ServiceError(503, str(error))
        return failure_response(refused, request.headers.get("x-ms-activity-id") or str(uuid.uuid4()))
