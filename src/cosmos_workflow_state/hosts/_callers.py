"""The state of whoever sends the request under way, behind the framework's own interfaces.

An adapter says who that is, by a function that raises where nobody is. What a method raises is otherwise what the same
one of `TenantCheckpointStorage` and `TenantHistoryProvider` does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias, Unpack

from agent_framework import HistoryProvider, Message, WorkflowCheckpoint

from cosmos_workflow_state._checkpoints import TenantCheckpointStorage
from cosmos_workflow_state._factory import TenantState
from cosmos_workflow_state._history import TenantHistoryProvider
from cosmos_workflow_state._identity import accept_session_id, accept_source_id
from cosmos_workflow_state._view import accept_whole_number
from cosmos_workflow_state.typing import HistoryOptions

from ._scopes import scope_of


class StateOfCaller:
    """What a tenant's state is to one of its users.

    Attributes:
        checkpoints: The user's own, in a scope that only he has.
    """

    def __init__(self, host: str, tenant: TenantState, user_id: str) -> None:
        """Set whose it is.

        Raises:
            InvalidIdentifierError: Nobody's user id is like that.
        """
        self.checkpoints: Final[TenantCheckpointStorage] = tenant.checkpoints.scoped(scope_of(host, user_id))
        self._host, self._tenant, self._user_id = host, tenant, user_id

    def history(self, source_id: str, options: HistoryOptions) -> TenantHistoryProvider:
        """Return the tenant's history."""
        return self._tenant.history(source_id, **options)

    def session_id(self, session_id: str | None) -> str:
        """Return the id of a session of the user, which no other user's session has: clients may choose what is given.

        Raises:
            InvalidIdentifierError: The session id is refused.
        """
        return scope_of(self._host, self._user_id, accept_session_id(session_id or ""))


CurrentState: TypeAlias = Callable[[], StateOfCaller]


class CheckpointsOfCaller:
    """The framework's ``CheckpointStorage`` that hands each call on to the storage of the request under way."""

    __slots__ = ("_current",)

    def __init__(self, current: CurrentState) -> None:
        self._current = current

    async def save(self, checkpoint: WorkflowCheckpoint) -> str:
        return await self._current().checkpoints.save(checkpoint)

    async def load(self, checkpoint_id: str) -> WorkflowCheckpoint:
        return await self._current().checkpoints.load(checkpoint_id)

    async def list_checkpoints(self, *, workflow_name: str) -> list[WorkflowCheckpoint]:
        return await self._current().checkpoints.list_checkpoints(workflow_name=workflow_name)

    async def delete(self, checkpoint_id: str) -> bool:
        return await self._current().checkpoints.delete(checkpoint_id)

    async def get_latest(self, *, workflow_name: str) -> WorkflowCheckpoint | None:
        return await self._current().checkpoints.get_latest(workflow_name=workflow_name)

    async def list_checkpoint_ids(self, *, workflow_name: str) -> list[str]:
        return await self._current().checkpoints.list_checkpoint_ids(workflow_name=workflow_name)


class HistoryOfCaller(HistoryProvider):
    """The framework's ``HistoryProvider`` that hands each call on to the history of the request under way."""

    def __init__(self, current: CurrentState, source_id: str, **options: Unpack[HistoryOptions]) -> None:
        """Set where the caller is learnt of, and what a `TenantHistoryProvider` is told.

        Raises:
            InvalidArgumentError: ``max_messages`` or ``ttl`` is refused.
            InvalidIdentifierError: The source id is refused.
        """
        switches: dict[str, Any] = {**options}
        # These two are of each tenant's provider; refused here, so that a mistake does not wait for a request.
        self._options: HistoryOptions = {}
        for name in ("max_messages", "ttl"):
            if name in switches:
                value = switches.pop(name)
                self._options[name] = None if value is None else accept_whole_number(name, value)
        super().__init__(accept_source_id(source_id), **switches)
        self._current = current

    async def get_messages(
        self, session_id: str | None, *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Message]:
        caller = self._current()
        history = caller.history(self.source_id, self._options)
        return await history.get_messages(caller.session_id(session_id), state=state, **kwargs)

    async def save_messages(
        self,
        session_id: str | None,
        messages: Sequence[Message],
        *,
        state: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        caller = self._current()
        history = caller.history(self.source_id, self._options)
        await history.save_messages(caller.session_id(session_id), messages, state=state, **kwargs)
