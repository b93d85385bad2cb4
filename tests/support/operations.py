"""Every kind of operation of a storage, with what is there before it: what the fault matrix is about.

Parts and keyframes are small here (`small_parts`), so that each kind takes as few requests as it can.
"""

from __future__ import annotations

import base64
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import pytest
from agent_framework import WorkflowCheckpoint
from azure.core.pipeline.transport import HttpRequest

from cosmos_workflow_state import TenantCheckpointStorage, errors
from cosmos_workflow_state._embedded import EmbeddedResponse
from cosmos_workflow_state._logging import (
    CHECKPOINT_DELETE,
    CHECKPOINT_LIST,
    CHECKPOINT_LIST_IDS,
    CHECKPOINT_LOAD,
    CHECKPOINT_READ_LATEST,
    CHECKPOINT_SAVE,
    ERASE,
    SWEEP,
    Operation,
)
from support.faults import Send, status
from support.states import WORKFLOW, checkpoint
from support.worlds import World

PART: Final = 4000
BLOCK: Final = 500
SECOND: Final = "second-workflow"
HOUR: Final = 3600.0

Call = Callable[[TenantCheckpointStorage], Awaitable[object]]
Given = Callable[[World], Awaitable[None]]
Warm = Callable[[World, TenantCheckpointStorage], Awaitable[object]]
Place = tuple[str, str]


def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an item hold no more than `PART` bytes itself."""
    monkeypatch.setattr("cosmos_workflow_state._items.PART_BYTES", PART)


def state(*blocks: int, **more: Any) -> dict[str, Any]:
    """Return a state of blocks, each of which takes `BLOCK` bytes however well it is compressed."""
    return {"blocks": [base64.b64encode(random.Random(block).randbytes(BLOCK)).decode() for block in blocks], **more}


def saved(checkpoint_id: str, parent: str | None = None, workflow: str = WORKFLOW, /, **of: Any) -> WorkflowCheckpoint:
    """Return a checkpoint that is the same each time it is made, with this state."""
    stamp = f"2026-11-29T10:{len(checkpoint_id):02}:{sum(checkpoint_id.encode()) % 60:02}+00:00"
    return checkpoint(checkpoint_id, workflow=workflow, previous_checkpoint_id=parent, timestamp=stamp, state=of)


SMALL: Final = saved("small", total=1)
MEDIUM: Final = saved("medium", **state(*range(6)))
NEXT: Final = saved("medium-next", "medium", **state(*range(6), answer=42))
LARGE: Final = saved("large", **state(*range(20)))
CHANGED: Final = saved("large-next", "large", **state(*range(11), *range(20, 29)))
CHANGED_AGAIN: Final = saved("large-next", "large", **state(*range(11), *range(30, 39)))


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of operation.

    Attributes:
        name: What it is called.
        names: Its events.
        requests: How many requests for items it takes.
        call: The operation.
        given: What other processes have done before.
        warm: What the process itself has done before.
        places: Scopes and workflows to look at.
        in_steps: Whether it deletes one after the other, so that it may end between before and after.
    """

    name: str
    names: Operation
    requests: int
    call: Call
    given: tuple[Given, ...] = ()
    warm: Warm | None = None
    places: tuple[Place, ...] = (("", WORKFLOW),)
    in_steps: bool = False

    @property
    def is_save(self) -> bool:
        """Whether it is a save."""
        return self.names is CHECKPOINT_SAVE

    @property
    def is_removal(self) -> bool:
        """Whether its result is what it has deleted."""
        return self.names in {CHECKPOINT_DELETE, ERASE, SWEEP}


def there(*checkpoints: WorkflowCheckpoint, scope: str = "") -> Given:
    """Let another process have saved checkpoints."""

    async def given(world: World) -> None:
        async with world.process() as process:
            for one in checkpoints:
                await process.storage.scoped(scope).save(one)

    return given


def deleted(*checkpoint_ids: str) -> Given:
    """Let another process have deleted checkpoints, and what they leave behind is not swept: it was swept just now."""

    async def given(world: World) -> None:
        async with world.process() as process:
            await process.storage.save(saved("to-be-swept", gone=True))
            for checkpoint_id in ("to-be-swept", *checkpoint_ids):
                assert await process.storage.delete(checkpoint_id)

    return given


async def _refuse_batches(request: HttpRequest, send: Send) -> EmbeddedResponse:
    """Let pass what is no batch, so the parts of an upload but not its commit."""
    is_batch = "x-ms-cosmos-is-batch-request" in request.headers
    return await status(413)(request, send) if is_batch else await send()


async def upload_that_failed(world: World) -> None:
    """Let another process have written all parts of a checkpoint and not the checkpoint."""
    async with world.process() as process:
        process.transport.weather = lambda: _refuse_batches
        with pytest.raises(errors.ServiceError):
            await process.storage.save(replace(LARGE, checkpoint_id="never"))


def later(hours: float) -> Given:
    """Let time have passed."""

    async def given(world: World) -> None:
        world.clock.advance(hours * HOUR)

    return given


def save(one: WorkflowCheckpoint) -> Call:
    """Return the save of a checkpoint."""
    return lambda storage: storage.save(one)


