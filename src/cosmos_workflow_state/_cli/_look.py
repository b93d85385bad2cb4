"""``checkpoints show`` and ``checkpoints diff``: into states, restoring nothing unless that is asked for."""

from __future__ import annotations

from dataclasses import fields
from typing import Final

from agent_framework import WorkflowCheckpoint

from cosmos_workflow_state import TenantCheckpointStorage
from cosmos_workflow_state._maf import MAX_DEPTH
from cosmos_workflow_state.typing import CheckpointOutline

from ._output import CommandError, say_json, warn
from ._screen import show, width
from ._store import Place, finish, opened, resolve
from ._views._changes import changes
from ._views._headers import header_json
from ._views._state import change_json, changes_lines, checkpoint_lines, without_identity
from ._views._values import is_deeper, plain, to_json

_FIELDS: Final = [field.name for field in fields(WorkflowCheckpoint)]


def show_checkpoint(place: Place, checkpoint: str, *, decode: bool, as_json: bool) -> None:
    """Print one checkpoint.

    Raises:
        CommandError: It is not there, cannot be read, or the library refused or failed.
    """
    [found] = finish(_read(place, [checkpoint], decode=decode))
    if as_json:
        answer = {"checkpoint": header_json(found.summary), "decoded": decode}
        state = {"fields": to_json(without_identity(found.fields))}
        say_json({"tenant_id": place.tenant, "scope": place.scope, **answer, **state})
    else:
        show(checkpoint_lines(found.summary, found.fields, width()))


def compare(place: Place, before: str, after: str, *, decode: bool, as_json: bool) -> None:
    """Print what two checkpoints differ in.

    Raises:
        CommandError: One is not there, cannot be read, or the library refused or failed.
    """
    old, new = finish(_read(place, [before, after], decode=decode))
    found = list(changes(without_identity(old.fields), without_identity(new.fields)))
    ids = (old.summary.checkpoint_id, new.summary.checkpoint_id)
    if as_json:
        answer = {"before": ids[0], "after": ids[1], "decoded": decode, "changes": [*map(change_json, found)]}
        say_json({"tenant_id": place.tenant, "scope": place.scope, **answer})
    else:
        show(changes_lines(*ids, found, width()))


async def _read(place: Place, checkpoints: list[str], *, decode: bool) -> list[CheckpointOutline]:
    async with opened(place) as storage:
        return [await _read_one(storage, place, checkpoint, decode=decode) for checkpoint in checkpoints]


async def _read_one(
    storage: TenantCheckpointStorage, place: Place, checkpoint: str, *, decode: bool
) -> CheckpointOutline:
    one = await resolve(storage, place, checkpoint)
    narrowed = storage.for_workflow(one.workflow_name)
    if not decode:
        outline = await narrowed.inspect(one.checkpoint_id)
        _refuse_too_deep(outline)
        return outline
    restored = await narrowed.load(one.checkpoint_id)
    found = plain({name: getattr(restored, name) for name in _FIELDS})
    if not found.whole:
        warn(f"checkpoint {one.checkpoint_id!r} has more values than can be shown; the last of them are left out")
    return CheckpointOutline(one, found.value)


def _refuse_too_deep(outline: CheckpointOutline) -> None:
    if is_deeper(outline.fields, MAX_DEPTH):
        raise CommandError(
            f"the state of checkpoint {outline.summary.checkpoint_id!r} nests deeper than {MAX_DEPTH} levels: no save "
            "writes that, so something else has changed the item"
        )
