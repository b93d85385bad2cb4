"""Pages of a query's rows, and the continuations between them.

Owns the size of pages and the form of continuations. Must not know what is queried.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from cosmos_workflow_state.emulator._engine._errors import InvalidError
from cosmos_workflow_state.emulator._engine._json import dump
from cosmos_workflow_state.emulator._gateway._call import Call
from cosmos_workflow_state.emulator._gateway._failures import bad_request
from cosmos_workflow_state.emulator._query import ItemSource, Plan, PositionError, QueryError, Row, parse
from cosmos_workflow_state.emulator._values import Json, JsonObject

__all__ = ["FEED", "Page", "parameters_of", "read_page", "text_of"]

FEED: Final = "SELECT * FROM c"
"""The query that a feed is a page of."""

_MAX_PAGE: Final = 4 * 1024 * 1024
"""Bytes a page of results may have: https://learn.microsoft.com/azure/cosmos-db/concepts-limits."""

_MAX_TEXT: Final = 512 * 1024
"""Bytes a query may have, from the same page."""

_ROWS_OF_PAGE: Final = 1000
_DIGEST_BYTES = 16


@dataclass(frozen=True, slots=True)
class Page:
    """One page.

    Attributes:
        texts: The rows as JSON.
        continuation: Where the next page starts; empty when there is none.
    """

    texts: list[bytes]
    continuation: str


def read_page(call: Call, source: ItemSource, document: JsonObject, scope: list[Json]) -> Page:
    """Run a query from where the request's continuation says, for one page.

    Args:
        call: The request.
        source: What is queried.
        document: The query with its parameters, as clients write it.
        scope: What the query runs over; a continuation is good for this only.

    Returns:
        The page.

    Raises:
        ServiceError: The query cannot be run.
        InvalidError: The continuation is damaged or belongs to something else.
    """
    seal = hashlib.sha256(dump([*scope, document])).digest()[:_DIGEST_BYTES]
    try:
        rows = _plan(document).rows(source, after=_resumed(call, seal))
        texts, position = _filled(rows, _page_size(call))
    except QueryError as error:
        raise bad_request(f"Query cannot be run: {error}") from error
    except PositionError as error:
        raise _wrong_continuation() from error
    return Page(texts, "" if position is None else base64.urlsafe_b64encode(seal + position).decode())


def text_of(document: JsonObject) -> str:
    """Read the text of a query.

    Raises:
        ServiceError: There is none, or it is too long.
    """
    text = document.get("query")
    if not isinstance(text, str):
        raise bad_request("A query needs its text as 'query'.")
    if len(text) > _MAX_TEXT:
        raise bad_request(f"A query has at most {_MAX_TEXT} bytes.")
    return text


def parameters_of(document: JsonObject) -> dict[str, Json]:
    """Read the parameters of a query.

    Raises:
        ServiceError: They are not in the form clients write them.
    """
    given = document.get("parameters") or []
    if not isinstance(given, list):
        raise bad_request("The parameters of a query have to be a list.")
    parameters: dict[str, Json] = {}
    for parameter in given:
        name = parameter.get("name") if isinstance(parameter, dict) else None
        if not isinstance(parameter, dict) or not isinstance(name, str):
            raise bad_request("A parameter of a query needs a 'name'.")
        parameters[name] = parameter.get("value")
    return parameters


def _plan(document: JsonObject) -> Plan:
    return parse(text_of(document)).bind(parameters_of(document))


def _filled(rows: Iterator[Row], count: int) -> tuple[list[bytes], bytes | None]:
    """Take the rows of a page, and the position behind them if there are more.

    A page has at least one row, so that every query ends.
    """
    texts: list[bytes] = []
    size = 0
    position: bytes | None = None
    for row in rows:
        text = dump(row.value)
        size += len(text)
        if texts and (len(texts) == count or size > _MAX_PAGE):
            return texts, position
        texts.append(text)
        position = row.position
    return texts, None


def _page_size(call: Call) -> int:
    text = call.headers.get("x-ms-max-item-count", "-1")
    try:
        asked = int(text)
    except ValueError as error:
        raise bad_request("x-ms-max-item-count has to be a whole number.") from error
    return min(asked, _ROWS_OF_PAGE) if asked > 0 else _ROWS_OF_PAGE


def _resumed(call: Call, seal: bytes) -> bytes | None:
    text = call.headers.get("x-ms-continuation")
    if not text:
        return None
    try:
        token = base64.urlsafe_b64decode(text)
    except ValueError as error:
        raise _wrong_continuation() from error
    if token[:_DIGEST_BYTES] != seal:
        raise _wrong_continuation()
    return token[_DIGEST_BYTES:]


def _wrong_continuation() -> InvalidError:
    return InvalidError("The continuation token is damaged or belongs to another query.")
