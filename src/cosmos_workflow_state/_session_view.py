"""What the session stores of all tenants share, and one store's view of one session.

The view is where a stage's no becomes the error a caller knows, and where another's item becomes an event.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from ._gateway import Gateway, Item
from ._items import lies_in
from ._logging import ISOLATION_VIOLATED, emit
from ._operations import Operations
from ._records import RefusedTypesError, SessionPlace, UnreadableError, Upload
from ._session_items import SessionVersion
from .errors import StateCorruptError, StateFields, StateNotRestorableError, StateTooLargeError

_REMEMBERED: Final = 10_000


class SessionMemory:
    """The versions of sessions that this process has read or written last. Bounded; only ever a hint.

    It saves `set` the question what it replaces. What it remembers is replaced only if it is still there, so
    forgetting, or being behind, costs requests and never a newer version.
    """

    def __init__(self) -> None:
        """Start knowing nothing."""
        self._versions: OrderedDict[SessionPlace, tuple[str, str, Upload | None]] = OrderedDict()

    def get(self, place: SessionPlace) -> SessionVersion | None:
        """Return the version seen last, None when none was or there was none."""
        if place not in self._versions:
            return None
        etag, writes, upload = self._versions[place]
        return SessionVersion(etag, tuple(writes.split()), upload)

    def note(self, place: SessionPlace, version: SessionVersion | None) -> None:
        """Note what was read or written; None for nothing there."""
        self._versions.pop(place, None)
        if version is not None:
            # One text in place of up to 64: 1 KB and not 5.
            self._versions[place] = version.etag, " ".join(version.writes), version.upload
        if len(self._versions) > _REMEMBERED:
            self._versions.popitem(last=False)


@dataclass(frozen=True, slots=True)
class SessionBackend:
    """What the session stores of all tenants share.

    Attributes:
        gateway: The container.
        operations: Runs each operation as one event.
        max_payload_bytes: Bytes of a session before compression.
        ttl: Seconds after it was last set that a session expires, None for never.
        memory: What this process has seen of sessions.
    """

    gateway: Gateway
    operations: Operations
    max_payload_bytes: int
    ttl: int | None
    memory: SessionMemory = field(default_factory=SessionMemory)


@dataclass(frozen=True, slots=True)
class SessionView:
    """One session as one store sees it.

    Attributes:
        backend: What all share.
        place: Which tenant's session.
    """

    backend: SessionBackend
    place: SessionPlace

    @property
    def which(self) -> StateFields:
        """The fields of an error about this session."""
        return StateFields(tenant_id=self.place.tenant.value, session_id=self.place.session_id)

    def owns(self, item: Item) -> bool:
        """Check an item that was read: another's is an event for whoever watches, and reads as not there."""
        if lies_in(item, self.place):
            return True
        emit(self.backend.operations.logger.error, ISOLATION_VIOLATED, **self.place.fields)
        return False

    def check_size(self, size: int) -> None:
        """Compare the bytes of a session before compression with the limit.

        Raises:
            StateTooLargeError: They are over it.
        """
        limit = self.backend.max_payload_bytes
        if size > limit:
            raise StateTooLargeError(
                f"the session has {size} bytes of state before compression (setting max_payload_bytes), "
                f"the limit is {limit}",
                size=size,
                limit=limit,
                **self.which,
            )

    @contextmanager
    def about(self) -> Generator[None]:
        """Turn a stage's no into the error a caller knows, with the session it is about.

        Raises:
            StateCorruptError: Instead of `UnreadableError`.
            StateNotRestorableError: Instead of `RefusedTypesError`.
        """
        try:
            yield
        except UnreadableError as error:
            raise StateCorruptError(str(error), **self.which) from None
        except RefusedTypesError as error:
            # Its context is what the state's own code has raised, which may quote the state.
            error.__context__ = None
            raise StateNotRestorableError(str(error), **self.which) from None
