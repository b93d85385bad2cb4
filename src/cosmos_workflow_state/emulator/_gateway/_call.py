"""A request taken apart: what its path names and what its headers ask for.

Owns the names and the forms of request headers, and the common headers of answers. Must not know of storage.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final
from urllib.parse import unquote_to_bytes

from cosmos_workflow_state.emulator._engine._containers import Container
from cosmos_workflow_state.emulator._engine._errors import InvalidError
from cosmos_workflow_state.emulator._engine._items import Precondition
from cosmos_workflow_state.emulator._engine._json import dump, parse
from cosmos_workflow_state.emulator._gateway._charges import METADATA_CHARGE
from cosmos_workflow_state.emulator._gateway._failures import wrong_partition_key
from cosmos_workflow_state.emulator._ordering import UNDEFINED
from cosmos_workflow_state.emulator._partition import Component
from cosmos_workflow_state.emulator._values import Json, JsonObject, Request, Response

__all__ = ["MAX_BODY", "Call", "Outcome", "answer", "metadata_answer"]

MAX_BODY: Final = 2 * 1024 * 1024
"""Bytes a request may have; the service measures what is sent, escapes included."""

_JSON: Final = "application/json"


@dataclass(frozen=True, slots=True)
class Call:
    """A request with its path split.

    Attributes:
        method: The verb.
        segments: The decoded segments of the path.
        headers: Header values by lower-case name.
        body: The body's bytes.
        activity_id: Names this request in answers.
    """

    method: str
    segments: tuple[bytes, ...]
    headers: Mapping[str, str]
    body: bytes
    activity_id: str

    @classmethod
    def of(cls, request: Request) -> Call:
        """Take a request apart."""
        headers = request.headers
        activity_id = headers.get("x-ms-activity-id") or str(uuid.uuid4())
        return cls(request.method, _segments(request.path), headers, request.body, activity_id)

    @property
    def database(self) -> str:
        """The database the path names."""
        return self.segments[1].decode("utf-8", "replace")

    @property
    def container(self) -> str:
        """The container the path names."""
        return self.segments[3].decode("utf-8", "replace")

    @property
    def item(self) -> bytes:
        """The item the path names."""
        return self.segments[5]

    @property
    def precondition(self) -> Precondition:
        """What the headers demand of the item that is written."""
        return Precondition(self.headers.get("if-match"), self.headers.get("if-none-match"))

    @property
    def wants_content(self) -> bool:
        """Whether the answer to a write shall have the item in it."""
        return self.headers.get("prefer") != "return=minimal"

    def flag(self, name: str) -> bool:
        """Tell whether a header says true; clients differ in its case."""
        return self.headers.get(name, "").lower() == "true"

    def partition_key(self) -> tuple[Component, ...] | None:
        """Read the partition key header.

        Returns:
            One value a level, None when there is no such header.

        Raises:
            ServiceError: The header cannot be read.
        """
        text = self.headers.get("x-ms-documentdb-partitionkey")
        return None if text is None else _components(text)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an operation on items came to.

    Attributes:
        lsn: Log sequence number the client has seen after this.
        charge: In RU.
        body: The body's bytes.
        status: The status code.
        etag: The item's ETag; empty for none. Queries must have none, clients take it for a continuation.
        continuation: Where the next page starts; empty when there is none.
    """

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
    headers = {
        "content-type": _JSON,
        "lsn": str(outcome.lsn),
        "x-ms-activity-id": call.activity_id,
        "x-ms-request-charge": f"{outcome.charge:g}",
        "x-ms-session-token": f"0:-1#{outcome.lsn}",
        # Together with a session token, clients need both of these, or drop their cached partition key ranges.
        "x-ms-alt-content-path": f"dbs/{container.database_name}/colls/{container.definition.name}",
        "x-ms-documentdb-partitionkeyrangeid": "0",
    }
    if outcome.etag:
        headers["etag"] = outcome.etag
    if outcome.continuation:
        headers["x-ms-continuation"] = outcome.continuation
    return Response(outcome.status, headers, outcome.body)


def metadata_answer(call: Call, document: JsonObject | None, *, status: int = 200, etag: str = "") -> Response:
    """Build the answer to an operation on the account, databases or containers.

    Args:
        call: The request.
        document: The body, None for none.

    Keyword Args:
        status: The status code.
        etag: The resource's ETag; empty for none.

    Returns:
        The response.
    """
    headers = {
        "content-type": _JSON,
        "x-ms-activity-id": call.activity_id,
        "x-ms-request-charge": f"{METADATA_CHARGE:g}",
    }
    if etag:
        headers["etag"] = etag
    return Response(status, headers, b"" if document is None else dump(document))


@lru_cache(maxsize=1024)
def _components(text: str) -> tuple[Component, ...]:
    try:
        values = parse(text)
    except InvalidError as error:
        raise wrong_partition_key() from error
    if not isinstance(values, list):
        raise wrong_partition_key()
    return tuple(map(_component, values))


def _component(value: Json) -> Component:
    if value == {}:
        return UNDEFINED
    if isinstance(value, (dict, list)):
        raise wrong_partition_key()
    return value


def _segments(path: str) -> tuple[bytes, ...]:
    return tuple(unquote_to_bytes(segment) for segment in path.split("/") if segment)
