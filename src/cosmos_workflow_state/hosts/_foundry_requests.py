"""What a Foundry host says of a request: the tenant it is for, and the platform's own user and session."""

from __future__ import annotations

from collections.abc import Callable
from inspect import iscoroutinefunction
from typing import TypeAlias

from cosmos_workflow_state._factory import CosmosStateFactory, TenantState
from cosmos_workflow_state.errors import InvalidIdentifierError

from ._extras import PackagesOf

with PackagesOf("foundry-hosting"):
    from agent_framework_foundry_hosting import FoundryRequestScope
    from azure.ai.agentserver.core import AgentConfig, FoundryAgentRequestContext

TenantOfRequest: TypeAlias = Callable[[FoundryAgentRequestContext], str | None]
"""Returns the tenant of a request, None when it has none; asked once for each storage the host wants, so be quick."""


class TenantsOfRequests:
    """Tells which tenant's state a request is about."""

    def __init__(self, factory: CosmosStateFactory, tenant: str | TenantOfRequest) -> None:
        """Say whose state it is.

        Args:
            factory: Must be open as long as the host serves.
            tenant: The one tenant of the host, or what tells the tenant of each request.

        Raises:
            InvalidIdentifierError: The one tenant is refused.
            TypeError: ``tenant`` is neither text nor an ordinary function.
        """
        if isinstance(tenant, str):
            factory.for_tenant(tenant)
        else:
            _check_function(tenant)
        self._factory = factory
        self._tenant = tenant

    def state_of(self, platform_context: FoundryAgentRequestContext) -> TenantState:
        """Return the state of a request's tenant.

        Raises:
            InvalidIdentifierError: The request has no tenant, or one that is refused.
            FactoryClosedError: The factory was closed.
        """
        tenant = self._tenant if isinstance(self._tenant, str) else self._tenant(platform_context)
        if not tenant:
            raise InvalidIdentifierError("the request has no tenant")
        return self._factory.for_tenant(tenant)


def platform_scope(config: AgentConfig, platform_context: FoundryAgentRequestContext) -> FoundryRequestScope | None:
    """Return the user and session that the platform vouches for; None off the platform.

    Raises:
        InvalidIdentifierError: The platform has named none.
    """
    try:
        return FoundryRequestScope.from_context(config, platform_context) if config.is_hosted else None
    except RuntimeError as error:
        raise InvalidIdentifierError(f"the request has no identity on the platform: {error}") from error


def _check_function(tenant: object) -> None:
    if callable(tenant) and not (iscoroutinefunction(tenant) or iscoroutinefunction(type(tenant).__call__)):
        return
    what = "a coroutine function" if callable(tenant) else type(tenant).__name__
    raise TypeError(f"tenant must be a tenant id or an ordinary function, not {what}")
