"""Answers: the headers that all of them have in common.

Owns the names and the forms of response headers. Must not know what was asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from cosmos_workflow_state.emulator._engine._containers import Container
from cosmos_workflow_state.emulator._engine._json import dump
from cosmos_workflow_state.emulator._gateway._call import Call
from cosmos_workflow_state.emulator._gateway._charges import METADATA_CHARGE
from cosmos_workflow_state.emulator._gateway._ranges import range_ids
from cosmos_workflow_state.emulator._partition import KeyRange
from cosmos_workflow_state.emulator._values import JsonObject, Response

__all__ = ["Outcome", "answer", "metadata_answer"]

_JSON: Final = "application/json"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an operation on items came to.

    Attributes:
        keys: The keys it was about.
        lsn: Log sequence number the client has seen after this.
        charge: In RU.
        body: The body's bytes.
        status: The status code.
        etag: The item's ETag; empty for none. Queries must have none, clients take it for a continuation.
        continuation: Where the next page starts; empty when there is none.
    """

    keys: KeyRange
    lsn: int
    charge: float
    body: bytes
    status: int = 200
    etag: str = ""
    continuation: str = ""


def answer(call: Call, container: Container, outcome: Outcome) -> Response:
    """Build the answer to an operation on items.

    Args:
        call: The request.
        container: The items' container.
        outcome: What the operation came to.

    Returns:
        The response.
    """
    ids = range_ids(container, outcome.keys)
    headers = {
        "content-type": _JSON,
        "lsn": str(outcome.lsn),
        "x-ms-activity-id": call.activity_id,
        "x-ms-request-charge": f"{outcome.charge:g}",
        "x-ms-session-token": ",".join(f"{each}:-1#{outcome.lsn}" for each in ids),
        # Together with a session token, clients need both of these, or drop their cached partition key ranges.
        "x-ms-alt-content-path": f"dbs/{container.database_name}/colls/{container.definition.name}",
        "x-ms-documentdb-partitionkeyrangeid": ids[0],
    }
    if outcome.etag:
        headers["etag"] = outcome.etag
    if outcome.continuation:
        headers["x-ms-continuation"] = outcome.continuation
    return Response(outcome.status, headers, outcome.body)


def metadata_answer(
    call: Call,
    content: JsonObject | bytes | None,
    *,
    status: int = 200,
    etag: str = "",
    headers: Mapping[str, str] = MappingProxyType({}),
) -> Response:
    """Build the answer to an operation on the account, databases, containers or offers.

    Args:
        call: The request.
        content: The body, None for none.

    Keyword Args:
        status: The status code.
        etag: The resource's ETag; empty for none.
        headers: More headers.

    Returns:
        The response.
    """
    all_headers = {
        "content-type": _JSON,
        "x-ms-activity-id": call.activity_id,
        "x-ms-request-charge": f"{METADATA_CHARGE:g}",
        **headers,
    }
    if etag:
        all_headers["etag"] = etag
    body = content if isinstance(content, bytes) else b"" if content is None else dump(content)
    return Response(status, all_headers, body)
