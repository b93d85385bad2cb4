"""The order of the checkpoints of one workflow and scope, as one sortable text.

``{scope token}|{time}.{saved}``: one property is both range and order, so the range index serves "the latest of this
scope" without a composite index. The time is a hybrid clock: never before the parent's, whatever a node's clock says.
"""

from __future__ import annotations

import hashlib
import re
import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from ._identity import Scope
from ._records import RefusedTypesError, UnreadableError

_EPOCH: Final = datetime(1, 1, 1)  # noqa: DTZ001 - naive on purpose: offsets are subtracted arithmetically
_MICROSECOND: Final = timedelta(microseconds=1)
_TOKEN_DIGITS: Final = 32
_TIME_DIGITS: Final = 18
_SAVED_DIGITS: Final = 20
_MAX_TIME: Final = 10**_TIME_DIGITS - 1
_SORT_KEY: Final = re.compile(rf"[0-9a-f]{{{_TOKEN_DIGITS}}}\|([0-9]{{{_TIME_DIGITS}}})\.[0-9]{{{_SAVED_DIGITS}}}")


class SaveClock:
    """Nanoseconds since 1970, strictly increasing within a process even when the clock is not."""

    def __init__(self) -> None:
        """Start before every clock."""
        self._last = 0

    def next(self) -> int:
        """Return the time of a save in nanoseconds."""
        self._last = max(time.time_ns(), self._last + 1)
        return self._last


@dataclass(frozen=True, slots=True)
class SortKey:
    """A place in the order.

    Attributes:
        scope: Whose order it is.
        time: Microseconds since 0001-01-01 UTC.
        saved: Nanoseconds of the save, which decides between equal times.
    """

    scope: Scope
    time: int
    saved: int

    def __str__(self) -> str:
        """Return the text that is stored: its order is the order of `time`, then `saved`."""
        return f"{_scope_token(self.scope)}|{self.time:0{_TIME_DIGITS}d}.{self.saved:0{_SAVED_DIGITS}d}"


def scope_range(scope: Scope) -> tuple[str, str]:
    """Return the half-open range ``[low, high)`` that holds every sort key of a scope and none of another."""
    token = _scope_token(scope)
    return f"{token}|", f"{token}}}"  # "}" is the character after "|"


def time_of(sort_key: str) -> int:
    """Return the time in a stored sort key, in microseconds since 0001-01-01 UTC.

    Raises:
        UnreadableError: It is not a sort key.
    """
    match = _SORT_KEY.fullmatch(sort_key)
    if match is None:
        raise UnreadableError("the sort key of the item is malformed")
    return int(match[1])


def microseconds(timestamp: str) -> int:
    """Return an ISO 8601 time as microseconds since 0001-01-01 UTC, 0 at the least; without an offset it is UTC.

    The offset is subtracted as a number: ``astimezone`` overflows within a day of either end of the calendar.

    Raises:
        RefusedTypesError: It is not an ISO 8601 time.
    """
    try:
        moment = datetime.fromisoformat(timestamp)
    except (TypeError, ValueError):
        raise RefusedTypesError("timestamp must be an ISO 8601 date and time") from None
    offset = moment.utcoffset() or timedelta()
    return max(0, (moment.replace(tzinfo=None) - _EPOCH - offset) // _MICROSECOND)


def hybrid_time(timestamp: str, parent_time: int | None) -> int:
    """Return the time of a checkpoint: its own, but always after its parent's where that is known."""
    own = microseconds(timestamp)
    return min(_MAX_TIME, own if parent_time is None else max(own, parent_time + 1))


def _scope_token(scope: Scope) -> str:
    return hashlib.sha256(scope.value.encode()).hexdigest()[:_TOKEN_DIGITS]
