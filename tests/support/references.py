"""Which stored items nothing needs, told from the items alone: what a sweep should have removed, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

ITEMS: Final = (
    "SELECT c.id, c.tenant_id, c.workflow_name, c.scope, c.type, c.keyframe_id, c.write_id, c.parts, "
    "{keyframe: c.payload.keyframe, write_id: c.payload.write_id, parts: c.payload.parts} AS payload FROM c"
)
"""A query for all that is looked at here, without the data."""

Stored = Mapping[str, Any]
_Named = tuple[str, str, str, str]


def unreferenced(items: Iterable[Stored]) -> set[str]:
    """Return the ids of the keyframes, parts and guards in a container that nothing needs.

    A checkpoint needs its keyframe and its parts. A keyframe that is needed needs its own parts, and may have a guard.
    Nobody needs the guard of an upload, once no save is under way.
    """
    found = {_name(item, item["id"]): item for item in items}
    return {item_id for *_, item_id in found.keys() - _needed(found) - _guards(found)}


def missing(items: Iterable[Stored]) -> set[str]:
    """Return the ids of the keyframes and parts that something in a container needs and that are not there."""
    found = {_name(item, item["id"]): item for item in items}
    return {item_id for *_, item_id in _needed(found) - found.keys()}


def _needed(found: Mapping[_Named, Stored]) -> set[_Named]:
    """Return the checkpoints and what they need, there or not."""
    checkpoints = {name: item for name, item in found.items() if item["type"] == "checkpoint"}
    keyframes = {
        _name(item, f"kf:{item['payload']['keyframe']}")
        for item in checkpoints.values()
        if "keyframe" in item["payload"]
    }
    parts = {part for item in checkpoints.values() for part in _parts(item, item["payload"])}
    parts |= {part for name in keyframes & found.keys() for part in _parts(found[name], found[name])}
    return checkpoints.keys() | keyframes | parts


def _guards(found: Mapping[_Named, Stored]) -> set[_Named]:
    """Return the guards that keyframes which are needed may have."""
    needed = (found[name] for name in _needed(found) & found.keys())
    return {_name(item, f"kg:{item['keyframe_id']}") for item in needed if item["type"] == "keyframe"}


def _parts(item: Stored, fields: Stored) -> set[_Named]:
    """Return the parts that fields of an item name."""
    return {_name(item, f"pt:{fields['write_id']}:{number:04}") for number in range(fields.get("parts", 0))}


def _name(item: Stored, item_id: str) -> _Named:
    """Return what an item refers to by an id: nothing in another partition or scope has that name."""
    return item["tenant_id"], item["workflow_name"], item["scope"], item_id
