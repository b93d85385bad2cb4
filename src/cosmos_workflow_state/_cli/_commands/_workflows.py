"""``workflows``: which workflows a tenant has checkpoints of."""

from __future__ import annotations

import typer

from ._options import Json, Scope, Tenant

workflows = typer.Typer(name="workflows", help="Show the workflows of a tenant.", no_args_is_help=True)


@workflows.callback()
def only_commands() -> None:
    """Show the workflows of a tenant."""


@workflows.command("list")
def list_(*, tenant: Tenant, scope: Scope = "", as_json: Json = False) -> None:
    """List the workflows that have checkpoints, by name."""
    from cosmos_workflow_state._cli._browse import list_workflows
    from cosmos_workflow_state._cli._store import Place

    list_workflows(Place(tenant, scope), as_json=as_json)
