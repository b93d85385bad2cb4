"""Queries and feeds of items through the gateway, page by page."""

from __future__ import annotations

from typing import Final

import pytest

from cosmos_workflow_state.emulator._gateway import _pages
from support.service import CROSSING, DOCS, KEY, QUERY, Service, content, fill, pages

PREFIX: Final = QUERY | {
    "x-ms-documentdb-partitionkeyrangeid": "0",
    "x-ms-start-epk": "3D48BB14DA9D090D22112C96695028B6",
    "x-ms-end-epk": "3D48BB14DA9D090D22112C96695028B6FF",
}


@pytest.mark.parametrize(
    ("headers", "count"),
    [
        (QUERY | KEY, 3),
        (QUERY | {"x-ms-documentdb-partitionkey": '["t1"]'}, 6),
        (PREFIX, 6),
        (QUERY | {"x-ms-start-epk": "3D48BB14DA9D090D22112C96695028B6"}, 6),
        (QUERY | {"x-ms-documentdb-partitionkeyrangeid": "0"}, 9),
        (CROSSING, 9),
    ],
    ids=["full", "prefix key", "prefix range", "open range", "whole range", "crossing"],
)
async def test_queries_keep_to_their_keys(service: Service, headers: dict[str, str], count: int) -> None:
    """A query sees the items of the keys its headers name, and no other's."""
    await fill(service)
    response = await service.query("SELECT VALUE c.id FROM c WHERE c.n >= @lo", headers, lo=0)
    assert content(response)["_count"] == count
    assert response.status == 200
    assert not {"etag", "x-ms-continuation"} & set(response.headers)


async def test_prefix_knows_its_fixed_paths(service: Service) -> None:
    """A prefix with predicate finds an item by id among the tenant's own, in however many workflows it is."""
    await fill(service)
    text = "SELECT c.w FROM c WHERE c.t = @t AND c.id = @id"
    found = content(await service.query(text, PREFIX, t="t1", id="2"))["Documents"]
    assert sorted(row["w"] for row in found) == ["w1", "w2"]


@pytest.mark.parametrize(
    ("headers", "body", "message"),
    [
        (QUERY, {"query": "SELECT * FROM c"}, "Cross partition query is required"),
        (QUERY | {"x-ms-documentdb-partitionkey": "[]"}, {"query": "SELECT * FROM c"}, "Partition key"),
        (QUERY | {"x-ms-start-epk": "no"}, {"query": "SELECT * FROM c"}, "hexadecimal"),
        (CROSSING | {"x-ms-max-item-count": "many"}, {"query": "SELECT * FROM c"}, "whole number"),
        (CROSSING | {"x-ms-continuation": "junk"}, {"query": "SELECT * FROM c"}, "continuation"),
        (CROSSING | {"x-ms-continuation": "=é="}, {"query": "SELECT * FROM c"}, "continuation"),
        (CROSSING, {"query": "SELECT * FROM c JOIN d IN c.x"}, "line 1"),
        (CROSSING, {"query": "SELECT * FROM c WHERE c.x = @x"}, "@x"),
        (CROSSING, {"query": 1}, "text"),
        (CROSSING, {"query": " " * (512 * 1024) + "SELECT * FROM c"}, "at most"),
        (CROSSING | {"x-ms-documentdb-partitionkeyrangeid": "0", "x-ms-start-epk": "FF"},
         {"query": "SELECT * FROM c"}, "not in the partition key range"),
        (CROSSING, {"query": "SELECT * FROM c", "parameters": {"a": 1}}, "list"),
        (CROSSING, {"query": "SELECT * FROM c", "parameters": [1]}, "name"),
    ],
    ids=["no key", "empty key", "epk", "count", "token", "base64", "language", "parameter", "text", "long", "beyond",
         "parameters", "name"],
)  # fmt: skip
async def test_wrong_queries(service: Service, headers: dict[str, str], body: object, message: str) -> None:
    """A query that cannot be meant is refused with the reason, and with its place if it is the text."""
    response = await service.send("POST", DOCS, body, headers)
    assert response.status == 400
    assert message in content(response)["message"]


@pytest.mark.parametrize("text", ["SELECT VALUE c.n FROM c", "SELECT VALUE c.n FROM c ORDER BY c.n DESC"])
@pytest.mark.parametrize("size", [1, 2, 3, 9, 100, -1])
async def test_pages_make_the_whole(service: Service, text: str, size: int) -> None:
    """Pages of any size hold the same rows in the same order, none empty, and end."""
    await fill(service)
    whole = content(await service.query(text))["Documents"]
    read = await pages(service, text, size)
    assert [row for page in read for row in page] == whole
    assert {len(page) for page in read[:-1]} <= {size}
    assert read[-1]


async def test_pages_are_bounded_in_bytes(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that would be too large ends before it is, but a row larger than a page is a page of its own."""
    await fill(service)
    monkeypatch.setattr(_pages, "_MAX_PAGE", 2)
    assert [len(page) for page in await pages(service, "SELECT VALUE c.n FROM c", 100)] == [2, 2, 2, 2, 1]
    monkeypatch.setattr(_pages, "_MAX_PAGE", 0)
    assert {len(page) for page in await pages(service, "SELECT VALUE c.n FROM c", 100)} == {1}


async def test_continuations_belong_to_one_query(service: Service) -> None:
    """A token is refused with another text, other parameters or other keys, and when it was cut."""
    await fill(service)
    text = "SELECT * FROM c WHERE c.n >= @lo"
    headers = CROSSING | {"x-ms-max-item-count": "1"}
    token = (await service.query(text, headers, lo=0)).headers["x-ms-continuation"]
    resumed = headers | {"x-ms-continuation": token}
    assert (await service.query(text, resumed, lo=0)).status == 200
    assert (await service.query(text, resumed, lo=1)).status == 400
    assert (await service.query(text + " ", resumed, lo=0)).status == 400
    assert (await service.query(text, resumed | KEY, lo=0)).status == 400
    assert (await service.query(text, headers | {"x-ms-continuation": token[:-8]}, lo=0)).status == 400
    assert (await service.query(text, headers | {"x-ms-continuation": token[:24]}, lo=0)).status == 400


async def test_feed_of_items(service: Service) -> None:
    """All items are read page by page without a query, of a container or of one key."""
    await fill(service)
    first = await service.send("GET", DOCS, headers={"x-ms-max-item-count": "5"})
    rest = {"x-ms-max-item-count": "5", "x-ms-continuation": first.headers["x-ms-continuation"]}
    second = await service.send("GET", DOCS, headers=rest)
    assert (content(first)["_count"], content(second)["_count"]) == (5, 4)
    assert content(await service.send("GET", DOCS, headers=KEY))["_count"] == 3
