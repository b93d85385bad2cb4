"""Sessions of agents that ``agent_framework_foundry_hosting`` hosts: one store a request, for its tenant and user.

A module of its own because the framework warns of its session stores, which are experimental: whoever only keeps
checkpoints is not to be warned.
"""

from __future__ import annotations

from typing import Final

from agent_framework import AgentSession, SessionStore

from cosmos_workflow_state._factory import CosmosStateFactory
from cosmos_workflow_state._sessions import TenantSessionStore
from cosmos_workflow_state.errors import StateChangedError

from ._extras import PackagesOf
from ._foundry_requests import TenantOfRequest, TenantsOfRequests, platform_scope
from ._scopes import scope_of

with PackagesOf("foundry-hosting"):
    from agent_framework_foundry_hosting import StoreProvider
    from azure.ai.agentserver.core import AgentConfig, FoundryAgentRequestContext

__all__ = ["TenantOfRequest", "TenantSessionStoreProvider"]

_HOST: Final = "foundry"

_ADVANCED: Final = "Another request advanced this agent session; reload before writing."
"""The text by which the host knows a lost race, and tells the caller of it: it is compared word for word."""


class TenantSessionStoreProvider(StoreProvider[SessionStore]):
    """Gives a Foundry host session stores of a `CosmosStateFactory`, for the tenant of each request.

    Hand it to ``ResponsesHostServer`` or ``InvocationsHostServer`` as ``agent_session_store_provider``. The platform's
    user and session are part of each id: the session of one user, no other one finds.
    """

    def __init__(self, factory: CosmosStateFactory, *, tenant: str | TenantOfRequest) -> None:
        """Say whose sessions are stored, and where.

        Args:
            factory: Must be open as long as the host serves.
            tenant: The one tenant of this host, or what tells the tenant of each request.

        Raises:
            InvalidIdentifierError: The one tenant is refused.
            TypeError: ``tenant`` is neither text nor an ordinary function.
        """
        super().__init__()
        self._tenants = TenantsOfRequests(factory, tenant)

    def get_store(self, *, config: AgentConfig, platform_context: FoundryAgentRequestContext) -> SessionStore:
        """Return the store of one request.

        Raises:
            InvalidIdentifierError: The request has no tenant or, on the platform, no user or session.
            FactoryClosedError: The factory was closed.
        """
        scope = platform_scope(config, platform_context)
        user_id = platform_context.user_id if scope is None else scope.user_id
        sandbox_id = None if scope is None else scope.session_id
        return _SessionsOfRequest(self._tenants.state_of(platform_context).sessions, user_id, sandbox_id)


class _SessionsOfRequest(SessionStore):
    """Replaces what this request has read, and nothing else: so two turns of a conversation never run at once."""

    def __init__(self, store: TenantSessionStore, *owner: str | None) -> None:
        super().__init__()
        self._store = store
        self._owner = owner
        self._seen: dict[str, str] = {}

    async def get(self, session_id: str) -> AgentSession | None:
        found = await self._store.get_stored(self._id(session_id))
        self._seen[session_id] = "" if found is None else found.etag
        return None if found is None else found.session

    async def set(self, session_id: str, session: AgentSession) -> None:
        seen = self._seen.get(session_id, "")
        try:
            self._seen[session_id] = await self._store.set_stored(self._id(session_id), session, if_match=seen)
        except StateChangedError as error:
            raise RuntimeError(_ADVANCED) from error

    async def delete(self, session_id: str) -> None:
        await self._store.delete(self._id(session_id))
        self._seen.pop(session_id, None)

    def _id(self, session_id: str) -> str:
        return scope_of(_HOST, *self._owner, session_id)
