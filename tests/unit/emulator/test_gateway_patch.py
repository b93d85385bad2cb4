"""Partial updates through the gateway: what each operation does, and what is refused."""

from __future__ import annotations

from typing import Final

import pytest

from support.service import DOCS, KEY, Service, content, outcome

BEFORE: Final = {
    "id": "1",
    "n": 1,
    "text": "a",
    "list": [1, 2, 3],
    "in": {"x": 1, "a/b": 1, "c~d": 1},
    "deep": [{"y": 1}],
}


async def patched(service: Service, *operations: object) -> dict[str, object]:
    """Patch the usual item and give what changed, a property that is gone as None."""
    before = content(await service.create(BEFORE))
    response = await service.send("PATCH", DOCS + "1/", {"operations": operations})
    assert response.status == 200, response.body
    after = content(response)
    assert content(await service.send("GET", DOCS + "1/")) == after
    assert after["_etag"] == response.headers["etag"] != before["_etag"]
    names = {name for name in (*before, *after) if not name.startswith("_")}
    return {name: after.get(name) for name in names if after.get(name) != before.get(name)}


@pytest.mark.parametrize(
    ("operation", "changes"),
    [
        ({"op": "add", "path": "/new", "value": None}, {}),
        ({"op": "add", "path": "/n", "value": [1]}, {"n": [1]}),
        ({"op": "add", "path": "/list/1", "value": 9}, {"list": [1, 9, 2, 3]}),
        ({"op": "add", "path": "/list/3", "value": 9}, {"list": [1, 2, 3, 9]}),
        ({"op": "add", "path": "/list/-", "value": 9}, {"list": [1, 2, 3, 9]}),
        ({"op": "add", "path": "/deep/0/y", "value": 2}, {"deep": [{"y": 2}]}),
        ({"op": "Set", "path": "/list/1", "value": 9}, {"list": [1, 9, 3]}),
        ({"op": "set", "path": "/in/new", "value": 9}, {"in": {"x": 1, "a/b": 1, "c~d": 1, "new": 9}}),
        ({"op": "replace", "path": "/text", "value": "b"}, {"text": "b"}),
        ({"op": "replace", "path": "/list/0", "value": 9}, {"list": [9, 2, 3]}),
        ({"op": "remove", "path": "/text"}, {"text": None}),
        ({"op": "remove", "path": "/list/0"}, {"list": [2, 3]}),
        ({"op": "remove", "path": "/in/a~1b"}, {"in": {"x": 1, "c~d": 1}}),
        ({"op": "remove", "path": "/in/c~0d"}, {"in": {"x": 1, "a/b": 1}}),
        ({"op": "incr", "path": "/n", "value": -1.5}, {"n": -0.5}),
        ({"op": "incr", "path": "/new", "value": 3}, {"new": 3}),
        ({"op": "incr", "path": "/list/2", "value": 1}, {"list": [1, 2, 4]}),
        ({"op": "incr", "path": "/n", "value": 2**53}, {"n": 2.0**53}),
        ({"op": "move", "from": "/text", "path": "/new"}, {"text": None, "new": "a"}),
        ({"op": "move", "from": "/list/0", "path": "/list/2"}, {"list": [2, 3, 1]}),
        ({"op": "move", "from": "/in/x", "path": "/n"}, {"in": {"a/b": 1, "c~d": 1}}),
        ({"op": "set", "path": "/ttl", "value": 60}, {"ttl": 60}),
    ],
    ids=str,
)
async def test_operations(service: Service, operation: object, changes: dict[str, object]) -> None:
    """Each operation changes what it names and nothing else."""
    assert await patched(service, operation) == changes