def load(checkpoint_id: str) -> Call:
    """Return the load of a checkpoint."""
    return lambda storage: storage.load(checkpoint_id)


def delete(checkpoint_id: str) -> Call:
    """Return the deletion of a checkpoint."""
    return lambda storage: storage.delete(checkpoint_id)


def has_loaded(checkpoint_id: str) -> Warm:
    """Let the process have loaded a checkpoint: it remembers the keyframe."""
    return lambda _, storage: storage.load(checkpoint_id)


async def has_listed(_world: World, storage: TenantCheckpointStorage) -> None:
    """Let the process have seen which ids are in which workflow."""
    await storage.list_checkpoint_ids(workflow_name=WORKFLOW)


async def keyframe_was_erased(world: World, storage: TenantCheckpointStorage) -> None:
    """Let the process remember a keyframe that another one has erased meanwhile."""
    await storage.load("medium")
    async with world.process() as other:
        await other.storage.erase()


def _saves() -> list[Kind]:
    def kind(name: str, requests: int, one: WorkflowCheckpoint, *given: Given, warm: Warm | None = None) -> Kind:
        return Kind(f"save-{name}", CHECKPOINT_SAVE, requests, save(one), given, warm)

    return [
        kind("small", 1, saved("small-next", "small", total=2), there(SMALL)),
        kind("known-keyframe", 1, NEXT, there(MEDIUM), warm=has_loaded("medium")),
        kind("new-keyframe", 1, MEDIUM, there(SMALL)),
        kind("keyframe-in-parts", 5, LARGE, there(SMALL)),
        kind("in-parts", 4, CHANGED, there(LARGE), warm=has_loaded("large")),
        kind("replacing", 3, replace(SMALL, state={"total": 2}), there(SMALL)),
        kind("replacing-parts", 8, CHANGED_AGAIN, there(LARGE, CHANGED), warm=has_loaded("large")),
        kind("again", 2, NEXT, there(MEDIUM, NEXT), warm=has_loaded("medium")),
        kind("guard-expired", 3, NEXT, there(MEDIUM), later(25), warm=has_loaded("medium")),
        kind("keyframe-erased", 3, NEXT, there(MEDIUM), warm=keyframe_was_erased),
    ]


def _reads() -> list[Kind]:
    def kind(name: str, requests: int, call: Call, *given: Given, warm: Warm | None = None) -> Kind:
        return Kind(f"load-{name}", CHECKPOINT_LOAD, requests, call, given, warm)

    def latest(storage: TenantCheckpointStorage) -> Awaitable[object]:
        return storage.get_latest(workflow_name=WORKFLOW)

    everything = there(SMALL, MEDIUM, NEXT, LARGE, CHANGED)
    return [
        kind("known-workflow", 1, load("small"), there(SMALL), warm=has_listed),
        kind("unknown-workflow", 1, load("small"), there(SMALL)),
        kind("keyframe", 2, load("medium-next"), there(MEDIUM, NEXT), warm=has_listed),
        kind("parts", 7, load("large-next"), there(LARGE, CHANGED), warm=has_listed),
        kind("none", 1, load("nope"), there(SMALL)),
        Kind("latest", CHECKPOINT_READ_LATEST, 1, latest, (there(SMALL),)),
        Kind("latest-keyframe", CHECKPOINT_READ_LATEST, 2, latest, (there(MEDIUM, NEXT),)),
        Kind("latest-none", CHECKPOINT_READ_LATEST, 1, latest),
        Kind("list", CHECKPOINT_LIST, 8, lambda s: s.list_checkpoints(workflow_name=WORKFLOW), (everything,)),
        Kind(
            "list-ids", CHECKPOINT_LIST_IDS, 1, lambda s: s.list_checkpoint_ids(workflow_name=WORKFLOW), (everything,)
        ),
    ]


def _removals() -> list[Kind]:
    def kind(name: str, requests: int, call: Call, *given: Given) -> Kind:
        return Kind(f"delete-{name}", CHECKPOINT_DELETE, requests, call, given)

    both: tuple[Place, ...] = (("", WORKFLOW), ("", SECOND), ("other", WORKFLOW))
    others = (there(saved("second", None, SECOND, total=3)), there(replace(MEDIUM), scope="other"))
    everything = there(SMALL, MEDIUM, NEXT, LARGE, CHANGED)
    orphans = (there(MEDIUM, LARGE, CHANGED), deleted("medium", "large", "large-next"), upload_that_failed)
    return [
        kind("small", 5, delete("small"), there(SMALL)),
        kind("parts", 8, delete("large-next"), there(LARGE, CHANGED)),
        kind("last", 9, delete("medium"), there(MEDIUM)),
        kind("last-in-parts", 12, delete("large"), there(LARGE)),
        kind("none", 1, delete("nope"), there(SMALL)),
        Kind(
            "erase",
            ERASE,
            26,
            lambda storage: storage.erase(),
            (everything, upload_that_failed, *others),
            places=both,
            in_steps=True,
        ),
        Kind(
            "sweep",
            SWEEP,
            18,
            lambda storage: storage.sweep(),
            (*orphans, there(MEDIUM, NEXT), *others, later(2)),
            places=both,
        ),
    ]


KINDS: Final = (*_saves(), *_reads(), *_removals())
