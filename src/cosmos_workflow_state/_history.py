"""The chat history of one tenant, as the framework asks for it: its hooks stay its own, each method is one event.

What the methods do is in `_conversations`, `_appending`, `_clearing` and `_history_deleting`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final, Unpack

from agent_framework import HistoryProvider, Message

from . import _history_queries
from ._appending import Append
from ._clearing import clear
from ._conversations import Conversation, HistoryBackend
from ._gateway import Meter
from ._heads import Head, from_state, to_state
from ._history_deleting import delete_session
from ._history_items import read_listed
from ._identity import TenantId, accept_session_id, accept_source_id, tenant_prefix
from ._logging import (
    HISTORY_CLEAR,
    HISTORY_COUNT,
    HISTORY_DELETE_SESSION,
    HISTORY_LIST_SESSIONS,
    HISTORY_READ,
    HISTORY_SAVE,
    HISTORY_VALUES_LEFT_OUT,
    ISOLATION_VIOLATED,
    ITEM_UNREADABLE,
    emit,
)
from ._message_losses import types_left_out
from ._messages import Entry, entry
from ._records import RefusedTypesError, SessionPlace, UnreadableError
from ._view import accept_whole_number
from .errors import StateNotRestorableError
from .typing import HistoryOptions

_HEAD: Final = "cosmos_history_head"
"""Where in a session's state the head lies."""


