"""Operators of the query language: arithmetic, strings, LIKE, choices, and steps into values of expressions."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosmos_workflow_state.emulator._query import QueryError
from support.queries import rows_of, value_of

ITEM: dict[str, Any] = {"id": "i1", "n": 5, "f": 2.5, "s": "Text", "t": True, "z": None, "list": [1, {"k": [7]}]}


def value(expression: str, /, **parameters: Any) -> list[Any]:
    """What an expression is for the item: a list of one value, empty for undefined."""
    return value_of(expression, ITEM, **parameters)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("1 + 2 * 3", [7]),
        ("(1 + 2) * 3", [9]),
        ("10 - 2 - 3", [5]),
        ("12 / 3 / 2", [2]),
        ("7 % 4", [3]),
        ("-7 % 4", [-3]),
        ("c.n + c.f", [7.5]),
        ("c.f * 2", [5]),
        ("1/2", [0.5]),
        ("1-1", [0]),
        ("-c.n", [-5]),
        ("+c.n", [5]),
        ("- -3", [3]),
        ("-(-3)", [3]),
        ("-true", []),
        ("+c.s", []),
        ("-c.s", []),
        ("c.n / 0", []),
        ("c.n % 0", []),
        ("1e308 * 10", []),
        ("c.n + '1'", []),
        ("c.n + null", []),
        ("c.n + true", []),
        ("c.n + c.missing", []),
        ("9007199254740992 + 1", [9007199254740992]),
        ("4503599627370496 * 4", [2.0**54]),
        ("c.n + 1 = 6", [True]),
        ("c.n * 2 BETWEEN 5 + 4 AND 20 / 2", [True]),
        ("c.n - 4 IN (1, 2)", [True]),
        ("NOT (c.n + 1 = 7)", [True]),
    ],
)
def test_arithmetic(expression: str, expected: list[Any]) -> None:
    """Arithmetic is that of doubles; what is no number, or has no finite answer, is undefined."""
    found = value(expression)
    assert found == expected
    assert [type(each) for each in found] == [type(each) for each in expected]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("c.s || '-' || c.id", ["Text-i1"]),
        ("c.s || c.n", []),
        ("c.s || c.missing", []),
        ("(c.s || '') = 'Text'", [True]),
        ("c.n = 5 ? 'five' : 'other'", ["five"]),
        ("c.n = 6 ? 'six' : 'other'", ["other"]),
        ("c.missing ? 1 : 2", [2]),
        ("c.n ? 1 : 2", [2]),
        ("c.t ? c.missing : 2", []),
        ("c.t AND false ? 1 : c.t ? 2 : 3", [2]),
        ("{a: c.t ? 1 : 2}", [{"a": 1}]),
        ("c.missing ?? c.n", [5]),
        ("c.z ?? c.n", [None]),
        ("c.missing ?? c.missing ?? 1", [1]),
        ("c.missing ?? c.gone", []),
        ("[1, [2, 3]][1][0]", [2]),
        ("{a: {b: 1}}.a['b']", [1]),
        ("{a: 1}.b", []),
        ("@p.x[1]", ["y"]),
        ("ARRAY_SLICE(c.list, 1)[0].k[0]", [7]),
        ("(c.list)[0]", [1]),
        ("c.n BETWEEN 1 AND 5", [True]),
        ("c.n BETWEEN 'a' AND 4", [False]),
        ("c.n BETWEEN 6 AND 'a'", [False]),
        ("c.n BETWEEN 1 AND 'a'", []),
        ("c.missing BETWEEN 1 AND 2", []),
    ],
)
def test_strings_choices_and_steps(expression: str, expected: list[Any]) -> None:
    """Concatenation, `? :`, `??` and steps into the value of any expression."""
    assert value(expression, p={"x": [1, "y"]}) == expected


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("abc", ["abc"], ["", "ab", "abcd", "ABC"]),
        ("", [""], ["a"]),
        ("%", ["", "a", "a\nb"], []),
        ("%%", ["", "ab"], []),
        ("a%", ["a", "abc"], ["", "ba"]),
        ("%c", ["c", "abc"], ["", "cb"]),
        ("a%c", ["ac", "abc", "abcc"], ["a", "c", "acb"]),
        ("%b%", ["b", "abc"], ["", "ac"]),
        ("%ab%bc%", ["abbc", "xabxbcx"], ["abc", "bcab"]),
        ("aa%aa", ["aaaa", "aabaa"], ["aa", "aaa"]),
        ("_", ["a", "\n", "😀"], ["", "ab"]),
        ("_%_", ["ab", "abc"], ["", "a"]),
        ("a_c%", ["abc", "axcd"], ["ac"]),
        ("[a-c]x", ["ax", "cx"], ["dx", "x", "-x"]),
        ("[^a-c]x", ["dx"], ["ax", "x"]),
        ("[a\\]]", ["a]", "\\]"], ["a"]),
        ("[-a]", ["-", "a"], ["b"]),
        ("[c-a]", [], ["a", "b", "c"]),
        ("[]x", [], ["x", "]x"]),
        ("[^]x", ["]x", "ax"], ["x"]),
        ("[%]", ["%"], ["a"]),
        ("[a", ["[a"], ["a"]),
        (".*", [".*"], ["ab"]),
    ],
)
def test_like(pattern: str, matching: list[str], others: list[str]) -> None:
    """Each sign of a pattern, at either end and in between; the index only narrows what is looked at."""
    items = [{"id": text} for text in matching + others]
    assert rows_of("SELECT VALUE c.id FROM c WHERE c.id LIKE @p", items, p=pattern) == sorted(matching)
    assert sorted(rows_of("SELECT VALUE c.id FROM c WHERE c.id NOT LIKE @p", items, p=pattern)) == sorted(others)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("c.s LIKE 'Te!%t' ESCAPE '!'", [False]),
        ("'10%' LIKE '10!%' ESCAPE '!'", [True]),
        ("'10x' LIKE '10!%' ESCAPE '!'", [False]),
        ("'a!' LIKE 'a!' ESCAPE '!'", [True]),
        ("'a!' LIKE 'a!!' ESCAPE '!'", [True]),
        ("'[a]' LIKE '![a]' ESCAPE '!'", [True]),
        ("c.n LIKE '5'", []),
        ("c.s LIKE 5", []),
        ("c.s LIKE c.missing", []),
        ("c.s LIKE c.s", [True]),
        ("c.s LIKE CONCAT('T', '%')", [True]),
        ("c.s LIKE REPLICATE('%', 3000)", []),
        ("NOT (c.s LIKE 'x%')", [True]),
    ],
)
def test_like_with_escape_and_other_types(expression: str, expected: list[Any]) -> None:
    """The escape character, patterns made per item, and undefined for what is no string."""
    assert value(expression) == expected


def test_like_refuses_a_pattern_it_will_not_try() -> None:
    """A constant pattern over the limit is an error with its place; a long text costs no exponential time."""
    with pytest.raises(QueryError, match="2048 characters") as refused:
        value("c.s LIKE @p", p="x" * 2049)
    assert refused.value.column == 18
    assert value("@text LIKE @p", text="a" * 100_000, p="%a" * 1000 + "%b") == [False]


@given(text=st.text("ab[", max_size=8), pattern=st.text("ab%_[", max_size=6))
def test_like_agrees_with_a_regular_expression(text: str, pattern: str) -> None:
    """Matching run by run gives what a backtracking regular expression gives."""
    signs = {"%": ".*", "_": "."}
    naive = "".join(signs.get(sign) or re.escape(sign) for sign in pattern)
    expected = re.fullmatch(naive, text, re.DOTALL) is not None
    assert value("@text LIKE @pattern", text=text, pattern=pattern) == [expected]


def test_between_within_between_is_no_explosion() -> None:
    """Operands are evaluated and checked once, however deep they stand inside one another."""
    nested = "1" + " BETWEEN 0 AND 2)" * 90
    assert value("(" * 90 + nested) == []


def test_long_sums_are_not_deep() -> None:
    """A thousand terms in a row are one level."""
    assert value(" + ".join(["1"] * 1000)) == [1000]
