"""Plans: which index range they read, what they give back, and that the index never changes an answer."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosmos_workflow_state.emulator._ordering import prefix_range, term, type_range
from cosmos_workflow_state.emulator._query import (
    Bound,
    Path,
    PositionError,
    QueryError,
    Seek,
    parse,
)
from support.queries import ListSource, value_at

IDS_WHERE = "SELECT VALUE c.id FROM c WHERE {}"


def where(condition: str) -> str:
    """The query for the ids of the items that meet a condition."""
    return IDS_WHERE.format(condition)


def run(text: str, items: Sequence[dict[str, Any]], parameters: dict[str, Any] | None = None) -> list[Any]:
    """All rows over items whose paths a, b and o.x are indexed."""
    source = ListSource(items, indexed=frozenset({("a",), ("b",), ("o", "x")}))
    return [row.value for row in parse(text).bind(parameters or {}).rows(source)]


def seek_of(text: str, parameters: dict[str, Any] | None = None, **source: Any) -> Seek | None:
    """The seek a query chooses over a source with indexes on a, b, s and t."""
    paths = frozenset({("a",), ("b",), ("s",), ("t",), ("o", "x")})
    return parse(text).bind(parameters or {}).seek(ListSource([], indexed=paths, **source))


LATEST = "SELECT * FROM c WHERE c.t=@t AND c.w=@w AND c.s >= @lo AND c.s < @hi ORDER BY c.s DESC OFFSET 0 LIMIT 1"


def test_latest_is_one_seek_and_reads_one_candidate() -> None:
    """The query for the newest checkpoint reads its range from the end and stops after the first match."""
    items = [{"id": str(n), "t": "t", "w": "w", "s": f"s{n:03}"} for n in range(100)]
    source = ListSource(items, indexed=frozenset({("s",), ("t",), ("w",)}))
    plan = parse(LATEST).bind({"@t": "t", "@w": "w", "@lo": "s010", "@hi": "s050"})
    assert [row.value for row in plan.rows(source)] == [items[49]]
    assert source.given == 1
    assert source.seeks == [
        Seek(("s",), Bound(term("s010"), inclusive=True), Bound(term("s050"), inclusive=False), descending=True)
    ]


def test_id_within_a_tenant_is_looked_up_by_id() -> None:
    """An equality on id wins over other equalities, wherever it stands."""
    bound = Bound(term("x"), inclusive=True)
    for text in (
        "SELECT * FROM c WHERE c.t=@t AND c.id=@id",
        "SELECT * FROM c WHERE @id = c['id'] AND c.t=@t",
    ):
        assert seek_of(text, {"@t": "t", "@id": "x"}) == Seek(("id",), bound, bound, descending=False)


@pytest.mark.parametrize(
    ("condition", "path"),
    [
        ("c.a > 1 AND c.b = 2", ("b",)),
        ("c.a > 1 AND c.b < 2", ("a",)),
        ("c.n = 1 AND c.a > 1", ("a",)),
        ("c.t = 't' AND c.a > 1", ("a",)),
        ("(c.n = 1 AND (c.m = 2 AND c.b = 2))", ("b",)),
        ("c.o.x = 1", ("o", "x")),
        ("c.a IN (1)", ("a",)),
        ("c.id > 'a' AND c.b = 2", ("b",)),
    ],
)
def test_seek_prefers_equalities_and_skips_what_narrows_nothing(condition: str, path: Path) -> None:
    """Equality before range; paths without an index or with one value in the whole source are passed over."""
    seek = seek_of(where(condition), fixed=frozenset({("t",)}))
    assert seek is not None
    assert seek.path == path


@pytest.mark.parametrize(
    "condition",
    [
        "c.n = 1",
        "c.a != 1",
        "c.a = c.b",
        "c.a = undefined",
        "c.a = {}",
        "c.a IN (1, c.b)",
        "c.a = 1 OR c.b = 1",
        "NOT (c.a = 1)",
        "c.l[0] = 1",
        "c = 1",
        "1 = 1",
        "STARTSWITH(c.a, c.b)",
        "STARTSWITH(c.a, 'x', true)",
        "CONTAINS(c.a, 'x')",
        "c.a LIKE c.b",
        "c.a LIKE 5",
        "c.a NOT LIKE 'x'",
        "c.a BETWEEN 1 AND c.b",
        "c.a BETWEEN {} AND 1",
        "c.a + 1 = 2",
        "true",
    ],
)
def test_what_no_range_covers_reads_everything(condition: str) -> None:
    """Conditions that no single range of one index covers leave the scan whole."""
    assert seek_of(where(condition)) is None


@pytest.mark.parametrize(
    ("condition", "low", "high"),
    [
        ("c.a > 1", Bound(term(1), inclusive=False), Bound(type_range(1)[1], inclusive=False)),
        ("1 < c.a", Bound(term(1), inclusive=False), Bound(type_range(1)[1], inclusive=False)),
        ("c.a <= 'x'", Bound(type_range("")[0], inclusive=True), Bound(term("x"), inclusive=True)),
        ("c.a BETWEEN 1 AND 3", Bound(term(1), inclusive=True), Bound(term(3), inclusive=True)),
        ("c.a > 1 AND c.a >= 1 AND c.a < 3", Bound(term(1), inclusive=False), Bound(term(3), inclusive=False)),
        ("c.a IN (3, 1, 2)", Bound(term(1), inclusive=True), Bound(term(3), inclusive=True)),
        ("c.a BETWEEN 1 AND 'x'", Bound(type_range("")[0], inclusive=True), Bound(type_range(1)[1], inclusive=False)),
        ("c.a = -1", Bound(term(-1), inclusive=True), Bound(term(-1), inclusive=True)),
        (
            "c.a LIKE 'x%y'",
            Bound(prefix_range("x")[0], inclusive=True),
            Bound(prefix_range("x")[1], inclusive=False),
        ),
        (
            "c.a LIKE 'x!%y' ESCAPE '!'",
            Bound(prefix_range("x")[0], inclusive=True),
            Bound(prefix_range("x")[1], inclusive=False),
        ),
        (
            "STARTSWITH(c.a, 'x')",
            Bound(prefix_range("x")[0], inclusive=True),
            Bound(prefix_range("x")[1], inclusive=False),
        ),
    ],
)
def test_ranges_have_both_ends(condition: str, low: Bound, high: Bound) -> None:
    """Comparisons stay within their type, several on one path are combined."""
    assert seek_of(where(condition)) == Seek(("a",), low, high, descending=False)


def test_order_by_decides_the_seek() -> None:
    """With ORDER BY the scan is over its property, bounded by what WHERE says of it."""
    assert seek_of("SELECT * FROM c WHERE c.id = 'x' ORDER BY c.s") == Seek(("s",), None, None, descending=False)


@pytest.mark.parametrize(
    ("text", "token"),
    [
        ("SELECT * FROM c ORDER BY c.n", "c"),
        ("SELECT * FROM c ORDER BY c._etag DESC", "c"),
        ("SELECT * FROM c ORDER BY c.a[0]", "c"),
        ("SELECT * FROM c ORDER BY c.a, c.b", "c"),
    ],
)
def test_order_by_without_an_index_is_refused(text: str, token: str) -> None:
    """As in the service, no index means no ORDER BY; the error points at the property, before any row."""
    plan = parse(text).bind({})
    with pytest.raises(QueryError, match="ORDER BY") as refused:
        plan.rows(ListSource([], indexed=frozenset({("a",)})))
    assert (refused.value.line, refused.value.column, refused.value.token) == (1, 26, token)


def test_order_by_lists_every_type_in_the_order_of_the_service() -> None:
    """Undefined, null, booleans, numbers, strings: ascending, and exactly reversed when descending."""
    values = ["b", 2, None, True, "a", 1.5, False]
    items = [{"id": str(n), "a": value} for n, value in enumerate(values)] + [{"id": "none"}]
    ascending = run("SELECT VALUE [c.a] FROM c ORDER BY c.a ASC", items)
    assert ascending == [[], [None], [False], [True], [1.5], [2], ["a"], ["b"]]
    assert run("SELECT VALUE [c.a] FROM c ORDER BY c.a DESC", items) == ascending[::-1]


@pytest.mark.parametrize("indexed", [frozenset[Path]({("a",)}), frozenset[Path]()], ids=["seek", "scan"])
def test_order_by_several_properties_uses_a_composite_index(indexed: frozenset[Path]) -> None:
    """With a matching composite (or its inverse) rows are in the order of all properties, pages included."""
    items = [{"id": str(n), "a": n % 3, "b": n % 4} for n in range(24)] + [{"id": "none"}]
    composites = frozenset({((("a",), True), (("b",), False))})
    source = ListSource(items, indexed=indexed, composites=composites)
    plan = parse("SELECT * FROM c WHERE c.id != '3' ORDER BY c.a ASC, c.b DESC").bind({})
    rows: list[Any] = list(plan.rows(source))
    pairs = [(row.value.get("a", -1), -row.value.get("b", 1)) for row in rows]
    assert pairs == sorted(pairs)
    assert len(rows) == 24
    for number, row in enumerate(rows):
        rest = [each.value for each in plan.rows(source, after=row.position)]
        assert rest == [each.value for each in rows[number + 1 :]]


def test_composite_order_resumes_after_its_last_row_is_gone() -> None:
    """A row deleted between two pages neither repeats nor hides others of the same first value."""
    items = [{"id": str(n), "a": 1, "b": n // 2} for n in range(8)]
    composites = frozenset({((("a",), False), (("b",), False))})
    plan = parse("SELECT VALUE c.id FROM c ORDER BY c.a, c.b").bind({})
    source = ListSource(items, indexed=frozenset({("a",)}), composites=composites)
    third = list(islice(plan.rows(source), 3))[-1]
    # Positions name places in the list, so the deleted item leaves a hole rather than moving the others.
    left = [item if item["id"] != "2" else {"id": "gone", "a": 0} for item in items]
    source = ListSource(left, indexed=frozenset({("a",)}), composites=composites)
    assert [row.value for row in plan.rows(source, after=third.position)] == ["3", "4", "5", "6", "7"]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT VALUE c.id FROM c",
        "SELECT VALUE c.id FROM c WHERE c.a >= 2 ORDER BY c.a DESC",
        "SELECT VALUE c.id FROM c ORDER BY c.a OFFSET 3 LIMIT 5",
        "SELECT TOP 4 VALUE c.id FROM c",
        "SELECT DISTINCT VALUE c.a FROM c",
        "SELECT DISTINCT VALUE c.a FROM c ORDER BY c.a DESC OFFSET 1 LIMIT 2",
        "SELECT VALUE c.b FROM c",
        "SELECT VALUE COUNT(1) FROM c",
    ],
)
def test_resuming_behind_any_row_gives_exactly_the_rest(text: str) -> None:
    """However a result is cut into pages, the pages together are the result."""
    items = [{"id": str(n), "a": n * 7 % 5, **({"b": n} if n % 2 else {})} for n in range(20)]
    source = ListSource(items, indexed=frozenset({("a",)}))
    plan = parse(text).bind({})
    rows = list(plan.rows(source))
    assert rows
    for number, row in enumerate(rows):
        rest = list(plan.rows(source, after=row.position))
        assert rest == rows[number + 1 :]


def test_limit_zero_reads_nothing() -> None:
    """TOP 0 and LIMIT 0 give no row and touch no candidate."""
    source = ListSource([{"id": "1"}])
    for text in ("SELECT TOP 0 * FROM c", "SELECT * FROM c OFFSET 0 LIMIT 0"):
        assert list(parse(text).bind({}).rows(source)) == []
    assert source.given == 0


@pytest.mark.parametrize(
    ("text", "parameters", "expected"),
    [
        ("SELECT TOP @n VALUE c.id FROM c", {"@n": 2}, ["0", "1"]),
        ("SELECT TOP @n VALUE c.id FROM c", {"@n": 1.0}, ["0"]),
        ("SELECT VALUE c.id FROM c OFFSET @o LIMIT @n", {"@o": 1, "@n": 9}, ["1", "2"]),
        ("SELECT VALUE c.id FROM c OFFSET 5 LIMIT 1", {}, []),
        ("SELECT VALUE COUNT(1) FROM c OFFSET 1 LIMIT 1", {}, []),
        ("SELECT VALUE COUNT(c.a) FROM c WHERE c.id != '9'", {}, [1]),
        ("SELECT VALUE COUNT(1) FROM c WHERE false", {}, [0]),
        ("SELECT DISTINCT c.b FROM c", {}, [{"b": 1}, {}]),
        ("SELECT DISTINCT VALUE c.b FROM c", {}, [1]),
    ],
)
def test_windows_counts_and_distinct(text: str, parameters: dict[str, Any], expected: list[Any]) -> None:
    """TOP, OFFSET LIMIT, COUNT and DISTINCT over three items; rows without a value are no rows."""
    items: list[dict[str, Any]] = [{"id": "0", "a": None, "b": 1}, {"id": "1", "b": 1.0}, {"id": "2"}]
    assert run(text, items, parameters) == expected


@pytest.mark.parametrize("bad", [-1, 1.5, "1", True, None, [1]], ids=repr)
def test_window_takes_whole_numbers_only(bad: Any) -> None:
    """Anything but a whole number of 0 or more is refused where it stands."""
    with pytest.raises(QueryError, match="whole number") as refused:
        parse("SELECT TOP @n * FROM c").bind({"@n": bad})
    assert refused.value.column == 12


@pytest.mark.parametrize(
    "text",
    [
        "SELECT VALUE @p FROM c",
        "SELECT @p AS x FROM c",
        "SELECT VALUE COUNT(@p) FROM c",
        "SELECT * FROM c WHERE c.a = @p",
        "SELECT TOP @p * FROM c",
    ],
)
def test_missing_parameters_are_refused(text: str) -> None:
    """A parameter without a value is refused by name, wherever it is used."""
    with pytest.raises(QueryError, match="@p has no value"):
        parse(text).bind({"p": 1, "@P": 1})


@pytest.mark.parametrize(
    "damage",
    [b"", b"\x02" + bytes(8), b"\x01short", b"\x01" + bytes(8) + b"\xff" * 12 + b"!", b"\x01" + bytes(11)],
    ids=["empty", "version", "cut", "long", "cut part"],
)
def test_damaged_positions_are_refused(damage: bytes) -> None:
    """What no row ever had as its position is a typed error, not a wrong page."""
    with pytest.raises(PositionError):
        parse("SELECT * FROM c").bind({}).rows(ListSource([]), after=damage)


def test_truncated_positions_are_refused() -> None:
    """A position that lost its end is never read as a shorter one."""
    plan = parse("SELECT * FROM c").bind({})
    position = next(plan.rows(ListSource([{"id": "1"}]))).position
    for length in range(len(position)):
        with pytest.raises(PositionError):
            plan.rows(ListSource([]), after=position[:length])


# A small world, so that generated conditions meet generated items often.
VALUES: st.SearchStrategy[Any] = st.sampled_from(
    [None, False, True, -1, 0, 1, 2.5, "", "a", "ab", "b", [], [1], {}, {"x": 1}]
)
ITEMS = st.lists(
    st.fixed_dictionaries(
        {}, optional={"a": VALUES, "b": VALUES, "o": st.fixed_dictionaries({}, optional={"x": VALUES})}
    ),
    max_size=12,
)
PATHS = st.sampled_from(["c.a", "c.b", "c.o.x", 'c["a"]', "c.o", "c.missing"])
CONSTANTS = st.sampled_from(
    ["null", "false", "true", "-1", "0", "1", "2.5", "''", "'a'", "'ab'", "'b'", "undefined", "[]", "[1]", "{x: 1}"]
)
OPERANDS = PATHS | CONSTANTS
COMPARISONS = st.builds("{} {} {}".format, OPERANDS, st.sampled_from(["=", "!=", "<>", "<", "<=", ">", ">="]), OPERANDS)
SIMPLE = (
    COMPARISONS
    | st.builds("{} IN ({}, {})".format, PATHS, CONSTANTS, CONSTANTS)
    | st.builds("{} NOT IN ({})".format, PATHS, CONSTANTS)
    | st.builds("{} BETWEEN {} AND {}".format, PATHS, CONSTANTS, CONSTANTS)
    | st.builds("STARTSWITH({}, {})".format, PATHS, CONSTANTS)
    | st.builds("{} LIKE {}".format, PATHS, CONSTANTS | st.sampled_from(["'a%'", "'a_'", "'%b'", "'[ab]b'"]))
    | st.builds("{} + 1 = {}".format, PATHS, CONSTANTS)
    | st.builds("({} ?? {}) = {}".format, PATHS, OPERANDS, CONSTANTS)
    | st.builds("IS_DEFINED({})".format, PATHS)
    | st.builds("ARRAY_CONTAINS({}, {})".format, OPERANDS, CONSTANTS)
)
CONDITIONS = st.recursive(
    SIMPLE,
    lambda inner: (
        st.builds("({}) AND ({})".format, inner, inner)
        | st.builds("{} AND {}".format, SIMPLE, SIMPLE)
        | st.builds("({}) OR ({})".format, inner, inner)
        | st.builds("NOT ({})".format, inner)
    ),
    max_leaves=5,
)
INDEXES = st.frozensets(st.sampled_from([("a",), ("b",), ("o", "x"), ("o",)]))


@given(items=ITEMS, condition=CONDITIONS, indexed=INDEXES)
def test_the_index_never_changes_a_result(
    items: list[dict[str, Any]], condition: str, indexed: frozenset[Path]
) -> None:
    """Whatever is indexed, the rows are those of a scan that looks at each item alone."""
    numbered = [{**item, "id": str(number)} for number, item in enumerate(items)]
    plan = parse(where(condition)).bind({})
    naive = [item["id"] for item in numbered if list(plan.rows(ListSource([item])))]
    rows: list[Any] = [row.value for row in plan.rows(ListSource(numbered, indexed=indexed))]
    assert sorted(rows) == sorted(naive)


@given(items=ITEMS, condition=CONDITIONS, descending=st.booleans(), page=st.integers(1, 4))
def test_ordered_rows_are_those_of_a_naive_sort(
    items: list[dict[str, Any]], condition: str, *, descending: bool, page: int
) -> None:
    """ORDER BY from an index, read in pages, equals filtering everything and sorting it."""
    numbered = [{**item, "id": f"{number:02}"} for number, item in enumerate(items)]
    direction = "DESC" if descending else "ASC"
    filtering = parse(where(condition)).bind({})
    matching = [item for item in numbered if list(filtering.rows(ListSource([item])))]
    naive = sorted(matching, key=lambda item: (term(value_at(item, ("a",))), item["id"]), reverse=descending)

    plan = parse(f"{where(condition)} ORDER BY c.a {direction}").bind({})
    source = ListSource(numbered, indexed=frozenset({("a",), ("b",)}))
    rows: list[Any] = []
    after: bytes | None = None
    while taken := list(islice(plan.rows(source, after=after), page)):
        rows += [row.value for row in taken]
        after = taken[-1].position
    assert rows == [item["id"] for item in naive]
