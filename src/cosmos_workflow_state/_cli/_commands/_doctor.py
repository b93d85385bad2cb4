"""``doctor``: whether everything between the settings and the container is right."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from ._options import Json, Yes


class Kind(StrEnum):
    """What a container is for; typer takes a list of choices in no other way."""

    CHECKPOINTS = "checkpoints"
    HISTORY = "history"
    SESSIONS = "sessions"


def doctor(
    *,
    fix: Annotated[
        bool,
        typer.Option("--fix", help="Repair indexing policies and default TTLs of containers."),
    ] = False,
    kinds: Annotated[
        list[Kind] | None,
        typer.Option(
            "--for", help="What is used, so that its container has to be there; repeat it. Otherwise: checkpoints."
        ),
    ] = None,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Check settings, network, rights and containers, and say what to do."""
    from cosmos_workflow_state._cli._doctor import run_doctor

    raise typer.Exit(run_doctor(fix=fix, yes=yes, as_json=as_json, kinds=kinds or ()))
