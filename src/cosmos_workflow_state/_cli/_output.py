"""What commands print: lines and tables of at most 80 columns, in ASCII so that every terminal shows them."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Final

PROGRAM: Final = "cosmos-workflow-state"


class CommandError(Exception):
    """A command cannot go on; the message is the one line its user sees."""


def say(text: str = "") -> None:
    """Print a line at once, also into a pipe: what a command does can be followed while it does it."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def complain(message: str) -> None:
    """Print a line on standard error, where there is one."""
    if sys.stderr is not None:  # the shell's "2>&-"
        sys.stderr.write(f"{PROGRAM}: {message}\n")


def table(headings: Sequence[str], rows: Sequence[Sequence[str | int]]) -> Iterator[str]:
    """Yield the lines of a table: text to the left, numbers to the right with thousands apart."""
    texts = [[f"{cell:,}" if isinstance(cell, int) else cell for cell in row] for row in rows]
    widths = [max(len(line[column]) for line in (headings, *texts)) for column in range(len(headings))]
    numeric = [any(isinstance(row[column], int) for row in rows) for column in range(len(headings))]
    for line in (headings, ["-" * width for width in widths], *texts):
        cells = zip(line, widths, numeric, strict=True)
        yield "  ".join(cell.rjust(width) if right else cell.ljust(width) for cell, width, right in cells).rstrip()
