"""The query language: what it answers, and where it says that it does not understand."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosmos_workflow_state.emulator._query import QueryError, parse
from support.queries import rows_of, value_of

ITEMS_WHERE = "SELECT * FROM c WHERE {}"

ITEM: dict[str, Any] = {
    "id": "i1",
    "n": 5,
    "f": 2.5,
    "s": "Text",
    "t": True,
    "z": None,
    "order": "reserved",
    "list": [1, "two", {"k": 3, "m": 4}],
    "o": {"a": {"b": "deep"}, "x": 1},
}


def rows(text: str, **parameters: Any) -> list[Any]:
    """What a query answers over the item; parameters without their @."""
    return rows_of(text, [ITEM], **parameters)


def value(expression: str, **parameters: Any) -> list[Any]:
    """What an expression is for the item: a list of one value, empty for undefined."""
    return value_of(expression, ITEM, **parameters)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * FROM c", [ITEM]),
        ("select value c from c", [ITEM]),
        ("SELECT c FROM c", [{"c": ITEM}]),
        ("SELECT c.id, c.o.a.b FROM c", [{"id": "i1", "b": "deep"}]),
        ('SELECT c["o"]["x"], c.list[2].k FROM c', [{"x": 1, "k": 3}]),
        ("SELECT c.id AS Name, c.missing AS gone FROM c", [{"Name": "i1"}]),
        ("SELECT c.list[0], 7, c.id, @p FROM c", [{"$1": 1, "$2": 7, "id": "i1", "$3": "v"}]),
        ("SELECT c.missing FROM c", [{}]),
        ("SELECT VALUE c.missing FROM c", []),
        ("SELECT DISTINCT TOP 1 VALUE c.id FROM c", ["i1"]),
        ("SELECT VALUE root.id FROM root", ["i1"]),
        ("SELECT VALUE r.id FROM root r", ["i1"]),
        ("SELECT VALUE r.id FROM anything AS r WHERE r.n = 5", ["i1"]),
        ("SELECT VALUE COUNT(1) FROM c", [1]),
        ("select value count(c.missing) from c", [0]),
        ("SELECT VALUE {a: c.n, 'b c': [c.z, c.missing], \"d\": {}} FROM c", [{"a": 5, "b c": [None], "d": {}}]),
        ("SELECT VALUE [] FROM c", [[]]),
        ("SELECT\r\n\tVALUE c.id\nFROM c\n", ["i1"]),
    ],
)
def test_select(text: str, expected: list[Any]) -> None:
    """Every form of SELECT and FROM gives the row the service gives."""
    assert rows(text, p="v") == expected


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("0", 0),
        ("-1", -1),
        ("2.50", 2.5),
        ("1E3", 1000.0),
        ("123456789012345", 123456789012345),
        ("1180591620717411303424", 2.0**70),
        ("'it\\'s'", "it's"),
        ('"say \\"hi\\""', 'say "hi"'),
        (r"'\\ \/ \b\f\n\r\t'", "\\ / \b\f\n\r\t"),
        (r"'\u00e9\ud83d\ude00'", "é😀"),
        ("'é😀\n'", "é😀\n"),
        (r"'\ud83d'", "\ud83d"),
        ("TRUE", True),
        ("false", False),
        ("null", None),
    ],
)
def test_literals(written: str, expected: object) -> None:
    """Constants have the value and the type they are written with."""
    (found,) = value(written)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("c.n = 5", [True]),
        ("c.n = 5.0", [True]),
        ("5 != c.n", [False]),
        ("c.n <> 4", [True]),
        ("c.n < 6", [True]),
        ("c.n <= 5", [True]),
        ("c.n > 5", [False]),
        ("c.n >= 5", [True]),
        ("9007199254740993 = 9007199254740992", [True]),
        ("c.s = 'Text'", [True]),
        ("c.s < 'a'", [True]),
        ("c.t = true", [True]),
        ("c.t > false", [True]),
        ("c.z = null", [True]),
        ("c.z < null", [False]),
        ("c.z != null", [False]),
        ("c.n = '5'", []),
        ("c.n != '5'", []),
        ("c.t = 1", []),
        ("1 = c.t", []),
        ("c.z = false", []),
        ("c.n = null", []),
        ("null = c.n", []),
        ("c.missing = 1", []),
        ("c.missing = undefined", []),
        ("c.missing != 1", []),
        ("c.o = {x: 1, 'a': {b: 'deep'}}", [True]),
        ("c.list = [1]", [False]),
        ("c.list = c.o", []),
        ("c.o = 'x'", []),
        ("c.o != {}", []),
        ("c.list < []", []),
        ("'x' < []", []),
    ],
)
def test_comparisons(expression: str, expected: list[bool]) -> None:
    """Within one type a comparison is true or false; across types, and with undefined, it is undefined."""
    assert value(expression) == expected


@pytest.mark.parametrize("left", ["true", "false", "undefined", "1"])
@pytest.mark.parametrize("right", ["true", "false", "undefined", "1"])
def test_three_valued_logic(left: str, right: str) -> None:
    """A deciding operand decides; otherwise anything that is not a boolean makes the answer undefined."""
    both = [left, right]
    unclear = "undefined" in both or "1" in both
    conjunction = [False] if "false" in both else [] if unclear else [True]
    disjunction = [True] if "true" in both else [] if unclear else [False]
    assert value(f"{left} AND {right}") == conjunction
    assert value(f"{left} OR {right}") == disjunction


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("NOT true", [False]),
        ("not not true", [True]),
        ("NOT (c.n = 4)", [True]),
        ("NOT c.missing", []),
        ("NOT 1", []),
        ("true OR true AND false", [True]),
        ("(true OR true) AND false", [False]),
        ("NOT false AND false", [False]),
        ("c.n BETWEEN 5 AND 6", [True]),
        ("c.n BETWEEN 1 AND 4 OR true", [True]),
        ("c.n NOT BETWEEN 1 AND 4", [True]),
        ("c.n BETWEEN 'a' AND 'b'", []),
        ("c.n IN (1, 5)", [True]),
        ("c.n IN ('5')", [False]),
        ("c.n NOT IN (1, 5)", [False]),
        ("c.missing IN (1, undefined)", []),
        ("c.missing NOT IN (1)", []),
        ("c.z IN (null)", [True]),
        ("c.s.length", []),
        ("c.list.length", []),
        ("c.list[3]", []),
        ("c.o[0]", []),
        ("c.s[0]", []),
        ('c["order"]', ["reserved"]),
        ("c.Order_2", []),
    ],
)
def test_operators_and_paths(expression: str, expected: list[Any]) -> None:
    """NOT, AND, OR, BETWEEN, IN and steps into values, with the language's precedence."""
    assert value(expression) == expected


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("IS_DEFINED(c.z)", [True]),
        ("is_defined(c.missing)", [False]),
        ("IS_NULL(c.z)", [True]),
        ("IS_NULL(c.missing)", [False]),
        ("STARTSWITH(c.s, 'Te')", [True]),
        ("STARTSWITH(c.s, 'te')", [False]),
        ("STARTSWITH(c.s, 'te', true)", [True]),
        ("STARTSWITH(c.s, 'te', false)", [False]),
        ("STARTSWITH(c.n, '5')", []),
        ("STARTSWITH(c.s, c.n)", []),
        ("STARTSWITH(c.s, 'te', 1)", []),
        ("CONTAINS(c.s, 'ex')", [True]),
        ("CONTAINS(c.s, 'EX')", [False]),
        ("CONTAINS(c.s, 'EX', true)", [True]),
        ("ARRAY_CONTAINS(c.list, 1.0)", [True]),
        ("ARRAY_CONTAINS(c.list, '1')", [False]),
        ("ARRAY_CONTAINS(c.list, {m: 4, k: 3})", [True]),
        ("ARRAY_CONTAINS(c.list, {m: 4})", [False]),
        ("ARRAY_CONTAINS(c.list, {m: 4}, true)", [True]),
        ("ARRAY_CONTAINS(c.list, {m: 5}, true)", [False]),
        ("ARRAY_CONTAINS(c.list, 'two', true)", [True]),
        ("ARRAY_CONTAINS(c.list, c.missing)", []),
        ("ARRAY_CONTAINS(c.list, 1, 'yes')", []),
        ("ARRAY_CONTAINS(c.o, 1)", []),
        ("ARRAY_CONTAINS(@p, c.id)", [True]),
    ],
)
def test_functions(call: str, expected: list[Any]) -> None:
    """Each function's answers, and undefined for arguments it has no answer for."""
    assert value(call, p=["i1"]) == expected


