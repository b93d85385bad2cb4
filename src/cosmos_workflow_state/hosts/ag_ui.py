"""Checkpoints of workflows behind one ``agent_framework_ag_ui`` endpoint of many tenants.

The endpoint takes one checkpoint storage for all requests, so it owns how each request's caller gets to that storage.
An endpoint of one tenant needs nothing of this: it takes ``factory.for_tenant(tenant_id).checkpoints``.
"""

# No postponed annotations here: FastAPI reads those of a function that is defined inside another one, and it looks for
# postponed names in the module only.

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeAlias

from agent_framework import CheckpointStorage, WorkflowCheckpoint
from fastapi import Depends, HTTPException, status

from cosmos_workflow_state._checkpoints import TenantCheckpointStorage
from cosmos_workflow_state._factory import CosmosStateFactory
from cosmos_workflow_state.errors import InvalidIdentifierError

from ._scopes import scope_of

__all__ = ["Caller", "CallerOfRequest", "TenantCheckpoints"]

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


class TenantCheckpoints:
    """Gives one AG-UI endpoint the checkpoints of whoever calls it.

    Both attributes go to the same ``add_agent_framework_fastapi_endpoint``: `checkpoint_storage` under that name,
    `authorization_scope` as its ``authorization_scope_resolver``.

    Attributes:
        checkpoint_storage: The storage of the caller of the request under way; it refuses everything outside of one.
        authorization_scope: A FastAPI dependency that yields a text of its own for each tenant and user, and refuses
            a request without a tenant with status 403.
    """

    def __init__(self, factory: CosmosStateFactory, caller: CallerOfRequest) -> None:
        """Say where checkpoints are stored, and who asks for them.

        Args:
            factory: Must be open as long as the endpoint serves.
            caller: The dependency that verifies who calls; it may have dependencies of its own.
        """
        current: ContextVar[TenantCheckpointStorage | None] = ContextVar("ag_ui_checkpoints", default=None)

        async def authorization_scope(who: Annotated[Caller | None, Depends(caller)]) -> AsyncGenerator[str]:
            known = _verified(who)
            # The response is made in this task, or in one that begins with its context.
            token = current.set(_checkpoints_of(factory, known))
            try:
                yield scope_of(_HOST, known.tenant_id, known.user_id)
            finally:
                current.reset(token)

        self.authorization_scope: Final[Callable[..., Any]] = authorization_scope
        self.checkpoint_storage: Final[CheckpointStorage] = _CheckpointsOfTheCaller(current)


def _verified(who: Caller | None) -> Caller:
    """Return the caller.

    Raises:
        HTTPException: The request has no tenant or no user.
    """
    if who is None or not who.tenant_id or not who.user_id:
        raise HTTPException(status.HTTP_403_FORBIDDEN, "the request has no tenant or no user")
    return who


def _checkpoints_of(factory: CosmosStateFactory, who: Caller) -> TenantCheckpointStorage:
    """Return the caller's storage.

    Raises:
        HTTPException: The settings do not accept such a tenant, or nobody's user id is like that.
    """
    try:
        return factory.for_tenant(who.tenant_id).checkpoints.scoped(scope_of(_HOST, who.user_id))
    except InvalidIdentifierError as error:
        raise HTTPException(status.HTTP_403_FORBIDDEN, "the tenant or user of the request is refused") from error


class _CheckpointsOfTheCaller:
    """The framework's ``CheckpointStorage`` that hands each call on to the storage of the request under way.

    Each method raises what that storage's does, and `InvalidIdentifierError` outside of a request.
    """

    __slots__ = ("_current",)

    def __init__(self, current: ContextVar[TenantCheckpointStorage | None]) -> None:
        self._current = current

    async def save(self, checkpoint: WorkflowCheckpoint) -> str:
        return await self._storage().save(checkpoint)

    async def load(self, checkpoint_id: str) -> WorkflowCheckpoint:
        return await self._storage().load(checkpoint_id)

    async def list_checkpoints(self, *, workflow_name: str) -> list[WorkflowCheckpoint]:
        return await self._storage().list_checkpoints(workflow_name=workflow_name)

    async def delete(self, checkpoint_id: str) -> bool:
        return await self._storage().delete(checkpoint_id)

    async def get_latest(self, *, workflow_name: str) -> WorkflowCheckpoint | None:
        return await self._storage().get_latest(workflow_name=workflow_name)

    async def list_checkpoint_ids(self, *, workflow_name: str) -> list[str]:
        return await self._storage().list_checkpoint_ids(workflow_name=workflow_name)

    def _storage(self) -> TenantCheckpointStorage:
        storage = self._current.get()
        if storage is None:
            raise InvalidIdentifierError(
                "there is no request with a tenant: give the endpoint authorization_scope as its resolver as well"
            )
        return storage