class TenantHistoryProvider(HistoryProvider):
    """Microsoft Agent Framework's ``HistoryProvider`` for one tenant.

    Get one from ``factory.for_tenant(tenant_id).history(...)`` and give it to an agent in ``context_providers``. It is
    safe to share between tasks and sessions, and keeps nothing but what it puts into a session's state: with that, a
    turn of an agent is one request to load and one to save.

    Attributes:
        tenant_id: The tenant.
        max_messages: How many of the newest messages are loaded, None for all.
    """

    DEFAULT_SOURCE_ID: ClassVar[str] = "azure_cosmos_history"
    """That of the framework's own provider for Cosmos DB, so that what is migrated from it is found."""

    def __init__(
        self, backend: HistoryBackend, tenant: TenantId, source_id: str, **options: Unpack[HistoryOptions]
    ) -> None:
        """Bind the provider to a tenant; use ``TenantState.history``, which documents the arguments.

        Raises:
            InvalidArgumentError: ``max_messages`` or ``ttl`` is refused.
            InvalidIdentifierError: The source id is refused.
        """
        switches: dict[str, Any] = {**options}
        most, ttl = switches.pop("max_messages", None), switches.pop("ttl", backend.ttl)
        # What is left is the framework's own, and it refuses what it does not know.
        super().__init__(accept_source_id(source_id), **switches)
        self.tenant_id = tenant.value
        self.max_messages = None if most is None else accept_whole_number("max_messages", most)
        self._ttl = None if ttl is None else accept_whole_number("ttl", ttl)
        self._backend, self._tenant = backend, tenant

    def __repr__(self) -> str:
        """Name the tenant and the source."""
        return f"TenantHistoryProvider(tenant_id={self.tenant_id!r}, source_id={self.source_id!r})"

    async def get_messages(
        self, session_id: str | None, *, state: dict[str, Any] | None = None, **_kwargs: Any
    ) -> list[Message]:
        """Return the messages of a session, oldest first; the newest `max_messages` of them where that is set.

        One request for up to 1,000 messages or 4 MB, and one for each part of a message that is too large for an item.

        Args:
            session_id: Not empty, at most 1,024 UTF-8 bytes.
            state: The session's state; a save with the same one need not read first.
            **_kwargs: Not used.

        Raises:
            InvalidIdentifierError: The session id is refused, also one that is None or empty.
            StateCorruptError: What is stored cannot be read, or a message is lost, or the head that counts them.
            StateTooLargeError: A message is over this process's ``max_payload_bytes``.
            ServiceError: The service refused, throttled or could not be reached.
        """
        conversation = self._conversation(session_id)
        async with self._backend.operations.run(
            HISTORY_READ, conversation.meter, source_id=self.source_id, **conversation.place.fields
        ) as event:
            head, messages = await conversation.read(self.max_messages)
            self._remember(state, conversation, head)
            event.add(count=len(messages))
            return messages

    async def save_messages(
        self,
        session_id: str | None,
        messages: Sequence[Message],
        *,
        state: dict[str, Any] | None = None,
        **_kwargs: Any,
    ) -> None:
        """Add to a session those of the messages that are new, as the framework judges that; all of them, in order.

        One request after a `get_messages` or a save with the same state, else two, and three where the session begins;
        more for what is too much for a batch, and one more where messages live differently long. The messages are
        copied before the first suspension, so they may go on changing. Interrupted, the same save again adds what is
        missing.

        Args:
            session_id: Not empty, at most 1,024 UTF-8 bytes.
            messages: What was said, or the whole conversation up to now; each of at most ``max_payload_bytes``.
            state: The session's state.
            **_kwargs: Not used.

        Raises:
            InvalidIdentifierError: The session id is refused, also one that is None or empty.
            StateConflictError: Other writers kept adding to the session.
            StateCorruptError: What is stored cannot be read.
            StateNotRestorableError: A message cannot be written as JSON and read back; nothing is saved.
            StateTooLargeError: A message is over ``max_payload_bytes``; nothing is saved.
            ServiceError: The service refused, throttled or could not be reached.
        """
        conversation = self._conversation(session_id)
        if not messages:
            return
        async with self._backend.operations.run(
            HISTORY_SAVE, conversation.meter, source_id=self.source_id, **conversation.place.fields
        ) as event:
            entries = _entries(conversation, messages)
            self._tell_of_losses(conversation, messages)
            # Taken out until it is known again: a save that fails may have been done.
            known = None if state is None else from_state(state.pop(_HEAD, None), conversation.place, self.source_id)
            head, added = await Append(conversation, entries, self._ttl).run(known)
            self._remember(state, conversation, head)
            event.add(count=added, raw_bytes=sum(len(one.raw) for one in entries))

    async def count(self, session_id: str) -> int:
        """Return how many messages a session has. One request, a second one where messages expire.

        Raises:
            InvalidIdentifierError: The session id is refused.
            StateCorruptError: What is stored cannot be read.
            ServiceError: The service refused, throttled or could not be reached.
        """
        conversation = self._conversation(session_id)
        async with self._backend.operations.run(
            HISTORY_COUNT, conversation.meter, source_id=self.source_id, **conversation.place.fields
        ) as event:
            count = await conversation.count()
            event.add(count=count)
            return count

    async def clear(self, session_id: str) -> None:
        """Take all messages of a session away, those of this source.

        Done with one write, after which the messages are deleted. What is saved after that write stays, whatever
        becomes of its answer; what is saved between the call and the write is cleared with the rest. Also repairs a
        history of which items were lost. Interrupted, the next one deletes what is left lying.

        Raises:
            InvalidIdentifierError: The session id is refused.
            StateConflictError: Other writers kept adding to the session.
            StateCorruptError: What is stored is another's.
            ServiceError: The service refused, throttled or could not be reached; a repeat goes on.
        """
        conversation = self._conversation(session_id)
        async with self._backend.operations.run(
            HISTORY_CLEAR, conversation.meter, source_id=self.source_id, **conversation.place.fields
        ):
            await clear(conversation, self._ttl)

    async def list_sessions(self) -> list[str]:
        """Return the ids of the tenant's sessions that have messages of this source, sorted. One request a page.

        One whose head cannot be read is an event, and left out.

        Raises:
            ServiceError: The service refused, throttled or could not be reached.
        """
        meter, tenant = Meter(), self._tenant
        async with self._backend.operations.run(
            HISTORY_LIST_SESSIONS, meter, tenant_id=tenant.value, source_id=self.source_id
        ) as event:
            parameters = _history_queries.of_sessions(tenant, self.source_id)
            rows = self._backend.gateway.query(_history_queries.SESSIONS, parameters, tenant_prefix(tenant), meter)
            found = {session_id async for row in rows for session_id in self._with_messages(row)}
            event.add(count=len(found))
            return sorted(found)

    async def delete_session(self, session_id: str) -> bool:
        """Delete everything of a session, of every source; return False when there was nothing.

        Of the history only: the session in ``TenantState.sessions`` is another matter. What is saved once a source has
        been cleared stays, see `clear`.

        Raises:
            InvalidIdentifierError: The session id is refused.
            ProvisioningError: Interrupted uploads are left, and the account does not order reads after writes.
            StateConflictError: Other writers kept adding to the session.
            StateCorruptError: Items of a kind that this version does not know are left; all others are deleted.
            ServiceError: The service refused, throttled or could not be reached; a repeat goes on.
        """
        conversation = self._conversation(session_id)
        async with self._backend.operations.run(
            HISTORY_DELETE_SESSION, conversation.meter, source_id=self.source_id, **conversation.place.fields
        ) as event:
            deleted = await delete_session(conversation)
            event.add(deleted=deleted)
            return deleted

    def _conversation(self, session_id: str | None) -> Conversation:
        # The framework's own provider would make up an id that nobody finds again; ours does not lose what it is given.
        place = SessionPlace(self._tenant, accept_session_id(session_id or ""))
        return Conversation(self._backend, place, self.source_id, Meter())

    def _tell_of_losses(self, conversation: Conversation, messages: Sequence[Message]) -> None:
        """Emit one warning about values that the framework's encoding of these messages leaves out or changes."""
        types = sorted({name for message in messages for name in types_left_out(message)})
        if types:
            log, which = self._backend.operations.logger.warning, conversation.place.fields
            emit(log, HISTORY_VALUES_LEFT_OUT, source_id=self.source_id, types=", ".join(types), **which)

    def _remember(self, state: dict[str, Any] | None, conversation: Conversation, head: Head) -> None:
        if state is not None:
            state[_HEAD] = to_state(head, conversation.place, self.source_id)

    def _with_messages(self, row: dict[str, Any]) -> list[str]:
        """Return the session that a head is of, if it is ours, can be read and counts any messages."""
        log = self._backend.operations.logger.error
        if (row.get("tenant_id"), row.get("source_id")) != (self._tenant.value, self.source_id):
            emit(log, ISOLATION_VIOLATED, tenant_id=self._tenant.value)
            return []
        try:
            session_id, count = read_listed(row)
        except UnreadableError:
            emit(log, ITEM_UNREADABLE, tenant_id=self._tenant.value, source_id=self.source_id)
            return []
        return [session_id] if count else []


def _entries(conversation: Conversation, messages: Sequence[Message]) -> list[Entry]:
    """Copy messages into bytes: everything of a save that must happen before the first await."""
    entries: list[Entry] = []
    for message in messages:
        try:
            entries.append(entry(message, conversation.place, conversation.source_id))
        except RefusedTypesError as error:
            raise StateNotRestorableError(
                f"message {len(entries)} (from 0) is refused: {error}", **conversation.which
            ) from None
        conversation.check_size(len(entries[-1].raw))
    return entries
