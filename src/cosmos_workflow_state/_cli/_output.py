"""What every command prints with: lines, JSON, complaints and plain tables, and the codes a command ends with.

Imports nothing that is slow: the demo, the emulator and the help need no more than this.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from enum import IntEnum
from itertools import takewhile
from typing import Any, Final

PROGRAM: Final = "cosmos-workflow-state"

_IS_FOR_PROGRAMS: Final[ContextVar[bool]] = ContextVar("is_for_programs", default=False)


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
    """Print lines at once, also into a pipe: what a command does can be followed while it does it."""
    sys.stdout.write(f"{printable_lines(text)}\n")
    sys.stdout.flush()


@contextmanager
def complaining_as_asked(arguments: Sequence[str]) -> Generator[None]:
    """Let all that is written to standard error in the block be JSON where ``--json`` is among the arguments.

    It is looked for by its text: arguments that cannot be understood are a complaint as well.
    """
    as_json = "--json" in takewhile(lambda argument: argument != "--", arguments)
    before = _IS_FOR_PROGRAMS.set(as_json)
    try:
        yield
    finally:
        _IS_FOR_PROGRAMS.reset(before)


def is_for_programs() -> bool:
    """Return whether standard error is read by a program: then each of its lines is a JSON object."""
    return _IS_FOR_PROGRAMS.get()


def say_json(document: Any, *, in_one_line: bool = False) -> None:
    """Print one JSON document, ASCII, so that every reader takes it."""
    say(_json_text(document) if in_one_line else json.dumps(document, indent=2, allow_nan=False))


def complain(message: str, code: ExitCode = ExitCode.FAILED) -> None:
    """Print on standard error, where there is one, why a command fails.

    Args:
        message: For its user.
        code: What the process ends with.
    """
    if is_for_programs():
        _tell({"error": {"kind": code.name.lower(), "code": int(code), "message": message}})
    else:
        _write_aside(f"{PROGRAM}: {printable_lines(message)}")


def warn(message: str) -> None:
    """Print on standard error, where there is one, what its user must know."""
    if is_for_programs():
        _tell({"warning": " ".join(message.split())})
    else:
        _write_aside(f"WARNING: {printable_lines(message)}")


def _tell(document: Any) -> None:
    _write_aside(_json_text(document))


def _write_aside(text: str) -> None:
    if sys.stderr is not None:  # the shell's "2>&-"
        sys.stderr.write(f"{text}\n")


def _json_text(document: Any) -> str:
    return json.dumps(document, allow_nan=False)


def printable(text: str) -> str:
    """Return a text in which nothing can steer a terminal: control characters and the like are written out.

    Whatever reaches a terminal has gone through here, last in what writes it: results, complaints, questions, events.
    """
    return text if text.isprintable() else "".join(map(_written_out, text))


def printable_lines(text: str) -> str:
    """Return a text of several lines in which nothing else can steer a terminal."""
    return "\n".join(map(printable, text.split("\n")))


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
