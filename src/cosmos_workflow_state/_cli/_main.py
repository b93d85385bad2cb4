"""Arguments to commands, and every way a command fails to an exit code and at most one line on standard error."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Final, cast

from ._demo import demo
from ._output import PROGRAM, CommandError, complain

_FAILED: Final = 1


def run(arguments: Sequence[str] | None) -> int:
    """Run the command that the arguments name; see ``main``.

    Returns:
        The exit code: 0, or 1 when the command failed.

    Raises:
        SystemExit: The arguments are wrong (code 2), or ask for the help or the version (code 0).
    """
    command = cast("Callable[[], None]", _parser().parse_args(arguments).command)
    if sys.stdout is None:  # the shell's ">&-"
        return _fail("standard output is closed")
    try:
        command()
    except BrokenPipeError:
        # The reader is gone ("… | head"). What is still buffered must not be written at exit: that would fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _FAILED
    except (CommandError, OSError) as error:
        return _fail(str(error))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROGRAM, description="Durable, multi-tenant state for Microsoft Agent Framework workflows."
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {version(PROGRAM)}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    about = "run a workflow to a pause, kill its process and finish it in another; needs no account and no network"
    commands.add_parser("demo", help=about, description=f"{about.capitalize()}.").set_defaults(command=demo)
    return parser


def _fail(message: str) -> int:
    complain(message)
    return _FAILED
