"""What kind of request one is: the resource its path names and what is to be done to it.

Owns the names that permissions and faults are written in. Must not know of storage.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote_to_bytes

from cosmos_workflow_state.emulator._values import Request

__all__ = ["OPERATIONS", "RESOURCES", "WRITES", "Kind", "kind_of", "segments_of"]

RESOURCES: Final = ("account", "dbs", "colls", "docs", "pkranges", "offers")
"""Kinds of resources; anything else in a path is taken as it is."""

WRITES: Final = ("create", "upsert", "replace", "patch", "delete", "batch")
"""Operations that change something."""

OPERATIONS: Final = ("read", "list", "query", "plan", *WRITES)
"""Operations; "plan" is a client's question how to spread a query over physical partitions."""

_METHODS: Final = {"PUT": "replace", "PATCH": "patch", "DELETE": "delete"}
# These all come as POST to items; the first header that says true decides.
_POSTED: Final = (
    ("x-ms-cosmos-is-query-plan-request", "plan"),
    ("x-ms-documentdb-isquery", "query"),
    ("x-ms-cosmos-is-batch-request", "batch"),
    ("x-ms-documentdb-is-upsert", "upsert"),
)


# Elsewhere only a query is told from a create by a header: any other must not make a write pass for something else.
_QUERIED: Final = frozenset({"dbs", "colls", "offers"})


@dataclass(frozen=True, slots=True)
class Kind:
    """The kind of a request.

    Attributes:
        resource: One of `RESOURCES`, or the last word of a path that names something else.
        operation: One of `OPERATIONS`, or the method in lower case if it is none of HTTP's usual ones.
    """

    resource: str
    operation: str


def kind_of(request: Request) -> Kind:
    """Tell the kind of a request."""
    segments = segments_of(request.path)
    named = len(segments) % 2 == 0
    resource = segments[-2 if named else -1].decode("utf-8", "replace") if segments else "account"
    return Kind(resource, _operation(request, resource, named=named))


def segments_of(path: str) -> tuple[bytes, ...]:
    """Split a path into its decoded segments."""
    return tuple(unquote_to_bytes(segment) for segment in path.split("/") if segment)


def _operation(request: Request, resource: str, *, named: bool) -> str:
    if request.method == "GET":
        return "read" if named else "list"
    if request.method == "POST":
        flags = [name for header, name in _POSTED if request.headers.get(header, "").lower() == "true"]
        if resource == "docs":
            return next(iter(flags), "create")
        return "query" if "query" in flags and resource in _QUERIED else "create"
    return _METHODS.get(request.method, request.method.lower())
