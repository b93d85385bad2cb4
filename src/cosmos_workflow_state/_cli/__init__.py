"""The command line: one thin function a command. Nothing but ``__main__`` imports it; it alone configures structlog."""

from __future__ import annotations

from collections.abc import Sequence

from ._output import ExitCode, complain

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: Those of the process when left out.

    Returns:
        The exit code, as docs/how-to/command-line.md lists them: 0 when all went well.
    """
    try:
        from ._main import run  # noqa: PLC0415 - Ctrl-C while it imports must end as quietly as later

        return run(arguments)
    except KeyboardInterrupt:
        complain("interrupted")
        return ExitCode.INTERRUPTED
