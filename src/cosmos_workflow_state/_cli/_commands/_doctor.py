"""``doctor``: whether everything between the settings and the container is right."""

from __future__ import annotations

from typing import Annotated

import typer

from ._options import Json, Yes


def doctor(
    *,
    fix: Annotated[
        bool,
        typer.Option("--fix", help="Repair indexing policies and default TTLs of containers."),
    ] = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Check settings, network, rights and containers, and say what to do."""
    from cosmos_workflow_state._cli._doctor import run_doctor

    raise typer.Exit(run_doctor(fix=fix, yes=yes, as_json=as_json))
