"""Lists of databases, containers and offers through the gateway: whole, queried, page by page."""

from __future__ import annotations

import pytest

from support.service import QUERY, Service, content, definition


async def fill(service: Service) -> None:
    """Create more containers."""
    for name in ("b", "d", "a"):
        assert (await service.send("POST", "/dbs/db/colls/", definition(id=name))).status == 201


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("SELECT * FROM c", ["c", "b", "d", "a"]),
        ("SELECT * FROM root r WHERE r.id = 'd'", ["d"]),
        ("SELECT * FROM c WHERE c.id > 'a' AND c.id <= 'c' ORDER BY c.id", ["b", "c"]),
        ("SELECT * FROM c WHERE c.id >= 'a' AND c.id < 'c' ORDER BY c.id", ["a", "b"]),
        ("SELECT * FROM c ORDER BY c.id DESC", ["d", "c", "b", "a"]),
        ("SELECT * FROM c WHERE c.partitionKey.kind = 'MultiHash' ORDER BY c.defaultTtl, c.id", ["a", "b", "c", "d"]),
        ("SELECT * FROM c WHERE c.nothing = 1", []),
    ],
)
@pytest.mark.parametrize("size", [1, 100])
async def test_queries_over_containers(service: Service, text: str, names: list[str], size: int) -> None:
    """Containers are found by any of their properties, in any order, on pages of any size."""
    await fill(service)
    found: list[str] = []
    token: str | None = ""
    while token is not None:
        headers = QUERY | {"x-ms-max-item-count": str(size), "x-ms-continuation": token}
        response = await service.send("POST", "/dbs/db/colls/", {"query": text}, headers)
        assert response.status == 200
        found += [each["id"] for each in content(response)["DocumentCollections"]]
        token = response.headers.get("x-ms-continuation")
    assert found == names


async def test_queries_over_databases(service: Service) -> None:
    """Databases are queried and listed page by page."""
    await service.send("POST", "/dbs", {"id": "other"})
    parameters = [{"name": "@id", "value": "other"}]
    query = {"query": "SELECT * FROM root r WHERE r.id=@id", "parameters": parameters}
    found = content(await service.send("POST", "/dbs", query, QUERY))
    assert [each["id"] for each in found["Databases"]] == ["other"]
    first = await service.send("GET", "/dbs", headers={"x-ms-max-item-count": "1"})
    token = {"x-ms-continuation": first.headers["x-ms-continuation"]}
    second = await service.send("GET", "/dbs", headers={"x-ms-max-item-count": "1"} | token)
    assert [each["id"] for page in (first, second) for each in content(page)["Databases"]] == ["db", "other"]


async def test_wrong_list_queries(service: Service) -> None:
    """A query that cannot be meant is refused, and so is a continuation behind what is gone."""
    await fill(service)
    assert (await service.send("POST", "/dbs", {"id": "x"}, QUERY)).status == 400
    assert (await service.send("POST", "/dbs/db/colls/", {"query": "SELECT"}, QUERY)).status == 400
    first = await service.send("GET", "/dbs/db/colls/", headers={"x-ms-max-item-count": "3"})
    token = {"x-ms-continuation": first.headers["x-ms-continuation"]}
    for name in ("b", "d", "a"):
        await service.send("DELETE", f"/dbs/db/colls/{name}/")
    response = await service.send("GET", "/dbs/db/colls/", headers=token)
    assert response.status == 400
    assert "continuation" in content(response)["message"]
