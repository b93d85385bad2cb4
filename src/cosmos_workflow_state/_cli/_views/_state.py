"""One state as an outline, and the difference of two, as lines and as JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

from rich.text import Text

from cosmos_workflow_state._cli._output import printable
from cosmos_workflow_state.typing import CheckpointSummary

from ._changes import NOTHING, Change, Path
from ._headers import header_fields
from ._layout import counted, wrapped_list
from ._values import brief, to_json

_VALUE: Final = 60
"""Characters of a value where the width has no say."""

_LEAST: Final = 16
_MARKS: Final = {"added": ("+", "green"), "removed": ("-", "red"), "changed": ("~", "yellow")}
_IDENTITY: Final = frozenset({"checkpoint_id", "previous_checkpoint_id", "timestamp", "workflow_name"})
"""Fields that the header shows, and that differ between any two checkpoints."""


def without_identity(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that say what a checkpoint holds, not which one it is."""
    return {name: value for name, value in fields.items() if name not in _IDENTITY}


def checkpoint_lines(header: CheckpointSummary, fields: Mapping[str, Any], width: int | None) -> list[Text]:
    """Return a checkpoint as lines: its header, and below it an outline of its fields."""
    named = header_fields(header)
    longest = max(len(name) for name, _ in named)
    lines = [line for name, values in named for line in _header(name.ljust(longest), values, width)]
    return [*lines, Text(), *_outline(without_identity(fields), width, 0)]


def _header(name: str, values: Sequence[str], width: int | None) -> Iterator[Text]:
    room = None if width is None else width - len(name) - 2
    first, *rest = wrapped_list([printable(value) for value in values], room)
    yield Text(f"{name}  ", "dim").append(first, "default")
    for line in rest:
        yield Text(f"{' ' * len(name)}  {line}")


def changes_lines(before: str, after: str, found: Sequence[Change], width: int | None) -> list[Text]:
    """Return differences as lines, under the two ids."""
    kinds = [change.kind for change in found]
    counts = ", ".join(f"{kinds.count(kind):,} {kind}" for kind in ("added", "removed", "changed") if kind in kinds)
    total = f"{counted(len(found), 'difference')}{f' ({counts})' if found else ''}"
    lines = [Text(f"- {printable(before)}", "red"), Text(f"+ {printable(after)}", "green"), Text(total, "bold")]
    if found:
        lines.append(Text())
    return [*lines, *(line for change in found for line in _change(change, width))]


def change_json(change: Change) -> dict[str, Any]:
    """Return a difference as JSON; a side on which there is nothing is left out."""
    sides = {"before": change.before, "after": change.after}
    values = {name: to_json(value) for name, value in sides.items() if value is not NOTHING}
    return {"kind": change.kind, "path": list(change.path), **values}


def shown_path(path: Path) -> str:
    """Return a path as one would write it in a program: keys that are names after dots, others in brackets."""
    steps = [f".{step}" if _is_name(step) else f"[{brief(step, _VALUE)}]" for step in path]
    return "".join(steps).removeprefix(".")


def _is_name(step: str | int) -> bool:
    return isinstance(step, str) and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", step) is not None


def _outline(fields: Mapping[str, Any], width: int | None, level: int) -> Iterator[Text]:
    for name, value in fields.items():
        indent = "  " * level
        key = printable(name)
        children = _children(value)
        if children:
            yield Text(f"{indent}{key}:", "cyan")
            yield from _outline(children, width, level + 1)
        else:
            yield from _leaf(f"{indent}{key}:", brief(value, _room(width, len(indent) + len(key) + 2)), width)


def _leaf(name: str, value: str, width: int | None) -> Iterator[Text]:
    if width is None or len(name) + 1 + len(value) <= width:
        yield Text(f"{name} ", "cyan").append(value, "default")
        return
    yield Text(name, "cyan")
    yield Text(f"{' ' * (len(name) - len(name.lstrip()))}  {value}")


def _room(width: int | None, taken: int) -> int:
    return _VALUE if width is None else max(_LEAST, width - taken)


def _children(value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        return dict(cast("Mapping[str, Any]", value))
    if isinstance(value, list):
        return {f"[{index}]": child for index, child in enumerate(cast("Sequence[Any]", value))}
    return {}


def _change(change: Change, width: int | None) -> Iterator[Text]:
    mark, style = _MARKS[change.kind]
    path = shown_path(change.path)
    sides = [brief(value, _room(width, 6)) for value in (change.before, change.after) if value is not NOTHING]
    line = f"{path}: {' -> '.join(sides)}"
    if len(line) + 2 <= (width or _VALUE + 20):
        yield Text(f"{mark} ", style).append(line, "default")
        return
    yield Text(f"{mark} ", style).append(path, "default")
    signs = ("-", "+") if change.kind == "changed" else (mark,)
    for sign, side in zip(signs, sides, strict=True):
        yield Text(f"    {sign} ", _STYLES[sign]).append(side, "default")


_STYLES: Final = dict(_MARKS.values())
