"""The indexing policy: which properties of an item get index terms.

Owns the meaning of included, excluded and composite paths. Must not know of storage.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from cosmos_workflow_state.emulator._engine._errors import InvalidError
from cosmos_workflow_state.emulator._engine._paths import split
from cosmos_workflow_state.emulator._ordering import term, type_range
from cosmos_workflow_state.emulator._values import Json, JsonObject

__all__ = ["DEFAULT_POLICY", "IndexingPolicy", "Order", "Path"]

Path: TypeAlias = tuple[str, ...]
Order: TypeAlias = tuple[tuple[Path, bool], ...]
"""Paths of a composite index, each with whether it is descending."""

_ALWAYS: Final = frozenset({("id",), ("_ts",)})
_NEVER: Final = frozenset({"_rid", "_self", "_etag", "_attachments"})
_KNOWN: Final = frozenset(
    {"indexingMode", "automatic", "includedPaths", "excludedPaths", "compositeIndexes", "spatialIndexes"}
)
"""Spatial indexes are kept and shown; no query can use them."""

_ROOT: Final = "/*"
_ETAG_PATH: Final = '/"_etag"/?'
_ELEMENTS = "[]"
_MAX_COMPOSITE = 8

DEFAULT_POLICY: Final[JsonObject] = {
    "indexingMode": "consistent",
    "automatic": True,
    "includedPaths": [{"path": "/*"}],
    "excludedPaths": [{"path": _ETAG_PATH}],
}
"""What the service gives a container that was created without a policy."""


@dataclass(slots=True)
class _Node:
    """What the policy says at one path: about the value there, and about everything from there downwards."""

    exact: bool | None = None
    below: bool | None = None
    children: dict[str, _Node] = field(default_factory=dict["str", "_Node"])

    def child(self, name: str) -> _Node:
        return self.children.setdefault(name, _Node())


_NOTHING: Final = _Node()


@dataclass(frozen=True, slots=True)
class IndexingPolicy:
    """A policy ready for use.

    Attributes:
        document: The policy as it is shown to clients.
        composites: The composite indexes.
    """

    document: JsonObject
    composites: frozenset[Order]
    _root: _Node

    @classmethod
    def of(cls, document: JsonObject) -> IndexingPolicy:
        """Read a policy.

        Args:
            document: The policy as clients write it; what is left out is filled in.

        Returns:
            The policy.

        Raises:
            InvalidError: A path cannot be read, the root is neither included nor excluded, the mode is unknown, or the
                policy asks for kinds of indexes that are not there.
        """
        unknown = sorted(set(document) - _KNOWN)
        if unknown:
            raise InvalidError(f"The embedded engine does not support {unknown[0]!r} of an indexing policy.")
        mode = str(document.get("indexingMode", "consistent")).lower()
        if mode not in ("consistent", "none"):
            raise InvalidError("indexingMode has to be 'consistent' or 'none'.")
        included, excluded = _paths(document, "includedPaths"), _paths(document, "excludedPaths")
        if mode == "none":
            included, excluded = [], [_ROOT]
        elif not included and _ROOT not in excluded:
            included = [_ROOT]
        elif _ROOT not in included and _ROOT not in excluded:
            raise InvalidError("The root path '/*' has to be in includedPaths or excludedPaths.")
        filled = dict(document) | {"indexingMode": mode, "automatic": document.get("automatic", mode != "none")}
        filled["includedPaths"] = [{"path": path} for path in included]
        filled["excludedPaths"] = [{"path": path} for path in _with_etag(excluded)]
        return cls(filled, frozenset(_composites(document)), _tree(included, excluded))

    def covers(self, path: Path) -> bool:
        """Tell whether values at a path have index terms; `id` and `_ts` always have, `_etag` never."""
        if path in _ALWAYS or not path or path[0] in _NEVER:
            return path in _ALWAYS
        node, below = self._root, bool(self._root.below)
        for name in path:
            node = node.children.get(name, _NOTHING)
            below = below if node.below is None else node.below
        return below if node.exact is None else node.exact

    def terms(self, item: Mapping[str, Json]) -> Iterator[tuple[Path, bytes]]:
        """List the index terms of an item.

        Arrays and objects have one term each, of their type only: the index tells them from other types but not
        from one another. What is in an array is not indexed, since no path of the index leads there.

        Args:
            item: The item with its system properties.

        Yields:
            Each indexed path that has a value, with the value's term; no path twice.
        """
        for path in _ALWAYS:
            yield path, term(item[path[0]])
        rest = {name: value for name, value in item.items() if (name,) not in _ALWAYS and name not in _NEVER}
        yield from _terms_below(self._root, (), rest, inherited=bool(self._root.below))


def _terms_below(
    node: _Node, path: Path, values: Mapping[str, Json], *, inherited: bool
) -> Iterator[tuple[Path, bytes]]:
    if not inherited and not node.children:
        return
    for name, value in values.items():
        child = node.children.get(name, _NOTHING)
        below = inherited if child.below is None else child.below
        here = (*path, name)
        if below if child.exact is None else child.exact:
            yield here, _index_term(value)
        if isinstance(value, dict):
            yield from _terms_below(child, here, value, inherited=below)


def _index_term(value: Json) -> bytes:
    return type_range(value)[0] if isinstance(value, (dict, list)) else term(value)


def _tree(included: list[str], excluded: list[str]) -> _Node:
    root = _Node()
    for paths, decision in ((excluded, False), (included, True)):
        for path in paths:
            *names, last = split(path)
            if _ELEMENTS in names:
                continue
            node = root
            for name in names:
                node = node.child(name)
            if last == "*":
                node.below = decision
            else:
                node.exact = decision
    return root


def _paths(document: JsonObject, name: str) -> list[str]:
    entries = document.get(name) or []
    if not isinstance(entries, list):
        raise InvalidError(f"{name} has to be a list.")
    return [_path(entry, name) for entry in entries]


def _path(entry: Json, name: str) -> str:
    path = entry.get("path") if isinstance(entry, dict) else None
    if path == "/":
        return _ROOT
    if not isinstance(path, str) or split(path)[-1] not in ("?", "*"):
        raise InvalidError(f"Every entry of {name} needs a 'path' that ends in '/?' or '/*'.")
    return path


def _with_etag(excluded: list[str]) -> list[str]:
    return excluded if _ETAG_PATH in excluded else [*excluded, _ETAG_PATH]


def _composites(document: JsonObject) -> Iterator[Order]:
    indexes = document.get("compositeIndexes") or []
    if not isinstance(indexes, list):
        raise InvalidError("compositeIndexes has to be a list.")
    for index in indexes:
        if not isinstance(index, list) or not 1 < len(index) <= _MAX_COMPOSITE:
            raise InvalidError(f"A composite index has 2 to {_MAX_COMPOSITE} paths.")
        yield tuple(_composite_part(part) for part in index)


def _composite_part(part: Json) -> tuple[Path, bool]:
    path = part.get("path") if isinstance(part, dict) else None
    order = part.get("order", "ascending") if isinstance(part, dict) else None
    if not isinstance(path, str) or order not in ("ascending", "descending"):
        raise InvalidError("A part of a composite index needs a 'path' and an 'order', ascending or descending.")
    return split(path), order == "descending"
