"""Where commands show what they have found: a terminal of some width, or a pipe, which has none; and progress.

Standard output has the result and nothing else. Progress is on standard error, and only where that is a terminal.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.text import Text

from ._output import complain, printable

_PATIENCE: Final = 0.5
"""Seconds before progress is worth showing."""

Report = Callable[[int, int | None], None]
"""Told how many are done, and of how many, None while nobody knows."""


def width() -> int | None:
    """Return the columns of the terminal, None where the output is no terminal: nothing is shortened to fit there."""
    return Console(file=sys.stdout).width if sys.stdout.isatty() else None


def show(lines: Sequence[Text]) -> None:
    """Print lines: in colours on a terminal that has them and is not told otherwise, plain into a pipe."""
    console = Console(file=sys.stdout, highlight=False, markup=False, emoji=False)
    for line in lines:
        console.print(line if line.plain.isprintable() else _written_out(line, console), soft_wrap=True)


def _written_out(line: Text, console: Console) -> Text:
    """Return a line in which nothing steers the terminal but its own styles."""
    return Text.assemble(*((printable(part.text), part.style or "") for part in line.render(console)))


def note(message: str) -> None:
    """Tell a person something that is no result."""
    complain(message)


@contextmanager
def progress(what: str, *, after: float = _PATIENCE) -> Generator[Report]:
    """Show how far long work is, on a terminal; it leaves nothing behind.

    Args:
        what: The work.
        after: Seconds before anything is shown.
    """
    console = Console(file=sys.stderr, highlight=False, markup=False, emoji=False)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    task = bar.add_task(printable(what), total=None)
    since = time.monotonic()

    def report(done: int, total: int | None) -> None:
        bar.update(task, completed=done, total=total)
        if time.monotonic() - since >= after:
            bar.start()

    try:
        yield report
    finally:
        # Some versions of rich end a bar that was never shown with an empty line.
        if bar.live.is_started:
            bar.stop()
