"""A credential that gets its tokens from an emulator."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Any, Self

from azure.core.credentials import AccessToken

from cosmos_workflow_state.emulator import CosmosEmulator
from cosmos_workflow_state.emulator._tokens import Role


class EmulatorCredential:
    """Stands for a principal with one role."""

    def __init__(self, emulator: CosmosEmulator, role: Role | None = "contributor") -> None:
        """Set who makes the tokens, and for which role."""
        self._emulator = emulator
        self._role: Role | None = role

    async def get_token(self, *scopes: str, **_: Any) -> AccessToken:
        """Get a token."""
        return AccessToken(self._emulator.token(self._role, audience=scopes[0]), int(time.time()) + 3600)

    async def close(self) -> None:
        """Do nothing; nothing is open."""

    async def __aenter__(self) -> Self:
        """Return the credential itself."""
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        """Do nothing; nothing is open."""
