"""Frozen values that pass between the stages, and the two ways in which a stage says no.

It owns no behaviour. The pure stages (`_maf`, `_codec`, `_documents`) import this and never one another.
"""

from __future__ import annotations

from dataclasses import dataclass

from ._identity import Scope, TenantId


@dataclass(frozen=True, slots=True)
class CheckpointKey:
    """Which checkpoint: the tenant, the scope inside it, the workflow and the id."""

    tenant: TenantId
    scope: Scope
    workflow_name: str
    checkpoint_id: str


@dataclass(frozen=True, slots=True)
class CheckpointHeader:
    """What of a checkpoint can be read and queried without decoding its payload.

    Attributes:
        key: Which checkpoint it is.
        previous_checkpoint_id: Its parent in the lineage, None for the first.
        timestamp: ISO 8601, as the framework gave it.
        iteration_count: Superstep; restarts at 0 with each run, so it is no order.
        graph_signature_hash: The framework's hash of the workflow graph.
        version: The framework's checkpoint version.
        pending_request_ids: Requests that wait for an answer, all of them.
    """

    key: CheckpointKey
    previous_checkpoint_id: str | None
    timestamp: str
    iteration_count: int
    graph_signature_hash: str
    version: str
    pending_request_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EncodedPayload:
    """A payload after the codecs.

    Attributes:
        format: What the bytes mean after the codecs are undone.
        codecs: Names in the order applied.
        digest: ``algorithm:hex`` of the bytes before the codecs.
        size: Bytes before the codecs.
        data: Bytes after the codecs.
    """

    format: str
    codecs: tuple[str, ...]
    digest: str
    size: int
    data: bytes


@dataclass(frozen=True, slots=True)
class StoredCheckpoint:
    """A checkpoint item as read back.

    Attributes:
        header: The queryable part.
        sort_key: Its place in the order of its workflow and scope.
        payload: The encoded state.
        etag: The version of the item.
    """

    header: CheckpointHeader
    sort_key: str
    payload: EncodedPayload
    etag: str


class UnreadableError(Exception):
    """What is stored cannot be read. The message says what is wrong with the shape, never what is in it."""


class RefusedTypesError(Exception):
    """Values cannot be stored so that they can be restored.

    Attributes:
        types: ``module:qualname`` of each type that is the reason, where it could be found.
    """

    def __init__(self, message: str, types: tuple[str, ...] = ()) -> None:
        """Keep the types beside the message."""
        super().__init__(message)
        self.types = types
