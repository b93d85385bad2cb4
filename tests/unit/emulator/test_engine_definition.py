"""Definitions of containers: paths, indexing policies, partition keys, times to live, names."""

from __future__ import annotations

import math

import pytest

from cosmos_workflow_state.emulator._engine._definition import (
    MAX_TTL,
    Definition,
    checked_name,
    checked_ttl,
    stored_definition,
)
from cosmos_workflow_state.emulator._engine._errors import InvalidError
from cosmos_workflow_state.emulator._engine._json import dump, parse, parse_object
from cosmos_workflow_state.emulator._engine._paths import split
from cosmos_workflow_state.emulator._engine._policy import DEFAULT_POLICY, IndexingPolicy
from cosmos_workflow_state.emulator._ordering import term
from cosmos_workflow_state.emulator._values import Json, JsonObject

KEY: JsonObject = {"paths": ["/tenant_id", "/workflow_name"], "kind": "MultiHash", "version": 2}


def policy(included: list[str], excluded: list[str], **more: Json) -> IndexingPolicy:
    """Build a policy from paths."""
    document: JsonObject = {
        "includedPaths": [{"path": path} for path in included],
        "excludedPaths": [{"path": path} for path in excluded],
    }
    return IndexingPolicy.of(document | more)


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("/a", ("a",)),
        ("/a/b/?", ("a", "b", "?")),
        ('/"a b"/*', ("a b", "*")),
        ('/"say \\"x\\""/c', ('say "x"', "c")),
        ("/arr/[]/?", ("arr", "[]", "?")),
        ("/'level\" 1*()'/'le/vel2'", ('level" 1*()', "le/vel2")),
    ],
    ids=["one", "several", "quoted", "escaped", "elements", "single quotes"],
)
def test_paths_split(path: str, steps: tuple[str, ...]) -> None:
    """A path is split into its steps, quotes and escapes removed."""
    assert split(path) == steps


@pytest.mark.parametrize("path", ["", "a", "/", "//", '/"open', "/a/"])
def test_unreadable_paths_are_refused(path: str) -> None:
    """A path that cannot be read is refused, never read in part."""
    with pytest.raises(InvalidError, match="cannot be read"):
        split(path)


@pytest.mark.parametrize(
    ("path", "covered"),
    [
        (("id",), True),
        (("_ts",), True),
        (("_etag",), False),
        (("sort_key",), True),
        (("payload",), False),
        (("payload", "keyframe"), True),
        (("payload", "data"), False),
        (("tree",), True),
        (("tree", "deep", "er"), True),
        (("tree", "not"), False),
        ((), False),
    ],
    ids=lambda value: "/".join(value) if isinstance(value, tuple) else str(value),
)
def test_most_precise_path_decides(path: tuple[str, ...], covered: bool) -> None:
    """An included or excluded path decides over those above it; id and _ts are always covered, _etag never."""
    tested = policy(["/sort_key/?", "/payload/keyframe/?", "/tree/*"], ["/*", "/tree/not/?"])
    assert tested.covers(path) is covered


def test_terms_are_those_of_covered_paths() -> None:
    """An item has a term for each covered path with a value; what is in arrays has none."""
    tested = policy(["/*"], ["/secret/*", "/list/[]/?"])
    item: JsonObject = {
        "id": "1",
        "_ts": 5,
        "_etag": "e",
        "n": 1,
        "o": {"x": None, "y": [1]},
        "secret": {"a": 1},
        "list": [{"z": 1}],
    }
    assert dict(tested.terms(item)) == {
        ("id",): term("1"),
        ("_ts",): term(5),
        ("n",): term(1),
        ("o",): term({})[:1],
        ("o", "x"): term(None),
        ("o", "y"): term([])[:1],
        ("list",): term([])[:1],
    }


def test_mode_none_indexes_nothing_else() -> None:
    """Without indexing, only id and _ts have terms."""
    tested = policy([], [], indexingMode="none")
    assert not tested.covers(("n",))
    assert {path for path, _ in tested.terms({"id": "1", "_ts": 5, "n": 1})} == {("id",), ("_ts",)}
    assert tested.document["automatic"] is False


