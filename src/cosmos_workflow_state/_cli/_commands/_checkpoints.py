"""``checkpoints``: look at a tenant's checkpoints, and delete them."""

from __future__ import annotations

from typing import Annotated

import typer

from ._options import Checkpoint, Decode, Json, Scope, Tenant, Workflow, Yes

checkpoints = typer.Typer(
    name="checkpoints", help="Show, compare and delete the checkpoints of a tenant.", no_args_is_help=True
)


@checkpoints.command("list")
def list_(
    *,
    tenant: Tenant,
    scope: Scope = "",
    workflow: Workflow = None,
    limit: Annotated[int | None, typer.Option(min=1, metavar="N", help="Only the newest N of each workflow.")] = None,
    as_json: Json = False,
) -> None:
    """List checkpoints by workflow, oldest first, without reading their state."""
    from cosmos_workflow_state._cli._browse import list_checkpoints
    from cosmos_workflow_state._cli._store import Place

    list_checkpoints(Place(tenant, scope, workflow), limit, as_json=as_json)


@checkpoints.command()
def show(
    checkpoint: Checkpoint,
    *,
    tenant: Tenant,
    scope: Scope = "",
    workflow: Workflow = None,
    decode: Decode = False,
    as_json: Json = False,
) -> None:
    """Show one checkpoint and the structure of its state."""
    from cosmos_workflow_state._cli._look import show_checkpoint
    from cosmos_workflow_state._cli._store import Place

    show_checkpoint(Place(tenant, scope, workflow), checkpoint, decode=decode, as_json=as_json)


@checkpoints.command()
def tree(
    checkpoint: Annotated[
        str | None,
        typer.Argument(metavar="CHECKPOINT", help="Only its ancestors and descendants; an id or its beginning."),
    ] = None,
    *,
    tenant: Tenant,
    scope: Scope = "",
    workflow: Workflow = None,
    everything: Annotated[bool, typer.Option("--all", help="Draw every checkpoint, also in long runs.")] = False,
    as_json: Json = False,
) -> None:
    """Draw the lineage of checkpoints: forks, and what waits for an answer."""
    from cosmos_workflow_state._cli._browse import draw_tree
    from cosmos_workflow_state._cli._store import Place

    draw_tree(Place(tenant, scope, workflow), checkpoint, everything=everything, as_json=as_json)


@checkpoints.command()
def diff(
    before: Annotated[str, typer.Argument(metavar="BEFORE", help="An id, or its beginning.")],
    after: Annotated[str, typer.Argument(metavar="AFTER", help="An id, or its beginning.")],
    *,
    tenant: Tenant,
    scope: Scope = "",
    workflow: Workflow = None,
    decode: Decode = False,
    as_json: Json = False,
) -> None:
    """Show what two checkpoints differ in."""
    from cosmos_workflow_state._cli._look import compare
    from cosmos_workflow_state._cli._store import Place

    compare(Place(tenant, scope, workflow), before, after, decode=decode, as_json=as_json)


@checkpoints.command()
def delete(
    checkpoint: Annotated[
        list[str] | None, typer.Argument(metavar="CHECKPOINT", help="Ids, or their beginnings.")
    ] = None,
    *,
    tenant: Tenant,
    scope: Scope = "",
    workflow: Workflow = None,
    everything: Annotated[bool, typer.Option("--all", help="All of the scope, or of --workflow in it.")] = False,
    yes: Yes = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be deleted.")] = False,
    as_json: Json = False,
) -> None:
    """Delete checkpoints, after asking."""
    from cosmos_workflow_state._cli._delete import delete_all, delete_some
    from cosmos_workflow_state._cli._store import Place

    if everything == bool(checkpoint):
        raise typer.BadParameter("give either checkpoints or --all")
    place = Place(tenant, scope, workflow)
    if everything:
        delete_all(place, yes=yes, dry_run=dry_run, as_json=as_json)
    else:
        delete_some(place, checkpoint or [], yes=yes, dry_run=dry_run, as_json=as_json)
