"""Asking a person before something is done that cannot be undone."""

from __future__ import annotations

import sys
from collections.abc import Iterable

import typer

from ._output import CommandError, ExitCode, printable


def ask(what: str, *, yes: bool, no: str, about: Iterable[str] = ()) -> None:
    """Ask on a terminal; return when the answer is yes, or was given before.

    Args:
        what: The verb and its object.
        yes: Whether it was given before.
        no: What is said when it is not done.
        about: Lines to read before the answer.

    Raises:
        CommandError: The answer is no, or there is nobody to ask.
    """
    if yes:
        return
    if sys.stdin is None or not sys.stdin.isatty():
        raise CommandError(f"would {what}; add --yes to do so where nobody can be asked", ExitCode.USAGE)
    for line in about:
        typer.echo(f"  {printable(line)}", err=True)
    if not typer.confirm(f"{what[0].upper()}{what[1:]}?", err=True):
        raise CommandError(no)