def test_policy_is_filled_in() -> None:
    """What a policy leaves out is shown filled in, with _etag excluded once."""
    tested = policy(["/*"], [])
    assert tested.document == DEFAULT_POLICY
    assert IndexingPolicy.of(tested.document).document == DEFAULT_POLICY


@pytest.mark.parametrize(
    ("document", "included", "excluded"),
    [
        ({}, ["/*"], ['/"_etag"/?']),
        ({"indexingMode": "Consistent", "includedPaths": [{"path": "/", "indexes": []}]}, ["/*"], ['/"_etag"/?']),
        ({"excludedPaths": [{"path": "/a/*"}]}, ["/*"], ["/a/*", '/"_etag"/?']),
        ({"indexingMode": "None", "automatic": False}, [], ["/*", '/"_etag"/?']),
    ],
    ids=["empty", "root", "excluded only", "none"],
)
def test_paths_are_filled_in(document: JsonObject, included: list[str], excluded: list[str]) -> None:
    """Paths that are left out are those of the default, and the root can be written in two ways."""
    shown = IndexingPolicy.of(document).document
    assert shown["includedPaths"] == [{"path": path} for path in included]
    assert shown["excludedPaths"] == [{"path": path} for path in excluded]


def test_spatial_indexes_are_kept() -> None:
    """Spatial indexes are shown as they were given."""
    spatial: Json = [{"path": "/place/*", "types": ["Point"]}]
    assert IndexingPolicy.of({"spatialIndexes": spatial}).document["spatialIndexes"] == spatial


def test_composites_are_read() -> None:
    """Composite indexes are known by their paths and directions."""
    indexes: Json = [[{"path": "/a"}, {"path": "/b/c", "order": "descending"}]]
    tested = policy(["/*"], [], compositeIndexes=indexes)
    assert tested.composites == {((("a",), False), (("b", "c"), True))}


@pytest.mark.parametrize(
    "document",
    [
        {"includedPaths": [{"path": "/a/?"}]},
        {"indexingMode": "lazy"},
        {"includedPaths": [{"path": "/*"}], "vectorIndexes": []},
        {"includedPaths": "x"},
        {"includedPaths": ["/*"]},
        {"includedPaths": [{"path": "/a"}]},
        {"includedPaths": [{"path": 1}]},
        {"includedPaths": [{"path": "/*"}], "compositeIndexes": {"a": 1}},
        {"includedPaths": [{"path": "/*"}], "compositeIndexes": [[{"path": "/a"}]]},
        {"includedPaths": [{"path": "/*"}], "compositeIndexes": [["/a", "/b"]]},
        {"includedPaths": [{"path": "/*"}], "compositeIndexes": [[{"path": "/a", "order": "up"}, {"path": "/b"}]]},
    ],
)
def test_wrong_policies_are_refused(document: JsonObject) -> None:
    """A policy that the service would not take is not taken."""
    with pytest.raises(InvalidError):
        IndexingPolicy.of(document)


def test_definition_shows_what_it_was_given() -> None:
    """A definition survives being shown and read again, defaults and quoted paths included."""
    given: JsonObject = {
        "id": "c",
        "partitionKey": {"paths": ['/"a b"/c', "/d"], "kind": "MultiHash"},
        "defaultTtl": -1,
        "geospatialConfig": {"type": "Geometry"},
        "indexingPolicy": None,
        "_rid": "ignored",
    }
    shown = Definition.of(given).document()
    assert shown["partitionKey"] == {"paths": ['/"a b"/c', "/d"], "kind": "MultiHash", "version": 2}
    assert (shown["defaultTtl"], shown["geospatialConfig"]) == (-1, {"type": "Geometry"})
    assert shown["indexingPolicy"] == DEFAULT_POLICY
    assert Definition.of(shown) == stored_definition(dump(shown).decode())
    assert "defaultTtl" not in Definition.of({"id": "c", "partitionKey": KEY}).document()


def test_single_keys_are_version_1_unless_said() -> None:
    """A definition without kind and version is what old clients mean by it: one hashed path, version 1."""
    key = Definition.of({"id": "c", "partitionKey": {"paths": ["/a"]}}).partition_key
    assert (key.kind.value, key.version, key.paths) == ("Hash", 1, (("a",),))


