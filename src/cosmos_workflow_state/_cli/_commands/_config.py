"""``config``: which settings are in force, and what can be set."""

from __future__ import annotations

from typing import Annotated

import typer

from ._options import Json

config = typer.Typer(name="config", help="Show settings, and what can be set.", no_args_is_help=True)


@config.command()
def show(*, as_json: Json = False) -> None:
    """Show the settings in force, secrets masked, and where each comes from."""
    from cosmos_workflow_state._cli._config import show_settings

    show_settings(as_json=as_json)


@config.command()
def schema(*, _as_json: Annotated[bool, typer.Option("--json", help="It is JSON anyway.")] = False) -> None:
    """Print the JSON schema of the settings."""
    from cosmos_workflow_state._cli._config import print_schema

    print_schema()
