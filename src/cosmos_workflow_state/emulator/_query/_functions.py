"""The functions of the query language: one table, by name in upper case.

Owns the table, the tests of types and the conversions between strings and values. A function gets evaluated arguments,
`UNDEFINED` among them, and answers a value or `UNDEFINED`; it must not raise, whatever it is given.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Final

from cosmos_workflow_state.emulator._ordering import UNDEFINED, Value
from cosmos_workflow_state.emulator._query._array_functions import ARRAY_FUNCTIONS
from cosmos_workflow_state.emulator._query._function import Function, of_texts
from cosmos_workflow_state.emulator._query._numbers import NUMBER_FUNCTIONS, as_double, number
from cosmos_workflow_state.emulator._query._text_functions import TEXT_FUNCTIONS
from cosmos_workflow_state.emulator._values import Json

__all__ = ["FUNCTIONS", "Function"]

_MOST_LEVELS = 128
"""How deep a value read from a string may nest, as deep as an item may."""

_NUMBER = re.compile(r"\s*(-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)\s*", re.ASCII)
_WORDS: Final[dict[str, Json]] = {"true": True, "false": False, "null": None}


def _is_defined(value: Value) -> Value:
    return value is not UNDEFINED


def _is_null(value: Value) -> Value:
    return value is None


def _is(*types: type) -> Callable[[Value], Value]:
    return lambda value: isinstance(value, types)


def _is_primitive(value: Value) -> Value:
    return value is not UNDEFINED and not isinstance(value, (dict, list))


def _to_text(value: Value) -> Value:
    if isinstance(value, str) or value is UNDEFINED:
        return value
    read = as_double(value)
    plain = value if read is None else number(read)
    return UNDEFINED if plain is UNDEFINED else json.dumps(plain, ensure_ascii=False, separators=(",", ":"))


def _to_number(text: str) -> Value:
    found = _NUMBER.fullmatch(text)
    return UNDEFINED if found is None else number(float(found[1]))


def _to_word(*words: str) -> Callable[..., Value]:
    def evaluate(text: str) -> Value:
        word = text.strip()
        return _WORDS[word] if word in words else UNDEFINED

    return evaluate


def _to(kind: type[dict[str, Json] | list[Json]]) -> Callable[..., Value]:
    def evaluate(text: str) -> Value:
        try:
            value: Json = json.loads(text, parse_float=_finite, parse_constant=_finite)
        except (ValueError, RecursionError):
            return UNDEFINED
        return value if isinstance(value, kind) and not _is_deeper(value, _MOST_LEVELS) else UNDEFINED

    return evaluate


def _finite(written: str) -> float:
    read = float(written)
    if not math.isfinite(read):
        raise ValueError(written)
    return read


def _is_deeper(value: Json, levels: int) -> bool:
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels < 0 or any(_is_deeper(member, levels - 1) for member in members)


def _if(condition: Value, then: Value, otherwise: Value) -> Value:
    return then if condition is True else otherwise


FUNCTIONS: Final[dict[str, Function]] = {
    **ARRAY_FUNCTIONS,
    **NUMBER_FUNCTIONS,
    **TEXT_FUNCTIONS,
    "IIF": Function(_if, 3, 3),
    "IS_ARRAY": Function(_is(list), 1, 1),
    "IS_BOOL": Function(_is(bool), 1, 1),
    "IS_DEFINED": Function(_is_defined, 1, 1),
    "IS_NULL": Function(_is_null, 1, 1),
    "IS_OBJECT": Function(_is(dict), 1, 1),
    "IS_PRIMITIVE": Function(_is_primitive, 1, 1),
    "IS_STRING": Function(_is(str), 1, 1),
    "STRINGTOARRAY": Function(of_texts(_to(list)), 1, 1),
    "STRINGTOBOOLEAN": Function(of_texts(_to_word("true", "false")), 1, 1),
    "STRINGTONULL": Function(of_texts(_to_word("null")), 1, 1),
    "STRINGTONUMBER": Function(of_texts(_to_number), 1, 1),
    "STRINGTOOBJECT": Function(of_texts(_to(dict)), 1, 1),
    "TOSTRING": Function(_to_text, 1, 1),
}