async def test_operations_follow_one_another(service: Service) -> None:
    """An operation sees what those before it did, and what was changed is found by queries."""
    changes = await patched(
        service,
        {"op": "add", "path": "/in/y", "value": {}},
        {"op": "set", "path": "/in/y/z", "value": 5},
        {"op": "move", "from": "/in/y", "path": "/moved"},
        {"op": "incr", "path": "/moved/z", "value": 1},
    )
    assert changes == {"moved": {"z": 6}}
    assert content(await service.query("SELECT VALUE c.id FROM c WHERE c.moved.z = 6"))["Documents"] == ["1"]


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/n", "value": 1},
        {"op": 1, "path": "/n"},
        1,
        {"op": "add", "path": "/n"},
        {"op": "add", "path": "n", "value": 1},
        {"op": "add", "value": 1},
        {"op": "add", "path": "/no/x", "value": 1},
        {"op": "add", "path": "/n/x", "value": 1},
        {"op": "add", "path": "/list/4", "value": 1},
        {"op": "add", "path": "/list/01", "value": 1},
        {"op": "add", "path": "/list/x", "value": 1},
        {"op": "add", "path": f"/list/{'9' * 5000}", "value": 1},
        {"op": "add", "path": "/list/7/x", "value": 1},
        {"op": "set", "path": "/list/3", "value": 1},
        {"op": "set", "path": "/list/-", "value": 1},
        {"op": "replace", "path": "/no", "value": 1},
        {"op": "replace", "path": "/list/3", "value": 1},
        {"op": "remove", "path": "/no"},
        {"op": "incr", "path": "/text", "value": 1},
        {"op": "incr", "path": "/n", "value": "1"},
        {"op": "incr", "path": "/n", "value": True},
        {"op": "incr", "path": "/list/3", "value": 1},
        {"op": "move", "from": "/no", "path": "/new"},
        {"op": "move", "from": "/in", "path": "/in/x"},
        {"op": "set", "path": "/id", "value": "2"},
        {"op": "remove", "path": "/t"},
        {"op": "move", "from": "/w", "path": "/new"},
        {"op": "set", "path": "/_etag", "value": "x"},
        {"op": "set", "path": "/_ts/x", "value": "x"},
        {"op": "set", "path": "/ttl", "value": 0},
    ],
    ids=lambda operation: str(operation)[:60],
)
async def test_wrong_operations(service: Service, operation: object) -> None:
    """An operation that cannot be meant, or not be done, is refused, and the item stays as it was."""
    before = content(await service.create(BEFORE))
    first = {"op": "set", "path": "/text", "value": "changed"}
    response = await service.send("PATCH", DOCS + "1/", {"operations": [first, operation]})
    assert outcome(response) == (400, None)
    assert content(await service.send("GET", DOCS + "1/")) == before


@pytest.mark.parametrize(
    "patch",
    [
        {},
        {"operations": []},
        {"operations": {}},
        {"operations": [{"op": "incr", "path": "/n", "value": 1}] * 11},
        {"operations": [{"op": "incr", "path": "/n", "value": 1}], "condition": 1},
    ],
    ids=["none", "empty", "object", "eleven", "condition"],
)
async def test_wrong_patches(service: Service, patch: dict[str, object]) -> None:
    """A patch needs 1 to 10 operations, and a condition has to be a text."""
    await service.create(BEFORE)
    assert outcome(await service.send("PATCH", DOCS + "1/", patch)) == (400, None)


async def test_conditions(service: Service) -> None:
    """A patch is done only if its condition is true and its ETag is the item's."""
    etag = (await service.create(BEFORE)).headers["etag"]
    patch = {"operations": [{"op": "incr", "path": "/n", "value": 1}]}
    for condition, status in (("from c where c.n = 2", 412), ("FROM root WHERE root.n = 1", 200)):
        response = await service.send("PATCH", DOCS + "1/", patch | {"condition": condition})
        assert outcome(response) == (status, None)
    assert outcome(await service.send("PATCH", DOCS + "1/", patch, KEY | {"if-match": etag})) == (412, None)
    response = await service.send("PATCH", DOCS + "1/", patch | {"condition": "FROM c WHERE c.n ="})
    assert outcome(response) == (400, None)
    assert "line 1, column" in content(response)["message"]


async def test_patches_need_their_item(service: Service) -> None:
    """What is not there cannot be patched, and who wants no content gets none."""
    patch = {"operations": [{"op": "incr", "path": "/n", "value": 1}]}
    assert outcome(await service.send("PATCH", DOCS + "1/", patch)) == (404, None)
    await service.create(BEFORE)
    response = await service.send("PATCH", DOCS + "1/", patch, KEY | {"prefer": "return=minimal"})
    assert (response.status, response.body) == (200, b"")


async def test_partition_keys_stay(service: Service) -> None:
    """An operation above a nested partition key is refused if it changes the key."""
    key = {"paths": ["/in/key"], "kind": "Hash", "version": 2}
    await service.send("POST", "/dbs/db/colls/", {"id": "nested", "partitionKey": key})
    path, headers = "/dbs/db/colls/nested/docs/", {"x-ms-documentdb-partitionkey": '["k"]'}
    assert (await service.send("POST", path, {"id": "1", "in": {"key": "k"}}, headers)).status == 201
    for value, status in (({"key": "k", "x": 1}, 200), ({"key": "other"}, 400)):
        patch = {"operations": [{"op": "set", "path": "/in", "value": value}]}
        assert (await service.send("PATCH", path + "1/", patch, headers)).status == status
