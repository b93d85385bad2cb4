"""What must be the same about an existing container, and how a difference is put into words."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosmos_workflow_state._definitions import CHECKPOINTS
from cosmos_workflow_state._drift import Difference, repairable, repaired_policy
from cosmos_workflow_state._drift import differences as found_in

INDEXED_PATHS = tuple(CHECKPOINTS.indexed)
PARTITION_KEY_PATHS = CHECKPOINTS.partition_key_paths
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


def differences(properties: dict[str, Any]) -> tuple[str, ...]:
    """Return what is different, as sentences."""
    return tuple(map(str, found_in(properties, CHECKPOINTS)))


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


EVERYTHING = [{"path": "/*"}]
WANTED = [{"path": path} for path in CHECKPOINTS.indexed]


@pytest.mark.parametrize(
    ("included", "excluded", "named"),
    [
        pytest.param(EVERYTHING, [{"path": '/"_etag"/?'}], "includes /*", id="as the service does it"),
        pytest.param([*WANTED, *EVERYTHING], [{"path": "/payload/data/?"}], "includes /*", id="all but the payload"),
        pytest.param([*WANTED, {"path": "/payload/*"}], EVERYTHING, "the payload (/payload/data)", id="payload"),
        pytest.param([*WANTED, {"path": "/payload/data/?"}], EVERYTHING, "the payload", id="payload's data"),
        pytest.param([*WANTED, {"path": '/"payload"/*'}], EVERYTHING, "the payload", id="payload in quotes"),
    ],
)
def test_what_costs(included: list[dict[str, str]], excluded: list[dict[str, str]], named: str) -> None:
    """A container that indexes everything, or the payload, would make each save pay for it."""
    (problem,) = differences(indexing(includedPaths=included, excludedPaths=excluded))
    assert named in problem
    assert problem.startswith("its indexing policy in")
    assert "exclude /*" in problem


def test_more_may_be_indexed() -> None:
    """Small paths that somebody queries for themselves, and indexes of several paths, are no difference."""
    policy = {"includedPaths": [*WANTED, {"path": "/iteration_count/?"}, {"path": "/payload/size/?"}]}
    assert differences(indexing(**policy, compositeIndexes=[[{"path": "/a"}, {"path": "/b"}]])) == ()


def test_the_more_precise_path_decides() -> None:
    """A path is indexed by one above it that is included, and is not when it is excluded by name itself."""
    above = [path for path in WANTED if path["path"] != "/payload/keyframe/?"] + [{"path": "/payload/keyframe/*"}]
    assert differences(indexing(includedPaths=[*above, {"path": "/payload/keyframe/?"}])) == ()
    excluded = [*EVERYTHING, {"path": "/sort_key/?"}]
    included = [path for path in WANTED if path["path"] != "/sort_key/?"]
    (problem,) = differences(indexing(includedPaths=included, excludedPaths=excluded))
    assert "/sort_key/? (to find the latest checkpoint and to list in order)" in problem


@pytest.mark.parametrize("missing", INDEXED_PATHS)
def test_path_that_is_not_indexed(missing: str) -> None:
    """Each path that a query needs is missed by name."""
    (problem,) = differences(indexing(includedPaths=[{"path": path} for path in INDEXED_PATHS if path != missing]))
    assert problem == f"its indexing policy does not index {missing} ({CHECKPOINTS.indexed[missing]}): include them"


@pytest.mark.parametrize("included", [[], None, [{}]])
def test_nothing_is_indexed(included: list[dict[str, str]] | None) -> None:
    """All the paths are named at once."""
    (problem,) = differences(indexing(includedPaths=included))
    assert all(f"{path} (to " in problem for path in INDEXED_PATHS)


def test_default_container() -> None:
    """A container made without any of our wishes differs in three ways, each said once."""
    problems = differences(
        {
            "partitionKey": {"paths": ["/id"], "kind": "Hash", "version": 2},
            "indexingPolicy": {"includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": '/"_etag"/?'}]},
        }
    )
    assert len(problems) == 3
    assert len(differences({})) == 3


def test_subjects() -> None:
    """A program can tell what a difference is about, and whether it can be repaired."""
    found = found_in({"partitionKey": {"paths": ["/id"], "kind": "Hash", "version": 2}}, CHECKPOINTS)
    assert [(one.subject, one.repairable) for one in found] == [
        ("partition key", False),
        ("default TTL", True),
        ("indexing policy", True),
    ]
    assert str(Difference("default TTL", "it is off", "set it")) == "it is off: set it"


def test_hints_about_the_key() -> None:
    """A container of the framework's own store, and paths in another order, are recognised."""
    (theirs,) = differences(container(partitionKey={"paths": ["/workflow_name"], "kind": "Hash", "version": 2}))
    assert "as the framework's own store has it" in theirs
    turned = {"paths": ["/workflow_name", "/tenant_id"], "kind": "MultiHash", "version": 2}
    (problem,) = differences(container(partitionKey=turned))
    assert "in another order" in problem


