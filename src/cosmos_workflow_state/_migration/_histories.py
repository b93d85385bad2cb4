"""Migrating chat histories: each as a whole, read back and compared before its messages count as written.

A history is known to be there already by how many messages it has and what its last one is told by, unless it was
written so shortly before the last write of all that an earlier run may have ended before it had compared it. Nothing
that is there is replaced or deleted; what differs, has gone on or was cleared here is reported and left as it is. A
session of which not all messages are one tenant's goes to nobody: half a conversation is worse than none.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast

from agent_framework import Message

from cosmos_workflow_state import _history_queries as history_queries
from cosmos_workflow_state._conversations import Conversation, HistoryBackend
from cosmos_workflow_state._definitions import HISTORY
from cosmos_workflow_state._gateway import Meter
from cosmos_workflow_state._heads import Head, read_head_fields
from cosmos_workflow_state._identity import TenantId, accept_session_id, accept_source_id, tenant_prefix
from cosmos_workflow_state._logging import HISTORY_READ, HISTORY_SAVE, Operation, OperationFields, get_logger
from cosmos_workflow_state._messages import Entry, entry, identity_of
from cosmos_workflow_state._operations import Operations
from cosmos_workflow_state._records import RefusedTypesError, SessionPlace, UnreadableError
from cosmos_workflow_state.errors import InvalidIdentifierError, StateError

from ._continuing import Continue
from ._ends import Ends, Layout, in_turn, opened_ends
from ._equality import same
from ._job import Job, UnfitError, present
from ._tally import Failure, Tally

LAYOUT: Final = Layout("CosmosHistoryProvider", "/session_id", HISTORY)

_HEADERS: Final = "SELECT c.id, c.session_id, c.source_id{} FROM c"
_IN_HISTORY: Final = (
    "SELECT c.id, c.session_id, c.message FROM c "
    "WHERE c.session_id = @session AND c.source_id = @source ORDER BY c.sort_key"
)
_MESSAGES: Final = f"{_IN_HISTORY} ASC"
"""As the framework's provider asks, so in its order, also where sort keys are the same: numbers of that size are."""
_LAST: Final = f"{_IN_HISTORY} DESC OFFSET 0 LIMIT 1"
_HEADS: Final = (
    "SELECT c.tenant_id, c.session_id, c.source_id, c.began, c.first, c.next, c.recent, c.shortest_ttl, c.ttl, "
    "c.write_id, c._ts FROM c "
    "WHERE c.tenant_id = @tenant AND c.type = @type AND c.source_id = @source"
)

_AT_ONCE: Final = 500
"""Messages in one operation, which has a time limit."""
_SLACK: Final = 60.0
"""Seconds beyond ``operation_timeout`` for which what was written may not have been compared yet."""

_LEFT_OUT: Final = "the session is left out as a whole"

_OF_ONE_HISTORY: Final = (UnfitError, StateError, InvalidIdentifierError, RefusedTypesError)
"""Errors that are about one history or message: the others go on."""


@dataclass(slots=True)
class _Session:
    """What there is of one session in the source, and whose its messages say it is.

    Attributes:
        item_ids: Ids of their items, by source.
        tenants: Those that they name.
        nobodys: Why one of them names none; empty where each does.
    """

    item_ids: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    tenants: set[TenantId] = field(default_factory=set[TenantId])
    nobodys: str = ""

    @property
    def reason(self) -> str:
        """Why it is nobody's; empty where it is one tenant's."""
        if self.nobodys:
            return f"{_LEFT_OUT}: a message of it names no tenant ({self.nobodys})"
        return f"{_LEFT_OUT}: its messages name several tenants" if len(self.tenants) > 1 else ""


@dataclass(frozen=True, slots=True)
class _History:
    """The messages of one session and source that go to one tenant.

    Attributes:
        place: Where they go.
        source_id: Which of the session's histories.
        item_ids: Ids of their items, in no order.
    """

    place: SessionPlace
    source_id: str
    item_ids: frozenset[str]

    @property
    def key(self) -> tuple[str, str, str]:
        """What it is found by."""
        return self.place.tenant.value, self.place.session_id, self.source_id


@dataclass(frozen=True, slots=True)
class _Found:
    """A message of the source, and the id of its item."""

    item_id: str
    message: Message


@dataclass(frozen=True, slots=True)
class _Known:
    """What is there of a history, and when it was written last, in seconds."""

    head: Head
    written: int


