"""Patching a stored item: its condition, and what no patch may touch.

Owns the way from a stored item and a patch to the new item. Must not write.
"""

from __future__ import annotations

from cosmos_workflow_state.emulator._engine._containers import Container
from cosmos_workflow_state.emulator._engine._items import SYSTEM_PROPERTIES
from cosmos_workflow_state.emulator._engine._json import parse_object
from cosmos_workflow_state.emulator._engine._stored import StoredItem
from cosmos_workflow_state.emulator._gateway._failures import ServiceError, bad_request
from cosmos_workflow_state.emulator._gateway._listing import ListSource
from cosmos_workflow_state.emulator._gateway._patch import apply_patch
from cosmos_workflow_state.emulator._query import QueryError, parse
from cosmos_workflow_state.emulator._values import Json, JsonObject

__all__ = ["patched_item"]

_SELECTION = "SELECT VALUE true\n"
"""A condition is what follows this in a query: it starts with FROM."""

_FIXED = frozenset((name,) for name in ("id", *SYSTEM_PROPERTIES))


def patched_item(stored: StoredItem, patch: JsonObject, container: Container) -> JsonObject:
    """Apply a patch to a stored item.

    Args:
        stored: The item.
        patch: The patch as clients write it: `operations`, and perhaps a `condition`.
        container: The item's container.

    Returns:
        The new item.

    Raises:
        ServiceError: 412, the condition is false; 400, the patch cannot be meant.
    """
    item = parse_object(stored.body)
    condition = patch.get("condition")
    if condition is not None and not _holds(condition, item):
        raise ServiceError(412, "The item does not meet the condition of the patch.")
    apply_patch(item, patch.get("operations"), _FIXED | set(container.definition.partition_key.paths))
    return item


def _holds(condition: Json, item: JsonObject) -> bool:
    if not isinstance(condition, str):
        raise bad_request("The condition of a patch has to be a text.")
    try:
        return any(True for _ in parse(_SELECTION + condition).bind({}).rows(ListSource([item])))
    except QueryError as error:
        placed = QueryError(error.message, max(1, error.line - 1), error.column, error.token)
        raise bad_request(f"The condition of the patch cannot be read: {placed}") from error
