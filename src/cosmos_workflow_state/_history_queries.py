"""The texts of the queries on histories, always parameterised, always with the tenant as a predicate beside the key.

Key and predicate, both: some emulator builds ignore a partial key and return every tenant's items. The range of
``sort_key`` is the source; one property is both range and order, so no composite index is needed.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from ._history_items import HEAD_TYPE, MESSAGE_TYPE, order_of, order_range
from ._identity import TenantId
from ._records import SessionPlace

Parameters: TypeAlias = list[dict[str, object]]

_IN_SESSION: Final = "FROM c WHERE c.tenant_id = @tenant AND c.session_id = @session"
_IN_SOURCE: Final = f"{_IN_SESSION} AND c.sort_key >= @low AND c.sort_key < @high"
_HEADS: Final = "FROM c WHERE c.tenant_id = @tenant AND c.type = @type AND c.source_id = @source"
_OWNER: Final = "c.tenant_id, c.session_id, c.source_id"

_CONTENT: Final = (
    f"{_OWNER}, c.type, c.schema, c.sort_key, c.sequence, c.identity, c.write_id, c.payload, "
    "c.began, c.first, c.next, c.recent, c.shortest_ttl, c.ttl, c._etag"
)
"""Everything that is read of a head or a message; the service's own fields are a fifth of a small one."""

NEWEST_FIRST: Final = f"SELECT {_CONTENT} {_IN_SOURCE} ORDER BY c.sort_key DESC"
"""The head of a source, then its messages."""
NEWEST: Final = f"{NEWEST_FIRST} OFFSET 0 LIMIT @limit"
IDENTITIES: Final = f"SELECT {_OWNER}, c.identity {_IN_SOURCE} ORDER BY c.sort_key DESC OFFSET 0 LIMIT @limit"
MESSAGES: Final = (
    f"SELECT c.id, {_OWNER}, c.sequence, c.payload.write_id, c.payload.parts, c._etag {_IN_SOURCE} "
    "ORDER BY c.sort_key DESC"
)
"""What messages are called, their numbers and versions, and the uploads that they name."""
COUNT: Final = f"SELECT COUNT(1) AS messages {_IN_SOURCE}"

SESSIONS: Final = f"SELECT {_OWNER}, c.first, c.next {_HEADS}"
"""The heads of a source in all sessions of a tenant."""
EVERYTHING: Final = f"SELECT c.id, {_OWNER}, c.type, c.sort_key, c.sequence, c.write_id, c._etag {_IN_SESSION}"
"""All items of a session, of every source, without their data."""
NAMING: Final = (
    f"SELECT TOP 1 c.tenant_id, c.session_id {_IN_SESSION} AND c.type = @type AND c.payload.write_id = @write_id"
)
"""A message that names an upload."""


def of_source(
    place: SessionPlace, source_id: str, *, first: int = 0, end: int | None = None, limit: int | None = None
) -> Parameters:
    """Return the parameters of `NEWEST_FIRST`, `NEWEST`, `IDENTITIES`, `MESSAGES` and `COUNT`.

    Args:
        place: Which session.
        source_id: Which source.
        first: Number of the first message.
        end: Number of the message that the messages end before; None for all, and the head.
        limit: How many items at most, for the queries with one.
    """
    high = order_range(source_id)[1] if end is None else order_of(source_id, end)
    limits: dict[str, object] = {} if limit is None else {"limit": limit}
    return _parameters(**_session(place), low=order_of(source_id, first), high=high, **limits)


def of_sessions(tenant: TenantId, source_id: str) -> Parameters:
    """Return the parameters of `SESSIONS`."""
    return _parameters(tenant=tenant.value, type=HEAD_TYPE, source=source_id)


def of_session(place: SessionPlace) -> Parameters:
    """Return the parameters of `EVERYTHING`."""
    return _parameters(**_session(place))


def naming(place: SessionPlace, write_id: str) -> Parameters:
    """Return the parameters of `NAMING`."""
    return _parameters(**_session(place), type=MESSAGE_TYPE, write_id=write_id)


def _session(place: SessionPlace) -> dict[str, object]:
    return {"tenant": place.tenant.value, "session": place.session_id}


def _parameters(**values: object) -> Parameters:
    return [{"name": f"@{name}", "value": value} for name, value in values.items()]
