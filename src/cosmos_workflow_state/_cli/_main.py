"""Arguments to commands, and every way a command ends to an exit code and at most one line on standard error."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Final, cast

from ._demo import demo
from ._output import CommandError

_PROGRAM: Final = "cosmos-workflow-state"
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
    command = cast("Callable[[], None]", _parser().parse_args(arguments).command)
    try:
        command()
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
    about = "run a workflow to a pause, kill its process and finish it in another; needs no account and no network"
    commands.add_parser("demo", help=about, description=f"{about.capitalize()}.").set_defaults(command=demo)
    return parser


def _fail(message: str, code: int) -> int:
    sys.stderr.write(f"{_PROGRAM}: {message}\n")
    return code
