"""A request taken apart: what its path names and what its headers ask for.

Owns the names and the forms of request headers. Must not know of storage, nor of answers.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final
from urllib.parse import unquote_to_bytes

from cosmos_workflow_state.emulator._engine._errors import InvalidError
from cosmos_workflow_state.emulator._engine._json import parse
from cosmos_workflow_state.emulator._engine._stored import Precondition
from cosmos_workflow_state.emulator._gateway._failures import wrong_partition_key
from cosmos_workflow_state.emulator._ordering import UNDEFINED
from cosmos_workflow_state.emulator._partition import Component
from cosmos_workflow_state.emulator._values import Json, Request

__all__ = ["MAX_BODY", "Account", "Call"]

MAX_BODY: Final = 2 * 1024 * 1024
"""Bytes a request may have; the service measures what is sent, escapes included."""


@dataclass(frozen=True, slots=True)
class Account:
    """What the account a request is for looks like.

    Attributes:
        endpoint: The URL clients are told to go to; empty for the one they came by.
        partitions: How many physical partitions new containers get; None for as many as their throughput asks for.
    """

    endpoint: str = ""
    partitions: int | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """A request with its path split.

    Attributes:
        method: The verb.
        segments: The decoded segments of the path.
        headers: Header values by lower-case name.
        body: The body's bytes.
        activity_id: Names this request in answers.
        account: The account it is for.
    """

    method: str
    segments: tuple[bytes, ...]
    headers: Mapping[str, str]
    body: bytes
    activity_id: str
    account: Account

    @classmethod
    def of(cls, request: Request, account: Account) -> Call:
        """Take a request apart."""
        headers = request.headers
        activity_id = headers.get("x-ms-activity-id") or str(uuid.uuid4())
        return cls(request.method, _segments(request.path), headers, request.body, activity_id, account)

    @property
    def database(self) -> str:
        """The database the path names."""
        return self.segments[1].decode("utf-8", "replace")

    @property
    def offer(self) -> str:
        """The offer the path names."""
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

    @property
    def is_query(self) -> bool:
        """Whether the body is a query."""
        return self.flag("x-ms-documentdb-isquery")

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
