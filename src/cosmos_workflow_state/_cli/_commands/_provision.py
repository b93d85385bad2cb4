"""``provision``: make an account ready, or print how."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from ._options import Json, Yes


def provision(
    *,
    plan: Annotated[
        Literal["az", "bicep", "arm"] | None,
        typer.Option("--print", help="Only print what makes an account ready, for Azure's own tools."),
    ] = None,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Create database and containers where they are missing, after asking."""
    from cosmos_workflow_state._cli._provision import print_plan
    from cosmos_workflow_state._cli._provision import provision as create

    if plan is not None:
        print_plan(plan, as_json=as_json)
        return
    raise typer.Exit(create(yes=yes, as_json=as_json))
