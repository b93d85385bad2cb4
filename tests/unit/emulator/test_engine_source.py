"""Items as queries read them: any seek and key range against a full scan, resumed anywhere, by the right index."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosmos_workflow_state.emulator._engine._containers import Container, create_container
from cosmos_workflow_state.emulator._engine._databases import create_database
from cosmos_workflow_state.emulator._engine._engine import Engine
from cosmos_workflow_state.emulator._engine._errors import InvalidError
from cosmos_workflow_state.emulator._engine._items import create_item
from cosmos_workflow_state.emulator._engine._source import ContainerSource
from cosmos_workflow_state.emulator._engine._stored import Address
from cosmos_workflow_state.emulator._engine._transaction import Transaction
from cosmos_workflow_state.emulator._ordering import UNDEFINED, Value, term, type_range
from cosmos_workflow_state.emulator._partition import EVERYTHING, KeyRange
from cosmos_workflow_state.emulator._query import Bound, Candidate, Seek
from cosmos_workflow_state.emulator._values import Json, JsonObject
from support.strategies import quick

DEFINITION: Final[JsonObject] = {
    "id": "c",
    "partitionKey": {"paths": ["/t", "/w"], "kind": "MultiHash", "version": 2},
    "defaultTtl": -1,
    "indexingPolicy": {
        "includedPaths": [{"path": "/*"}],
        "excludedPaths": [{"path": "/plain/?"}],
        "compositeIndexes": [[{"path": "/n"}, {"path": "/m", "order": "descending"}]],
    },
}
SCALARS: Final[tuple[Value, ...]] = (UNDEFINED, None, False, True, -1.5, 0, 7, "", "a", "a\0", "b")
VALUES: Final[tuple[Value, ...]] = (*SCALARS, [], [1], {}, {"x": 1})
PATH: Final = ("n",)
BOUNDS = st.none() | st.builds(Bound, st.sampled_from([term(value) for value in SCALARS]), st.booleans())
SEEKS = st.builds(Seek, st.just(PATH), BOUNDS, BOUNDS, st.booleans())
KEYS = st.sampled_from([(), ("t1",), ("t1", "w1")])


@dataclass(frozen=True)
class Setting:
    """A container with items, as one transaction sees them."""

    transaction: Transaction
    container: Container

    def source(self, *key: str) -> ContainerSource:
        """Read one full key, a prefix, or everything."""
        keys = self.container.definition.partition_key.key_range(key) if key else EVERYTHING
        return ContainerSource(self.transaction, self.container, keys)

    def add(self, tenant: str, workflow: str, item: Mapping[str, Json]) -> None:
        """Store an item."""
        keys = self.container.definition.partition_key.key_range((tenant, workflow))
        address = Address(self.container, keys.start, keys.key or b"", str(item["id"]).encode())
        (stamp,) = self.transaction.stamps()
        create_item(self.transaction, address, {"t": tenant, "w": workflow, **item}, stamp)


def fill(transaction: Transaction) -> Setting:
    """Create a container with every value twice under several keys, and an item each that expires at 5."""
    database = create_database(transaction, "db")
    setting = Setting(transaction, create_container(transaction, database.number, DEFINITION))
    for tenant, workflow in (("t1", "w1"), ("t1", "w2"), ("t10", "w1")):
        for number, value in enumerate((*VALUES, *VALUES)):
            setting.add(tenant, workflow, {"id": f"{number:02}"} | ({} if value is UNDEFINED else {"n": value}))
        setting.add(tenant, workflow, {"id": "gone", "n": 7, "ttl": 5})
        setting.add(tenant, workflow, {"id": "gone too", "ttl": 5})
    return setting


@pytest.fixture(scope="module")
def setting() -> Iterator[Setting]:
    """Yield the filled container at time 100; the engine does nothing else, so its connection can be borrowed."""
    engine = Engine.open(None, clock=lambda: 0)
    filled = asyncio.run(engine.write(fill))
    yield Setting(Transaction(filled.transaction.connection, 100), filled.container)
    engine.close()


def sort_key(candidate: Candidate) -> bytes:
    """Give what the index sorts by: a value's term, of arrays and objects only the type."""
    value = candidate.item.get("n", UNDEFINED)
    return type_range(value)[0] if isinstance(value, (list, dict)) else term(value)


def within(key: bytes, seek: Seek) -> bool:
    """Tell whether a term lies within the bounds of a seek."""
    above = seek.low is None or key > seek.low.value or (seek.low.inclusive and key == seek.low.value)
    return above and (seek.high is None or key < seek.high.value or (seek.high.inclusive and key == seek.high.value))


@quick
@given(KEYS, SEEKS)
def test_seeks_find_what_a_full_scan_finds(setting: Setting, key: tuple[str, ...], seek: Seek) -> None:
    """For any bounds, direction and keys, a seek gives the items within in order, those without a value lowest."""
    source = setting.source(*key)
    wanted = sorted(filter(lambda each: within(each, seek), map(sort_key, source.scan(None, None))))
    assert list(map(sort_key, source.scan(seek, None))) == (wanted[::-1] if seek.descending else wanted)


