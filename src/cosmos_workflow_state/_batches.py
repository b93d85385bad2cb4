"""The steps of a transactional batch, in the form the client takes, and which of them was refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

from azure.core.exceptions import DecodeError
from azure.cosmos.exceptions import CosmosBatchOperationError

_REFUSALS: Final = frozenset({404, 409, 412})


@dataclass(frozen=True, slots=True)
class Read:
    """A step of a batch: the item must be there."""

    item_id: str


@dataclass(frozen=True, slots=True)
class Create:
    """A step of a batch: no item with this id may be there."""

    item: dict[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Upsert:
    """A step of a batch: create the item or replace what is there."""

    item: dict[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Replace:
    """A step of a batch: replace the version ``etag`` of the item."""

    item: dict[str, Any] = field(repr=False)
    etag: str


@dataclass(frozen=True, slots=True)
class Delete:
    """A step of a batch: the item must be there, in the version ``etag`` if one is given, and is deleted."""

    item_id: str
    etag: str | None = None


Step = Read | Create | Upsert | Replace | Delete


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why nothing of a batch was done.

    Attributes:
        index: Which step could not be done.
        status: 404 no such item, 409 there is one already, 412 another version is there.
    """

    index: int
    status: int


Versions = tuple[str, ...]
"""The ETag of each step's item, in the order of the steps; ``""`` where there is none, as after a delete."""


def versions(results: Sequence[Mapping[str, Any]]) -> Versions:
    """Return the versions in the client's answer to a batch of which everything was done."""
    return tuple(str(result.get("eTag", "")) for result in results)


def operation(step: Step) -> tuple[str, tuple[Any, ...]] | tuple[str, tuple[Any, ...], dict[str, Any]]:
    """Return a step in the form the client takes."""
    if isinstance(step, Replace):
        return "replace", (step.item["id"], step.item), {"if_match_etag": step.etag}
    if isinstance(step, Delete) and step.etag is not None:
        return "delete", (step.item_id,), {"if_match_etag": step.etag}
    if isinstance(step, Read | Delete):
        return ("read" if isinstance(step, Read) else "delete"), (step.item_id,)
    return ("create" if isinstance(step, Create) else "upsert"), (step.item,)


def refusal(error: CosmosBatchOperationError, steps: int) -> Refusal:
    """Return why nothing was done.

    Raises:
        CosmosBatchOperationError: The service could not do it, rather than would not.
        DecodeError: It is no answer to this batch.
    """
    loose = cast("Any", error)
    # The client says 0 when it found no step with a status of its own.
    if len(loose.operation_responses) != steps or loose.status_code == 0:
        raise DecodeError("the answer to a batch does not say which step could not be done")
    if loose.status_code in _REFUSALS:
        return Refusal(loose.error_index, loose.status_code)
    raise error
