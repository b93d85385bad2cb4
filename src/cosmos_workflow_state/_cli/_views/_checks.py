"""Checks as lines: status, what was looked at, what was found, and below it what to do."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any, Final

from rich.text import Text

from cosmos_workflow_state._cli._checks import Check, worst
from cosmos_workflow_state._cli._output import printable

from ._layout import counted

_STYLES: Final = {"ok": "green", "note": "cyan", "warning": "yellow", "failed": "bold red"}
_STATUS: Final = max(map(len, _STYLES)) + 2
_NAME: Final = len("round trip") + 2
_INDENT: Final = " " * (_STATUS + _NAME)
_NARROWEST: Final = 20
_COMMANDS: Final = ("az ", "pip ")


def check_lines(checks: Sequence[Check], width: int | None) -> list[Text]:
    """Return checks as lines, and one that sums them up.

    Args:
        checks: At least one.
        width: Columns of the terminal, None for no limit.
    """
    lines = [line for check in checks for line in _lines(check, width)]
    return [*lines, Text(), Text(_summary(checks), _STYLES[worst(checks)])]


def change_lines(changed: Sequence[str], width: int | None) -> list[Text]:
    """Return what a repair has put right as lines.

    Args:
        changed: Each as a sentence.
        width: Columns of the terminal, None for no limit.
    """
    name = "changed: "
    room = None if width is None else max(_NARROWEST, width - len(name))
    return [
        Text(f"{' ' * len(name) if number else name}{line}")
        for change in changed
        for number, line in enumerate(_parts(printable(change), room))
    ]


def check_json(check: Check) -> dict[str, Any]:
    """Return a check as JSON."""
    return {"name": check.name, "status": check.status, "found": check.found, "remedy": check.remedy}


def _lines(check: Check, width: int | None) -> Iterator[Text]:
    first, *rest = _wrapped(check.found, width) or [""]
    yield Text(f"{check.status:{_STATUS}}", _STYLES[check.status]).append(f"{check.name:{_NAME}}{first}", "default")
    for line in rest:
        yield Text(f"{_INDENT}{line}")
    for number, line in enumerate(_remedy(check.remedy, width)):
        yield Text(f"{_INDENT}{'  ' if number else '> '}{line}", "cyan")


def _remedy(remedy: str, width: int | None) -> list[str]:
    return _wrapped(remedy, None if width is None else width - len("> "))


def _wrapped(text: str, width: int | None) -> list[str]:
    """Return lines that fit; a command, which is on a line of its own, stays whole: it will be copied."""
    room = None if width is None else max(_NARROWEST, width - len(_INDENT))
    return [part for line in map(printable, text.splitlines()) for part in _parts(line, room)]


def _parts(line: str, room: int | None) -> list[str]:
    words = line.lstrip(" ")
    if room is None or words.startswith(_COMMANDS):
        return [line]
    indent = " " * (len(line) - len(words))
    return textwrap.wrap(
        words,
        room,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _summary(checks: Sequence[Check]) -> str:
    failed, warned = (sum(check.status == status for check in checks) for status in ("failed", "warning"))
    if not failed and not warned:
        return "all is well"
    parts = [counted(failed, "check failed", "checks failed")] if failed else []
    return ", ".join([*parts, *([counted(warned, "warning")] if warned else [])])
