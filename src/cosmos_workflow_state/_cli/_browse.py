"""``workflows list``, ``checkpoints list`` and ``checkpoints tree``: headers only, never a state."""

from __future__ import annotations

from collections.abc import Iterable

from cosmos_workflow_state import TenantCheckpointStorage
from cosmos_workflow_state.typing import CheckpointSummary

from ._output import CommandError, ExitCode, say_json
from ._screen import Report, note, progress, show, width
from ._store import Place, finish, opened, resolve
from ._views._headers import header_json, headers_table
from ._views._layout import Column, layout
from ._views._lineage import forest_of, related_to
from ._views._tree import tree_json, tree_lines


def list_workflows(place: Place, *, as_json: bool) -> None:
    """Print the names of the workflows of a place.

    Raises:
        CommandError: The library refused or failed.
    """
    names = finish(_workflows(place))
    if as_json:
        say_json({"tenant_id": place.tenant, "scope": place.scope, "workflows": names})
    elif names:
        show(layout([Column("workflow", style="cyan")], [[name] for name in names], width()))
    else:
        _note_nothing(place)


def list_checkpoints(place: Place, limit: int | None, *, as_json: bool) -> None:
    """Print the headers of a place, workflow by workflow, each oldest first.

    Raises:
        CommandError: The workflow that is named is not there, or the library refused or failed.
    """
    found = [header for headers in finish(_headers(place, limit)).values() for header in headers]
    if not found:
        refuse_missing_workflow(place)
    if as_json:
        checkpoints = [header_json(header) for header in found]
        say_json({"tenant_id": place.tenant, "scope": place.scope, "checkpoints": checkpoints})
    elif found:
        show(headers_table(found, width()))
    else:
        _note_nothing(place)


def draw_tree(place: Place, checkpoint: str | None, *, everything: bool, as_json: bool) -> None:
    """Print the lineages of a place, or those that a checkpoint is part of.

    Raises:
        CommandError: There is nothing, the checkpoint is not there, or the library refused or failed.
    """
    found = finish(_headers(place) if checkpoint is None else _relatives(place, checkpoint))
    forests = {name: forest_of(headers) for name, headers in found.items() if headers}
    if not forests:
        refuse_missing_workflow(place)
    if as_json:
        trees = [tree_json(name, forest) for name, forest in forests.items()]
        say_json({"tenant_id": place.tenant, "scope": place.scope, "workflows": trees})
        return
    for name, forest in forests.items():
        show(tree_lines(name, forest, width(), everything=everything))
    if not forests:
        _note_nothing(place)


async def _workflows(place: Place) -> list[str]:
    async with opened(place) as storage:
        return await storage.list_workflows()


async def _headers(place: Place, limit: int | None = None) -> dict[str, list[CheckpointSummary]]:
    async with opened(place) as storage:
        names = await storage.list_workflows() if place.workflow is None else [place.workflow]
        with progress("reading headers") as report:
            return await read_headers(storage, names, report, limit)


async def _relatives(place: Place, checkpoint: str) -> dict[str, list[CheckpointSummary]]:
    async with opened(place) as storage:
        one = await resolve(storage, place, checkpoint)
        with progress("reading headers") as report:
            found = await read_headers(storage, [one.workflow_name], report)
        forest = forest_of(found[one.workflow_name])
        # Deleted since it was found, or left out as unreadable: then there is nothing to draw.
        related = related_to(forest, one.checkpoint_id) if one.checkpoint_id in forest.headers else []
        return {one.workflow_name: related}


async def read_headers(
    storage: TenantCheckpointStorage, names: Iterable[str], report: Report, limit: int | None = None
) -> dict[str, list[CheckpointSummary]]:
    """Return the headers of workflows by name, oldest first.

    Args:
        storage: Where.
        names: Which workflows.
        report: Told how many were read.
        limit: Only so many of the newest of each workflow.
    """
    found: dict[str, list[CheckpointSummary]] = {}
    count = 0
    for name in names:
        newest_first = limit is not None
        headers: list[CheckpointSummary] = []
        async for header in storage.iter_checkpoint_headers(name, newest_first=newest_first, limit=limit):
            headers.append(header)
            count += 1
            report(count, None)
        found[name] = headers[::-1] if newest_first else headers
    return found


def refuse_missing_workflow(place: Place) -> None:
    """Say that nothing is stored of the workflow that is named, if one is: it is registered nowhere else.

    Raises:
        CommandError: It is.
    """
    if place.workflow is not None:
        raise CommandError(_nothing(place), ExitCode.NOT_FOUND)


def _note_nothing(place: Place) -> None:
    note(_nothing(place))


def _nothing(place: Place) -> str:
    return (
        f"nothing is stored of {place}; tenant, --scope and --workflow have to be exactly as the application gave them"
    )