@quick
@given(KEYS, st.none() | SEEKS, st.data())
def test_scans_resume_anywhere(setting: Setting, key: tuple[str, ...], seek: Seek | None, data: st.DataObject) -> None:
    """A scan that is resumed behind any candidate gives exactly the rest, in the same order."""
    source = setting.source(*key)
    candidates = list(source.scan(seek, None))
    assert len({candidate.position for candidate in candidates}) == len(candidates)
    if candidates:
        at = data.draw(st.integers(0, len(candidates) - 1))
        assert list(source.scan(seek, candidates[at].position)) == candidates[at + 1 :]


def test_keys_keep_apart(setting: Setting) -> None:
    """A full key sees its own items only, a prefix those of its keys, and expired items are seen by none."""
    for key, count in ((("t1", "w1"), 30), (("t1",), 60), (("t10",), 30), ((), 90), (("t",), 0)):
        items = [candidate.item for candidate in setting.source(*key).scan(None, None)]
        assert len(items) == count
        assert all((item["t"], item["w"])[: len(key)] == key for item in items)


@pytest.mark.parametrize("seek", [None, Seek(PATH, None, None, descending=False)], ids=["scan", "seek"])
def test_colliding_hashes_keep_apart(setting: Setting, seek: Seek | None) -> None:
    """Two keys with one effective partition key are told apart by the key itself."""
    whole = setting.source("t1", "w1")
    collision = KeyRange(whole.keys.start, whole.keys.end, b"another key")
    assert list(ContainerSource(setting.transaction, setting.container, collision).scan(seek, None)) == []


@pytest.mark.parametrize("value", [[1], {"x": 1}], ids=["array", "object"])
def test_arrays_and_objects_are_found_by_type(setting: Setting, value: Json) -> None:
    """A seek for an array or object gives every one of its type, for the query to look at."""
    bound = Bound(term(value), inclusive=True)
    found = list(setting.source("t1", "w1").scan(Seek(PATH, bound, bound, descending=False), None))
    assert len(found) == 4
    assert all(isinstance(candidate.item["n"], type(value)) for candidate in found)


def test_what_a_source_knows(setting: Setting) -> None:
    """A source tells what is indexed, what its keys fix, and which orders a composite index serves."""
    source = setting.source("t1")
    assert [source.is_indexed(path) for path in (("n",), ("plain",), ("id",), ("_etag",))] == [True, False, True, False]
    assert [source.is_fixed(path) for path in (("t",), ("w",))] == [True, False]
    assert setting.source("t1", "w1").is_fixed(("w",))
    assert not setting.source().is_fixed(("t",))
    up, down = ((("n",), False), (("m",), True)), ((("n",), True), (("m",), False))
    assert source.has_composite(up)
    assert source.has_composite(down)
    assert not source.has_composite(((("n",), False), (("m",), False)))


@pytest.mark.parametrize("position", [b"", b"\0\0\0\x09short", b"junk" * 9], ids=["empty", "short", "junk"])
def test_foreign_positions_are_refused(setting: Setting, position: bytes) -> None:
    """A position that no candidate had is refused, not guessed at."""
    for seek in (None, Seek(PATH, None, None, descending=False)):
        with pytest.raises(InvalidError, match="continuation"):
            list(setting.source().scan(seek, position))


EQUAL = Bound(term(7), inclusive=True)


@pytest.mark.parametrize(
    ("key", "low", "high", "plan"),
    [
        (("t1", "w1"), EQUAL, None, "USING PRIMARY KEY (container=? AND path=? AND epk=? AND term>?)"),
        (("t1", "w1"), EQUAL, EQUAL, "USING PRIMARY KEY (container=? AND path=? AND epk=? AND term>? AND term<?)"),
        (("t1",), EQUAL, None, "USING PRIMARY KEY (container=? AND path=? AND epk>? AND epk<?)"),
        (("t1",), EQUAL, EQUAL, "USING COVERING INDEX terms_across_keys (container=? AND path=? AND term"),
        ((), EQUAL, None, "USING COVERING INDEX terms_across_keys (container=? AND path=? AND term>?)"),
    ],
    ids=["key-range", "key-equality", "prefix-range", "prefix-equality", "everything"],
)
def test_seeks_use_an_index(setting: Setting, key: tuple[str, ...], low: Bound, high: Bound | None, plan: str) -> None:
    """Every seek goes down an index to where it starts; only a range over a prefix has to sort, what is its own."""
    connection = setting.transaction.connection
    statements: list[str] = []
    connection.set_trace_callback(statements.append)
    list(setting.source(*key).scan(Seek(PATH, low, high, descending=True), None))
    connection.set_trace_callback(None)
    details = [str(row[3]) for row in connection.execute(f"EXPLAIN QUERY PLAN {statements[0]}")]
    assert plan in details[0]
    assert ("USE TEMP B-TREE FOR ORDER BY" in details) == (len(key) == 1 and high is None)