@pytest.mark.parametrize("condition", ["c.n", "1", "'true'", "null", "undefined", "c.t = 1", "false"])
def test_where_takes_nothing_but_true(condition: str) -> None:
    """An item whose condition is not exactly true is left out."""
    assert rows(ITEMS_WHERE.format(condition)) == []


@pytest.mark.parametrize(
    ("text", "line", "column", "token"),
    [
        ("", 1, 1, ""),
        ("SELECT", 1, 7, ""),
        ("SELECT * FROM c WHERE ", 1, 23, ""),
        ("SELECTED * FROM c", 1, 1, "SELECTED"),
        ("SELECT * FROM c\n WHERE c.a = 1 & 2", 2, 16, "&"),
        ("SELECT * FROM c WHERE NOT c.a + 1", 1, 31, "+"),
        ("SELECT * FROM c WHERE c.a || 'b' = 'ab'", 1, 34, "="),
        ("SELECT VALUE c.a ?? c.b ? 1 : 2 FROM c", 1, 25, "?"),
        ("SELECT VALUE c.a ? 1 FROM c", 1, 22, "FROM"),
        ("SELECT VALUE c[@p] FROM c", 1, 16, "@p"),
        ("SELECT VALUE (SELECT VALUE 1) FROM c", 1, 15, "SELECT"),
        ("SELECT VALUE ARRAY(SELECT VALUE 1) FROM c", 1, 14, "ARRAY"),
        ("SELECT VALUE c.a LIKE 'x' ESCAPE 'ab' FROM c", 1, 34, "'ab'"),
        ("SELECT VALUE c.a LIKE 'x' ESCAPE @e FROM c", 1, 34, "@e"),
        ("SELECT * FROM c WHERE c.order = 1", 1, 25, "order"),
        ("SELECT * FROM c JOIN d IN c.list", 1, 17, "JOIN"),
        ("SELECT * FROM d IN c.list", 1, 17, "IN"),
        ("SELECT * FROM c.list", 1, 16, "."),
        ("SELECT * FROM c WHERE NOT c.a = 1", 1, 31, "="),
        ("SELECT * FROM c WHERE c.a = 1 = 1", 1, 31, "="),
        ("SELECT * FROM c WHERE c.a = 'open", 1, 29, "'"),
        ("SELECT * FROM c WHERE c.a IN ()", 1, 31, ")"),
        ("SELECT * FROM c WHERE EXISTS(SELECT 1)", 1, 23, "EXISTS"),
        ("SELECT * FROM c WHERE udf.f(1)", 1, 23, "udf"),
        ("SELECT * FROM c -- remark", 1, 17, "-"),
        ("SELECT * FROM c ORDER BY LOWER(c.a)", 1, 31, "("),
        ("SELECT * FROM c OFFSET 1", 1, 25, ""),
        ("SELECT TOP -1 * FROM c", 1, 12, "-"),
        ("SELECT * FROM c; DROP", 1, 16, ";"),
        ("SELECT c.id i FROM c", 1, 13, "i"),
        ("SELECT * FROM c WHERE x.a = 1", 1, 23, "x"),
        ("SELECT C.id FROM c", 1, 8, "C"),
        ("SELECT c.id FROM c x", 1, 8, "c"),
        ("SELECT * FROM c ORDER BY d.a", 1, 26, "d"),
        ("SELECT * FROM c ORDER BY c", 1, 26, "c"),
        ("SELECT VALUE Lowered(c.a) FROM c", 1, 14, "Lowered"),
        ("SELECT VALUE CONCAT('a') FROM c", 1, 14, "CONCAT"),
        ("SELECT VALUE IS_NULL() FROM c", 1, 14, "IS_NULL"),
        ("SELECT VALUE IS_NULL(1, 2) FROM c", 1, 14, "IS_NULL"),
        ("SELECT VALUE COUNT(1, 2) FROM c", 1, 14, "COUNT"),
        ("SELECT * FROM c WHERE COUNT(1) = 1", 1, 23, "COUNT"),
        ("SELECT VALUE COUNT(COUNT(1)) FROM c", 1, 20, "COUNT"),
        ("SELECT VALUE COUNT(1) FROM c ORDER BY c.a", 1, 39, "c"),
        ("SELECT c.a FROM c GROUP BY c.a ORDER BY c.a", 1, 41, "c"),
        ("SELECT * FROM c GROUP BY c.a", 1, 1, "SELECT"),
        ("SELECT c.a, COUNT(1) FROM c", 1, 8, "c"),
        ("SELECT c.a, c.b.d FROM c GROUP BY c.a, c.b", 1, 13, "c"),
        ("SELECT VALUE c FROM c GROUP BY c.a", 1, 14, "c"),
        ("SELECT c.a FROM c GROUP BY c.a, MAX(c.b)", 1, 33, "MAX"),
        ("SELECT c.a FROM c GROUP BY x.a", 1, 28, "x"),
        ("SELECT TOP 1 * FROM c OFFSET 0 LIMIT 1", 1, 12, "1"),
        ("SELECT c.id, c.o.id FROM c", 1, 14, "c"),
        ("SELECT 1, c['$1'] FROM c", 1, 11, "c"),
        ("SELECT c['$1'], 1 FROM c", 1, 8, "c"),
        ("SELECT 1 AS x, 2 AS x FROM c", 1, 21, "x"),
        ("SELECT VALUE {a: 1, 'a': 2} FROM c", 1, 21, "'a'"),
        (r"SELECT VALUE 'a\qb' FROM c", 1, 14, r"'a\qb'"),
        (r"SELECT VALUE '\u12' FROM c", 1, 14, r"'\u12'"),
        ("SELECT VALUE c.list[1.5] FROM c", 1, 21, "1.5"),
        ("SELECT VALUE 1e999 FROM c", 1, 14, "1e999"),
    ],
)
def test_what_is_not_supported_is_refused_with_its_place(text: str, line: int, column: int, token: str) -> None:
    """Every refusal names the line, the column and the word; nothing is guessed."""
    with pytest.raises(QueryError) as refused:
        parse(text)
    assert (refused.value.line, refused.value.column, refused.value.token) == (line, column, token)
    assert f"line {line}, column {column}" in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT VALUE " + "(" * 150_000 + "1" + ")" * 150_000 + " FROM c",
        "SELECT VALUE " + "[" * 199 + "]" * 199 + " FROM c",
        "SELECT VALUE " + "{a:" * 150 + "1" + "}" * 150 + " FROM c",
        "SELECT * FROM c WHERE " + "NOT " * 5_000 + "true",
        "SELECT * FROM c WHERE " + "(true AND (false OR " * 60 + "true" + "))" * 60,
        "SELECT * FROM c WHERE " + "IS_NULL(" * 101 + "1" + ")" * 101,
        "SELECT VALUE '" + "x" * 512 * 1024 + "' FROM c",
        "é" * 300_000,
        "'" * 400_000,
        "[" * 400_000,
        "SELECT VALUE " + "9" * 400_000 + " FROM c",
        "SELECT VALUE " + "-" * 400_000 + "1 FROM c",
        "SELECT VALUE " + "c.a?1:" * 5_000 + "1 FROM c",
        "SELECT VALUE " + "1+" * 200_000 + "1 FROM c",
        "SELECT * FROM c WHERE c.a IN (" + "1," * 200_000 + "1)",
    ],
    ids=[
        "brackets",
        "arrays",
        "objects",
        "not",
        "and",
        "calls",
        "long",
        "bytes",
        "quotes",
        "open",
        "digits",
        "signs",
        "choices",
        "sum",
        "list",
    ],
)
def test_deep_or_huge_texts_are_refused(text: str) -> None:
    """However deep or long the text, the answer is an error of ours, not one of the interpreter's stack."""
    with pytest.raises(QueryError):
        parse(text)


