"""The session store of one tenant: the framework's three methods, and two for who minds versions.

The framework marks its ``SessionStore`` as experimental and warns when it is subclassed: this module is imported when
somebody asks for sessions, not before.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from agent_framework import AgentSession, SessionStore

from ._gateway import Meter
from ._identity import TenantId, accept_session_id
from ._logging import SESSION_DELETE, SESSION_GET, SESSION_SET, Operation, OperationFields
from ._records import SessionPlace
from ._session_deleting import delete_session
from ._session_reading import read_session, restored
from ._session_snapshots import serialize
from ._session_view import SessionBackend, SessionView
from ._session_writing import SessionWrite
from .errors import InvalidArgumentError
from .typing import StoredSession


class TenantSessionStore(SessionStore):
    """Microsoft Agent Framework's ``SessionStore`` for one tenant.

    Cheap, immutable and safe to share between tasks; it does no I/O until one of its methods is awaited. Get one from
    ``factory.for_tenant(tenant_id).sessions``.

    The id of a session is non-empty text of at most 1,024 UTF-8 bytes; it need not be the ``session_id`` that the
    session itself has. Each `get` returns a copy of its own.
    """

    def __init__(self, backend: SessionBackend, tenant: TenantId) -> None:  # pyright: ignore[reportMissingSuperCall]
        """Bind the store to a tenant; the framework's own would only make the dict that it keeps sessions in."""
        self._backend = backend
        self._tenant = tenant

    def __repr__(self) -> str:
        """Name the tenant."""
        return f"TenantSessionStore(tenant_id={self.tenant_id!r})"

    @property
    def tenant_id(self) -> str:
        """The tenant whose sessions these are."""
        return self._tenant.value

    @staticmethod
    def validate_session_id(session_id: str) -> None:
        """Check an id as every method does.

        Raises:
            InvalidIdentifierError: It is not a str, empty, has NUL or a lone surrogate, or is over 1,024 UTF-8 bytes.
        """
        accept_session_id(session_id)

    async def get(self, session_id: str) -> AgentSession | None:
        """Return a copy of a session, None when this tenant has none of this id. One request.

        Raises:
            InvalidIdentifierError: The id is refused.
            StateCorruptError: What is stored cannot be read.
            StateNotRestorableError: The decoder of a registered type does not take what is stored.
            StateTooLargeError: It is over this process's ``max_payload_bytes``.
            ServiceError: The service refused, throttled or could not be reached.
        """
        found = await self.get_stored(session_id)
        return None if found is None else found.session

    async def get_stored(self, session_id: str) -> StoredSession | None:
        """Return a copy of a session with its version, for a `set` that replaces no other one. One request.

        Raises:
            CosmosStateError: As for `get`.
        """
        meter, view = Meter(), self._view(session_id)
        async with self._operation(SESSION_GET, meter, view) as event:
            found = await read_session(view, meter)
            event.add(found=found is not None)
            if found is None:
                return None
            session, version, size = found
            event.add(raw_bytes=size)
            return StoredSession(session, version.etag)

    async def set(self, session_id: str, session: AgentSession, *, if_match: str | None = None) -> None:
        """Store a session, replacing what is there under its id. One request, unless another process was there since.

        The session is copied before the first suspension, so it may go on changing. Without ``if_match`` the last
        writer wins, but only over what was there when it wrote: a request that arrives late changes nothing.

        Args:
            session_id: Under which id.
            session: At most ``max_payload_bytes`` before compression; what is too large for one item lies in parts.
            if_match: Replace only this version, which `get_stored` or `set_stored` has told; ``""`` to store only where
                there is none.

        Raises:
            InvalidIdentifierError: The id is refused.
            InvalidArgumentError: ``if_match`` is no text.
            StateNotRestorableError: ``get`` would refuse it; the message says where, and nothing is written.
            StateTooLargeError: It is over ``max_payload_bytes``.
            StateChangedError: There is another version than ``if_match`` names.
            StateConflictError: Other writers kept replacing it.
            StateCorruptError: What is there is not as this version stores it, so it is not replaced; `delete` it.
            ServiceError: The service refused, throttled or could not be reached; with ``outcome_unknown`` the session
                may have been stored, and may have been replaced or deleted since.
        """
        await self.set_stored(session_id, session, if_match=if_match)

    async def set_stored(self, session_id: str, session: AgentSession, *, if_match: str | None = None) -> str:
        """Store a session as `set` does; return the version this has made, for ``if_match`` of the next.

        Raises:
            CosmosStateError: As for `set`.
        """
        meter, view = Meter(), self._view(session_id)
        async with self._operation(SESSION_SET, meter, view) as event:
            with view.about():
                raw = serialize(session)
            _check_if_match(if_match)
            view.check_size(len(raw))
            with view.about():
                await restored(raw)
            written = await SessionWrite(view, raw, meter).run(if_match)
            event.add(raw_bytes=len(raw), stored_payload_bytes=written.stored_bytes)
            return written.etag

    async def delete(self, session_id: str) -> None:
        """Delete a session, also one that cannot be read; that there is none is no error. Two requests.

        A `set` whose outcome is unknown may still arrive afterwards, where it found no session when it began.

        Raises:
            InvalidIdentifierError: The id is refused.
            StateConflictError: Other writers kept replacing it.
            ServiceError: The service refused, throttled or could not be reached.
        """
        meter, view = Meter(), self._view(session_id)
        async with self._operation(SESSION_DELETE, meter, view) as event:
            event.add(deleted=await delete_session(view, meter))

    def _view(self, session_id: str) -> SessionView:
        return SessionView(self._backend, SessionPlace(self._tenant, accept_session_id(session_id)))

    def _operation(
        self, names: Operation, meter: Meter, view: SessionView
    ) -> AbstractAsyncContextManager[OperationFields]:
        return self._backend.operations.run(names, meter, **view.place.fields)


def _check_if_match(if_match: object) -> None:
    if not isinstance(if_match, str | None):
        raise InvalidArgumentError(f"if_match must be a str or None, not {type(if_match).__name__}")
