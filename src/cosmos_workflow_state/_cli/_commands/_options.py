"""Options that several commands take, written once."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

Tenant: TypeAlias = Annotated[str, typer.Option("--tenant", metavar="ID", help="Whose checkpoints.")]
Scope: TypeAlias = Annotated[
    str, typer.Option("--scope", metavar="TEXT", help="Which scope; the unnamed one if left out.")
]
Workflow: TypeAlias = Annotated[
    str | None, typer.Option("--workflow", metavar="NAME", help="Only this workflow; all of the scope if left out.")
]
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Yes: TypeAlias = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
Decode: TypeAlias = Annotated[
    bool, typer.Option("--decode", help="Restore pickled values, of allowed types only. Runs code of these types.")
]
Checkpoint: TypeAlias = Annotated[
    str, typer.Argument(metavar="CHECKPOINT", help="An id, or enough of its beginning to be unique.")
]
