"""The head of a history: how many messages there are, and what the newest are told by. Values and their arithmetic.

One head for each session and source. Each save replaces it in the batch that creates its messages, so its version
orders all writers. No I/O, no clock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias, cast

from ._fields import field, optional, texts
from ._identities import is_identity
from ._records import SessionPlace, UnreadableError

REMEMBERED: Final = 32
"""Identities of newest messages that a head holds: what a turn of an agent is compared with, tools included. Each is
paid for with every turn, and lies in the session's state too; a turn of more messages costs a query."""

MAX_SEQUENCE: Final = 10**15 - 1
"""The number of the last message of a history, at most: 15 digits in the order, and exact as a number in JSON."""

BEGINNINGS: Final = 8 * 10**14
"""A history is numbered from a random number below this on, so that no number comes back when a session is deleted
and begins anew: what is still under way for the one cannot meet the other, and what is read of both is told apart."""

HIGHEST_END: Final = 9 * 10**14
"""No history gets as far with messages that were really added; where one is numbered so high, its clearing begins
anew."""

State: TypeAlias = dict[str, Any]
"""A head as it lies in a session's state: JSON values, so that it can be stored with the session."""


@dataclass(frozen=True, slots=True)
class Head:
    """What is known of a history without reading it.

    Attributes:
        began: Number of the first message of all; of a head that was written anew by a clearing, 0.
        next: Number of the message that is written next.
        first: Number of the first message that counts: those before it were cleared.
        recent: Identities of the newest messages, oldest first, at most `REMEMBERED`.
        ttl: Seconds that it is kept, None for ever: as long as any message, also one that does not count any more and
            may not be deleted yet.
        shortest_ttl: The fewest seconds that any message that counts may live, None when all stay.
        write_id: Unique for each version that is written, ``""`` before the first.
        etag: The version, ``""`` when there is none.
    """

    began: int = 0
    next: int = 0
    first: int = 0
    recent: tuple[str, ...] = ()
    ttl: int | None = None
    shortest_ttl: int | None = None
    write_id: str = ""
    etag: str = ""

    @property
    def messages(self) -> int:
        """How many messages count, those that have expired by now included."""
        return self.next - self.first

    @property
    def was_cleared(self) -> bool:
        """Whether messages were taken out of the count."""
        return self.first != self.began

    @property
    def lives_differ(self) -> bool:
        """Whether some of the messages that count expire before others that are older, or never do."""
        return self.ttl != self.shortest_ttl

    def begun(self, number: int) -> Head:
        """Return the head of a history that begins with this number, where there is none; else this one."""
        return self if self.etag else Head(began=number, next=number, first=number)

    def appended(self, identities: Sequence[str], ttl: int | None, write_id: str) -> Head:
        """Return the head after messages were added.

        Args:
            identities: What they are told by.
            ttl: Seconds that they live, None for ever.
            write_id: Of the batch that adds them.
        """
        shortest = [seconds for seconds in (ttl, self.shortest_ttl if self.messages else None) if seconds is not None]
        return Head(
            began=self.began,
            next=self.next + len(identities),
            first=self.first,
            recent=(*self.recent, *identities)[-REMEMBERED:],
            # Without it what is still there would be lost, and what was cleared would be there again.
            ttl=longer(self.ttl, ttl) if self.write_id else ttl,
            shortest_ttl=min(shortest, default=None),
            write_id=write_id,
        )

    def cleared(self, number: int, ttl: int | None, write_id: str) -> Head:
        """Return the head after all messages were taken out of the count.

        Args:
            number: Of the message that is written next.
            ttl: Seconds that it is kept, None for ever.
            write_id: Of the batch that clears.
        """
        began = self.began if number >= self.next else 0
        return Head(began=began, next=number, first=number, ttl=ttl, write_id=write_id)

    def at(self, etag: str) -> Head:
        """Return the head as the version with this ETag."""
        return replace(self, etag=etag)


def head_fields(head: Head) -> dict[str, Any]:
    """Return the fields of a head but its version and its time to live."""
    fields: dict[str, Any] = {
        "began": head.began,
        "next": head.next,
        "first": head.first,
        "recent": list(head.recent),
        "write_id": head.write_id,
    }
    if head.shortest_ttl is not None:
        fields["shortest_ttl"] = head.shortest_ttl
    return fields


def read_head_fields(fields: Mapping[str, Any], etag: str) -> Head:
    """Return the head in these fields.

    Raises:
        UnreadableError: One is missing, of another kind or impossible.
    """
    head = Head(
        began=field(fields, "began", int),
        next=field(fields, "next", int),
        first=field(fields, "first", int),
        recent=texts(fields, "recent"),
        ttl=optional(fields, "ttl", int),
        shortest_ttl=optional(fields, "shortest_ttl", int),
        write_id=field(fields, "write_id", str),
        etag=etag,
    )
    if not 0 <= head.began <= head.first <= head.next <= MAX_SEQUENCE + 1:
        raise UnreadableError("a head counts what is impossible")
    if len(head.recent) != min(head.messages, REMEMBERED) or not all(map(is_identity, head.recent)):
        raise UnreadableError("a head does not hold the identities of the newest messages")
    return head


def to_state(head: Head, place: SessionPlace, source_id: str) -> State:
    """Return a head as JSON values, with whose it is."""
    state = {**place.fields, "source_id": source_id, "etag": head.etag, **head_fields(head)}
    return state if head.ttl is None else {**state, "ttl": head.ttl}


def from_state(state: object, place: SessionPlace, source_id: str) -> Head | None:
    """Return the head in a state, None when there is none of this session and source, or not a whole one."""
    if not isinstance(state, Mapping):
        return None
    fields = cast("Mapping[str, Any]", state)
    if any(fields.get(name) != value for name, value in {**place.fields, "source_id": source_id}.items()):
        return None
    try:
        head = read_head_fields(fields, field(fields, "etag", str))
    except UnreadableError:
        return None
    return head if head.etag or head == Head() else None


def longer(one: int | None, other: int | None) -> int | None:
    """Return the longer of two lives in seconds, None for ever."""
    return None if one is None or other is None else max(one, other)
