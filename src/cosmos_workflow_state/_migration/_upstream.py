"""What the items of the framework's ``CosmosCheckpointStorage`` hold, and in which order its checkpoints are.

An item is ``id``, ``workflow_name`` (the partition key) and the framework's own encoding of the checkpoint's fields.
Pure: it is given items as the service returns them.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from agent_framework import WorkflowCheckpoint
from agent_framework.exceptions import WorkflowCheckpointException

from cosmos_workflow_state._maf import RestorePolicy
from cosmos_workflow_state._records import RefusedTypesError, TypesNotAllowedError

from ._job import UnfitError

HEADERS: Final = (
    "SELECT c.id, c.workflow_name, c.checkpoint_id, c.previous_checkpoint_id, c.timestamp, c.iteration_count{} FROM c"
)
"""Everything of the items but what is in them; a further column takes the place of the braces."""

_OF_THE_SERVICE: Final = frozenset({"id", "_rid", "_self", "_etag", "_attachments", "_ts"})
"""What the framework's storage leaves out of an item before it decodes the rest."""

_NOT_ALLOWED: Final = (
    "it holds types that are not allowed; list them in COSMOS_WORKFLOW_STATE_ALLOWED_CHECKPOINT_TYPES, what the "
    "application registers as well: it is not run here"
)

# Payloads of ours have the same two keys, so they are known here for ever; tests compare with the framework's decoding.
_PICKLE: Final = "__pickled__"
_TYPE: Final = "__type__"


@dataclass(frozen=True, slots=True)
class Header:
    """A checkpoint of the source without its state.

    Attributes:
        item_id: Id of its item.
        checkpoint_id: Its own id.
        previous_checkpoint_id: Its parent, None for the first.
        timestamp: As the framework wrote it.
        iteration_count: Superstep.
    """

    item_id: str
    checkpoint_id: str
    previous_checkpoint_id: str | None
    timestamp: str
    iteration_count: int


def read_header(row: Mapping[str, Any]) -> Header:
    """Return what a row of `HEADERS` says.

    Raises:
        UnfitError: It is not one of a checkpoint.
    """
    parent = row.get("previous_checkpoint_id")
    return Header(
        item_id=_expect(row, "id", str),
        checkpoint_id=_expect(row, "checkpoint_id", str),
        previous_checkpoint_id=None if parent is None else _expect(row, "previous_checkpoint_id", str),
        timestamp=_expect(row, "timestamp", str),
        iteration_count=_expect(row, "iteration_count", int),
    )


def in_order(headers: Iterable[Header]) -> list[Header]:
    """Return checkpoints in the order in which the framework's storage lists them, each after its parent.

    That storage goes by the text of the timestamp alone, so a parent may be listed after its child: when both have the
    same time, or when the clock of another node was behind.
    """
    known = sorted(headers, key=lambda header: header.timestamp)
    unplaced = {header.checkpoint_id: header for header in known}
    placed: list[Header] = []
    for header in known:
        ancestors: list[Header] = []
        wanted: str | None = header.checkpoint_id
        # Taken out, so that a lineage that runs in a circle ends where it began.
        while wanted is not None and (one := unplaced.pop(wanted, None)) is not None:
            ancestors.append(one)
            wanted = one.previous_checkpoint_id
        placed += reversed(ancestors)
    return placed


def decode(item: Mapping[str, Any], policy: RestorePolicy) -> WorkflowCheckpoint:
    """Return the checkpoint of an item, as the framework's storage would under the same allow-list.

    The framework's ``decode_checkpoint_value`` would do, but for what it says when it refuses: that may quote the state
    and names one type only. Pickles are restored by the framework's unpickler here, too.

    Raises:
        UnfitError: It cannot be decoded, or holds types that are not allowed; they are named.
    """
    refused: list[RefusedTypesError] = []
    try:
        fields = {name: _decode(value, policy, refused) for name, value in item.items() if name not in _OF_THE_SERVICE}
    except RecursionError:
        raise UnfitError("it nests too deep") from None
    if refused:
        raise UnfitError(_reason(refused))
    try:
        return WorkflowCheckpoint.from_dict(fields)
    except WorkflowCheckpointException:
        raise UnfitError("its fields are not those of a checkpoint of this version of the framework") from None


def _decode(value: Any, policy: RestorePolicy, refused: list[RefusedTypesError]) -> Any:
    if isinstance(value, dict):
        mapping = cast("dict[str, Any]", value)
        if _PICKLE in mapping and _TYPE in mapping:
            return _restored(mapping, policy, refused)
        return {name: _decode(child, policy, refused) for name, child in mapping.items()}
    if isinstance(value, list):
        return [_decode(child, policy, refused) for child in cast("Sequence[Any]", value)]
    return value


def _restored(envelope: Mapping[str, Any], policy: RestorePolicy, refused: list[RefusedTypesError]) -> Any:
    try:
        pickled = base64.b64decode(envelope[_PICKLE].encode("ascii"), validate=True)
        return policy.restore(pickled, str(envelope[_TYPE]))
    except (AttributeError, UnicodeEncodeError, binascii.Error):
        raise UnfitError("a pickled value in it is no base64 text") from None
    except RefusedTypesError as error:
        refused.append(error)
        return None


def _reason(refused: list[RefusedTypesError]) -> str:
    """Return why types are refused, with all that are for the reason of the first."""
    names = dict.fromkeys(name for error in refused if str(error) == str(refused[0]) for name in error.types)
    reason = _NOT_ALLOWED if isinstance(refused[0], TypesNotAllowedError) else str(refused[0])
    return f"{reason}: {', '.join(names)}"


def _expect(row: Mapping[str, Any], name: str, kind: type[Any]) -> Any:
    value = row.get(name)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise UnfitError(f"it is no checkpoint: it has no {kind.__name__} {name}")
    return value
