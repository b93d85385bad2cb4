"""Checkpoints of workflows that ``agent_framework_foundry_hosting`` hosts: which tenant and scope a request is about.

It owns how the host's identities become a scope. Of the host's other stores that of sessions is in `foundry_sessions`;
those of responses, bindings and approvals are what they are without it.
"""

from __future__ import annotations

from typing import Final

from cosmos_workflow_state._checkpoints import TenantCheckpointStorage
from cosmos_workflow_state._factory import CosmosStateFactory
from cosmos_workflow_state.errors import InvalidIdentifierError

from ._extras import PackagesOf
from ._foundry_requests import TenantOfRequest, TenantsOfRequests, platform_scope
from ._scopes import scope_of

with PackagesOf("foundry-hosting"):
    from agent_framework_foundry_hosting import CheckpointStoreProvider, FoundryRequestScope
    from azure.ai.agentserver.core import AgentConfig, FoundryAgentRequestContext

__all__ = ["TenantCheckpointStoreProvider", "TenantOfRequest"]

_HOST: Final = "foundry"


class TenantCheckpointStoreProvider(CheckpointStoreProvider):
    """Gives a Foundry host checkpoint storages of a `CosmosStateFactory`, for the tenant of each request.

    Hand it to ``ResponsesHostServer`` or ``InvocationsHostServer`` as ``checkpoint_store_provider``. The platform's
    user and session and the host's context become the scope: what was saved for one of them, no other one finds.
    """

    def __init__(self, factory: CosmosStateFactory, *, tenant: str | TenantOfRequest) -> None:
        """Say whose checkpoints are stored, and where.

        Args:
            factory: Must be open as long as the host serves.
            tenant: The one tenant of this host, or what tells the tenant of each request.

        Raises:
            InvalidIdentifierError: The one tenant is refused.
            TypeError: ``tenant`` is neither text nor an ordinary function.
        """
        super().__init__()
        self._factory = factory
        self._tenants = TenantsOfRequests(factory, tenant)

    def get_store(
        self, *, config: AgentConfig, context_id: str, platform_context: FoundryAgentRequestContext
    ) -> TenantCheckpointStorage:
        """Return the storage of a request's context; the host calls this for agents that wrap a workflow.

        Raises:
            InvalidIdentifierError: The request has no tenant or, on the platform, no user or session; or no context.
            FactoryClosedError: The factory was closed.
        """
        scope = platform_scope(config, platform_context)
        return self.get_store_for_scope(scope=scope, context_id=context_id, platform_context=platform_context)

    def get_store_for_scope(
        self, *, scope: FoundryRequestScope | None, context_id: str, platform_context: FoundryAgentRequestContext
    ) -> TenantCheckpointStorage:
        """Return the storage of a request's context, user and session; the host calls this for workflows.

        Raises:
            InvalidIdentifierError: The request has no tenant or no context.
            FactoryClosedError: The factory was closed.
        """
        if not context_id:
            raise InvalidIdentifierError("context_id must not be empty")
        user_id = platform_context.user_id if scope is None else scope.user_id
        session_id = None if scope is None else scope.session_id
        checkpoints = self._tenants.state_of(platform_context).checkpoints
        return checkpoints.scoped(scope_of(_HOST, user_id, session_id, context_id))

    def validate_checkpoint_value(self, value: object) -> None:
        """Refuse an input or answer that a checkpoint would hold and ``load`` refuse, before the workflow sees it.

        Raises:
            CheckpointNotRestorableError: It holds types that are not allowed, which are named.
        """
        self._factory.check_restorable(value)
