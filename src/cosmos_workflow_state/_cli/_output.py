"""What every command prints with: lines, complaints and plain tables, and the codes a command ends with.

Imports nothing that is slow: the demo, the emulator and the help need no more than this.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Final

PROGRAM: Final = "cosmos-workflow-state"


class ExitCode(IntEnum):
    """What the process ends with; part of the interface, documented in docs/how-to/command-line.md."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    ACCESS_DENIED = 4
    TRY_AGAIN = 5
    NOT_PROVISIONED = 6
    INTERRUPTED = 130  # what shells report for a command ended by Ctrl-C: 128 + SIGINT


class CommandError(Exception):
    """A command cannot go on; the message is what its user sees, and ends with what to do about it.

    Attributes:
        code: What the process ends with.
    """

    def __init__(self, message: str, code: ExitCode = ExitCode.FAILED) -> None:
        """Keep the code beside the message."""
        super().__init__(message)
        self.code = code


def say(text: str = "") -> None:
    """Print a line at once, also into a pipe: what a command does can be followed while it does it."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def complain(message: str) -> None:
    """Print a message on standard error, where there is one."""
    if sys.stderr is not None:  # the shell's "2>&-"
        shown = "\n".join(map(printable, message.split("\n")))
        sys.stderr.write(f"{PROGRAM}: {shown}\n")


def printable(text: str) -> str:
    """Return a text in which nothing can steer a terminal: control characters and the like are written out."""
    return text if text.isprintable() else "".join(map(_written_out, text))


def _written_out(character: str) -> str:
    if character.isprintable():
        return character
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")


def table(headings: Sequence[str], rows: Sequence[Sequence[str | int]]) -> Iterator[str]:
    """Yield the lines of a table: text to the left, numbers to the right with thousands apart."""
    texts = [[f"{cell:,}" if isinstance(cell, int) else cell for cell in row] for row in rows]
    widths = [max(len(line[column]) for line in (headings, *texts)) for column in range(len(headings))]
    numeric = [any(isinstance(row[column], int) for row in rows) for column in range(len(headings))]
    for line in (headings, ["-" * width for width in widths], *texts):
        cells = zip(line, widths, numeric, strict=True)
        yield "  ".join(cell.rjust(width) if right else cell.ljust(width) for cell, width, right in cells).rstrip()
