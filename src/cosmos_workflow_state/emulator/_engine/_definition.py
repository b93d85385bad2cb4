"""The definition of a container: partition key, indexing policy, time to live.

Owns what a definition may say and its defaults. Must not know of storage.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from cosmos_workflow_state.emulator._engine._errors import InvalidError
from cosmos_workflow_state.emulator._engine._json import parse_object
from cosmos_workflow_state.emulator._engine._paths import split
from cosmos_workflow_state.emulator._engine._policy import DEFAULT_POLICY, IndexingPolicy
from cosmos_workflow_state.emulator._partition import MAX_LEVELS, Kind, PartitionKey
from cosmos_workflow_state.emulator._values import Json, JsonObject

__all__ = ["MAX_TTL", "NEVER", "Definition", "checked_name", "checked_ttl", "stored_definition"]

MAX_TTL: Final = 2_147_483_647
"""Longest time to live in seconds: https://learn.microsoft.com/azure/cosmos-db/time-to-live."""

NEVER: Final = -1
"""The time to live of what does not expire."""

_MAX_NAME = 255
_MAX_UNIQUE_KEYS = 10
_MAX_UNIQUE_PATHS = 16
_FIRST_PRINTABLE: Final = 0x20
_DELETE: Final = 0x7F
_FORBIDDEN_IN_NAMES: Final = frozenset("/\\?#")
_DEFAULTS: Final[JsonObject] = {
    "conflictResolutionPolicy": {
        "mode": "LastWriterWins",
        "conflictResolutionPath": "/_ts",
        "conflictResolutionProcedure": "",
    },
    "geospatialConfig": {"type": "Geography"},
}
_SYSTEM: Final = frozenset({"_rid", "_self", "_etag", "_ts", "_docs", "_sprocs", "_triggers", "_udfs", "_conflicts"})
_SUPPORTED: Final = frozenset({"id", "partitionKey", "indexingPolicy", "defaultTtl", "uniqueKeyPolicy", *_DEFAULTS})


@dataclass(frozen=True, slots=True)
class Definition:
    """What a container is.

    Attributes:
        name: The container's id.
        partition_key: Where its items live.
        policy: What is indexed.
        default_ttl: Seconds, `NEVER`, or None when nothing expires whatever items say.
        unique_keys: The paths of each unique key.
    """

    name: str
    partition_key: PartitionKey
    policy: IndexingPolicy
    default_ttl: int | None
    unique_keys: tuple[tuple[tuple[str, ...], ...], ...]
    _rest: JsonObject

    @classmethod
    def of(cls, document: JsonObject) -> Definition:
        """Read a definition.

        Args:
            document: The definition as clients write it; what is left out is filled in.

        Returns:
            The definition.

        Raises:
            InvalidError: It says something the service would refuse, or asks for what the engine does not have.
        """
        given: JsonObject = {
            name: value for name, value in document.items() if name not in _SYSTEM and value is not None
        }
        unknown = sorted(set(given) - _SUPPORTED)
        if unknown:
            raise InvalidError(f"The embedded engine does not support {unknown[0]!r} of a container.")
        policy = given.get("indexingPolicy", DEFAULT_POLICY)
        if not isinstance(policy, dict):
            raise InvalidError("indexingPolicy has to be an object.")
        ttl = given.get("defaultTtl")
        key = _partition_key(given.get("partitionKey"))
        return cls(
            checked_name(given.get("id")),
            key,
            IndexingPolicy.of(policy),
            None if ttl is None else checked_ttl(ttl, "defaultTtl"),
            _unique_keys(given.get("uniqueKeyPolicy")),
            _kept(given, key),
        )

    def document(self) -> JsonObject:
        """Give the definition as it is shown to clients."""
        shown: JsonObject = {"id": self.name, "indexingPolicy": self.policy.document}
        if self.default_ttl is not None:
            shown["defaultTtl"] = self.default_ttl
        return shown | self._rest


@lru_cache(maxsize=256)
def stored_definition(text: str) -> Definition:
    """Read a definition back from its stored text; the same text gives the same object."""
    return Definition.of(parse_object(text))


def checked_name(name: Json) -> str:
    """Check the name of a database or container.

    Args:
        name: What a client gave as `id`.

    Returns:
        The name.

    Raises:
        InvalidError: It is no text, empty, too long, ends in a space or has a character that is not allowed.
    """
    if not isinstance(name, str) or not 0 < len(name) <= _MAX_NAME:
        raise InvalidError(f"The id has to be a text of 1 to {_MAX_NAME} characters.")
    if name.endswith(" ") or not _FORBIDDEN_IN_NAMES.isdisjoint(name) or not _is_utf8(name):
        raise InvalidError("The id must not end in a space nor contain '/', '\\', '?', '#' or a lone surrogate.")
    # The name stands in a header of every answer.
    if any(ord(character) < _FIRST_PRINTABLE or ord(character) == _DELETE for character in name):
        raise InvalidError("The id must not contain control characters.")
    return name


def checked_ttl(ttl: Json, name: str) -> int:
    """Check a time to live.

    Args:
        ttl: What a client gave.
        name: The property it was given as, for the message.

    Returns:
        Seconds, or `NEVER`.

    Raises:
        InvalidError: It is neither -1 nor 1 to `MAX_TTL`.
    """
    if isinstance(ttl, int) and not isinstance(ttl, bool) and (ttl == NEVER or 0 < ttl <= MAX_TTL):
        return ttl
    raise InvalidError(f"The value of {name} has to be -1 or a whole number from 1 to {MAX_TTL}.")


def _kept(given: JsonObject, key: PartitionKey) -> JsonObject:
    """Pick what is shown as it was written: paths can be written in several ways, and clients read only some."""
    rest: JsonObject = {name: given[name] for name in ("uniqueKeyPolicy", *_DEFAULTS) if name in given}
    written = given["partitionKey"]
    paths = written["paths"] if isinstance(written, dict) else None
    rest["partitionKey"] = {"paths": paths, "kind": key.kind.value, "version": key.version}
    return _DEFAULTS | rest


def _partition_key(document: Json) -> PartitionKey:
    if not isinstance(document, dict):
        raise InvalidError("A container needs a partitionKey.")
    try:
        kind = Kind(document.get("kind", Kind.HASH.value))
    except ValueError as error:
        raise InvalidError("The kind of a partition key has to be 'Hash' or 'MultiHash'.") from error
    version = document.get("version", 1 if kind is Kind.HASH else 2)
    if not isinstance(version, int) or version not in ((1, 2) if kind is Kind.HASH else (2,)):
        raise InvalidError("The version of a partition key has to be 2, or 1 for kind 'Hash'.")
    paths = document.get("paths")
    if not isinstance(paths, list) or not paths:
        raise InvalidError("A partition key needs paths.")
    if len(paths) > (1 if kind is Kind.HASH else MAX_LEVELS):
        raise InvalidError("Too many partition key paths.")
    return PartitionKey(tuple(map(_key_path, paths)), kind, version)


def _key_path(path: Json) -> tuple[str, ...]:
    if not isinstance(path, str):
        raise InvalidError("The paths of a partition key or a unique key have to be texts.")
    return split(path)


def _unique_keys(document: Json) -> tuple[tuple[tuple[str, ...], ...], ...]:
    keys: Json = []
    if document is not None:
        keys = document.get("uniqueKeys") if isinstance(document, dict) else None
    if not isinstance(keys, list) or len(keys) > _MAX_UNIQUE_KEYS:
        raise InvalidError(f"A uniqueKeyPolicy needs 'uniqueKeys', a list of at most {_MAX_UNIQUE_KEYS}.")
    return tuple(map(_unique_key, keys))


def _unique_key(key: Json) -> tuple[tuple[str, ...], ...]:
    paths = key.get("paths") if isinstance(key, dict) else None
    if not isinstance(paths, list) or not 0 < len(paths) <= _MAX_UNIQUE_PATHS:
        raise InvalidError(f"A unique key needs 1 to {_MAX_UNIQUE_PATHS} paths.")
    return tuple(map(_key_path, paths))


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
