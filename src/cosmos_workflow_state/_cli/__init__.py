"""The command line: one thin function a command. Nothing but ``__main__`` imports it; it alone configures structlog."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ._output import ExitCode, complain, complaining_as_asked

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: Those of the process when left out.

    Returns:
        The exit code, as docs/how-to/command-line.md lists them: 0 when all went well.
    """
    given = sys.argv[1:] if arguments is None else arguments
    with complaining_as_asked(given):
        try:
            from ._main import run  # noqa: PLC0415 - Ctrl-C while it imports must end as quietly as later

            return run(given)
        except KeyboardInterrupt:
            complain("interrupted", ExitCode.INTERRUPTED)
            return ExitCode.INTERRUPTED
