"""Arguments to commands, and every way a command fails to an exit code and at most one line on standard error."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Final, cast

from ._demo import demo
from ._emulator import ABOUT, add_arguments, run_emulator
from ._output import PROGRAM, CommandError, complain

_DEMO: Final = "run a workflow to a pause, kill its process and finish it in another; needs no account and no network"
_FAILED: Final = 1


def run(arguments: Sequence[str] | None) -> int:
    """Run the command that the arguments name; see ``main``.

    Returns:
        The exit code: 0, or 1 when the command failed.

    Raises:
        SystemExit: The arguments are wrong (code 2), or ask for the help or the version (code 0).
    """
    parsed = _parser().parse_args(arguments)
    command = cast("Callable[[argparse.Namespace], None]", parsed.command)
    if sys.stdout is None:  # the shell's ">&-"
        return _fail("standard output is closed")
    try:
        command(parsed)
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
    demo_parser = commands.add_parser("demo", help=_DEMO, description=f"{_DEMO.capitalize()}.")
    demo_parser.set_defaults(command=_run_demo)
    emulator_parser = commands.add_parser("emulator", help=ABOUT, description=f"{ABOUT[0].upper()}{ABOUT[1:]}.")
    add_arguments(emulator_parser)
    emulator_parser.set_defaults(command=run_emulator)
    return parser


def _run_demo(_: argparse.Namespace) -> None:
    demo()


def _fail(message: str) -> int:
    complain(message)
    return _FAILED
