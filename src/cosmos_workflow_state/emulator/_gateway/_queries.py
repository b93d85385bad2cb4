"""Queries and feeds of items, and the plans by which clients spread a query over physical partitions.

Owns their answers, and which queries need a plan. Must not know how queries are written nor how items are read.
"""

from __future__ import annotations

from typing import Final

from cosmos_workflow_state.emulator._engine._containers import Container
from cosmos_workflow_state.emulator._engine._json import dump, parse_object
from cosmos_workflow_state.emulator._engine._source import ContainerSource
from cosmos_workflow_state.emulator._engine._transaction import Transaction
from cosmos_workflow_state.emulator._gateway._answers import Outcome, answer, metadata_answer
from cosmos_workflow_state.emulator._gateway._call import Call
from cosmos_workflow_state.emulator._gateway._charges import query_charge
from cosmos_workflow_state.emulator._gateway._failures import ServiceError, bad_request
from cosmos_workflow_state.emulator._gateway._items import own_container
from cosmos_workflow_state.emulator._gateway._pages import FEED, parameters_of, read_page, text_of
from cosmos_workflow_state.emulator._gateway._ranges import asked_keys
from cosmos_workflow_state.emulator._partition import EVERYTHING, KeyRange
from cosmos_workflow_state.emulator._query import QueryDescription, QueryError, describe
from cosmos_workflow_state.emulator._values import JsonObject, Response

__all__ = ["plan_query", "read_feed", "run_query"]

_NEEDS_PLAN: Final = 1004
_PLAN_VERSION: Final = 2


def run_query(transaction: Transaction, call: Call) -> Response:
    """Run a query and answer one page of its rows."""
    container = own_container(transaction, call)
    document = parse_object(call.body)
    keys = asked_keys(call, container) or _all_keys(call, container, document)
    return _page(transaction, call, container, keys, document)


def read_feed(transaction: Transaction, call: Call) -> Response:
    """Read all items of a container, or of one partition key, page by page."""
    container = own_container(transaction, call)
    return _page(transaction, call, container, asked_keys(call, container) or EVERYTHING, {"query": FEED})


def plan_query(transaction: Transaction, call: Call) -> Response:
    """Tell a client how to run a query on each physical partition and how to merge the rows."""
    own_container(transaction, call)
    description = _description(parse_object(call.body))
    known = call.headers.get("x-ms-cosmos-supported-query-features", "").split(",")
    lacking = sorted(description.features.difference(map(str.strip, known)))
    if lacking:
        raise bad_request(
            "Query contains the following features, which the calling client does not support: " + ", ".join(lacking)
        )
    everywhere: JsonObject = {"min": "", "max": "FF", "isMinInclusive": True, "isMaxInclusive": False}
    plan: JsonObject = {
        "partitionedQueryExecutionInfoVersion": _PLAN_VERSION,
        "queryInfo": description.info(),
        "queryRanges": [everywhere],
    }
    return metadata_answer(call, plan)


def _page(transaction: Transaction, call: Call, container: Container, keys: KeyRange, document: JsonObject) -> Response:
    source = ContainerSource(transaction, container, keys)
    page = read_page(call, source, document, [container.rid, keys.start.hex(), keys.end.hex()])
    body = b'{"_rid":%b,"Documents":[%b],"_count":%d}' % (
        dump(container.rid),
        b",".join(page.texts),
        len(page.texts),
    )
    charge = query_charge(len(page.texts), len(body))
    return answer(call, container, Outcome(keys, transaction.lsn(), charge, body, continuation=page.continuation))


def _all_keys(call: Call, container: Container, document: JsonObject) -> KeyRange:
    """Give all keys to a query that says it crosses them, unless the client has to merge what partitions give."""
    if not call.flag("x-ms-documentdb-query-enablecrosspartition"):
        raise bad_request(
            "Cross partition query is required but disabled. Please set x-ms-documentdb-query-enablecrosspartition to"
            " true, specify x-ms-documentdb-partitionkey, or revise your query to avoid this exception."
        )
    if container.partitions > 1 and _description(document).needs_plan:
        raise ServiceError(
            400,
            "The provided cross partition query can not be directly served by the gateway. This is a first chance"
            " (internal) exception that all newer clients will know how to handle gracefully.",
            _NEEDS_PLAN,
        )
    return EVERYTHING


def _description(document: JsonObject) -> QueryDescription:
    try:
        return describe(text_of(document), parameters_of(document))
    except QueryError as error:
        raise bad_request(f"Query cannot be run: {error}") from error
