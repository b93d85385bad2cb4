"""Lineages as lines of a graph in ASCII, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from rich.text import Text

from cosmos_workflow_state._cli._output import printable
from cosmos_workflow_state.typing import CheckpointSummary

from ._headers import header_json
from ._layout import counted, fits, moment, shown_ids, wrapped_list
from ._lineage import Branch, Forest, Gap, Node, Row, drawn

_TIME_FROM: Final = 60
"""Columns from which on there is room for the time."""

_REQUESTS_SHOWN: Final = 3


def tree_lines(workflow_name: str, forest: Forest, width: int | None, *, everything: bool) -> list[Text]:
    """Return the lineages of a workflow as lines.

    Args:
        workflow_name: Whose.
        forest: Its checkpoints.
        width: Columns of the terminal, None for no limit.
        everything: Whether checkpoints about which there is nothing to tell are drawn one by one.
    """
    lines = [Text(line, "bold") for line in _title(workflow_name, forest, width)]
    ids = shown_ids(forest.headers, width)
    for root in forest.roots:
        rows = list(drawn(forest, root, everything=everything))
        shown = {row.header.checkpoint_id for row in rows if isinstance(row, Node)}
        id_width = max(len(ids[one]) for one in shown)
        lines.append(Text())
        for row in rows:
            lines.extend(_Line(forest, ids, id_width, width).of(row))
    return lines


def tree_json(workflow_name: str, forest: Forest) -> dict[str, Any]:
    """Return the lineages of a workflow as JSON: flat, as readers of JSON refuse to go as deep as a lineage may."""
    return {
        "workflow_name": workflow_name,
        "roots": list(forest.roots),
        "newest": forest.newest,
        "forks": forest.forks,
        "waiting": forest.waiting,
        "checkpoints": [
            {**header_json(header), "children": list(forest.children[one])} for one, header in forest.headers.items()
        ],
    }


class _Line:
    """Draws rows of one tree."""

    def __init__(self, forest: Forest, ids: Mapping[str, str], id_width: int, width: int | None) -> None:
        self._forest = forest
        self._ids = ids
        self._id_width = id_width
        self._roomy = width is None or width >= _TIME_FROM
        self._whole = width is None

    def of(self, row: Row) -> Iterator[Text]:
        """Yield the lines of a row."""
        bars = "| " * row.depth
        if isinstance(row, Branch):
            yield Text(f"{bars}|\\", "dim")
        elif isinstance(row, Gap):
            steps = f"step {row.first.iteration_count} to {row.last.iteration_count}"
            yield Text(f"{bars}:", "dim").append(f" {row.count:,} more, {steps}")
        else:
            yield from self._node(row.header, bars)

    def _node(self, header: CheckpointSummary, bars: str) -> Iterator[Text]:
        line = Text(bars, "dim").append("* ", "bold green")
        line.append(self._ids[header.checkpoint_id].ljust(self._id_width), "cyan")
        if self._roomy:
            line.append(f"  {moment(header.timestamp)}")
        line.append(f"  step {header.iteration_count}")
        remark = self._remark(header)
        if remark and self._roomy:
            line.append(f"  {remark}", "yellow")
        line.rstrip()
        yield line
        below = Text(f"{bars}{'' if self._is_last(header) else '|'}".ljust(len(bars) + 4), "dim")
        if remark and not self._roomy:
            yield below.copy().append(remark, "yellow")
        for request in self._requests(header):
            yield below.copy().append(request, "yellow")

    def _remark(self, header: CheckpointSummary) -> str:
        one, pending = header.checkpoint_id, header.pending_request_count
        children = len(self._forest.children[one])
        asks = f"asked {counted(pending, 'question')}" if children else f"WAITS for {counted(pending, 'answer')}"
        parent = header.previous_checkpoint_id
        remarks = (
            ("newest", one == self._forest.newest),
            (asks, pending > 0),
            (f"fork: {children} children", children > 1),
            ("parent is gone", parent is not None and parent not in self._forest.headers),
        )
        return ", ".join(remark for remark, holds in remarks if holds)

    def _requests(self, header: CheckpointSummary) -> list[str]:
        if self._forest.children[header.checkpoint_id]:
            return []
        requests = header.pending_request_ids if self._whole else header.pending_request_ids[:_REQUESTS_SHOWN]
        more = header.pending_request_count - len(requests)
        label = "request " if self._roomy else ""
        return [*(f"{label}{printable(one)}" for one in requests), *([f"and {more:,} more"] if more else [])]

    def _is_last(self, header: CheckpointSummary) -> bool:
        return not self._forest.children[header.checkpoint_id]


def _title(workflow_name: str, forest: Forest, width: int | None) -> list[str]:
    """Return one line, or where that is too wide the name above the numbers."""
    numbers = (
        counted(len(forest.headers), "checkpoint"),
        counted(len(forest.forks), "fork"),
        f"{len(forest.waiting):,} waiting for an answer",
    )
    name = f"{printable(workflow_name)}:"
    line = f"{name} {', '.join(numbers)}"
    return [line] if fits(line, width) else [name, *wrapped_list(numbers, width, indent="  ")]
