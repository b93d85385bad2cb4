"""A credential that gets its tokens from an emulator."""

from __future__ import annotations

import time
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Self

from azure.core.credentials import AccessToken

from cosmos_workflow_state.emulator import CosmosEmulator
from cosmos_workflow_state.emulator._tokens import Role


class EmulatorCredential:
    """Stands for a principal with one role, or with some data actions in place of one."""

    def __init__(
        self, emulator: CosmosEmulator, role: Role | None = "contributor", *, actions: Iterable[str] = ()
    ) -> None:
        """Set who makes the tokens, and for what."""
        self._emulator = emulator
        self._role: Role | None = role
        self._actions = tuple(actions)

    async def get_token(self, *scopes: str, **_: Any) -> AccessToken:
        """Get a token."""
        token = self._emulator.token(self._role, audience=scopes[0], actions=self._actions)
        return AccessToken(token, int(time.time()) + 3600)

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
