"""Values that cross the parts of the emulator: JSON, requests and responses.

Owns their shape only. Must not interpret them: no paths, no header rules, no status codes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["Json", "JsonObject", "Request", "Response"]

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"
"""Any JSON value, as the standard library's json module builds it."""

JsonObject: TypeAlias = "dict[str, Json]"


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request, however it came in.

    Attributes:
        method: The verb, upper case.
        path: The percent-encoded path of the URL, without scheme, host and query string.
        headers: Header values by lower-case name.
        body: The body's bytes, empty when there is none.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Response:
    """One HTTP response.

    Attributes:
        status: The status code.
        headers: Header values by lower-case name.
        body: The body's bytes, empty when there is none.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
