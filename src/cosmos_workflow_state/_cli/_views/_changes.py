"""What two states differ in: paths that were added, removed or changed. Lists are aligned at both ends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, cast

Path: TypeAlias = tuple[str | int, ...]


class _Nothing:
    """There is no value on this side."""


NOTHING: Final = _Nothing()


@dataclass(frozen=True, slots=True)
class Change:
    """One difference.

    Attributes:
        path: Keys and indexes; in a list from which items were removed they count in the list before.
        before: The value before, `NOTHING` where there was none.
        after: The value after, `NOTHING` where there is none.
    """

    path: Path
    before: Any
    after: Any

    @property
    def kind(self) -> Literal["added", "removed", "changed"]:
        """What has happened at the path."""
        if self.before is NOTHING:
            return "added"
        return "removed" if self.after is NOTHING else "changed"


def changes(before: Any, after: Any, path: Path = ()) -> Iterator[Change]:
    """Yield what has to be done to a value to become another one, in the order of their keys.

    Values are the same when they have the same type, so 1 is not True; NaN is the same as NaN.
    """
    if isinstance(before, dict) and isinstance(after, dict):
        yield from _in_dict(cast("Mapping[str, Any]", before), cast("Mapping[str, Any]", after), path)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _in_list(cast("Sequence[Any]", before), cast("Sequence[Any]", after), path)
    elif not same(before, after):
        yield Change(path, before, after)


def same(before: Any, after: Any) -> bool:
    """Return whether two values are the same, types included."""
    if type(before) is not type(after):
        return False
    if isinstance(before, dict):
        old, new = cast("Mapping[str, Any]", before), cast("Mapping[str, Any]", after)
        return old.keys() == new.keys() and all(same(value, new[key]) for key, value in old.items())
    if isinstance(before, list):
        return len(cast("Sequence[Any]", before)) == len(after) and all(
            map(same, cast("Sequence[Any]", before), cast("Sequence[Any]", after))
        )
    return bool(before == after or (before != before and after != after))  # noqa: PLR0124 - only NaN differs from itself


def _in_dict(before: Mapping[str, Any], after: Mapping[str, Any], path: Path) -> Iterator[Change]:
    for key in dict.fromkeys((*before, *after)):
        old, new = before.get(key, NOTHING), after.get(key, NOTHING)
        if old is NOTHING or new is NOTHING:
            yield Change((*path, key), old, new)
        else:
            yield from changes(old, new, (*path, key))


def _in_list(before: Sequence[Any], after: Sequence[Any], path: Path) -> Iterator[Change]:
    start = _shared(before, after)
    end = _shared(before[start:][::-1], after[start:][::-1])
    old, new = before[start : len(before) - end], after[start : len(after) - end]
    paired = min(len(old), len(new))
    for index in range(paired):
        yield from changes(old[index], new[index], (*path, start + index))
    for index, value in enumerate(old[paired:], start=start + paired):
        yield Change((*path, index), value, NOTHING)
    for index, value in enumerate(new[paired:], start=start + paired):
        yield Change((*path, index), NOTHING, value)


def _shared(before: Sequence[Any], after: Sequence[Any]) -> int:
    """Return how many items at the beginning are the same."""
    shorter = min(len(before), len(after))
    return next((index for index in range(shorter) if not same(before[index], after[index])), shorter)
