"""LIKE: `%` any characters, `_` any one, `[a-f]` and `[^abc]` one out of a set, with an escape character.

Owns the meaning of patterns. Matching takes no steps back over a `%`, so that no pattern costs exponential time.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import groupby
from typing import Final

from cosmos_workflow_state.emulator._ordering import Value

__all__ = ["MOST_CHARACTERS", "like_test", "literal_prefix"]

MOST_CHARACTERS: Final = 2048
"""Longer patterns are not tried; the service's own limit is not documented."""

_ANY = ""
"""Stands for `%` between the regular expressions of single characters."""


def like_test(pattern: Value, escape: str | None) -> Callable[[str], bool] | None:
    """Make a test of a pattern.

    Args:
        pattern: The pattern.
        escape: The character behind which the next one stands for itself, None for none.

    Returns:
        Whether all of a text matches; None if the pattern is no string or longer than `MOST_CHARACTERS`.
    """
    if not isinstance(pattern, str) or len(pattern) > MOST_CHARACTERS:
        return None
    parts = _parts(pattern, escape)
    if _ANY in parts:
        return _runs_test(parts)
    whole = re.compile("".join(parts), re.DOTALL)
    return lambda text: whole.fullmatch(text) is not None


def _runs_test(parts: list[str]) -> Callable[[str], bool]:
    """Test the runs of single characters between the `%`: where each fits first leaves most room for the others."""
    runs = [list(run) for is_any, run in groupby(parts, key=lambda part: part == _ANY) if not is_any]
    head = runs.pop(0) if parts[0] != _ANY else []
    tail = runs.pop() if parts[-1] != _ANY else []
    start, *middle, end = (re.compile("".join(run), re.DOTALL) for run in (head, *runs, tail))

    def test(text: str) -> bool:
        found = start.match(text)
        for run in middle:
            found = found and run.search(text, found.end())
        rest = len(text) - len(tail)
        return found is not None and found.end() <= rest and end.fullmatch(text, rest) is not None

    return test


def literal_prefix(pattern: str, escape: str | None) -> str:
    """Give the text that all matches start with, as far as the pattern says it without an escape."""
    special = "%_[" + (escape or "")
    found = next((place for place, character in enumerate(pattern) if character in special), len(pattern))
    return pattern[:found]


def _parts(pattern: str, escape: str | None) -> list[str]:
    """Give a regular expression for each character of a match, and `_ANY` for each `%`."""
    escaped = "(?!)" if escape is None else re.escape(escape)
    token = re.compile(rf"{escaped}(.)|\[(\^?)([^\]]*)\]|(.)", re.DOTALL)
    return [_part(*found.groups()) for found in token.finditer(pattern)]


def _part(escaped: str | None, negation: str | None, members: str | None, character: str | None) -> str:
    if members is not None:
        return _one_of(members, negated=bool(negation))
    if character is not None:
        return {"%": _ANY, "_": "."}.get(character, re.escape(character))
    return re.escape(escaped or "")


def _one_of(members: str, *, negated: bool) -> str:
    listed = "".join(map(_range, re.findall(r".-.|.", members, re.DOTALL)))
    if not listed:
        return "." if negated else "(?!)."
    return f"[{'^' * negated}{listed}]"


def _range(written: str) -> str:
    first, last = written[0], written[-1]
    return "" if first > last else f"{re.escape(first)}-{re.escape(last)}"
