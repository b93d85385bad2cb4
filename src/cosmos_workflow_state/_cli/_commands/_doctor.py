"""``doctor``: whether everything between the settings and the container is right."""

from __future__ import annotations

from typing import Annotated

import typer

from ._options import Json, Yes


def doctor(
    *,
    fix: Annotated[
        bool,
        typer.Option("--fix", help="Replace the container's indexing policy and default TTL where they are wrong."),
    ] = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Check settings, network, rights and container, and say what to do."""
    from cosmos_workflow_state._cli._doctor import run_doctor

    raise typer.Exit(run_doctor(fix=fix, yes=yes, as_json=as_json))
