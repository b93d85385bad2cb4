"""What a caller may implement and gets handed: the hook that hears of failed saves, and the values around it.

Values are frozen and, but for `CheckpointOutline` and `StoredSession`, hold no state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, TypedDict

from .errors import CosmosStateError

if TYPE_CHECKING:
    from agent_framework import AgentSession

__all__ = [
    "CheckpointOutline",
    "CheckpointSummary",
    "EraseProgress",
    "EraseProgressHook",
    "HistoryOptions",
    "PickledValue",
    "SaveFailedHook",
    "SaveFailure",
    "SaveFailures",
    "StoredSession",
    "SweepReport",
]


@dataclass(frozen=True, slots=True)
class CheckpointSummary:
    """What is known of a stored checkpoint without reading its state.

    Attributes:
        checkpoint_id: Its id.
        workflow_name: The workflow it belongs to.
        previous_checkpoint_id: Its parent in the lineage, None for the first.
        timestamp: ISO 8601, as the framework gave it.
        iteration_count: Superstep; restarts at 0 with each run, so it is no order.
        pending_request_ids: Requests that wait for an answer, the first 100 of them.
        pending_request_count: How many requests wait, all of them.
        raw_bytes: Bytes of its state before compression.
        stored_bytes: Bytes that its state takes as it is stored: base64 of what compression, or the difference to a
            keyframe, has left. A keyframe is shared and not counted.
        expires: When the service deletes it, UTC; None for never.
    """

    checkpoint_id: str
    workflow_name: str
    previous_checkpoint_id: str | None
    timestamp: str
    iteration_count: int
    pending_request_ids: tuple[str, ...]
    pending_request_count: int
    raw_bytes: int
    stored_bytes: int
    expires: datetime | None


@dataclass(frozen=True, slots=True)
class PickledValue:
    """What is known of a value of the state that is stored as a pickle, without restoring it.

    Attributes:
        type_name: ``module:qualname`` of its type.
        size: Bytes of the pickle.
        digest: SHA-256 of the pickle in hex: what differs in it may still be equal once it is restored.
    """

    type_name: str
    size: int
    digest: str


@dataclass(frozen=True, slots=True)
class CheckpointOutline:
    """A checkpoint as it is stored, nothing of it restored: no code of the state's types has run.

    Attributes:
        summary: What its header says.
        fields: The fields of the framework's ``WorkflowCheckpoint`` by name: dicts, lists, texts, numbers, True, False
            and None as they are stored, and a `PickledValue` in place of everything else.
    """

    summary: CheckpointSummary
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SaveFailure:
    """One save that failed.

    Attributes:
        tenant_id: Whose checkpoint it was.
        scope: The scope inside the tenant, ``""`` for the unnamed one.
        workflow_name: Its workflow, None when it had none that is text.
        checkpoint_id: Its id, None when it had none that is text.
        error: What ``save`` raises. Its traceback refers to the state: keep what it says, not the error itself.
    """

    tenant_id: str
    scope: str
    workflow_name: str | None
    checkpoint_id: str | None
    error: Exception


@dataclass(frozen=True, slots=True)
class SaveFailures:
    """The failed saves of one storage object.

    Attributes:
        count: How many saves have failed.
        last_error: The error of the last one, None when none has. It is a copy without traceback and cause, so that
            keeping it does not keep the state.
    """

    count: int = 0
    last_error: CosmosStateError | None = None


class HistoryOptions(TypedDict, total=False):
    """What a `TenantHistoryProvider` does; the first five as in the framework's own history providers.

    Attributes:
        load_messages: Whether messages are loaded before an agent runs; True when left out.
        store_inputs: Whether what the agent is told is stored; True when left out.
        store_outputs: Whether what it answers is stored; True when left out.
        store_context_messages: Whether what other context providers add is stored; False when left out.
        store_context_from: Of which of them alone, by source id.
        max_messages: How many of the newest messages are loaded, at most; None, or left out, for all.
        ttl: Seconds after its save that a message expires, 1 to 2,147,483,647; None for never; the setting
            ``history_ttl`` when left out.
    """

    load_messages: bool
    store_inputs: bool
    store_outputs: bool
    store_context_messages: bool
    store_context_from: set[str] | None
    max_messages: int | None
    ttl: int | None


@dataclass(frozen=True, slots=True)
class StoredSession:
    """A session as it was read, and which version of it.

    Attributes:
        session: A copy; what is changed in it is stored by ``set``.
        etag: The version, for ``if_match`` of ``set``.
    """

    session: AgentSession
    etag: str


class SaveFailedHook(Protocol):
    """Hears of each failed save, which the framework's graph workflows pass over."""

    def __call__(self, failure: SaveFailure, /) -> object:
        """Take note of it: called once on the event loop before ``save`` raises, so it must be quick and not block.

        What it raises is one ``hook.failed`` event and changes nothing else; what it returns is ignored.
        """
        ...


@dataclass(frozen=True, slots=True)
class SweepReport:
    """What a sweep has deleted, because nothing refers to it any more.

    Attributes:
        keyframes: Keyframes.
        uploads: Uploads that were never committed, or whose checkpoint is gone: the parts of large states.
    """

    keyframes: int = 0
    uploads: int = 0


@dataclass(frozen=True, slots=True)
class EraseProgress:
    """What an erasure has deleted so far, and in the end.

    Attributes:
        guards: Guards of keyframes and uploads; they go first, so that nothing new refers to what goes next.
        checkpoints: Checkpoints.
        keyframes: Keyframes.
        uploads: The parts of large states, counted by state.
    """

    guards: int = 0
    checkpoints: int = 0
    keyframes: int = 0
    uploads: int = 0


class EraseProgressHook(Protocol):
    """Hears how far an erasure is, after each step."""

    def __call__(self, progress: EraseProgress, /) -> object:
        """Note it; what this raises ends the erasure, which a repeat then completes."""
        ...
