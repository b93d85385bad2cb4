"""The commands and their arguments, one function each. What they do and print is imported when they run.

A further command is a function in a module of its own here, added to ``app`` below.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer

from cosmos_workflow_state._cli._output import PROGRAM, say

from ._checkpoints import checkpoints
from ._config import config
from ._doctor import doctor
from ._local import demo, emulator
from ._migrate import migrate
from ._provision import provision
from ._workflows import workflows

__all__ = ["app"]

# Plain help: rich's draws boxes in Unicode, and colours them wherever a build server asks for colours.
app = typer.Typer(rich_markup_mode=None, no_args_is_help=True, pretty_exceptions_enable=False)


def _version(asked: bool) -> None:  # noqa: FBT001 - typer calls it so
    if asked:
        say(f"{PROGRAM} {version(PROGRAM)}")
        raise typer.Exit


@app.callback()
def program(
    *,
    _version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Durable, multi-tenant state for Microsoft Agent Framework workflows.

    Settings are read from the environment and .env: `config show` lists them.
    """


app.command()(doctor)
app.command()(provision)
app.add_typer(config)
app.add_typer(workflows)
app.add_typer(checkpoints)
app.add_typer(migrate)
app.command()(emulator)
app.command()(demo)
