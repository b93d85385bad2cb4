"""What users trip over, by number: each of those that are met has a test that says so in its docstring."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
NAMED = re.compile(r"[Dd]emands? (\d+(?:(?:, | and | to )\d+)*)")
MET = (1, 2, 3, 4, 5, 8, 9, 12, 13, 14, 15, 18, 19, 20, 21, 22, 23, 24, 25, 27, 29, 30, 32)


def numbers_in(text: str) -> set[int]:
    """Return the numbers of the demands that a test file names."""
    return {int(number) for named in NAMED.findall(text) for number in re.findall(r"\d+", named)}


@pytest.mark.parametrize("number", MET)
def test_each_demand_that_is_met_has_a_test(number: int) -> None:
    """A number that nobody names has lost its test."""
    files = (path for path in TESTS.rglob("test_*.py") if path != Path(__file__))
    assert any(number in numbers_in(path.read_text("utf-8")) for path in files)