@pytest.mark.parametrize(
    "change",
    [
        {"id": ""},
        {"id": None},
        {"id": "x" * 256},
        {"id": "a/b"},
        {"id": "a "},
        {"id": "\ud800"},
        {"partitionKey": None},
        {"partitionKey": {"paths": []}},
        {"partitionKey": {"paths": "/a"}},
        {"partitionKey": {"paths": [1]}},
        {"partitionKey": {"paths": ["/a"], "kind": "Range"}},
        {"partitionKey": {"paths": ["/a"], "version": 3}},
        {"partitionKey": {"paths": ["/a"], "version": "2"}},
        {"partitionKey": {"paths": ["/a"], "kind": "MultiHash", "version": 1}},
        {"partitionKey": {"paths": ["/a", "/b"], "kind": "Hash"}},
        {"partitionKey": {"paths": ["/a", "/b", "/c", "/d"], "kind": "MultiHash"}},
        {"indexingPolicy": []},
        {"defaultTtl": 0},
        {"defaultTtl": -10},
        {"computedProperties": []},
        {"uniqueKeyPolicy": [1]},
        {"uniqueKeyPolicy": {"uniqueKeys": 1}},
        {"uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/a"]}] * 11}},
        {"uniqueKeyPolicy": {"uniqueKeys": [{"paths": []}]}},
        {"uniqueKeyPolicy": {"uniqueKeys": [1]}},
        {"uniqueKeyPolicy": {"uniqueKeys": [{"paths": [1]}]}},
    ],
    ids=str,
)
def test_wrong_definitions_are_refused(change: JsonObject) -> None:
    """A definition that the service refuses, or that asks for what is not there, is refused."""
    with pytest.raises(InvalidError):
        Definition.of({"id": "c", "partitionKey": KEY} | change)


@pytest.mark.parametrize("ttl", [-1, 1, MAX_TTL])
def test_times_to_live(ttl: int) -> None:
    """The limits of a time to live are within."""
    assert checked_ttl(ttl, "ttl") == ttl


@pytest.mark.parametrize("ttl", [0, -2, MAX_TTL + 1, 1.5, True, None, "1"])
def test_wrong_times_to_live_are_refused(ttl: Json) -> None:
    """What the service answers 400 to as a time to live is refused, by the property's name."""
    with pytest.raises(InvalidError, match="ttl"):
        checked_ttl(ttl, "ttl")


def test_names_keep_their_case() -> None:
    """A name is given back as it is."""
    assert checked_name("Ünïcode.Name") == "Ünïcode.Name"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("999999999999999", 999999999999999),
        ("9007199254740993", 9007199254740992),
        (str(2**70), float(2**70)),
        ("-1", -1),
        ("1.5", 1.5),
    ],
)
def test_integers_are_exact_to_2_to_the_53(text: str, value: float) -> None:
    """Integers are doubles, as in the service, and whole ones stay integers."""
    assert parse(text) == value
    assert dump(parse(text)) == dump(value)


@pytest.mark.parametrize("text", ["", "{", "NaN", "-Infinity", b"\xff", "[" * 100_000, "1e999"])
def test_what_is_not_json_is_refused(text: str | bytes) -> None:
    """Text that is not JSON is refused, be it at reading or, for numbers too large, at writing."""
    with pytest.raises(InvalidError):
        dump(parse(text))


def test_only_objects_are_objects() -> None:
    """An array is no object."""
    with pytest.raises(InvalidError, match="object"):
        parse_object("[]")


def test_lone_surrogates_are_escaped() -> None:
    """JSON with a lone surrogate is written in ASCII and read back as it was."""
    assert dump(["é", "\ud800"]) == b'["\\u00e9","\\ud800"]'
    assert parse(dump(["é", "\ud800"])) == ["é", "\ud800"]
    assert dump("é") == '"é"'.encode()


def test_nan_is_not_written() -> None:
    """A value JSON does not have is refused when it is written."""
    with pytest.raises(InvalidError):
        dump(math.nan)
