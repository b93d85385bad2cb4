"""The command line: one thin function a command. Nothing but ``__main__`` imports it; it alone configures structlog."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ._output import complain

__all__ = ["main"]

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
    try:
        from ._main import run  # noqa: PLC0415 - Ctrl-C while it imports must end as quietly as later

        return run(arguments)
    except KeyboardInterrupt:
        complain("interrupted")
        return _INTERRUPTED
