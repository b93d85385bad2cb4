"""The order of index terms is the order of the values."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosmos_workflow_state.emulator._ordering import (
    UNDEFINED,
    complement,
    double,
    prefix_range,
    term,
    type_range,
)

NUMBERS = st.integers() | st.floats(allow_nan=False)
TEXTS = st.text(st.characters(), max_size=6) | st.text("\x00\x01ab\ud800", max_size=4)
SCALARS: st.SearchStrategy[Any] = st.none() | st.booleans() | NUMBERS | TEXTS
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3), max_leaves=6
)


def rank(value: Any) -> tuple[int, Any]:
    """The order of scalars in plain Python: type first, then value."""
    if value is UNDEFINED:
        return 0, 0
    if value is None:
        return 1, 0
    if isinstance(value, bool):
        return 2, value
    if isinstance(value, str):
        return 4, value.encode("utf-8", "surrogatepass")
    return 3, double(value)


@given(left=SCALARS | st.just(UNDEFINED), right=SCALARS | st.just(UNDEFINED))
def test_terms_sort_as_scalars_do(left: Any, right: Any) -> None:
    """Comparing two terms gives what comparing the values gives, equality included."""
    assert (term(left) < term(right)) == (rank(left) < rank(right))
    assert (term(left) == term(right)) == (rank(left) == rank(right))


@given(left=st.tuples(VALUES, VALUES), right=st.tuples(VALUES, VALUES))
def test_terms_can_be_concatenated(left: Any, right: Any) -> None:
    """Two terms one behind the other sort as the pair of them does: no term is a prefix of another."""
    pairs = [tuple(map(term, pair)) for pair in (left, right)]
    assert (b"".join(pairs[0]) < b"".join(pairs[1])) == (pairs[0] < pairs[1])


@given(left=VALUES, right=VALUES)
def test_complement_inverts_the_order(left: Any, right: Any) -> None:
    """Complemented terms sort the other way round."""
    assert (complement(term(left)) < complement(term(right))) == (term(right) < term(left))


@pytest.mark.parametrize(
    "value",
    [UNDEFINED, None, False, True, -math.inf, 0, 1e308, "", "z", [], [1], {}, {"a": 1}],
    ids=repr,
)
def test_type_range_holds_exactly_its_type(value: Any) -> None:
    """A value lies in the range of its own type, and values of other types do not."""
    samples: list[Any] = [UNDEFINED, None, True, 5, "text", [2], {"b": 2}]
    low, end = type_range(value)
    assert low <= term(value) < end
    inside = [sample for sample in samples if low <= term(sample) < end]
    assert len(inside) == 1


@given(prefix=TEXTS, text=TEXTS)
def test_prefix_range_holds_exactly_the_strings_with_the_prefix(prefix: str, text: str) -> None:
    """A string's term lies in a prefix's range if and only if it starts with the prefix."""
    low, end = prefix_range(prefix)
    assert (low <= term(text) < end) == text.startswith(prefix)
    assert low <= term(prefix + text) < end


def test_numbers_that_are_equal_as_doubles_have_one_term() -> None:
    """1 and 1.0, 0.0 and -0.0, and integers that differ beyond 53 bits are one value."""
    assert term(1) == term(1.0)
    assert term(0.0) == term(-0.0)
    assert term(2**53) == term(2**53 + 1)
    assert term(10**400) == term(math.inf)
    assert term(-(10**400)) == term(-math.inf)


def test_objects_are_equal_whatever_the_order_of_their_properties() -> None:
    """The term of an object does not depend on the order of its properties, that of an array on its order."""
    assert term({"a": [1, {}], "b": None}) == term({"b": None, "a": [1.0, {}]})
    assert term([1, 2]) != term([2, 1])
    assert term([]) != term({})
    assert term({"a": [1]}) != term({"a": [[1]]})


def test_nan_is_refused() -> None:
    """NaN, which JSON lacks, has no term, alone or inside."""
    with pytest.raises(ValueError, match="NaN"):
        term({"a": [math.nan]})
