"""How values become lines that fit a width: tables, records where a table does not fit, shortened texts and ids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Final

from rich.cells import cell_len
from rich.text import Text

from cosmos_workflow_state._cli._output import printable

_GAP: Final = "  "
_DOTS: Final = "..."
_SHORT_ID: Final = 8
_WHOLE_ID: Final = 12
"""Characters of an id that is never abbreviated: it was made for people."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes:
        heading: What is above it, or beside each value where a table does not fit.
        right: Whether its values are aligned at the right.
        style: Of rich, for terminals with colours.
    """

    heading: str
    right: bool = False
    style: str = ""


def layout(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int | None) -> list[Text]:
    """Return a table, or where that is wider than the width, each row as a block of lines.

    Args:
        columns: At least one.
        rows: A text for each column; texts are made printable here.
        width: Columns of the terminal, None for no limit.
    """
    cells = [[printable(cell) for cell in row] for row in rows]
    lines = [[column.heading for column in columns], *cells]
    widths = [max(cell_len(line[index]) for line in lines) for index in range(len(columns))]
    if width is not None and sum(widths) + len(_GAP) * (len(widths) - 1) > width:
        return list(_records(columns, cells))
    rule = [["-" * cells_wide for cells_wide in widths]]
    return [_line(columns, line, widths, styled=number > 1) for number, line in enumerate([lines[0], *rule, *cells])]


def _line(columns: Sequence[Column], line: Sequence[str], widths: Sequence[int], *, styled: bool) -> Text:
    text = Text()
    for column, cell, cells_wide in zip(columns, line, widths, strict=True):
        padding = " " * (cells_wide - cell_len(cell))
        text.append(f"{padding}{cell}" if column.right else f"{cell}{padding}", column.style if styled else "bold")
        text.append(_GAP)
    text.rstrip()
    return text


def _records(columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> Iterator[Text]:
    for row in rows:
        yield Text(row[0], columns[0].style)
        for column, cell in zip(columns[1:], row[1:], strict=True):
            if cell:
                yield Text(f"  {column.heading}: ").append(cell, column.style)


def fits(line: str, width: int | None) -> bool:
    """Return whether a line is no wider than the terminal, if it is one."""
    return width is None or cell_len(line) <= width


def wrapped_list(parts: Sequence[str], width: int | None, *, indent: str = "") -> list[str]:
    """Return parts with commas between them, in as few lines as the width allows; no part is broken in two."""
    lines: list[str] = []
    for number, part in enumerate(parts, start=1):
        piece = part if number == len(parts) else f"{part},"
        if lines and fits(f"{lines[-1]} {piece}", width):
            lines[-1] += f" {piece}"
        else:
            lines.append(f"{indent}{piece}")
    return lines


def shorten(text: str, limit: int) -> str:
    """Return a text of at most so many characters; three dots stand for what is left out."""
    return text if len(text) <= limit else f"{text[: max(0, limit - len(_DOTS))]}{_DOTS}"


def shown_ids(ids: Iterable[str], width: int | None) -> dict[str, str]:
    """Return how ids are shown: whole in a pipe, on a terminal as much of each as no other one begins with."""
    known = sorted(set(ids))
    if width is None:
        return {one: printable(one) for one in known}
    needed = dict.fromkeys(known, _SHORT_ID)
    for one, other in pairwise(known):
        length = _shared(one, other) + 1
        needed[one], needed[other] = max(needed[one], length), max(needed[other], length)
    return {one: printable(one if len(one) <= _WHOLE_ID else one[:length]) for one, length in needed.items()}


def moment(timestamp: str) -> str:
    """Return an ISO 8601 timestamp as UTC without fractions of a second, or as it is where it is none."""
    try:
        return f"{datetime.fromisoformat(timestamp).astimezone(UTC):%Y-%m-%d %H:%M:%S}"
    except (ValueError, OverflowError):
        return printable(timestamp)


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def _shared(one: str, other: str) -> int:
    return next(
        (index for index, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )
