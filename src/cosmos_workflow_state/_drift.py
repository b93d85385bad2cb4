"""How an existing container differs from its definition, in words with remedies, and what would be right of it.

Pure: it compares what the service says of a container with a `ContainerDefinition`, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from ._definitions import EVERYTHING, NOTHING_EXPIRES_BY_ITSELF, ContainerDefinition

Subject = Literal["partition key", "default TTL", "indexing policy"]

_SCALAR: Final = "/?"
_BELOW: Final = "/*"


@dataclass(frozen=True, slots=True)
class Difference:
    """One way in which a container is not as it must be.

    Attributes:
        subject: The part of its definition; a partition key can never be changed.
        problem: What is different, and why that matters.
        remedy: What to do about it.
    """

    subject: Subject
    problem: str
    remedy: str

    @property
    def repairable(self) -> bool:
        """Whether the container can be changed to be right."""
        return self.subject != "partition key"

    def __str__(self) -> str:
        """Return problem and remedy as one sentence."""
        return f"{self.problem}: {self.remedy}"


def differences(properties: Mapping[str, Any], wanted: ContainerDefinition) -> tuple[Difference, ...]:
    """Return every difference of a container from its definition.

    Args:
        properties: What the service says of the container.
        wanted: What it must be.
    """
    policy: Mapping[str, Any] = properties.get("indexingPolicy") or {}
    checks = (
        _partition_key(properties.get("partitionKey") or {}, wanted),
        _default_ttl(properties.get("defaultTtl")),
        _index_mode(policy),
        _missing_indexes(policy, wanted),
        _costly_indexes(policy, wanted),
    )
    return tuple(found for found in checks if found is not None)


def repairable(found: Iterable[Difference]) -> bool:
    """Return whether a container with these differences can be made right: one that cannot is left as it is."""
    return all(difference.repairable for difference in found)


def repaired_policy(policy: Mapping[str, Any], wanted: ContainerDefinition) -> dict[str, Any]:
    """Return an indexing policy with what is missing added and what is too much taken away; all else of it stays.

    Paths that somebody includes for queries of their own stay, unless they index the payload; paths that somebody
    excludes stay, unless they keep a path out that has to be in.
    """
    excluded = _without(policy, "excludedPaths", lambda path: path == EVERYTHING or _decides_one_of(path, wanted))
    excluded = [{"path": EVERYTHING}, *excluded]
    left_out = _paths({"excludedPaths": excluded}, "excludedPaths")
    payload = f"{wanted.payload}{_SCALAR}"
    limit = _precision(payload, left_out)
    kept = _without(policy, "includedPaths", lambda path: path == EVERYTHING or limit < _precision(payload, (path,)))
    there = _paths({"includedPaths": kept}, "includedPaths")
    included = [*({"path": path} for path in wanted.indexed if path not in there), *kept]
    return {**policy, **wanted.indexing_policy, "includedPaths": included, "excludedPaths": excluded}


def _without(policy: Mapping[str, Any], kind: str, unwanted: Callable[[str], bool]) -> list[Mapping[str, Any]]:
    entries: list[Mapping[str, Any]] = list(policy.get(kind) or ())
    return [entry for entry in entries if not unwanted(_path(entry))]


def _decides_one_of(path: str, wanted: ContainerDefinition) -> bool:
    """Tell whether a path, excluded, keeps one out that has to be in although that is included by name."""
    return any(_precision(needed, (path,)) >= len(needed) for needed in wanted.indexed)


def _partition_key(found: Mapping[str, Any], wanted: ContainerDefinition) -> Difference | None:
    paths, kind, version = tuple(found.get("paths", ())), found.get("kind"), found.get("version", 1)
    if (paths, kind, version) == (wanted.partition_key_paths, "MultiHash", 2):
        return None
    return Difference(
        "partition key",
        f"its partition key is {list(paths)} ({kind}, version {version}){_key_hint(paths, wanted)}, it must be "
        f"{list(wanted.partition_key_paths)} (MultiHash, version 2)",
        "a partition key cannot be changed, so use another container",
    )


def _key_hint(paths: tuple[str, ...], wanted: ContainerDefinition) -> str:
    if paths == wanted.partition_key_paths[-1:]:
        return ", as the framework's own store has it"
    return ", in another order" if sorted(paths) == sorted(wanted.partition_key_paths) != list(paths) else ""


def _default_ttl(found: object) -> Difference | None:
    if found == NOTHING_EXPIRES_BY_ITSELF:
        return None
    problem = (
        "its time to live is off, so the service ignores the TTL of items and nothing ever expires"
        if found is None
        else f"its default TTL is {found} seconds, which would expire what is still needed"
    )
    return Difference("default TTL", problem, f"set the default TTL to {NOTHING_EXPIRES_BY_ITSELF}")


def _index_mode(policy: Mapping[str, Any]) -> Difference | None:
    if str(policy.get("indexingMode", "consistent")).lower() == "consistent" and policy.get("automatic", True):
        return None
    return Difference(
        "indexing policy",
        "it does not index every save at once, so the latest checkpoint is not found",
        "set indexing to consistent and automatic",
    )


def _missing_indexes(policy: Mapping[str, Any], wanted: ContainerDefinition) -> Difference | None:
    missing = [f"{path} ({reason})" for path, reason in wanted.indexed.items() if not _is_indexed(path, policy)]
    if not missing:
        return None
    return Difference("indexing policy", f"its indexing policy does not index {', '.join(missing)}", "include them")


def _costly_indexes(policy: Mapping[str, Any], wanted: ContainerDefinition) -> Difference | None:
    included = _paths(policy, "includedPaths")
    if EVERYTHING in included:
        return Difference(
            "indexing policy",
            f"its indexing policy includes {EVERYTHING}, so every save pays for the index of all that it writes",
            f"exclude {EVERYTHING} and include single paths",
        )
    if not _is_indexed(f"{wanted.payload}{_SCALAR}", policy):
        return None
    return Difference(
        "indexing policy",
        f"its indexing policy indexes the payload ({wanted.payload}), which every save pays for",
        f"exclude {EVERYTHING} and do not include the payload",
    )


def _is_indexed(path: str, policy: Mapping[str, Any]) -> bool:
    """Tell whether a path's values are in the index: the more precise of what includes and excludes it decides."""
    included = _precision(path, _paths(policy, "includedPaths"))
    return included > _precision(path, _paths(policy, "excludedPaths"))


def _precision(path: str, patterns: Iterable[str]) -> int:
    """Return how many characters the most precise pattern has that the path is under; -1 for none."""
    return max((len(pattern) for pattern in patterns if _covers(pattern, path)), default=-1)


def _covers(pattern: str, path: str) -> bool:
    return pattern == path or (pattern.endswith(_BELOW) and path.startswith(pattern.removesuffix("*")))


def _paths(policy: Mapping[str, Any], kind: str) -> frozenset[str]:
    return frozenset(_path(entry) for entry in policy.get(kind) or ())


def _path(entry: Mapping[str, Any]) -> str:
    # The service gives property names back in quotes where it thinks they need some.
    return str(entry.get("path", "")).replace('"', "")
