"""What must be the same about an existing container, and how a difference is put into words."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from cosmos_workflow_state._provisioning import INDEXED_PATHS, PARTITION_KEY_PATHS, differences

AS_IT_MUST_BE: dict[str, Any] = {
    "id": "checkpoints",
    "partitionKey": {"paths": ["/tenant_id", "/workflow_name"], "kind": "MultiHash", "version": 2},
    "defaultTtl": -1,
    "indexingPolicy": {
        "indexingMode": "consistent",
        "automatic": True,
        "includedPaths": [{"path": path} for path in INDEXED_PATHS],
        "excludedPaths": [{"path": "/*"}, {"path": '/"_etag"/?'}],
    },
}


def container(**changes: Any) -> dict[str, Any]:
    """Return a container's properties with some changed; None takes one away."""
    properties = copy.deepcopy(AS_IT_MUST_BE) | changes
    return {name: value for name, value in properties.items() if value is not None}


def indexing(**changes: Any) -> dict[str, Any]:
    """Return a container whose indexing policy has changes."""
    return container(indexingPolicy=AS_IT_MUST_BE["indexingPolicy"] | changes)


def test_container_as_it_must_be() -> None:
    """Nothing to say about a container as this package creates it and the service gives it back."""
    assert differences(container()) == ()


def test_definition() -> None:
    """The key and the indexed paths are those that the queries need."""
    assert PARTITION_KEY_PATHS == ("/tenant_id", "/workflow_name")
    assert {"/tenant_id/?", "/workflow_name/?", "/sort_key/?"} <= set(INDEXED_PATHS)
    assert not [path for path in INDEXED_PATHS if path.startswith("/payload/data") or path.endswith("/*")]


@pytest.mark.parametrize(
    ("key", "named"),
    [
        ({"paths": ["/tenant_id"], "kind": "Hash", "version": 2}, "['/tenant_id'] (Hash, version 2)"),
        (
            {"paths": ["/workflow_name", "/tenant_id"], "kind": "MultiHash", "version": 2},
            "['/workflow_name', '/tenant_id']",
        ),
        ({"paths": ["/tenant_id", "/workflow_name", "/scope"], "kind": "MultiHash", "version": 2}, "'/scope']"),
        ({"paths": ["/tenant_id", "/workflow_name"], "kind": "MultiHash"}, "version 1"),
        ({"paths": ["/workflow_name"], "kind": "Hash"}, "['/workflow_name'] (Hash, version 1)"),
        ({}, "[] (None, version 1)"),
        (None, "[] (None, version 1)"),
    ],
)
def test_other_partition_key(key: dict[str, Any] | None, named: str) -> None:
    """A partition key cannot be changed: what is there is named, and another container advised."""
    (problem,) = differences(container(partitionKey=key))
    assert named in problem
    assert "use another container" in problem


@pytest.mark.parametrize(
    ("ttl", "named"), [(None, "is off"), (0, "is 0 seconds"), (1, "is 1 seconds"), (2592000, "is 2592000 seconds")]
)
def test_other_time_to_live(ttl: int | None, named: str) -> None:
    """Time to live must be on and expire nothing by itself."""
    (problem,) = differences(container(defaultTtl=ttl))
    assert named in problem
    assert "-1" in problem


@pytest.mark.parametrize("excluded", [[], None, [{"path": '/"_etag"/?'}], [{"path": "/payload/*"}], [{}]])
def test_payload_is_indexed(excluded: list[dict[str, str]] | None) -> None:
    """A container that indexes everything would make each save pay for its payload."""
    (problem,) = differences(indexing(excludedPaths=excluded))
    assert "exclude /*" in problem


@pytest.mark.parametrize("missing", INDEXED_PATHS)
def test_path_that_is_not_indexed(missing: str) -> None:
    """Each path that a query needs is missed by name."""
    (problem,) = differences(indexing(includedPaths=[{"path": path} for path in INDEXED_PATHS if path != missing]))
    assert problem == f"its indexing policy does not index {missing}: include them"


@pytest.mark.parametrize("included", [[], None, [{}]])
def test_nothing_is_indexed(included: list[dict[str, str]] | None) -> None:
    """All the paths are named at once."""
    (problem,) = differences(indexing(includedPaths=included))
    assert ", ".join(INDEXED_PATHS) in problem


def test_default_container() -> None:
    """A container made without any of our wishes differs in all four ways, each said once."""
    problems = differences(
        {
            "partitionKey": {"paths": ["/id"], "kind": "Hash", "version": 2},
            "indexingPolicy": {"includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": '/"_etag"/?'}]},
        }
    )
    assert len(problems) == 4
    assert len(differences({})) == 4


@pytest.mark.parametrize("changes", [{"indexingMode": "none"}, {"indexingMode": "lazy"}, {"automatic": False}])
def test_index_that_does_not_keep_up(changes: dict[str, Any]) -> None:
    """An index that is off, late or by request only would make the latest checkpoint disappear."""
    (problem,) = differences(indexing(**changes))
    assert "set indexing to consistent" in problem
