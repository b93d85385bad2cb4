"""Queries and feeds of items, page by page.

Owns key ranges of requests, pages and continuations. Must not know how queries are written nor how items are read.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from typing import Final

from cosmos_workflow_state.emulator._engine._containers import Container
from cosmos_workflow_state.emulator._engine._errors import InvalidError
from cosmos_workflow_state.emulator._engine._json import dump, parse_object
from cosmos_workflow_state.emulator._engine._source import ContainerSource
from cosmos_workflow_state.emulator._engine._transaction import Transaction
from cosmos_workflow_state.emulator._gateway._call import Call, Outcome, answer
from cosmos_workflow_state.emulator._gateway._charges import query_charge
from cosmos_workflow_state.emulator._gateway._failures import bad_request, wrong_partition_key
from cosmos_workflow_state.emulator._gateway._items import own_container
from cosmos_workflow_state.emulator._partition import EVERYTHING, KeyRange
from cosmos_workflow_state.emulator._query import Plan, PositionError, QueryError, Row, parse
from cosmos_workflow_state.emulator._values import Json, JsonObject, Response

__all__ = ["read_feed", "run_query"]

_MAX_PAGE: Final = 4 * 1024 * 1024
"""Bytes a page of results may have: https://learn.microsoft.com/azure/cosmos-db/concepts-limits."""

_ROWS_OF_PAGE: Final = 1000
_FEED: Final = "SELECT * FROM c"
_DIGEST_BYTES = 16
_ONLY_RANGE = "0"


def run_query(transaction: Transaction, call: Call) -> Response:
    """Run a query and answer one page of its rows."""
    container = own_container(transaction, call)
    keys = _keys(call, container)
    if keys is None:
        raise bad_request(
            "Cross partition query is required but disabled. Please set x-ms-documentdb-query-enablecrosspartition to"
            " true, specify x-ms-documentdb-partitionkey, or revise your query to avoid this exception."
        )
    document = parse_object(call.body)
    return _page(transaction, call, container, keys, document)


def read_feed(transaction: Transaction, call: Call) -> Response:
    """Read all items of a container, or of one partition key, page by page."""
    container = own_container(transaction, call)
    return _page(transaction, call, container, _keys(call, container) or EVERYTHING, {"query": _FEED})


def _page(transaction: Transaction, call: Call, container: Container, keys: KeyRange, document: JsonObject) -> Response:
    seal = _seal(container, keys, document)
    source = ContainerSource(transaction, container, keys)
    try:
        rows = _plan(document).rows(source, after=_resumed(call, seal))
        texts, position = _filled(rows, _page_size(call))
    except QueryError as error:
        raise bad_request(f"Query cannot be run: {error}") from error
    except PositionError as error:
        raise _wrong_continuation() from error
    body = b'{"_rid":%b,"Documents":[%b],"_count":%d}' % (
        dump(container.rid),
        b",".join(texts),
        len(texts),
    )
    continuation = "" if position is None else base64.urlsafe_b64encode(seal + position).decode()
    charge = query_charge(len(texts), len(body))
    return answer(call, container, Outcome(transaction.lsn(), charge, body, continuation=continuation))


def _plan(document: JsonObject) -> Plan:
    text = document.get("query")
    if not isinstance(text, str):
        raise bad_request("A query needs its text as 'query'.")
    return parse(text).bind(_parameters(document))


def _parameters(document: JsonObject) -> dict[str, Json]:
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


def _keys(call: Call, container: Container) -> KeyRange | None:
    """Read which keys a request is about; None when it does not say."""
    components = call.partition_key()
    if components is not None:
        key = container.definition.partition_key
        if not 0 < len(components) <= len(key.paths):
            raise wrong_partition_key()
        return key.key_range(components)
    start, end = call.headers.get("x-ms-start-epk"), call.headers.get("x-ms-end-epk")
    if start is not None or end is not None:
        return _range(start or "", end or "FF")
    named = call.headers.get("x-ms-documentdb-partitionkeyrangeid")
    if named not in (None, _ONLY_RANGE):
        raise bad_request("There is no partition key range of this id.")
    crossing = call.flag("x-ms-documentdb-query-enablecrosspartition")
    return EVERYTHING if named is not None or crossing else None


def _range(start: str, end: str) -> KeyRange:
    try:
        return KeyRange(bytes.fromhex(start), bytes.fromhex(end))
    except ValueError as error:
        raise bad_request("An effective partition key has to be hexadecimal.") from error


def _seal(container: Container, keys: KeyRange, document: JsonObject) -> bytes:
    """Digest what a continuation is good for: this container, these keys, this query with these parameters."""
    asked: list[Json] = [container.rid, keys.start.hex(), keys.end.hex(), document]
    return hashlib.sha256(dump(asked)).digest()[:_DIGEST_BYTES]


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