def test_the_deepest_expressions_allowed_can_be_run() -> None:
    """What passes the depth check can be compiled and evaluated."""
    assert value("[" * 99 + "1" + "]" * 99)
    assert value("NOT " * 98 + "true") == [True]
    assert value("(" * 199 + "1" + ")" * 199) == [1]
    assert value("IIF(true, " * 99 + "1" + ", 2)" * 99) == [1]
    assert value("(c.missing ?? " * 99 + "1" + ")" * 99) == [1]
    assert value("true ? " * 99 + "1" + " : 2" * 99) == [1]
    assert value("-" * 98 + "c.n") == [5]
    assert value("[" * 49 + "1" + "][0]" * 49) == [1]
    assert value("'" + "[" * 500 + "'")


def test_wide_texts_are_no_deep_ones() -> None:
    """A thousand alternatives, as clients write for many ids, are one level."""
    alternatives = " OR ".join(f"(c.id = 'i{number}' AND c.n = 5)" for number in range(1000))
    assert rows(ITEMS_WHERE.format(alternatives)) == [ITEM]


def test_texts_are_parsed_once() -> None:
    """An ordinary text is remembered, a very long one is not; both give equal queries."""
    text = "SELECT * FROM c WHERE c.a = @p"
    assert parse(text) is parse(text)
    long = text + " " * 10_000
    assert parse(long) is not parse(long)
    assert parse(long) == parse(text)


WORDS = ["SELECT", "*", "FROM", "c", "WHERE", ".", "=", "1", "(", ")", "[", "]", "NOT", "'a'", "@p", "AND"]


@given(text=st.text(max_size=40) | st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join))
def test_any_text_parses_or_is_refused(text: str) -> None:
    """No text raises anything but a QueryError, and that points into the text or right behind it."""
    refused: QueryError | None = None
    try:
        parse(text)
    except QueryError as error:
        refused = error
    assert refused is None or text.split("\n")[refused.line - 1][refused.column - 1 :].startswith(refused.token)


@given(text=st.text(), key=st.text())
def test_strings_survive_their_quoting(text: str, key: str) -> None:
    """Any string written with backslash escapes is read back as it was, as a constant and as a key."""
    quoted, name = (part.replace("\\", "\\\\").replace("'", "\\'") for part in (text, key))
    assert value(f"'{quoted}'") == [text]
    assert value(f"{{'{name}': 1}}") == [{key: 1}]
