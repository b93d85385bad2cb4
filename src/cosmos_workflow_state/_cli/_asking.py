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
        KeyboardInterrupt: The answer is Ctrl-C.
    """
    if yes:
        return
    if sys.stdin is None or not sys.stdin.isatty():
        raise CommandError(f"would {what}; add --yes to do so where nobody can be asked", ExitCode.USAGE)
    for line in about:
        typer.echo(f"  {printable(line)}", err=True)
    if not _confirmed(printable(f"{what[0].upper()}{what[1:]}?")):
        raise CommandError(no)


def _confirmed(question: str) -> bool:
    try:
        return typer.confirm(question, err=True)
    except typer.Abort as ended:
        typer.echo(err=True)  # what is said next is not to stand behind the question
        # Typer makes the same of Ctrl-C and of Ctrl-D, which is no answer.
        if isinstance(ended.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        return False
