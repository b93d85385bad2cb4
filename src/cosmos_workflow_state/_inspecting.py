"""One checkpoint as it is stored: its header and the structure of its state, nothing of which is unpickled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ._gateway import Item, Meter
from ._listing import summarize
from ._maf import outline
from ._reading import fetch_current, find, parse
from ._view import CheckpointView
from .errors import CheckpointNotFoundError
from .typing import CheckpointOutline


async def inspect(view: CheckpointView, checkpoint_id: str, meter: Meter) -> CheckpointOutline:
    """Return what is stored as a checkpoint.

    Raises:
        CosmosStateError: As `TenantCheckpointStorage.inspect` documents.
    """
    item = await find(view, checkpoint_id, meter, hinted=True)
    fetched = None if item is None else await _fields(view, item, meter)
    if item is None or fetched is None:
        raise CheckpointNotFoundError(
            "no checkpoint with this id in this tenant and scope", **view.which(checkpoint_id=checkpoint_id)
        )
    return CheckpointOutline(summarize(view, {**item, **_sizes(item["payload"])}), fetched)


async def _fields(view: CheckpointView, item: Item, meter: Meter) -> Mapping[str, Any] | None:
    stored = parse(view, item)
    key = stored.header.key
    fetched = await fetch_current(view, stored, meter)
    if fetched is None:
        return None
    with view.about(key.workflow_name, key.checkpoint_id):
        return outline(fetched[0], key)


def _sizes(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the query for headers lets the service work out."""
    stored = {"data_bytes": len(payload["data"])} if "data" in payload else {"parts_bytes": payload.get("stored")}
    return {"raw_bytes": payload["size"], **stored}
