"""Arguments to commands, and every way a command ends to an exit code and at most one line on standard error."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Final, cast

from ._demo import demo
from ._emulator import ABOUT, add_arguments, run_emulator
from ._output import CommandError

_PROGRAM: Final = "cosmos-workflow-state"
_DEMO: Final = "run a workflow to a pause, kill its process and finish it in another; needs no account and no network"
_FAILED: Final = 1
_INTERRUPTED: Final = 130  # what shells report for a command ended by Ctrl-C: 128 + SIGINT


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: Those of the process when left out.

    Returns:
        The exit code: 0, 1 when the command failed, 130 when it was interrupted.

    Raises:
        SystemExit: The arguments are wrong (code 2), or ask for the help or the version (code 0).
    """
    parsed = _parser().parse_args(arguments)
    command = cast("Callable[[argparse.Namespace], None]", parsed.command)
    try:
        command(parsed)
    except KeyboardInterrupt:
        return _fail("interrupted", _INTERRUPTED)
    except BrokenPipeError:
        # The reader is gone ("… | head"). What is still buffered must not be written at exit: that would fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _FAILED
    except (CommandError, OSError) as error:
        return _fail(str(error), _FAILED)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=_PROGRAM, description="Durable, multi-tenant state for Microsoft Agent Framework workflows."
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {version(_PROGRAM)}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    demo_parser = commands.add_parser("demo", help=_DEMO, description=f"{_DEMO.capitalize()}.")
    demo_parser.set_defaults(command=_run_demo)
    emulator_parser = commands.add_parser("emulator", help=ABOUT, description=f"{ABOUT.capitalize()}.")
    add_arguments(emulator_parser)
    emulator_parser.set_defaults(command=run_emulator)
    return parser


def _run_demo(_: argparse.Namespace) -> None:
    demo()


def _fail(message: str, code: int) -> int:
    sys.stderr.write(f"{_PROGRAM}: {message}\n")
    return code
