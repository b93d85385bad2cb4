"""Transactional batches through the gateway."""

from __future__ import annotations

from typing import Final

import pytest

from cosmos_workflow_state.emulator._engine._errors import StorageError
from support.service import BATCH, DOCS, Service, content, outcome

INCREMENT: Final = {"op": "incr", "path": "/n", "value": 1}
NEVER: Final = "FROM c WHERE c.n = 0"


async def test_batch(service: Service) -> None:
    """A batch does all of its operations in order, with one log sequence number."""
    await service.create({"id": "old", "n": 1})
    before = int((await service.create({"id": "doomed"})).headers["lsn"])
    key = {"t": "t1", "w": "w1"}
    response = await service.send(
        "POST",
        DOCS,
        [
            {"operationType": "Create", "resourceBody": {"id": "new"} | key},
            {"operationType": "Read", "id": "new"},
            {"operationType": "Upsert", "resourceBody": {"id": "new", "n": 2} | key},
            {"operationType": "Upsert", "resourceBody": {"id": "newer"} | key},
            {"operationType": "Replace", "id": "old", "resourceBody": {"id": "old", "n": 3} | key},
            {"operationType": "Patch", "id": "old", "resourceBody": {"operations": [INCREMENT], "condition": "FROM c"}},
            {"operationType": "Delete", "id": "doomed"},
        ],
        BATCH,
    )
    results = content(response)
    assert response.status == 200
    assert [result["statusCode"] for result in results] == [201, 200, 200, 201, 200, 200, 204]
    assert results[2]["resourceBody"]["n"] == 2
    assert results[5]["resourceBody"]["n"] == 4
    assert results[2]["eTag"] == results[2]["resourceBody"]["_etag"] != results[0]["eTag"]
    assert int(response.headers["lsn"]) == before + 1
    assert float(response.headers["x-ms-request-charge"]) == pytest.approx(
        sum(result["requestCharge"] for result in results)
    )


@pytest.mark.parametrize(
    ("operation", "status"),
    [
        ({"operationType": "Create", "resourceBody": {"id": "old", "t": "t1", "w": "w1"}}, 409),
        ({"operationType": "Create", "resourceBody": {"id": "x", "t": "t2", "w": "w1"}}, 400),
        ({"operationType": "Create"}, 400),
        ({"operationType": "Read", "id": "no"}, 404),
        ({"operationType": "Read", "id": "old", "ifMatch": '"stale"'}, 412),
        ({"operationType": "Delete"}, 400),
        ({"operationType": "Delete", "id": "old", "ifMatch": '"stale"'}, 412),
        (
            {
                "operationType": "Replace",
                "id": "old",
                "ifMatch": '"stale"',
                "resourceBody": {"id": "old", "t": "t1", "w": "w1"},
            },
            412,
        ),
        (
            {"operationType": "Patch", "id": "old", "resourceBody": {"operations": [INCREMENT], "condition": NEVER}},
            412,
        ),
        ({"operationType": "Patch", "id": "old", "resourceBody": {}}, 400),
        ({"operationType": "Patch", "id": "no", "resourceBody": {"operations": [INCREMENT]}}, 404),
    ],
    ids=["exists", "other key", "no body", "missing", "read guard", "no id", "delete guard", "replace guard",
         "patch guard", "no patch", "patch missing"],
)  # fmt: skip
async def test_batch_is_all_or_nothing(service: Service, operation: dict[str, object], status: int) -> None:
    """When one operation fails, it says why, all others say 424, and nothing is done."""
    await service.create({"id": "old"})
    create = {"operationType": "Create", "resourceBody": {"id": "new", "t": "t1", "w": "w1"}}
    response = await service.send("POST", DOCS, [create, operation, create], BATCH)
    assert response.status == 207
    assert [result["statusCode"] for result in content(response)] == [424, status, 424]
    assert (await service.send("GET", DOCS + "new/")).status == 404
    lsn = (await service.send("GET", DOCS + "old/")).headers["lsn"]
    assert response.headers["lsn"] == lsn


@pytest.mark.parametrize(
    ("body", "headers", "message"),
    [
        ([], BATCH, "no operations"),
        ({}, BATCH, "array"),
        ([{"operationType": "Read", "id": "1"}] * 101, BATCH, "more operations"),
        ([{"operationType": "Query", "id": "1"}], BATCH, "has to be one of"),
        ([1], BATCH, "has to be one of"),
        (
            [{"operationType": "Read", "id": "1"}],
            BATCH | {"x-ms-documentdb-partitionkey": '["t1"]'},
            "Partition key",
        ),
    ],
    ids=["empty", "object", "many", "unknown", "junk", "prefix"],
)
async def test_wrong_batches(service: Service, body: object, headers: dict[str, str], message: str) -> None:
    """A batch that cannot be meant is refused as a whole."""
    response = await service.send("POST", DOCS, body, headers)
    assert response.status == 400
    assert message in content(response)["message"]


async def test_storage_failures_in_a_batch_are_no_result_of_it(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When storage fails under a batch, the request fails: no operation is to blame."""

    def fail(*_: object) -> None:
        raise StorageError("disk full")

    monkeypatch.setattr("cosmos_workflow_state.emulator._gateway._batch.read_item", fail)
    response = await service.send("POST", DOCS, [{"operationType": "Read", "id": "1"}], BATCH)
    assert outcome(response) == (507, None)
