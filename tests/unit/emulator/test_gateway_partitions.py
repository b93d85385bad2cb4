"""Several physical partitions through the gateway: ranges, session tokens, plans, and queries of one of them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Final

import pytest

from support.service import (
    COLLECTION,
    CROSSING,
    DOCS,
    KEY,
    QUERY,
    Service,
    content,
    definition,
    fill,
    outcome,
    pages,
    running,
)

PLAN: Final = {
    "x-ms-cosmos-is-query-plan-request": "True",
    "x-ms-cosmos-supported-query-features": "Aggregate, Distinct, OrderBy, OffsetAndLimit, Top",
}


@pytest.fixture
async def parted() -> AsyncIterator[Service]:
    """Yield a gateway whose containers have four physical partitions."""
    async with running(4) as made:
        yield made


async def ranges(service: Service, path: str = COLLECTION) -> list[dict[str, str]]:
    """Read the partition key ranges of a container."""
    found: list[dict[str, str]] = content(await service.send("GET", path + "pkranges/"))["PartitionKeyRanges"]
    return found


@pytest.mark.parametrize(
    ("headers", "count"),
    [
        ({}, 1),
        ({"x-ms-offer-throughput": "10000"}, 1),
        ({"x-ms-offer-throughput": "12000"}, 2),
        ({"x-ms-offer-throughput": "30000"}, 5),
        ({"x-ms-cosmos-offer-autopilot-settings": '{"maxThroughput":12000}'}, 2),
    ],
    ids=["default", "one", "two", "five", "scaling"],
)
@pytest.mark.parametrize("key", [{"kind": "Hash", "version": 1}, {"kind": "Hash", "version": 2}], ids=["v1", "v2"])
async def test_throughput_makes_partitions(
    service: Service, headers: dict[str, str], count: int, key: dict[str, object]
) -> None:
    """A container has as many ranges as its throughput asks for, without gaps."""
    body = definition(id="x", partitionKey={"paths": ["/t"]} | key)
    assert (await service.send("POST", "/dbs/db/colls/", body, headers)).status == 201
    found = await ranges(service, "/dbs/db/colls/x/")
    assert [each["id"] for each in found] == [str(number) for number in range(count)]
    edges = [found[0]["minInclusive"], *(each["maxExclusive"] for each in found)]
    assert [each["minInclusive"] for each in found] == edges[:-1]
    assert (edges[0], edges[-1]) == ("", "FF")
    assert edges == sorted(edges)


async def test_throughput_replaced_makes_none(service: Service) -> None:
    """A container keeps its partitions, whatever is offered later."""
    (offer,) = content(await service.send("GET", "/offers"))["Offers"]
    assert (await service.send("PUT", f"/{offer['_self']}", {"content": {"offerThroughput": 30000}})).status == 200
    assert len(await ranges(service)) == 1


async def test_partitions_are_forced(parted: Service) -> None:
    """Where a number of partitions is forced, every container has it."""
    assert len(await ranges(parted)) == 4


async def test_items_are_spread(parted: Service) -> None:
    """Every item is in exactly one range, answers name it, and session tokens are of that range."""
    for number in range(40):
        key = {"x-ms-documentdb-partitionkey": json.dumps([f"t{number}", "w1"])}
        made = await parted.create({"id": "1", "t": f"t{number}", "n": number}, key)
        home = made.headers["x-ms-documentdb-partitionkeyrangeid"]
        assert made.headers["x-ms-session-token"] == f"{home}:-1#{made.headers['lsn']}"
        read = await parted.send("GET", DOCS + "1/", headers=key)
        assert read.headers["x-ms-documentdb-partitionkeyrangeid"] == home
    found: list[int] = []
    for each in await ranges(parted):
        headers = QUERY | {"x-ms-documentdb-partitionkeyrangeid": each["id"]}
        response = await parted.query("SELECT VALUE c.n FROM c ORDER BY c.n", headers)
        rows = content(response)["Documents"]
        assert rows
        assert rows == sorted(rows)
        assert response.headers["x-ms-session-token"].startswith(f"{each['id']}:-1#")
        found += rows
    assert sorted(found) == list(range(40))
    everything = await parted.query("SELECT VALUE c.n FROM c")
    assert content(everything)["_count"] == 40
    assert everything.headers["x-ms-session-token"].count(",") == 3


async def test_parts_of_ranges(parted: Service) -> None:
    """A range and effective partition keys within it narrow a query; keys elsewhere are refused."""
    await fill(parted)
    epk = "3D48BB14DA9D090D22112C96695028B6"
    prefix = QUERY | {"x-ms-start-epk": epk, "x-ms-end-epk": epk + "FF"}
    text = "SELECT VALUE c.id FROM c"
    for headers in (prefix, prefix | {"x-ms-documentdb-partitionkeyrangeid": "3"}):
        assert content(await parted.query(text, headers))["_count"] == 6
    elsewhere = await parted.query(text, prefix | {"x-ms-documentdb-partitionkeyrangeid": "0"})
    assert outcome(elsewhere) == (400, None)
    beyond = QUERY | {"x-ms-start-epk": "FFFF", "x-ms-end-epk": "FFFFFF"}
    assert content(await parted.query(text, beyond))["Documents"] == []


async def test_unknown_ranges_are_gone(parted: Service) -> None:
    """Who names a range that is not there is told to read them again."""
    for named in ("4", "x", "00"):
        headers = QUERY | {"x-ms-documentdb-partitionkeyrangeid": named}
        assert outcome(await parted.query("SELECT * FROM c", headers)) == (410, "1002")


@pytest.mark.parametrize(
    ("text", "needs"),
    [
        ("SELECT * FROM c", False),
        ("SELECT VALUE c.n FROM c WHERE c.n = 1", False),
        ("SELECT * FROM c ORDER BY c.n", True),
        ("SELECT VALUE COUNT(1) FROM c", True),
        ("SELECT DISTINCT c.n FROM c", True),
        ("SELECT TOP 1 * FROM c", True),
        ("SELECT * FROM c OFFSET 1 LIMIT 1", True),
        ("SELECT c.n FROM c GROUP BY c.n", True),
    ],
)
async def test_what_needs_a_plan(parted: Service, service: Service, text: str, needs: bool) -> None:
    """Only a query across several partitions whose rows have to be merged is sent back for a plan."""
    assert outcome(await parted.query(text)) == ((400, "1004") if needs else (200, None))
    assert (await service.query(text)).status == 200
    assert (await parted.query(text, QUERY | KEY)).status == 200
    assert (await parted.query(text, QUERY | {"x-ms-documentdb-partitionkeyrangeid": "1"})).status == 200


async def test_plans(parted: Service) -> None:
    """A plan says how to merge, for all keys, and what it says to run is a query that runs."""
    await fill(parted)
    query = {"query": "SELECT VALUE c.n FROM c ORDER BY c.n DESC OFFSET 1 LIMIT @m"}
    query_with_parameters = query | {"parameters": [{"name": "@m", "value": 2}]}
    response = await parted.send("POST", DOCS, query_with_parameters, PLAN)
    plan = content(response)
    assert response.status == 200
    assert plan["queryRanges"] == [{"min": "", "max": "FF", "isMinInclusive": True, "isMaxInclusive": False}]
    info = plan["queryInfo"]
    assert (info["orderBy"], info["offset"], info["limit"]) == (["Descending"], 1, 2)
    rows = content(await parted.query(info["rewrittenQuery"], QUERY | KEY, m=2))["Documents"]
    assert [row["payload"] for row in rows] == [2, 1, 0]
    assert [row["orderByItems"] for row in rows] == [[{"item": 2}], [{"item": 1}], [{"item": 0}]]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"query": "SELECT c.n, COUNT(1) FROM c GROUP BY c.n"}, "does not support: GroupBy"),
        ({"query": "SELECT * FROM"}, "line 1"),
        ({"query": 1}, "text"),
        ({"query": "SELECT TOP @n * FROM c"}, "@n"),
    ],
    ids=["feature", "language", "text", "parameter"],
)
async def test_wrong_plans(parted: Service, query: dict[str, object], message: str) -> None:
    """No plan is given for what a client cannot merge or the engine cannot run."""
    response = await parted.send("POST", DOCS, query, PLAN)
    assert response.status == 400
    assert message in content(response)["message"]


async def test_pages_cross_partitions(parted: Service) -> None:
    """What needs no plan is read page by page across all partitions."""
    await fill(parted)
    read = await pages(parted, "SELECT VALUE c.id FROM c WHERE c.n < 2", 1)
    assert sorted(row for page in read for row in page) == ["0", "0", "0", "1", "1", "1"]
    feed = content(await parted.send("GET", DOCS, headers=CROSSING))
    assert feed["_count"] == 9
