"""Query plans: what a client learns of a query, and the rows of the query that it runs in each partition."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosmos_workflow_state.emulator._query import QueryError, describe, parse
from cosmos_workflow_state.emulator._query import _tree as tree
from cosmos_workflow_state.emulator._query._text import expression_text
from support.queries import VALUE_OF, ListSource, value_of

ITEMS: list[dict[str, Any]] = [
    {"id": "0", "a": 3, "b": "x"},
    {"id": "1", "a": 1, "b": "y"},
    {"id": "2", "a": 2},
    {"id": "3", "a": 1, "b": "x"},
]


def plan_of(text: str, **parameters: Any) -> dict[str, Any]:
    """The fields of a query plan that say anything, without the rewritten query."""
    info = describe(text, {f"@{name}": value for name, value in parameters.items()}).info()
    info.pop("rewrittenQuery")
    return {name: value for name, value in info.items() if value not in (None, [], {}, False, "None")}


def rewritten(text: str, **parameters: Any) -> list[Any]:
    """The rows of the rewritten query over the items, of which a and b are indexed."""
    named = {f"@{name}": value for name, value in parameters.items()}
    source = ListSource(ITEMS, indexed=frozenset({("a",), ("b",)}), composites=frozenset({ORDER}))
    return [row.value for row in parse(describe(text, named).rewritten_query).bind(named).rows(source)]


ORDER = ((("a",), False), (("b",), True))


@pytest.mark.parametrize(
    ("text", "plan"),
    [
        ("SELECT c.id FROM c ORDER BY c.a", {"orderBy": ["Ascending"], "orderByExpressions": ['c["a"]']}),
        (
            "SELECT * FROM c ORDER BY c.a, c.b.d DESC",
            {"orderBy": ["Ascending", "Descending"], "orderByExpressions": ['c["a"]', 'c["b"]["d"]']},
        ),
        ("SELECT TOP 3 * FROM c", {"top": 3}),
        ("SELECT TOP @n * FROM c", {"top": 2}),
        ("SELECT * FROM c OFFSET 1 LIMIT @n", {"offset": 1, "limit": 2}),
        ("SELECT DISTINCT c.a FROM c", {"distinctType": "Unordered"}),
        ("SELECT DISTINCT * FROM c", {"distinctType": "Unordered"}),
        (
            "SELECT DISTINCT VALUE c.a FROM c ORDER BY c.a",
            {
                "distinctType": "Ordered",
                "hasSelectValue": True,
                "orderBy": ["Ascending"],
                "orderByExpressions": ['c["a"]'],
            },
        ),
        (
            "SELECT DISTINCT c.b FROM c ORDER BY c.a",
            {"distinctType": "Unordered", "orderBy": ["Ascending"], "orderByExpressions": ['c["a"]']},
        ),
        ("SELECT VALUE COUNT(1) FROM c", {"aggregates": ["Count"], "hasSelectValue": True}),
        ("SELECT VALUE AVG(c.a) FROM c", {"aggregates": ["Average"], "hasSelectValue": True}),
        ("SELECT MIN(c.a), MAX(c.a), SUM(c.a) FROM c", {"aggregates": ["Min", "Max", "Sum"]}),
        ("SELECT c.a FROM c GROUP BY c.a, LOWER(c.b)", {"groupByExpressions": ['c["a"]', 'LOWER(c["b"])']}),
    ],
)
def test_plans(text: str, plan: dict[str, Any]) -> None:
    """Every clause that a client has to merge by is in the plan, with the values of its parameters."""
    assert describe(text, {"@n": 2}).needs_plan
    assert plan_of(text, n=2) == plan


@pytest.mark.parametrize(
    "text", ["SELECT * FROM c", "SELECT VALUE c.a FROM c WHERE c.a > 1", "SELECT c.a AS x, ABS(c.a) FROM c"]
)
def test_queries_of_single_items_need_no_plan(text: str) -> None:
    """Rows of several partitions may simply follow one another, so the query itself is what runs."""
    description = describe(text, {})
    assert not description.needs_plan
    assert description.rewritten_query == ""


@pytest.mark.parametrize(
    ("text", "features"),
    [
        ("SELECT VALUE COUNT(1) FROM c", {"Aggregate"}),
        ("SELECT COUNT(1) FROM c", {"Aggregate"}),
        ("SELECT VALUE 1 + COUNT(1) FROM c", {"Aggregate", "MultipleAggregates"}),
        ("SELECT COUNT(1), MIN(c.a) FROM c", {"Aggregate", "MultipleAggregates"}),
        ("SELECT c.a, COUNT(1) FROM c GROUP BY c.a", {"Aggregate", "MultipleAggregates", "GroupBy"}),
        ("SELECT DISTINCT TOP 1 c.a FROM c ORDER BY c.a", {"Distinct", "Top", "OrderBy"}),
        ("SELECT * FROM c ORDER BY c.a, c.b OFFSET 0 LIMIT 1", {"OrderBy", "MultipleOrderBy", "OffsetAndLimit"}),
    ],
)
def test_features_say_what_merging_takes(text: str, features: set[str]) -> None:
    """A client can be told which feature of a query it lacks; what no client merges has no rewritten query."""
    description = describe(text, {})
    assert description.features == features
    unmerged = "GroupBy" in features or "MultipleAggregates" in features or text == "SELECT COUNT(1) FROM c"
    assert (description.rewritten_query == "") == unmerged


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        (
            "SELECT c.id, 7 FROM c WHERE c.a > 1 ORDER BY c.a DESC",
            [
                {"orderByItems": [{"item": 3}], "payload": {"id": "0", "$1": 7}},
                {"orderByItems": [{"item": 2}], "payload": {"id": "2", "$1": 7}},
            ],
        ),
        (
            "SELECT * FROM c ORDER BY c.a, c.b DESC OFFSET 1 LIMIT @n",
            [
                {"orderByItems": [{"item": 1}, {"item": "y"}], "payload": ITEMS[1]},
                {"orderByItems": [{"item": 1}, {"item": "x"}], "payload": ITEMS[3]},
                {"orderByItems": [{"item": 2}, {}], "payload": ITEMS[2]},
            ],
        ),
        (
            "SELECT TOP 1 VALUE c.b FROM c ORDER BY c.a DESC",
            [{"orderByItems": [{"item": 3}], "payload": "x"}],
        ),
        (
            "SELECT VALUE c.b FROM c WHERE c.a >= 2 ORDER BY c.a",
            [{"orderByItems": [{"item": 3}], "payload": "x"}],
        ),
        (
            "SELECT DISTINCT VALUE c.a FROM c WHERE c.a < 3 ORDER BY c.a",
            [
                {"orderByItems": [{"item": 1}], "payload": 1},
                {"orderByItems": [{"item": 2}], "payload": 2},
            ],
        ),
        ("SELECT DISTINCT c.b FROM c", [{"b": "x"}, {"b": "y"}, {}]),
        ("SELECT TOP 1 c.id FROM c", [{"id": "0"}]),
        ("SELECT c.id FROM c OFFSET 2 LIMIT 1", [{"id": "0"}, {"id": "1"}, {"id": "2"}]),
        ("SELECT VALUE COUNT(1) FROM c WHERE c.a = @n", [[{"item": 1}]]),
        ("SELECT VALUE SUM(c.a) FROM c", [[{"item": 7}]]),
        ("SELECT VALUE MAX(c.missing) FROM c", [[{}]]),
        ("SELECT VALUE AVG(c.a) FROM c", [[{"item": {"sum": 7, "count": 4}}]]),
    ],
)
def test_rewritten_queries_give_rows_to_merge(text: str, rows: list[Any]) -> None:
    """What runs in each partition has the shape of rows that the clients merge, and enough of them."""
    found = rewritten(text, n=2)
    # With ORDER BY a, b DESC the ties of the composite index are in its order.
    assert found == rows or sorted(found, key=str) == sorted(rows, key=str)
    assert [row.get("orderByItems") for row in found if isinstance(row, dict)] == [
        row.get("orderByItems") for row in rows if isinstance(row, dict)
    ]


def test_descriptions_refuse_what_queries_refuse() -> None:
    """A query that cannot run has no description, nor has one without the value of its window."""
    with pytest.raises(QueryError):
        describe("SELECT FROM", {})
    with pytest.raises(QueryError, match="@n has no value"):
        describe("SELECT TOP @n * FROM c", {})


LEAVES = st.sampled_from(
    ["c.a", "c['a b']", "c", "1", "-1", "2.5", "1e20", "'it\\'s'", '"é😀"', "null", "undefined", "true", "@p", "c.l[0]"]
)
EXPRESSIONS = st.recursive(
    LEAVES,
    lambda inner: (
        st.builds("({} {} {})".format, inner, st.sampled_from(["+", "-", "*", "/", "%", "||", "=", "<>", "<"]), inner)
        | st.builds("({} AND {} OR NOT ({}))".format, inner, inner, inner)
        | st.builds("({} ? {} : {})".format, inner, inner, inner)
        | st.builds("({} ?? {})".format, inner, inner)
        | st.builds("({} NOT BETWEEN {} AND {})".format, inner, inner, inner)
        | st.builds("({} IN ({}, {}))".format, inner, inner, inner)
        | st.builds("({} LIKE {} ESCAPE '!')".format, inner, inner)
        | st.builds("({} LIKE {})".format, inner, inner)
        | st.builds("[{}, {}][0]['x']".format, inner, inner)
        | st.builds("{{a: {}, 'b \\'': {}}}.a".format, inner, inner)
        | st.builds("-({})".format, inner)
        | st.builds("CONCAT({}, {})".format, inner, inner)
    ),
    max_leaves=6,
)


@given(expression=EXPRESSIONS)
def test_expressions_survive_being_written(expression: str) -> None:
    """The text of a tree parses to a tree of the same text and the same value."""
    item = {"id": "i", "a": 5, "a b": "x", "l": ["y"]}
    text = written(expression)
    assert written(text) == text
    assert value_of(text, item, p="z") == value_of(expression, item, p="z")


def written(expression: str) -> str:
    """What becomes of an expression that is read and written."""
    (selected,) = tree.selected(parse(VALUE_OF.format(expression)).statement.selection)
    return expression_text(selected)