async def migrate_histories(job: Job, tally: Tally) -> None:
    """Write every message of a container of the framework's own provider into this package's container.

    Args:
        job: What is to be done.
        tally: Counts what was done; also right when this raises, after which a repeat goes on.

    Raises:
        ProvisioningError: The source is missing or is no such container, or the target is not as it must be.
        ServiceError: The service refused, throttled or could not be reached.
        SettingsError: A key is none, or there is no identity.
    """
    async with opened_ends(job, LAYOUT) as ends:
        migration = _Migration(job, ends, tally)
        histories = await migration.histories()
        await migration.look(histories)
        await in_turn(histories, migration.migrate)


class _Migration:
    """One migration, and what it works with."""

    def __init__(self, job: Job, ends: Ends, tally: Tally) -> None:
        settings = job.settings
        self._job, self._ends, self._tally = job, ends, tally
        operations = Operations(get_logger(), settings.operation_timeout)
        self._backend = HistoryBackend(ends.gateway, operations, settings.max_payload_bytes, settings.history_ttl)
        self._known: dict[tuple[str, str, str], _Known] = {}
        self._compared_before = 0.0

    async def histories(self) -> list[_History]:
        """Read what there is in the source; items that are no messages, and sessions that are nobody's, have failed."""
        assignment, found = self._job.assignment, dict[str, _Session]()
        async for row in self._ends.source.scan(_HEADERS.format(assignment.column)):
            self._tally.find()
            try:
                session_id = accept_session_id(present(row, "session_id", "message"))
                source_id = accept_source_id(present(row, "source_id", "message"))
            except _OF_ONE_HISTORY as error:
                place = str(row.get("session_id") or "")
                self._tally.fail(Failure(str(row.get("id")), place, assignment.only, str(error)))
                continue
            self._tally.sources[source_id] += 1
            session = found.setdefault(session_id, _Session())
            session.item_ids.setdefault(source_id, set()).add(row["id"])
            try:
                session.tenants.add(assignment.tenant_of(row))
            except _OF_ONE_HISTORY as error:
                session.nobodys = session.nobodys or str(error)
        return [history for session_id, session in found.items() for history in self._of_one(session_id, session)]

    def _of_one(self, session_id: str, session: _Session) -> list[_History]:
        """Return the histories of a session; none where it is not one tenant's: then all of it has failed."""
        if not session.reason:
            [tenant] = session.tenants
            place = SessionPlace(tenant, session_id)
            return [_History(place, source_id, frozenset(ids)) for source_id, ids in session.item_ids.items()]
        for source_id, ids in session.item_ids.items():
            for item_id in sorted(ids):
                self._tally.fail(Failure(item_id, session_id, None, session.reason, source_id))
        return []

    async def look(self, histories: Sequence[_History]) -> None:
        """Read the heads of what is there already, one request a page; creates the container where that is asked."""
        target = self._ends.target
        if target is None or not histories:
            return
        first = histories[0]
        await self._ends.writer.for_tenant(first.place.tenant.value).history(first.source_id).list_sessions()
        wanted = {history.key for history in histories}
        for tenant, source_id in {(history.place.tenant, history.source_id) for history in histories}:
            parameters = history_queries.of_sessions(tenant, source_id)
            async for row in target.find(tenant_prefix(tenant), _HEADS, parameters):
                key: tuple[Any, Any, Any] = (row.get("tenant_id"), row.get("session_id"), row.get("source_id"))
                # What cannot be read is looked at when its turn comes, and fails there.
                with contextlib.suppress(UnreadableError):
                    if key in wanted:
                        self._known[key] = _Known(read_head_fields(row, ""), row["_ts"])
        last = max((one.written for one in self._known.values()), default=0)
        self._compared_before = last - self._job.settings.operation_timeout - _SLACK

    async def migrate(self, history: _History) -> None:
        """Write what is missing of a history."""
        tenant_id = history.place.tenant.value
        if await self._is_there(history):
            self._tally.skip(tenant_id, len(history.item_ids))
            return
        messages = await self._read(history)
        try:
            there = await self._compare(history, messages)
        except _OF_ONE_HISTORY as error:
            self._fail(history, messages, error)
            return
        self._tally.skip(tenant_id, there)
        try:
            await self._write(history, messages, there)
        except _OF_ONE_HISTORY as error:
            self._fail(history, messages[there:], error)
            return
        self._tally.write(tenant_id, len(messages) - there)

    async def _is_there(self, history: _History) -> bool:
        """Return whether all of a history is there, and was compared by whoever wrote it."""
        known, count = self._known.get(history.key), len(history.item_ids)
        if known is None or known.written >= self._compared_before:
            return False
        head = known.head
        if head.was_cleared or head.messages < count:
            return False
        if head.messages > count:
            # It has gone on here since, or is another one.
            head = replace(head, next=head.first + count, recent=())
        return list(await self._conversation(history).newest_identities(head, 1)) == await self._last(history)

    async def _last(self, history: _History) -> list[str]:
        """Return what the last message of a history in the source is told by; nothing where that cannot be said."""
        rows = [row async for row in self._ends.source.find(history.place.session_id, _LAST, _parameters(history))]
        try:
            return [identity_of(_decode(row)) for row in rows if row.get("id") in history.item_ids]
        except UnfitError:
            return []

    async def _read(self, history: _History) -> list[_Found]:
        """Return the messages of a history in the source, in its order; those that cannot be decoded have failed."""
        found, unseen = list[_Found](), set(history.item_ids)
        async for row in self._ends.source.find(history.place.session_id, _MESSAGES, _parameters(history)):
            if row.get("id") not in unseen:
                continue
            unseen.remove(row["id"])
            try:
                found.append(_Found(row["id"], _decode(row)))
            except UnfitError as error:
                self._tell(history, row["id"], error)
        for item_id in sorted(unseen):
            self._tell(history, item_id, UnfitError("it was deleted from the source in the meantime"))
        return found

    async def _compare(self, history: _History, messages: Sequence[_Found]) -> int:
        """Return how many of the messages are there, after a comparison with all that is there.

        Raises:
            UnfitError: What is there is not how the history begins.
        """
        if self._ends.target is None:
            return 0
        conversation = self._conversation(history)
        async with self._run(HISTORY_READ, conversation):
            head, found = await conversation.read(None)
        if head.was_cleared:
            raise UnfitError("the history was cleared here, and was left so", _how_to_begin_anew(history))
        # Those that are not found any more have expired.
        start = head.messages - len(found)
        expected = [one.message for one in messages[start : head.messages]]
        if not same(found[: len(expected)], expected):
            reason = "another history of this session and source is there, or it has gone on here"
            raise UnfitError(reason, _how_to_begin_anew(history))
        return min(head.messages, len(messages))

    async def _write(self, history: _History, messages: Sequence[_Found], start: int) -> None:
        """Write the messages from a number on, and read all of them back.

        Raises:
            UnfitError: They do not come back, or something else was written meanwhile.
            StateError: A message is refused, or other writers kept being first.
        """
        for first in range(start, len(messages), _AT_ONCE):
            conversation = self._conversation(history)
            chunk = messages[first : first + _AT_ONCE]
            entries = [_entry(conversation, one.message) for one in chunk]
            if not self._job.dry_run:
                async with self._run(HISTORY_SAVE, conversation):
                    await Continue(conversation, entries, self._backend.ttl, start=first).run(None)
        if not self._job.dry_run and await self._compare(history, messages) != len(messages):
            raise UnfitError("what was written cannot be read back")

    def _conversation(self, history: _History) -> Conversation:
        return Conversation(self._backend, history.place, history.source_id, Meter())

    def _run(
        self, names: Operation, conversation: Conversation
    ) -> contextlib.AbstractAsyncContextManager[OperationFields]:
        about = {"source_id": conversation.source_id, **conversation.place.fields}
        return self._backend.operations.run(names, conversation.meter, **about)

    def _fail(self, history: _History, messages: Sequence[_Found], error: Exception) -> None:
        for one in messages:
            self._tell(history, one.item_id, error, newest=one is messages[-1])

    def _tell(self, history: _History, item_id: str, error: Exception, *, newest: bool = False) -> None:
        place, remedy = history.place, error.remedy if isinstance(error, UnfitError) else ""
        self._tally.fail(
            Failure(item_id, place.session_id, place.tenant.value, str(error), history.source_id, remedy, newest)
        )


def _how_to_begin_anew(history: _History) -> str:
    tenant_id, session_id, source_id = history.key
    return (
        "if what is there is not wanted, look at it first: "
        f"for_tenant({tenant_id!r}).history({source_id!r}).delete_session({session_id!r}) deletes it with all sources "
        "of the session, and the next run copies the session whole"
    )


def _parameters(history: _History) -> list[dict[str, object]]:
    return [{"name": "@session", "value": history.place.session_id}, {"name": "@source", "value": history.source_id}]


def _decode(row: Mapping[str, Any]) -> Message:
    """Return the message in an item of the source, as the framework's provider would.

    Raises:
        UnfitError: There is none. What the framework says is not repeated: it may quote the message.
    """
    payload = row.get("message")
    reason = "its message is not what the framework writes"
    if not isinstance(payload, dict):
        raise UnfitError(reason)
    try:
        return Message.from_dict(cast("dict[str, Any]", payload))
    except Exception:  # noqa: BLE001 - whatever the framework raises about what is stored
        raise UnfitError(reason) from None


def _entry(conversation: Conversation, message: Message) -> Entry:
    made = entry(message, conversation.place, conversation.source_id)
    conversation.check_size(len(made.raw))
    return made
