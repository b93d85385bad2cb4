"""Partial updates of an item: the operations of a patch, applied to JSON.

Owns their form and meaning (https://learn.microsoft.com/azure/cosmos-db/partial-document-update). Must not know of
storage; a patch that fails leaves the item it was applied to in any state, so nothing of it may be kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeGuard

from cosmos_workflow_state.emulator._gateway._failures import ServiceError, bad_request
from cosmos_workflow_state.emulator._values import Json, JsonObject

__all__ = ["apply_patch"]

_MAX_OPERATIONS = 10
_APPEND = "-"
_EXACT_INTEGER = 1 << 53

Pointer = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Step:
    """One operation, and the item as the operations before it left it."""

    item: JsonObject
    operation: JsonObject
    number: int
    fixed: frozenset[Pointer]

    def failure(self, reason: str) -> ServiceError:
        return bad_request(f"Patch operation {self.number}: {reason}")

    @property
    def value(self) -> Json:
        if "value" not in self.operation:
            raise self.failure("it needs a 'value'.")
        return self.operation["value"]

    def pointer(self, name: str) -> Pointer:
        """Read a path; those of properties that no patch may touch are refused."""
        text = self.operation.get(name)
        if not isinstance(text, str) or not text.startswith("/"):
            raise self.failure(f"its {name!r} has to be a text that starts with '/'.")
        pointer = tuple(part.replace("~1", "/").replace("~0", "~") for part in text[1:].split("/"))
        if any(pointer[: len(path)] == path for path in self.fixed):
            raise self.failure("the id, the partition key and system properties cannot be patched.")
        return pointer

    def place(self, name: str = "path") -> _Place:
        """Find what a path leads to; all but its last part has to be there."""
        *outer, last = self.pointer(name)
        parent: Json = self.item
        for part in outer:
            if isinstance(parent, dict) and part in parent:
                parent = parent[part]
            elif isinstance(parent, list) and _index(part, len(parent)) is not None:
                parent = parent[int(part)]
            else:
                raise self.failure("its path leads nowhere.")
        if isinstance(parent, (dict, list)):
            return _Place(parent, last)
        raise self.failure("its path leads into a value that is neither object nor array.")


@dataclass(frozen=True, slots=True)
class _Place:
    """A property of an object, or a position of an array."""

    parent: JsonObject | list[Json]
    name: str

    def exists(self) -> bool:
        if isinstance(self.parent, dict):
            return self.name in self.parent
        return _index(self.name, len(self.parent)) is not None

    def get(self) -> Json:
        return self.parent[self.name] if isinstance(self.parent, dict) else self.parent[int(self.name)]

    def put(self, value: Json) -> None:
        if isinstance(self.parent, dict):
            self.parent[self.name] = value
        else:
            self.parent[int(self.name)] = value

    def remove(self) -> None:
        if isinstance(self.parent, dict):
            del self.parent[self.name]
        else:
            del self.parent[int(self.name)]


def apply_patch(item: JsonObject, operations: Json, fixed: frozenset[Pointer]) -> None:
    """Apply the operations of a patch, in order.

    Args:
        item: The item; changed in place.
        operations: What the client sent as `operations`.
        fixed: Paths of properties that must not be touched, nor anything in them.

    Raises:
        ServiceError: An operation cannot be meant, or not be done to this item.
    """
    if not isinstance(operations, list) or not operations:
        raise bad_request("A patch needs 'operations', a list that is not empty.")
    if len(operations) > _MAX_OPERATIONS:
        raise bad_request(f"A patch has at most {_MAX_OPERATIONS} operations.")
    for number, operation in enumerate(operations, 1):
        kind = operation.get("op") if isinstance(operation, dict) else None
        if not isinstance(operation, dict) or not isinstance(kind, str) or kind.lower() not in _OPERATIONS:
            raise bad_request(f"Patch operation {number}: its 'op' has to be one of {', '.join(_OPERATIONS)}.")
        _OPERATIONS[kind.lower()](_Step(item, operation, number, fixed))


def _add(step: _Step) -> None:
    _insert(step, step.place(), step.value)


def _set(step: _Step) -> None:
    place, value = step.place(), step.value
    if isinstance(place.parent, list) and not place.exists():
        raise step.failure("the array has no such position.")
    place.put(value)


def _replace(step: _Step) -> None:
    value = step.value
    _existing(step, "path").put(value)


def _remove(step: _Step) -> None:
    _existing(step, "path").remove()


def _increment(step: _Step) -> None:
    place, by = step.place(), step.value
    if not _is_number(by):
        raise step.failure("its 'value' has to be a number.")
    if isinstance(place.parent, dict) and not place.exists():
        place.put(by)
        return
    old = _existing(step, "path").get()
    if not _is_number(old):
        raise step.failure("what is at its path is no number.")
    total = old + by
    place.put(total if abs(total) <= _EXACT_INTEGER else float(total))


def _move(step: _Step) -> None:
    origin, target = step.pointer("from"), step.pointer("path")
    if target[: len(origin)] == origin:
        raise step.failure("nothing can be moved into itself.")
    place = _existing(step, "from")
    value = place.get()
    place.remove()
    _insert(step, step.place(), value)


def _existing(step: _Step, name: str) -> _Place:
    place = step.place(name)
    if not place.exists():
        raise step.failure("there is nothing at its path.")
    return place


def _insert(step: _Step, place: _Place, value: Json) -> None:
    """Write a property, or make room in an array."""
    if isinstance(place.parent, dict):
        place.put(value)
        return
    length = len(place.parent)
    index = length if place.name == _APPEND else _index(place.name, length + 1)
    if index is None:
        raise step.failure("the array has no such position.")
    place.parent.insert(index, value)


def _index(text: str, length: int) -> int | None:
    """Read a position of an array, None when it is none: digits only, without leading zeros."""
    if (
        not (text.isascii() and text.isdigit())
        or (text != "0" and text.startswith("0"))
        or len(text) > len(str(length))
    ):
        return None
    return int(text) if int(text) < length else None


def _is_number(value: Json) -> TypeGuard[int | float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_OPERATIONS: Final[dict[str, Callable[[_Step], None]]] = {
    "add": _add,
    "set": _set,
    "replace": _replace,
    "remove": _remove,
    "incr": _increment,
    "move": _move,
}
