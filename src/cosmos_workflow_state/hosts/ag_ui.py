"""State of many tenants behind one ``agent_framework_ag_ui`` endpoint: checkpoints of a workflow, history of an agent.

The endpoint takes one workflow or agent for all requests, so it owns how each request's caller gets to what is his. An
endpoint of one tenant needs no checkpoint storage of this: it takes ``factory.for_tenant(tenant_id).checkpoints``.
"""

# No postponed annotations here: FastAPI reads those of a function that is defined inside another one, and it looks for
# postponed names in the module only.

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeAlias, Unpack

from agent_framework import CheckpointStorage, HistoryProvider

from cosmos_workflow_state._factory import CosmosStateFactory
from cosmos_workflow_state._history import TenantHistoryProvider
from cosmos_workflow_state.errors import InvalidIdentifierError
from cosmos_workflow_state.typing import HistoryOptions

from ._callers import CheckpointsOfCaller, HistoryOfCaller, StateOfCaller
from ._extras import PackagesOf
from ._scopes import scope_of

with PackagesOf("ag-ui"):
    from fastapi import Depends, HTTPException, status

__all__ = ["Caller", "CallerOfRequest", "TenantsOfCallers"]

_HOST: Final = "ag-ui"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sends a request, as the application has verified it.

    Attributes:
        tenant_id: The tenant.
        user_id: The user inside the tenant.
    """

    tenant_id: str
    user_id: str


CallerOfRequest: TypeAlias = Callable[..., Caller | Awaitable[Caller | None] | None]
"""A FastAPI dependency that returns the verified caller; None, like an ``HTTPException``, refuses the request."""


class TenantsOfCallers:
    """Gives one AG-UI endpoint the state of whoever calls it.

    `authorization_scope` goes to ``add_agent_framework_fastapi_endpoint`` as its ``authorization_scope_resolver``, and
    one thing more: `checkpoint_storage` under that name where the endpoint is of a workflow, what `history` returns
    into the ``context_providers`` of its agent where it is of an agent. Without the first the others refuse.

    Attributes:
        checkpoint_storage: The storage of the caller of the request under way; it refuses everything outside of one.
        authorization_scope: A FastAPI dependency that yields a text of its own for each tenant and user, and refuses
            a request without a tenant with status 403.
    """

    def __init__(self, factory: CosmosStateFactory, caller: CallerOfRequest) -> None:
        """Say where state is stored, and who asks for it.

        Args:
            factory: Must be open as long as the endpoint serves.
            caller: The dependency that verifies who calls; it may have dependencies of its own.
        """
        self._current: ContextVar[StateOfCaller | None] = ContextVar("ag_ui_caller", default=None)

        async def authorization_scope(who: Annotated[Caller | None, Depends(caller)]) -> AsyncGenerator[str]:
            known = _verified(who)
            # The response is made in this task, or in one that begins with its context.
            token = self._current.set(_state_of(factory, known))
            try:
                yield scope_of(_HOST, known.tenant_id, known.user_id)
            finally:
                self._current.reset(token)

        self.authorization_scope: Final[Callable[..., Any]] = authorization_scope
        self.checkpoint_storage: Final[CheckpointStorage] = CheckpointsOfCaller(self._state)

    def history(
        self, source_id: str = TenantHistoryProvider.DEFAULT_SOURCE_ID, **options: Unpack[HistoryOptions]
    ) -> HistoryProvider:
        """Return a provider of the chat history of the caller of the request under way, for the endpoint's one agent.

        What it is given lies in the caller's tenant, in sessions that have the user in their id: two users never meet,
        whatever threads their clients name. Outside of a request it refuses with `InvalidIdentifierError`.

        Args:
            source_id: As for ``TenantState.history``.
            **options: The same.

        Raises:
            InvalidArgumentError: ``max_messages`` or ``ttl`` is refused.
            InvalidIdentifierError: The source id is refused.
        """
        return HistoryOfCaller(self._state, source_id, **options)

    def _state(self) -> StateOfCaller:
        state = self._current.get()
        if state is None:
            raise InvalidIdentifierError(
                "there is no request with a tenant: give the endpoint authorization_scope as its resolver as well"
            )
        return state


def _verified(who: object) -> Caller:
    """Return the caller.

    Raises:
        HTTPException: The request has no tenant or no user.
        TypeError: The application's dependency returns something else than it should.
    """
    if who is not None and not isinstance(who, Caller):
        raise TypeError(f"the dependency that says who calls must return a Caller or None, not {type(who).__name__}")
    if who is None or not who.tenant_id or not who.user_id:
        raise HTTPException(status.HTTP_403_FORBIDDEN, "the request has no tenant or no user")
    return who


def _state_of(factory: CosmosStateFactory, who: Caller) -> StateOfCaller:
    """Return the caller's state.

    Raises:
        HTTPException: The settings do not accept such a tenant, or nobody's user id is like that.
    """
    try:
        return StateOfCaller(_HOST, factory.for_tenant(who.tenant_id), who.user_id)
    except InvalidIdentifierError as error:
        raise HTTPException(status.HTTP_403_FORBIDDEN, "the tenant or user of the request is refused") from error
