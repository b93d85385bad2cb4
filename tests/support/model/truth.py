"""What must be true of the items in a container at every moment, seen from outside of what writes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from cosmos_workflow_state._codec import decode_payload, digest
from cosmos_workflow_state._documents import read_checkpoint, read_keyframe
from cosmos_workflow_state._identity import Scope, TenantId, keyframe_item_id, part_item_id
from cosmos_workflow_state._items import read_part
from cosmos_workflow_state._records import Keyframe, UnreadableError, Upload

from .store import Item, ItemKey

_FOREVER: Final = float("inf")


@dataclass(frozen=True, slots=True)
class CheckpointId:
    """Which checkpoint."""

    tenant: str
    scope: str
    checkpoint_id: str


@dataclass(frozen=True, slots=True)
class Held:
    """The version of a checkpoint that is stored.

    Attributes:
        digest: Of its state.
        sort_key: Its place in the order.
        etag: The version.
        expires: When it expires, in seconds since 1970.
    """

    digest: str
    sort_key: str
    etag: str
    expires: float


def checkpoints(items: Mapping[ItemKey, Item]) -> dict[CheckpointId, Held]:
    """Return all checkpoints that are stored."""
    return {
        CheckpointId(item["tenant_id"], item["scope"], item["checkpoint_id"]): Held(
            item["payload"]["digest"], item["sort_key"], item["_etag"], _expiry(item)
        )
        for item in items.values()
        if item["type"] == "checkpoint"
    }


def unreadable(items: Mapping[ItemKey, Item]) -> Iterator[str]:
    """Yield what is wrong with checkpoints: each must have all that it names, for as long as it lives, and decode."""
    for (tenant, workflow, item_id), item in items.items():
        if item["type"] != "checkpoint":
            continue
        try:
            _decode(_Around(items, tenant, workflow, _expiry(item)), item)
        except UnreadableError as error:
            yield f"{tenant} {item_id}: {error}"


def unreferenced(items: Mapping[ItemKey, Item]) -> list[str]:
    """Return the ids of the keyframes, parts and guards that no checkpoint needs."""
    needed: set[ItemKey] = set()
    for (tenant, workflow, item_id), item in items.items():
        if item["type"] == "checkpoint":
            needed.add((tenant, workflow, item_id))
            payload = item["payload"]
            needed |= {(tenant, workflow, one) for one in _parts(payload)}
            if "keyframe" in payload:
                keyframe = (tenant, workflow, keyframe_item_id(payload["keyframe"]))
                needed.add(keyframe)
                needed |= {(tenant, workflow, one) for one in _parts(items.get(keyframe, {}))}
    return sorted(item_id for _, _, item_id in items.keys() - needed)


@dataclass(frozen=True, slots=True)
class _Around:
    """What a checkpoint may refer to."""

    items: Mapping[ItemKey, Item]
    tenant: str
    workflow: str
    expires: float

    def find(self, item_id: str) -> Item:
        """Return an item that is there for as long as the checkpoint is.

        Raises:
            UnreadableError: It is not.
        """
        found = self.items.get((self.tenant, self.workflow, item_id))
        if found is None:
            raise UnreadableError(f"{item_id} is not there")
        if _expiry(found) < self.expires:
            raise UnreadableError(f"{item_id} expires before what refers to it")
        return found

    def data(self, inline: bytes, upload: Upload | None) -> bytes:
        """Return all bytes of an upload, or what there is without one."""
        if upload is None:
            return inline
        numbers = range(upload.parts)
        return b"".join(read_part(self.find(part_item_id(upload.write_id, number)), upload) for number in numbers)


def _decode(around: _Around, item: Item) -> None:
    stored = read_checkpoint(item, TenantId(item["tenant_id"]), Scope(item["scope"]))
    payload = replace(stored.payload, data=around.data(stored.payload.data, stored.upload))
    decode_payload(payload, None if payload.keyframe_id is None else _keyframe(around, payload.keyframe_id))


def _keyframe(around: _Around, keyframe_id: str) -> Keyframe:
    found = read_keyframe(around.find(keyframe_item_id(keyframe_id)), keyframe_id)
    data = around.data(found.keyframe.data, found.upload)
    if digest(data) != found.digest:
        raise UnreadableError("a keyframe does not have its digest")
    return replace(found.keyframe, data=data)


def _parts(fields: Item) -> list[str]:
    return [part_item_id(fields["write_id"], number) for number in range(fields.get("parts", 0))]


def _expiry(item: Item) -> float:
    return _FOREVER if item["expires"] is None else float(item["expires"])
