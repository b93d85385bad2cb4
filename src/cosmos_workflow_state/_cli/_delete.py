"""``checkpoints delete``: some by id, or everything of a place; never without being told so twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from cosmos_workflow_state.typing import CheckpointSummary, EraseProgress

from ._asking import ask
from ._browse import read_headers, refuse_missing_workflow
from ._output import say, say_json
from ._screen import progress, show, width
from ._store import Place, finish, opened, resolve
from ._views._headers import headers_table
from ._views._layout import counted

_NOTHING: Final = "nothing was deleted"


@dataclass(frozen=True, slots=True)
class _Deleted:
    workflow_name: str
    checkpoint_id: str
    deleted: bool


def delete_some(place: Place, texts: Sequence[str], *, yes: bool, dry_run: bool, as_json: bool) -> None:
    """Delete checkpoints by id.

    Raises:
        CommandError: One is not there, nobody said yes, or the library refused or failed.
    """
    found = finish(_resolve_all(place, texts))
    if not dry_run:
        what = f"delete {counted(len(found), 'checkpoint')} of {place}"
        ask(what, yes=yes, about=[f"{one.checkpoint_id} of {one.workflow_name}" for one in found], no=_NOTHING)
    done = [] if dry_run else finish(_delete(place, found))
    gone = [one.checkpoint_id for one in done if not one.deleted]
    if as_json:
        ids = [{"workflow_name": one.workflow_name, "checkpoint_id": one.checkpoint_id} for one in found]
        answer = {"dry_run": dry_run, "checkpoints": ids, "already_gone": gone}
        say_json({"tenant_id": place.tenant, "scope": place.scope, **answer})
        return
    if dry_run:
        show(headers_table(found, width()))
    say(f"{'would delete' if dry_run else 'deleted'} {counted(len(found) - len(gone), 'checkpoint')}")


def delete_all(place: Place, *, yes: bool, dry_run: bool, as_json: bool) -> None:
    """Delete everything of a place, keyframes included.

    Raises:
        CommandError: The workflow that is named is not there, nobody said yes, or the library refused or failed.
    """
    looks = dry_run or not yes
    counts = finish(_count(place)) if looks else {}
    total = sum(counts.values())
    if looks and not total:
        refuse_missing_workflow(place)
    if not dry_run:
        many = counted(len(counts), "workflow")
        ask(f"delete everything of {place}: {counted(total, 'checkpoint')} in {many}", yes=yes, no=_NOTHING)
    done = EraseProgress(checkpoints=total) if dry_run else finish(_erase(place, total or None))
    if not dry_run and done == EraseProgress():  # what nothing refers to may be left of a workflow without checkpoints
        refuse_missing_workflow(place)
    if as_json:
        erased = {"checkpoints": done.checkpoints, "keyframes": done.keyframes, "uploads": done.uploads}
        say_json({"tenant_id": place.tenant, "scope": place.scope, "dry_run": dry_run, "erased": erased})
        return
    say(f"{'would delete' if dry_run else 'deleted'} {counted(done.checkpoints, 'checkpoint')}")


async def _resolve_all(place: Place, texts: Sequence[str]) -> list[CheckpointSummary]:
    async with opened(place) as storage:
        found = [await resolve(storage, place, text) for text in texts]
    return list({(one.workflow_name, one.checkpoint_id): one for one in found}.values())


async def _delete(place: Place, found: Sequence[CheckpointSummary]) -> list[_Deleted]:
    done: list[_Deleted] = []
    async with opened(place) as storage:
        with progress("deleting") as report:
            for one in found:
                deleted = await storage.for_workflow(one.workflow_name).delete(one.checkpoint_id)
                done.append(_Deleted(one.workflow_name, one.checkpoint_id, deleted))
                report(len(done), len(found))
    return done


async def _count(place: Place) -> dict[str, int]:
    async with opened(place) as storage:
        names = await storage.list_workflows() if place.workflow is None else [place.workflow]
        with progress("counting") as report:
            return {name: len(found) for name, found in (await read_headers(storage, names, report)).items()}


async def _erase(place: Place, total: int | None) -> EraseProgress:
    async with opened(place) as storage:
        with progress("deleting") as report:
            return await storage.erase(progress=lambda done: report(done.checkpoints, total))
