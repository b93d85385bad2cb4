"""``migrate``: move what the framework's own Cosmos stores have written."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

from ._options import Json, Scope

migrate = typer.Typer(
    name="migrate", help="Copy what the framework's own Cosmos stores have written.", no_args_is_help=True
)

From: TypeAlias = Annotated[
    str, typer.Option("--from", metavar="DATABASE/CONTAINER", help="What is copied; it is only ever read.")
]
FromEndpoint: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--from-endpoint",
        metavar="URL",
        help="The account of the source, if it is another; its key is read from COSMOS_MIGRATE_SOURCE_KEY.",
    ),
]
Tenant: TypeAlias = Annotated[str | None, typer.Option("--tenant", metavar="ID", help="Whose it all becomes.")]
TenantField: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--tenant-from-field",
        metavar="PATH",
        help="The field of each item that says whose it becomes, for example metadata.tenant.",
    ),
]
DryRun: TypeAlias = Annotated[bool, typer.Option("--dry-run", help="Only say what would be written.")]


@migrate.callback()
def only_commands() -> None:
    """Copy what the framework's own Cosmos stores have written."""


@migrate.command()
def checkpoints(
    *,
    source: From,
    endpoint: FromEndpoint = None,
    tenant: Tenant = None,
    tenant_field: TenantField = None,
    scope: Scope = "",
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Copy checkpoints that CosmosCheckpointStorage has written. Repeat it to go on where it ended."""
    from cosmos_workflow_state._cli import _migrate

    _check_tenant(tenant, tenant_field)
    request = _migrate.Request(source, endpoint, tenant, tenant_field, scope, dry_run, as_json)
    raise typer.Exit(_migrate.checkpoints(request))


@migrate.command()
def history(
    *,
    source: From,
    endpoint: FromEndpoint = None,
    tenant: Tenant = None,
    tenant_field: TenantField = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Copy chat histories that CosmosHistoryProvider has written. Repeat it to go on where it ended."""
    from cosmos_workflow_state._cli import _migrate

    _check_tenant(tenant, tenant_field)
    request = _migrate.Request(source, endpoint, tenant, tenant_field, "", dry_run, as_json)
    raise typer.Exit(_migrate.history(request))


def _check_tenant(tenant: str | None, tenant_field: str | None) -> None:
    if (tenant is None) == (tenant_field is None):
        raise typer.BadParameter("give either --tenant or --tenant-from-field")