@pytest.mark.parametrize("changes", [{"indexingMode": "none"}, {"indexingMode": "lazy"}, {"automatic": False}])
def test_index_that_does_not_keep_up(changes: dict[str, Any]) -> None:
    """An index that is off, late or by request only would make the latest checkpoint disappear."""
    (problem,) = differences(indexing(**changes))
    assert "set indexing to consistent" in problem


PATHS = st.sampled_from(
    [
        *INDEXED_PATHS,
        *("/*", "/payload/*", "/payload/data/?", "/payload/data/*", '/"payload"/*', "/payload/keyframe/*"),
        *("/iteration_count/?", "/metadata/*", '/"_etag"/?', "/tenant_id/*", "/sort_key/*"),
    ]
)
ENTRIES = st.none() | st.lists(st.builds(lambda path: {"path": path}, PATHS), unique_by=lambda entry: entry["path"])


@given(ENTRIES, ENTRIES, st.sampled_from(["consistent", "none"]))
def test_a_repaired_policy_is_right(
    included: list[dict[str, str]] | None, excluded: list[dict[str, str]] | None, mode: str
) -> None:
    """Whatever it was before, there is no difference left; a second repair changes nothing."""
    policy = {"includedPaths": included, "excludedPaths": excluded, "indexingMode": mode}
    repaired = repaired_policy(policy, CHECKPOINTS)
    assert differences(container(indexingPolicy=repaired)) == ()
    assert repaired_policy(repaired, CHECKPOINTS) == repaired
    every = [entry["path"] for entry in repaired["includedPaths"]]
    assert len(set(every)) == len(every)


def test_a_repaired_policy_keeps_what_others_have_added() -> None:
    """Paths that they query, paths that they keep out, and other kinds of indexes; not the payload, nor all."""
    included = [{"path": "/iteration_count/?"}, {"path": "/payload/*"}, {"path": "/payload/data/?"}, {"path": "/*"}]
    excluded = [{"path": "/metadata/*"}, {"path": "/sort_key/?"}]
    repaired = repaired_policy(
        {"includedPaths": included, "excludedPaths": excluded, "spatialIndexes": ["theirs"]}, CHECKPOINTS
    )
    assert repaired["includedPaths"] == [*WANTED, {"path": "/iteration_count/?"}]
    assert repaired["excludedPaths"] == [{"path": "/*"}, {"path": "/metadata/*"}]
    assert repaired["spatialIndexes"] == ["theirs"]


def test_what_is_excluded_more_precisely_may_stay_included_around() -> None:
    """What is around the payload may be indexed where the payload itself is excluded by name."""
    around = {"includedPaths": [{"path": "/payload/*"}], "excludedPaths": [{"path": "/payload/data/*"}]}
    assert {"path": "/payload/*"} in repaired_policy(around, CHECKPOINTS)["includedPaths"]


def test_one_difference_that_cannot_be_repaired_is_one_too_many() -> None:
    """A container with another key is left as it is, whatever else could be made right."""
    other = {"paths": ["/id"], "kind": "Hash", "version": 2}
    assert repairable(found_in(container(defaultTtl=None), CHECKPOINTS))
    assert not repairable(found_in(container(defaultTtl=None, partitionKey=other), CHECKPOINTS))
