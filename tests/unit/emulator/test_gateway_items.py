"""Single items through the gateway: statuses, sub-statuses, headers and bodies."""

from __future__ import annotations

import json

import pytest

from support.service import DOCS, KEY, UPSERT, Service, content, outcome


async def test_created_item_has_system_properties(service: Service) -> None:
    """A created item comes back with its system properties, and headers that say the same."""
    response = await service.create({"id": "1", "_ts": 5, "_etag": "mine", "text": "é"})
    item = content(response)
    assert response.status == 201
    assert item["_etag"] == response.headers["etag"] != "mine"
    assert item["_ts"] == 1_800_000_000
    assert item["_self"].endswith(f"/docs/{item['_rid']}/")
    assert item["_attachments"] == "attachments/"
    assert response.headers["x-ms-session-token"] == f"0:-1#{response.headers['lsn']}"
    assert response.headers["x-ms-alt-content-path"] == "dbs/db/colls/c"
    assert response.headers["x-ms-documentdb-partitionkeyrangeid"] == "0"
    assert 5 < float(response.headers["x-ms-request-charge"]) < 6
    read = await service.send("GET", DOCS + "1/")
    assert (content(read), read.headers["etag"]) == (item, item["_etag"])
    assert outcome(await service.create({"id": "1"})) == (409, None)


async def test_minimal_answers_have_no_body(service: Service) -> None:
    """Who prefers a minimal answer gets the headers only."""
    response = await service.create({"id": "1"}, KEY | {"prefer": "return=minimal"})
    assert (response.status, response.body) == (201, b"")
    assert response.headers["etag"]


async def test_unchanged_item_is_not_sent_again(service: Service) -> None:
    """A read with the current ETag is answered 304."""
    etag = (await service.create({"id": "1"})).headers["etag"]
    response = await service.send("GET", DOCS + "1/", headers=KEY | {"if-none-match": etag})
    assert (response.status, response.body) == (304, b"")


async def test_replacing_keeps_identity(service: Service) -> None:
    """A replaced item keeps its _rid and gets a new ETag; the old content is gone."""
    before = content(await service.create({"id": "1", "a": 1}))
    after = content(await service.send("PUT", DOCS + "1/", {"id": "1", "t": "t1", "w": "w1", "b": 2}))
    assert after["_rid"] == before["_rid"]
    assert after["_etag"] != before["_etag"]
    assert ("a" in after, after["b"]) == (False, 2)
    found = await service.query("SELECT VALUE c.id FROM c WHERE c.a = 1")
    assert content(found)["Documents"] == []


async def test_etags_guard_writes(service: Service) -> None:
    """A write under a wrong ETag is refused, under the right one or * it is done."""
    etag = (await service.create({"id": "1"})).headers["etag"]
    item = {"id": "1", "t": "t1", "w": "w1"}
    stale = KEY | {"if-match": '"stale"'}
    assert outcome(await service.send("PUT", DOCS + "1/", item, stale)) == (412, None)
    assert outcome(await service.send("DELETE", DOCS + "1/", headers=stale)) == (412, None)
    assert outcome(await service.create(item, UPSERT | {"if-match": '"stale"'})) == (412, None)
    assert outcome(await service.create(item, UPSERT | {"if-none-match": "*"})) == (412, None)
    assert (await service.send("PUT", DOCS + "1/", item, KEY | {"if-match": etag})).status == 200
    assert outcome(await service.send("PUT", DOCS + "1/", item, KEY | {"if-match": etag})) == (412, None)
    assert (await service.send("DELETE", DOCS + "1/", headers=KEY | {"if-match": "*"})).status == 204


async def test_upsert(service: Service) -> None:
    """An upsert creates, then replaces."""
    assert (await service.create({"id": "1", "n": 1}, UPSERT)).status == 201
    assert (await service.create({"id": "1", "n": 2}, UPSERT)).status == 200
    assert content(await service.send("GET", DOCS + "1/"))["n"] == 2


async def test_missing_items(service: Service) -> None:
    """What is not there is not found, under whatever operation."""
    item = {"id": "1", "t": "t1", "w": "w1"}
    assert outcome(await service.send("GET", DOCS + "1/")) == (404, None)
    assert outcome(await service.send("PUT", DOCS + "1/", item)) == (404, None)
    assert outcome(await service.send("DELETE", DOCS + "1/")) == (404, None)


async def test_keys_keep_apart(service: Service) -> None:
    """The same id under another key is another item."""
    await service.create({"id": "1", "n": 1})
    other = {"x-ms-documentdb-partitionkey": '["t10","w1"]'}
    assert outcome(await service.send("GET", DOCS + "1/", headers=other)) == (404, None)
    assert (await service.create({"id": "1", "t": "t10"}, other)).status == 201
    assert (await service.send("DELETE", DOCS + "1/", headers=other)).status == 204
    assert (await service.send("GET", DOCS + "1/")).status == 200


@pytest.mark.parametrize(
    ("header", "item"),
    [
        ('["t1"]', {"id": "1", "t": "t1"}),
        ('["t1","w1","x"]', {"id": "1", "t": "t1", "w": "w1"}),
        ('["t1","w2"]', {"id": "1", "t": "t1", "w": "w1"}),
        ('["t1",null]', {"id": "1", "t": "t1"}),
        ('["t1","w1"]', {"id": "1", "t": "t1", "w": {"x": 1}}),
        ('["t1",["w1"]]', {"id": "1", "t": "t1", "w": "w1"}),
        ('"t1"', {"id": "1", "t": "t1", "w": "w1"}),
        ("t1", {"id": "1", "t": "t1", "w": "w1"}),
        (None, {"id": "1", "t": "t1", "w": "w1"}),
    ],
    ids=["prefix", "long", "other", "null", "object", "array", "scalar", "junk", "none"],
)
async def test_wrong_partition_keys(service: Service, header: str | None, item: dict[str, object]) -> None:
    """A key that is no full key, or not the item's own, is refused with the sub-status for it."""
    headers = {} if header is None else {"x-ms-documentdb-partitionkey": header}
    assert outcome(await service.send("POST", DOCS, item, headers)) == (400, "1001")


