"""Which range of which index a query reads.

Owns what the AND-ed conditions of WHERE say about single properties, and the choice among them. The index only
saves work: WHERE is evaluated in full over what a seek finds, so a seek may find too much, never too little.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from cosmos_workflow_state.emulator._ordering import UNDEFINED, Value, prefix_range, term, type_range
from cosmos_workflow_state.emulator._query import _tree as tree
from cosmos_workflow_state.emulator._query._expressions import constant_value
from cosmos_workflow_state.emulator._query._like import literal_prefix
from cosmos_workflow_state.emulator._query._source import Bound, ItemSource, Path, Seek
from cosmos_workflow_state.emulator._values import Json

__all__ = ["Range", "choose_seek", "ranges_of"]

_Parameters: TypeAlias = Mapping[str, Json]

_MIRRORED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_ITEM_ID: Path = ("id",)


@dataclass(frozen=True, slots=True)
class Range:
    """What a query demands of the terms at one path."""

    low: Bound
    high: Bound

    def narrowed(self, other: Range) -> Range:
        """Combine two demands: the later start and the earlier end, an exclusive bound before an inclusive one."""
        return Range(
            max(self.low, other.low, key=lambda bound: (bound.value, not bound.inclusive)),
            min(self.high, other.high, key=lambda bound: (bound.value, bound.inclusive)),
        )


def ranges_of(where: tree.Expression | None, parameters: _Parameters) -> dict[Path, Range]:
    """Find the ranges that every item must lie in for WHERE to be true.

    Args:
        where: The condition, None when there is none.
        parameters: Values by name, the name with its `@`.

    Returns:
        At most one range for a path, in the order of the text.

    Raises:
        QueryError: A parameter has no value.
    """
    ranges: dict[Path, Range] = {}
    for condition in _conjuncts(where):
        found = _range_of(condition, parameters)
        if found is not None:
            path, demanded = found
            ranges[path] = ranges[path].narrowed(demanded) if path in ranges else demanded
    return ranges


def choose_seek(ranges: Mapping[Path, Range], order: tuple[tree.OrderItem, ...], source: ItemSource) -> Seek | None:
    """Choose the index range to read.

    The first ORDER BY property decides, for its index has the order already; then an equality on `id`, any other
    equality, any other range.

    Args:
        ranges: What WHERE demands, by path.
        order: ORDER BY.
        source: What is asked, for its indexes.

    Returns:
        The seek, None to read everything.

    Raises:
        QueryError: No index serves ORDER BY.
    """
    if order:
        return _seek_in_order(ranges, order, source)
    usable = [path for path in ranges if source.is_indexed(path) and not source.is_fixed(path)]
    if not usable:
        return None
    path = min(usable, key=lambda path: (ranges[path].low != ranges[path].high, path != _ITEM_ID))
    return Seek(path, ranges[path].low, ranges[path].high, descending=False)


def _seek_in_order(ranges: Mapping[Path, Range], order: tuple[tree.OrderItem, ...], source: ItemSource) -> Seek | None:
    wanted = tuple((_ordered_path(item), item.descending) for item in order)
    path, descending = wanted[0]
    if len(wanted) > 1 and not source.has_composite(wanted):
        raise order[0].property.place.error("ORDER BY of several properties needs a matching composite index")
    if source.is_indexed(path):
        demanded = ranges.get(path)
        low, high = (demanded.low, demanded.high) if demanded else (None, None)
        return Seek(path, low, high, descending)
    if len(wanted) == 1:
        raise order[0].property.place.error("ORDER BY needs a property that the indexing policy includes")
    return None


def _ordered_path(item: tree.OrderItem) -> Path:
    path = _path_of(item.property)
    if path is None:
        raise item.property.place.error("ORDER BY of an array's element is not supported")
    return path


def _conjuncts(where: tree.Expression | None) -> Iterator[tree.Expression]:
    match where:
        case None:
            return
        case tree.AllOf(parts):
            for part in parts:
                yield from _conjuncts(part)
        case condition:
            yield condition


def _range_of(condition: tree.Expression, parameters: _Parameters) -> tuple[Path, Range] | None:
    match condition:
        case tree.Comparison(operator, tree.Property() as place, other) if operator in _MIRRORED:
            found = _compared(place, operator, _constant(other, parameters))
        case tree.Comparison(operator, other, tree.Property() as place) if operator in _MIRRORED:
            found = _compared(place, _MIRRORED[operator], _constant(other, parameters))
        case tree.Between(tree.Property() as place, low, high):
            found = _at(place, _between(_constant(low, parameters), _constant(high, parameters)))
        case tree.Membership(tree.Property() as place, options):
            found = _at(place, _spanning([_constant(option, parameters) for option in options]))
        case tree.Call("STARTSWITH", (tree.Property() as place, prefix)):
            found = _at(place, _prefixed(_constant(prefix, parameters)))
        case tree.Like(tree.Property() as place, pattern, escape):
            found = _at(place, _like(_constant(pattern, parameters), escape))
        case _:
            found = None
    return found


def _at(place: tree.Property, demanded: Range | None) -> tuple[Path, Range] | None:
    path = _path_of(place)
    return None if path is None or demanded is None else (path, demanded)


def _compared(place: tree.Property, operator: str, constant: Value) -> tuple[Path, Range] | None:
    return _at(place, _comparable(operator, constant) if _is_scalar(constant) else None)


def _comparable(operator: str, constant: Value) -> Range:
    # A comparison is true within one type only, so the type's own range closes the open end.
    lowest, end = type_range(constant)
    bound = Bound(term(constant), inclusive=operator.endswith("="))
    low = Bound(lowest, inclusive=True) if operator.startswith("<") else bound
    high = Bound(end, inclusive=False) if operator.startswith(">") else bound
    return Range(low, high)


def _between(low: Value, high: Value) -> Range | None:
    if not _is_scalar(low) or not _is_scalar(high):
        return None
    return _comparable(">=", low).narrowed(_comparable("<=", high))


def _spanning(constants: list[Value]) -> Range | None:
    if not all(map(_is_scalar, constants)):
        return None
    terms = sorted(map(term, constants))
    return Range(Bound(terms[0], inclusive=True), Bound(terms[-1], inclusive=True))


def _prefixed(prefix: Value) -> Range | None:
    if not isinstance(prefix, str):
        return None
    low, end = prefix_range(prefix)
    return Range(Bound(low, inclusive=True), Bound(end, inclusive=False))


def _like(pattern: Value, escape: str | None) -> Range | None:
    return _prefixed(literal_prefix(pattern, escape) if isinstance(pattern, str) else pattern)


def _is_scalar(value: Value) -> bool:
    return value is not UNDEFINED and not isinstance(value, (dict, list))


def _constant(expression: tree.Expression, parameters: _Parameters) -> Value:
    if isinstance(expression, (tree.Literal, tree.Parameter)):
        return constant_value(expression, parameters)
    return UNDEFINED


def _path_of(place: tree.Property) -> Path | None:
    names = tuple(step for step in place.steps if isinstance(step, str))
    return names if names and len(names) == len(place.steps) else None
