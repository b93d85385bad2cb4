"""The built-in functions: what each answers, and that none fails or fills the memory."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosmos_workflow_state.emulator._query._functions import FUNCTIONS
from support.queries import value_of

ITEM: dict[str, Any] = {
    "id": "i1",
    "n": 5,
    "s": "Text",
    "t": True,
    "z": None,
    "list": [1, "two", {"k": 3}, 1.0],
    "o": {"a": 1, "b": [2]},
}


def value(expression: str, **parameters: Any) -> list[Any]:
    """What an expression is for the item: a list of one value, empty for undefined."""
    return value_of(expression, ITEM, **parameters)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("CONCAT('a', 'b', c.s)", ["abText"]),
        ("CONCAT('a', 1)", []),
        ("CONCAT(@long, @long, @long)", []),
        ("contains(c.s, 'ex')", [True]),
        ("ENDSWITH(c.s, 'xt')", [True]),
        ("ENDSWITH(c.s, 'XT')", [False]),
        ("ENDSWITH(c.s, 'XT', true)", [True]),
        ("INDEX_OF('abcabc', 'c')", [2]),
        ("INDEX_OF('abcabc', 'c', 3)", [5]),
        ("INDEX_OF('abc', 'a', -1)", [0]),
        ("INDEX_OF('abc', 'x')", [-1]),
        ("INDEX_OF('abc', 1)", []),
        ("INDEX_OF('abc', 'a', 'b')", []),
        ("LEFT('abc', 2)", ["ab"]),
        ("LEFT('abc', 9)", ["abc"]),
        ("LEFT('abc', -1)", [""]),
        ("LEFT('abc', 1.5)", []),
        ("RIGHT('abc', 2)", ["bc"]),
        ("RIGHT('abc', 9)", ["abc"]),
        ("RIGHT('abc', 0)", [""]),
        ("RIGHT('abc', 'x')", []),
        ("RIGHT(c.n, 1)", []),
        ("LENGTH('abc😀')", [4]),
        ("LENGTH(c.n)", []),
        ("LOWER('AbÄ')", ["abä"]),
        ("UPPER('abä')", ["ABÄ"]),
        ("UPPER(null)", []),
        ("LTRIM('  a ')", ["a "]),
        ("RTRIM('  a ')", ["  a"]),
        ("TRIM('  a ')", ["a"]),
        ("REPLACE('banana', 'an', 'x')", ["bxxa"]),
        ("REPLACE('banana', '', 'x')", ["banana"]),
        ("REPLACE(@long, 'x', 'yyy')", []),
        ("REPLACE('a', 'a', 1)", []),
        ("REPLICATE('ab', 3)", ["ababab"]),
        ("REPLICATE('ab', 0)", [""]),
        ("REPLICATE('ab', -1)", []),
        ("REPLICATE('ab', 5001)", []),
        ("REPLICATE('', 1e300)", []),
        ("REPLICATE(1, 2)", []),
        ("REPLICATE('a', 'b')", []),
        ("REVERSE('abc')", ["cba"]),
        ("STRINGEQUALS('a', 'a')", [True]),
        ("STRINGEQUALS('a', 'A')", [False]),
        ("STRINGEQUALS('a', 'A', true)", [True]),
        ("STRINGEQUALS('a', 1)", []),
        ("StringJoin(['a', 'b'], '-')", ["a-b"]),
        ("StringJoin([], '-')", [""]),
        ("StringJoin(['a', 1], '-')", []),
        ("StringJoin('a', '-')", []),
        ("StringSplit('a-b', '-')", [["a", "b"]]),
        ("StringSplit('ab', '')", [["ab"]]),
        ("SUBSTRING('abcdef', 1, 3)", ["bcd"]),
        ("SUBSTRING('abc', 1, 99)", ["bc"]),
        ("SUBSTRING('abc', 9, 1)", [""]),
        ("SUBSTRING('abc', -1, 2)", ["ab"]),
        ("SUBSTRING('abc', 0, -2)", [""]),
        ("SUBSTRING('abc', 0.5, 1)", []),
        ("SUBSTRING(1, 0, 1)", []),
        ("SUBSTRING('abc', 0, null)", []),
    ],
)
def test_text_functions(call: str, expected: list[Any]) -> None:
    """String functions, at their borders, and undefined for other types and for answers too long."""
    assert value(call, long="x" * 2_000_000) == expected


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("ABS(-5)", [5]),
        ("ABS(-5.5)", [5.5]),
        ("ABS('5')", []),
        ("ABS(true)", []),
        ("CEILING(1.2)", [2]),
        ("FLOOR(-1.2)", [-2]),
        ("ROUND(2.5)", [3]),
        ("ROUND(-2.5)", [-3]),
        ("ROUND(2.4)", [2]),
        ("ROUND(0.49999999999999994)", [0]),
        ("TRUNC(-2.7)", [-2]),
        ("SIGN(-3)", [-1]),
        ("SIGN(0)", [0]),
        ("SQRT(9)", [3]),
        ("SQRT(-1)", []),
        ("SQUARE(3)", [9]),
        ("SQUARE(1e200)", []),
        ("POWER(2, 10)", [1024]),
        ("POWER(-1, 0.5)", []),
        ("POWER(1e200, 2)", []),
        ("EXP(0)", [1]),
        ("EXP(1000)", []),
        ("LOG(1)", [0]),
        ("LOG(8, 2)", [3]),
        ("LOG(8, 1)", []),
        ("LOG(0)", []),
        ("LOG10(1000)", [3]),
        ("PI()", [math.pi]),
        ("SIN(0)", [0]),
        ("COS(0)", [1]),
        ("TAN(0)", [0]),
        ("COT(0)", []),
        ("ASIN(0)", [0]),
        ("ASIN(2)", []),
        ("ACOS(1)", [0]),
        ("ATAN(0)", [0]),
        ("ATN2(0, 1)", [0]),
        ("ATN2(0, c.missing)", []),
        ("DEGREES(PI())", [180]),
        ("RADIANS(180)", [math.pi]),
        ("CEILING(@huge)", []),
    ],
)
def test_number_functions(call: str, expected: list[Any]) -> None:
    """Mathematical functions: doubles in and out, undefined outside the domain and beyond the range."""
    assert value(call, huge=10**400) == expected


@pytest.mark.parametrize(
    ("call", "true_for"),
    [
        ("IS_ARRAY", "list"),
        ("IS_BOOL", "t"),
        ("IS_DEFINED", "n s t z list o f"),
        ("IS_FINITE_NUMBER", "n f"),
        ("IS_INTEGER", "n"),
        ("IS_NULL", "z"),
        ("IS_NUMBER", "n f"),
        ("IS_OBJECT", "o"),
        ("IS_PRIMITIVE", "n s t z f"),
        ("IS_STRING", "s"),
    ],
)
def test_type_functions(call: str, true_for: str) -> None:
    """Each test of a type answers for every type, undefined included, and is never undefined itself."""
    item = {**ITEM, "f": 2.5}
    for name in ["n", "f", "s", "t", "z", "list", "o", "missing"]:
        assert value_of(f"{call}(c.{name})", item) == [name in true_for.split()]


def test_integers_end_at_64_bits() -> None:
    """A whole number beyond 64 bits is no integer."""
    assert value("[IS_INTEGER(9223372036854774784), IS_INTEGER(9223372036854775808)]") == [[True, False]]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("ARRAY_CONCAT(c.list, [9], [])", [[1, "two", {"k": 3}, 1.0, 9]]),
        ("ARRAY_CONCAT([], c.s)", []),
        ("ARRAY_CONCAT(@long, @long)", []),
        ("ARRAY_CONTAINS(c.list, {k: 3})", [True]),
        ("ARRAY_CONTAINS(c.list, {m: 3}, true)", [False]),
        ("ARRAY_CONTAINS(c.list, 'two', true)", [True]),
        ("ARRAY_CONTAINS_ANY(c.list, 7, 1)", [True]),
        ("ARRAY_CONTAINS_ANY(c.list, 7)", [False]),
        ("ARRAY_CONTAINS_ANY(c.o, 7)", []),
        ("ARRAY_CONTAINS_ALL(c.list, 'two', 1)", [True]),
        ("ARRAY_CONTAINS_ALL(c.list, 'two', 7)", [False]),
        ("ARRAY_CONTAINS_ALL(c.o, 7)", []),
        ("ARRAY_LENGTH(c.list)", [4]),
        ("ARRAY_LENGTH(c.s)", []),
        ("ARRAY_SLICE([1, 2, 3], 1)", [[2, 3]]),
        ("ARRAY_SLICE([1, 2, 3], 1, 1)", [[2]]),
        ("ARRAY_SLICE([1, 2, 3], -2, 1)", [[2]]),
        ("ARRAY_SLICE([1, 2, 3], -9)", [[1, 2, 3]]),
        ("ARRAY_SLICE([1, 2, 3], 0, -1)", [[]]),
        ("ARRAY_SLICE([1, 2, 3], 0.5)", []),
        ("ARRAY_SLICE([1, 2, 3], 0, 'x')", []),
        ("ARRAY_SLICE(c.s, 0)", []),
        ("SETINTERSECT(c.list, [1, {k: 3}, 5])", [[1, {"k": 3}]]),
        ("SETINTERSECT(c.list, 1)", []),
        ("SETINTERSECT(1, c.list)", []),
        ("SETUNION([1, 2, 1.0], [3, 2])", [[1, 2, 3]]),
        ("SETUNION([1], 1)", []),
        ("SETUNION(1, [1])", []),
        ("ObjectToArray(c.o)", [[{"k": "a", "v": 1}, {"k": "b", "v": [2]}]]),
        ("ObjectToArray({x: 1}, 'name', 'value')", [[{"name": "x", "value": 1}]]),
        ("ObjectToArray({x: 1}, 1, 2)", []),
        ("ObjectToArray({x: 1}, 'a', 2)", []),
        ("ObjectToArray([1])", []),
        ("IIF(c.t, 1, 2)", [1]),
        ("IIF(c.n, 1, 2)", [2]),
    ],
)
def test_array_functions(call: str, expected: list[Any]) -> None:
    """Functions of arrays and objects, at their borders, and undefined for other types."""
    assert value(call, long=[0] * 600_000) == expected


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("ToString(c.n)", ["5"]),
        ("ToString(2.50)", ["2.5"]),
        ("ToString(2.0)", ["2"]),
        ("ToString(c.s)", ["Text"]),
        ("ToString(null)", ["null"]),
        ("ToString(true)", ["true"]),
        ("ToString(c.missing)", []),
        ("ToString(@huge)", []),
        ("ToString({a: ['é', 1]})", ['{"a":["é",1]}']),
        ("StringToNumber(' -1.5e2 ')", [-150]),
        ("StringToNumber('0x10')", []),
        ("StringToNumber('1e999')", []),
        ("StringToNumber('')", []),
        ("StringToNumber(1)", []),
        ("StringToBoolean(' true ')", [True]),
        ("StringToBoolean('false')", [False]),
        ("StringToBoolean('null')", []),
        ("StringToBoolean('TRUE')", []),
        ("StringToNull('null')", [None]),
        ("StringToNull('nil')", []),
        ("StringToArray(' [1, {\"a\": 1.5}] ')", [[1, {"a": 1.5}]]),
        ("StringToArray('{}')", []),
        ("StringToArray('[1')", []),
        ("StringToArray('[NaN]')", []),
        ("StringToArray('[1e999]')", []),
        ("StringToArray(@deep)", []),
        ("StringToArray(@deeper)", []),
        ("StringToObject('{\"a\": null}')", [{"a": None}]),
        ("StringToObject('[]')", []),
    ],
)
def test_conversions(call: str, expected: list[Any]) -> None:
    """Conversions between strings and values read strict JSON of bounded depth, and nothing else."""
    deep, deeper = ("[" * levels + "]" * levels for levels in (130, 100_000))
    assert value(call, huge=10**400, deep=deep, deeper=deeper) == expected


ANY_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=4,
)


@given(name=st.sampled_from(sorted(FUNCTIONS)), arguments=st.lists(ANY_VALUE | st.just("@"), max_size=4))
def test_no_function_raises(name: str, arguments: list[Any]) -> None:
    """Whatever a function is given, undefined included, it answers one value or undefined."""
    function = FUNCTIONS[name]
    most = len(arguments) if function.most is None else function.most
    padded = [*arguments[:most], *["@"] * (function.fewest - len(arguments))]
    written = ", ".join("c.missing" if each == "@" else f"@p{number}" for number, each in enumerate(padded))
    found = value(f"{name}({written})", **{f"p{number}": each for number, each in enumerate(padded)})
    assert len(found) <= 1