async def test_undefined_levels(service: Service) -> None:
    """An item that lacks a level, or has no scalar there, is stored under the empty object, which is not null."""
    lacking = {"x-ms-documentdb-partitionkey": '["t1",{}]'}
    assert (await service.send("POST", DOCS, {"id": "1", "t": "t1"}, lacking)).status == 201
    assert (await service.send("GET", DOCS + "1/", headers=lacking)).status == 200
    for value in ({"x": 1}, ["w1"]):
        odd = {"id": str(value), "t": "t1", "w": value}
        assert (await service.send("POST", DOCS, odd, lacking)).status == 201
    null = {"x-ms-documentdb-partitionkey": '["t1",null]'}
    assert (await service.send("GET", DOCS + "1/", headers=null)).status == 404


@pytest.mark.parametrize(
    "change",
    [
        {"id": ""},
        {"id": 1},
        {"id": None},
        {"id": "a/b"},
        {"id": "x" * 1024},
        {"id": "1", "ttl": 0},
        {"id": "1", "ttl": None},
        {"id": "1", "ttl": -10},
    ],
    ids=str,
)
async def test_wrong_items(service: Service, change: dict[str, object]) -> None:
    """An item whose id or time to live is not allowed is refused."""
    assert outcome(await service.create(change)) == (400, None)


@pytest.mark.parametrize("body", [b"", b"[1]", b"{", b'{"id":"1","n":NaN}', b"\xff"], ids=repr)
async def test_wrong_bodies(service: Service, body: bytes) -> None:
    """A body that is no JSON object is refused."""
    assert outcome(await service.send("POST", DOCS, body)) == (400, None)


async def test_deep_items_are_refused(service: Service) -> None:
    """An item nested so deeply that it cannot be indexed is refused, and the engine goes on."""
    deep = b'{"id":"1","t":"t1","w":"w1","d":' + b'{"d":' * 900 + b"1" + b"}" * 901
    assert outcome(await service.send("POST", DOCS, deep)) == (400, None)
    assert (await service.create({"id": "1"})).status == 201


async def test_large_bodies(service: Service) -> None:
    """A body of 2 MiB is taken, one byte more is not."""
    empty = len(json.dumps({"t": "t1", "w": "w1", "id": "1", "x": ""}))
    fits = {"id": "1", "x": "x" * (2 * 1024 * 1024 - empty)}
    assert (await service.create(fits)).status == 201
    assert (await service.create({"id": "2", "x": fits["x"] + "x"})).status == 413


async def test_unusual_ids(service: Service) -> None:
    """Ids of any other characters come back, percent-encoded in the path."""
    for name, path in (("ä ö", "%C3%A4%20%C3%B6"), ("a%2Fb", "a%252Fb"), ("\x00", "%00"), ("\ud800", "%ED%A0%80")):
        assert (await service.create({"id": name})).status == 201
        assert content(await service.send("GET", f"{DOCS}{path}/"))["id"] == name


async def test_resource_ids_name_things(service: Service) -> None:
    """The path of _rids that an item's _self gives reads and deletes the item; a wrong one finds nothing."""
    link = "/" + content(await service.create({"id": "1"}))["_self"]
    assert content(await service.send("GET", link))["id"] == "1"
    assert (await service.send("GET", link.replace("/docs/", "/docs/x"))).status == 404
    collection = link[: link.index("docs/")]
    assert content(await service.send("GET", collection))["id"] == "c"
    assert (await service.send("PUT", link, {"id": "1", "t": "t1", "w": "w1"})).status == 200
    assert (await service.send("DELETE", link)).status == 204
    assert (await service.send("GET", DOCS + "1/")).status == 404


async def test_a_replacement_may_change_the_id(service: Service) -> None:
    """A replacement under another id moves the item there, unless another one lives there."""
    before = content(await service.create({"id": "1"}))
    await service.create({"id": "taken"})
    assert outcome(await service.send("PUT", DOCS + "1/", {"id": "taken", "t": "t1", "w": "w1"})) == (409, None)
    after = content(await service.send("PUT", DOCS + "1/", {"id": "2", "t": "t1", "w": "w1"}))
    assert after["_rid"] == before["_rid"]
    assert (await service.send("GET", DOCS + "1/")).status == 404
    assert (await service.send("GET", DOCS + "2/")).status == 200
    assert content(await service.query("SELECT VALUE c.id FROM c WHERE c.id = '1'"))["Documents"] == []
    assert content(await service.query("SELECT VALUE c.id FROM c WHERE c.id = '2'"))["Documents"] == ["2"]


async def test_nesting_has_a_limit(service: Service) -> None:
    """An item of 128 levels of objects and arrays is taken, one of 129 is not, and wide ones are no deep ones."""
    deep: dict[str, object] = {}
    for _ in range(63):
        deep = {"d": [deep]}
    assert (await service.create({"id": "1", "d": deep})).status == 201
    assert outcome(await service.create({"id": "2", "d": [deep]})) == (400, None)
    assert (await service.create({"id": "3", "d": [[{}] for _ in range(200)]})).status == 201
