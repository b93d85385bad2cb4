"""Malformed requests at the gateway: each is a prompt refusal, none is an error of ours, and nothing is written."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.service import BATCH, COLLECTION, CROSSING, DOCS, KEY, QUERY, UPSERT, Service, content, running

PLAN: Final = {"x-ms-cosmos-is-query-plan-request": "True"}
ITEM: Final = {"id": "1", "t": "t1", "w": "w1"}


def deep(levels: int, opening: bytes, closing: bytes) -> bytes:
    """Nest so many arrays or objects."""
    return opening * levels + b"1" + closing * levels


BODIES: Final = (
    b"",
    b"\x00",
    b"null",
    b"true",
    b"1",
    b'"text"',
    b"[]",
    b"{",
    b"{}}",
    b'{"id"}',
    b"{'id':'1'}",
    b'{"id":"1",}',
    b"\xef\xbb\xbf{}",
    b"\xff\xfe",
    b"\x80",
    b'{"id":"\xed\xa0\x80"}',
    b'{"id":NaN}',
    b'{"id":"1","t":"t1","w":"w1","n":-Infinity}',
    b'{"id":"1","t":"t1","w":"w1","n":1e999}',
    b'{"id":"1","t":"t1","w":"w1","n":' + b"9" * 5000 + b"}",
    b'{"id":"1","t":"t1","w":"w1","n":' + deep(200, b"[", b"]") + b"}",
    deep(200_000, b"[", b"]"),
    deep(200_000, b'{"d":', b"}"),
    b"[" * 1_000_000,
    b"[" + b",".join([b"[]"] * 200_000) + b"]",
    b'{"id":"1","t":"t1","w":"w1"' + b"," * 1_000_000,
    b"x" * (2 * 1024 * 1024 + 1),
    b'{"id":{}}',
    b'{"id":["1"]}',
    b'{"id":true}',
    b'{"id":""}',
    b'{"id":"a\\\\b"}',
    b'{"operations":1}',
    b'[{"operationType":1}]',
    b'[{"operationType":"Create"},1]',
    b'{"query":null}',
)
PATHS: Final = (
    "",
    "//",
    "/x",
    "/dbs/db/x",
    "/dbs/db/colls/c/docs/1/attachments/1",
    "/dbs/..",
    "/dbs/../colls/c",
    "/dbs/db/colls/../docs/",
    "/dbs/%2e%2e/colls/c/docs/",
    "/dbs/db%2fcolls%2fc/",
    "/dbs/db/colls/c%00/docs/",
    "/dbs/%ff/colls/%ff/docs/%ff",
    "/dbs/%/colls/%zz/",
    "/dbs/db/colls/c/docs/" + "x" * 100_000,
    "/" + "x/" * 50_000,
    "/offers/x",
    "/offers/AAAAAQ==",
    "/offers/%ff",
    "/dbs/' OR 1=1 --/",
)
QUERIES: Final = (
    "",
    " ",
    "\x00",
    ";",
    "SELECT",
    "SELECT * FROM c; DROP TABLE items",
    "SELECT * FROM c WHERE",
    "SELECT * FROM c WHERE c.x = 'open",
    'SELECT * FROM c WHERE c.x = "open',
    "SELECT * FROM c WHERE c.x == 1",
    "SELECT * FROM c WHERE c.",
    "SELECT * FROM c WHERE c[",
    "SELECT * FROM c ORDER BY",
    "SELECT * FROM c OFFSET -1 LIMIT 1",
    "SELECT TOP -1 * FROM c",
    "SELECT TOP 99999999999999999999999999x * FROM c",
    "SELECT * FROM c WHERE udf.f(c)",
    "SELECT * FROM c JOIN d IN c.x",
    "SELECT * FROM (SELECT * FROM c)",
    "SELECT * FROM c /* open",
    "INSERT INTO c VALUES (1)",
    "é漢😀",
    "SELECT * FROM c WHERE " + "(" * 10_000,
    "SELECT * FROM c WHERE " + "NOT " * 2_000,
    "SELECT * FROM c WHERE " + "(" * 2_000 + "true" + ")" * 1_999,
    "SELECT * FROM c WHERE c.x = " + "[" * 5_000,
    "x" * (512 * 1024),
    "SELECT " + "," * (512 * 1024 - 7),
    "x" * (512 * 1024 + 1),
)
HEADERS: Final[tuple[Mapping[str, str], ...]] = (
    {"x-ms-documentdb-partitionkey": ""},
    {"x-ms-documentdb-partitionkey": "["},
    {"x-ms-documentdb-partitionkey": "[NaN]"},
    {"x-ms-documentdb-partitionkey": "[[]]"},
    {"x-ms-documentdb-partitionkey": '[{"a":1}]'},
    {"x-ms-documentdb-partitionkey": "[" * 100_000},
    {"x-ms-documentdb-partitionkey": json.dumps(["t1"] * 10_000)},
    {"x-ms-documentdb-partitionkey": '["t1","' + "x" * 1_000_000},
    {"x-ms-documentdb-partitionkey": "null"},
    KEY | {"x-ms-cosmos-intended-collection-rid": "junk"},
    KEY | {"if-match": "x" * 100_000},
)
QUERY_HEADERS: Final[tuple[Mapping[str, str], ...]] = (
    {"x-ms-max-item-count": "x"},
    {"x-ms-max-item-count": "9" * 5000},
    {"x-ms-continuation": "é"},
    {"x-ms-continuation": "====" * 1000},
    {"x-ms-continuation": "A" * 100_000},
    {"x-ms-documentdb-partitionkeyrangeid": "-1"},
    {"x-ms-documentdb-partitionkeyrangeid": "\uff19"},
    {"x-ms-start-epk": "g"},
    {"x-ms-start-epk": "0"},
    {"x-ms-documentdb-partitionkeyrangeid": "0", "x-ms-start-epk": "FF", "x-ms-end-epk": "00"},
)


def requests() -> Iterator[tuple[str, str, object, Mapping[str, str]]]:
    """Put together what is refused, whatever else is in the database."""
    for body in BODIES:
        for headers in (KEY, UPSERT, BATCH, CROSSING, PLAN):
            yield "POST", DOCS, body, headers
        yield "PUT", DOCS + "1/", body, KEY
        yield "PATCH", DOCS + "1/", body, KEY
        yield "POST", "/dbs/db/colls/", body, {}
        yield "PUT", "/offers/AAAAAQ==", body, {}
    for path in PATHS:
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "", "é"):
            if (method, path) not in {("GET", ""), ("GET", "//")}:
                yield method, path, ITEM, KEY
    for text in QUERIES:
        for headers in (CROSSING, PLAN):
            yield "POST", DOCS, {"query": text}, headers
        yield "POST", "/dbs", {"query": text}, QUERY
        yield "PATCH", DOCS + "1/", {"condition": text, "operations": [{"op": "incr", "path": "/n", "value": 1}]}, KEY
    for headers in HEADERS:
        yield "PUT", DOCS + "1/", ITEM, headers
        yield "GET", DOCS + "2/", b"", headers
    for headers in QUERY_HEADERS:
        yield "POST", DOCS, {"query": "SELECT * FROM c"}, CROSSING | headers


async def test_malformed_requests(service: Service) -> None:
    """Hundreds of malformed requests are each refused with a 4xx, and the item that is there stays as it is."""
    item = content(await service.create({"id": "1", "n": 1}))
    count = 0
    for method, path, body, headers in requests():
        response = await service.send(method, path, body, headers)
        assert 400 <= response.status < 500, (method, path[:80], str(body)[:80], headers)
        assert not response.body or content(response)["message"]
        count += 1
    assert count > 500
    assert content(await service.send("GET", DOCS + "1/")) == item
    assert content(await service.send("GET", "/dbs/db/colls/"))["_count"] == 1


NAMES = st.sampled_from(
    [
        "x-ms-documentdb-partitionkey",
        "x-ms-documentdb-isquery",
        "x-ms-documentdb-query-enablecrosspartition",
        "x-ms-cosmos-is-batch-request",
        "x-ms-cosmos-is-query-plan-request",
        "x-ms-documentdb-is-upsert",
        "x-ms-documentdb-partitionkeyrangeid",
        "x-ms-start-epk",
        "x-ms-end-epk",
        "x-ms-continuation",
        "x-ms-max-item-count",
        "x-ms-offer-throughput",
        "x-ms-cosmos-offer-autopilot-settings",
        "if-match",
        "if-none-match",
        "a-im",
    ]
)
TEXTS = st.sampled_from(["True", "0", "1", '["t1","w1"]', '["t1"]', "[]", "*", "", "FF", "400", "{}"]) | st.text()
SEGMENTS = st.sampled_from(["dbs", "db", "colls", "c", "docs", "1", "pkranges", "offers", "..", "%2f"]) | st.text()
KNOWN = st.sampled_from(
    ["id", "t", "w", "ttl", "query", "parameters", "name", "value", "operations", "op", "path", "operationType"],
) | st.sampled_from(
    ["resourceBody", "partitionKey", "paths", "kind", "indexingPolicy", "defaultTtl", "uniqueKeyPolicy", "content"],
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text() | KNOWN, inner, max_size=6),
    max_leaves=12,
)
ROUTES = st.sampled_from(["/dbs", "/dbs/db/colls/", COLLECTION, DOCS, DOCS + "1/", "/offers", "/offers/AAAAAQ=="])


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE"]),
    ROUTES | st.lists(SEGMENTS, max_size=7).map(lambda parts: "/" + "/".join(parts)),
    JSON.map(lambda value: json.dumps(value).encode()) | st.binary(max_size=200),
    st.dictionaries(NAMES, TEXTS, max_size=5),
)
async def test_any_request_has_an_answer(method: str, path: str, body: bytes, headers: dict[str, str]) -> None:
    """Whatever is asked, the answer is no failure of the engine's own."""
    async with running() as service:
        response = await service.send(method, path, body, headers)
    assert response.status < 500


@pytest.mark.parametrize(
    "text", ["a" * 300, "9" * 300 + "x", "((((", "c.x" * 100], ids=["word", "number", "signs", "path"]
)
async def test_fragments_of_queries(service: Service, text: str) -> None:
    """A fragment of a query is refused with its place, at every length."""
    for end in range(1, len(text), 37):
        response = await service.query(text[:end])
        assert response.status == 400
        message: Any = content(response)["message"]
        assert "line 1, column" in message
