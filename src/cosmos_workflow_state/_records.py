"""Frozen values that pass between the stages, and the two ways in which a stage says no.

It owns no behaviour. The pure stages (`_maf`, `_codec`, `_documents`) import this and never one another.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from ._identity import Scope, TenantId, full_key


@dataclass(frozen=True, slots=True)
class Place:
    """Where items of checkpoints live: a logical partition (the tenant and the workflow) and the scope inside it."""

    tenant: TenantId
    scope: Scope
    workflow_name: str

    @property
    def key(self) -> list[str]:
        """The full partition key."""
        return full_key(self.tenant, self.workflow_name)

    @property
    def fields(self) -> dict[str, str]:
        """The fields by which an item says that it lives here."""
        return {"tenant_id": self.tenant.value, "workflow_name": self.workflow_name, "scope": self.scope.value}


@dataclass(frozen=True, slots=True)
class SessionPlace:
    """Where items of a session live: a logical partition, the tenant and the session."""

    tenant: TenantId
    session_id: str

    @property
    def key(self) -> list[str]:
        """The full partition key."""
        return full_key(self.tenant, self.session_id)

    @property
    def fields(self) -> dict[str, str]:
        """The fields by which an item says that it lives here."""
        return {"tenant_id": self.tenant.value, "session_id": self.session_id}


AnyPlace: TypeAlias = Place | SessionPlace


@dataclass(frozen=True, slots=True)
class CheckpointKey:
    """Which checkpoint: the tenant, the scope inside it, the workflow and the id."""

    tenant: TenantId
    scope: Scope
    workflow_name: str
    checkpoint_id: str

    @property
    def place(self) -> Place:
        """Where it lives."""
        return Place(self.tenant, self.scope, self.workflow_name)


@dataclass(frozen=True, slots=True)
class CheckpointHeader:
    """What of a checkpoint can be read and queried without decoding its payload.

    Attributes:
        key: Which checkpoint it is.
        previous_checkpoint_id: Its parent in the lineage, None for the first.
        timestamp: ISO 8601, as the framework gave it.
        iteration_count: Superstep; restarts at 0 with each run, so it is no order.
        pending_request_ids: Requests that wait for an answer, all of them.
    """

    key: CheckpointKey
    previous_checkpoint_id: str | None
    timestamp: str
    iteration_count: int
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
        keyframe_id: The keyframe it is a difference against, None when it stands alone.
        spent: Bytes of the differences along its lineage since that keyframe, its own included.
    """

    format: str
    codecs: tuple[str, ...]
    digest: str
    size: int
    data: bytes = field(repr=False)
    keyframe_id: str | None = None
    spent: int = 0


@dataclass(frozen=True, slots=True)
class Keyframe:
    """A whole payload that later checkpoints of its lineage are stored as a difference against. Immutable.

    Attributes:
        id: Unique for each one written.
        size: Bytes before compression.
        data: The compressed bytes.
        serves_ttl: Seconds that a checkpoint which refers to it may live, at most; None for any time.
    """

    id: str
    size: int
    data: bytes = field(repr=False)
    serves_ttl: int | None

    def serves(self, ttl: int | None) -> bool:
        """Return whether it outlives a checkpoint that is written now and lives ``ttl`` seconds, None for ever."""
        return self.serves_ttl is None or (ttl is not None and ttl <= self.serves_ttl)


@dataclass(frozen=True, slots=True)
class Upload:
    """Bytes that lie in items of their own, because one item would be too large.

    Attributes:
        write_id: Unique for each upload.
        parts: How many items.
    """

    write_id: str
    parts: int


@dataclass(frozen=True, slots=True)
class StoredCheckpoint:
    """A checkpoint item as read back.

    Attributes:
        header: The queryable part.
        sort_key: Its place in the order of its workflow and scope.
        payload: The encoded state; its ``data`` is empty where it lies in parts.
        upload: The parts, None when the item holds the data itself.
        ttl: Seconds after its save that it expires, None for never.
        etag: The version of the item.
    """

    header: CheckpointHeader
    sort_key: str
    payload: EncodedPayload
    upload: Upload | None
    ttl: int | None
    etag: str


@dataclass(frozen=True, slots=True)
class StoredKeyframe:
    """A keyframe item as read back.

    Attributes:
        keyframe: The keyframe; its ``data`` is empty where it lies in parts.
        upload: The parts, None when the item holds the data itself.
        digest: ``algorithm:hex`` of the compressed bytes.
    """

    keyframe: Keyframe
    upload: Upload | None
    digest: str


@dataclass(frozen=True, slots=True)
class Auxiliary:
    """An item that serves checkpoints, without its data: a keyframe, a part, or the guard of either.

    Attributes:
        item_id: Its id.
        place: Where it lives.
        keyframe_id: Which keyframe it is, or guards; ``""`` for the others.
        write_id: Which upload it is part of, guards, or has its data in; ``""`` for none.
        parts: How many parts a keyframe's data has; 0 for the others.
        owner: Id of the item that a part was written for; ``""`` for the others.
        etag: The version of the item.
    """

    item_id: str
    place: Place
    keyframe_id: str
    write_id: str
    parts: int
    owner: str
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


class TypesNotAllowedError(RefusedTypesError):
    """Values are of types that the allow-list does not have; all of these are named."""
