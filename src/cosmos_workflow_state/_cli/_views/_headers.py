"""Headers of checkpoints as a table, as the fields of one, and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.text import Text

from cosmos_workflow_state.typing import CheckpointSummary

from ._layout import Column, layout, moment, shown_ids


def headers_table(headers: Sequence[CheckpointSummary], width: int | None) -> list[Text]:
    """Return headers as lines; what is the same for all, or there for none, has no column."""
    ids = shown_ids((header.checkpoint_id for header in headers), width)
    several = len({header.workflow_name for header in headers}) > 1
    expiring = any(header.expires is not None for header in headers)
    columns = [
        Column("checkpoint", style="cyan"),
        *([Column("workflow")] if several else []),
        Column("time (UTC)"),
        Column("step", right=True),
        Column("waiting", right=True, style="yellow"),
        Column("bytes", right=True),
        Column("stored", right=True),
        *([Column("expires (UTC)")] if expiring else []),
    ]
    rows = [
        [
            ids[header.checkpoint_id],
            *([header.workflow_name] if several else []),
            moment(header.timestamp),
            str(header.iteration_count),
            str(header.pending_request_count or ""),
            f"{header.raw_bytes:,}",
            f"{header.stored_bytes:,}",
            *([_expiry(header)] if expiring else []),
        ]
        for header in headers
    ]
    return layout(columns, rows, width)


def header_fields(header: CheckpointSummary) -> list[tuple[str, list[str]]]:
    """Return what a header says, each with its name; ids whole."""
    more = header.pending_request_count - len(header.pending_request_ids)
    return [
        ("checkpoint", [header.checkpoint_id]),
        ("workflow", [header.workflow_name]),
        ("parent", [header.previous_checkpoint_id or "none"]),
        ("time", [f"{moment(header.timestamp)} UTC"]),
        ("step", [str(header.iteration_count)]),
        ("waits for", [*header.pending_request_ids, *([f"{more:,} more"] if more > 0 else [])] or ["nothing"]),
        ("size", [f"{header.raw_bytes:,} bytes", f"stored in {header.stored_bytes:,}"]),
        ("expires", [_expiry(header) or "never"]),
    ]


def header_json(header: CheckpointSummary) -> dict[str, Any]:
    """Return a header as JSON."""
    return {
        "checkpoint_id": header.checkpoint_id,
        "workflow_name": header.workflow_name,
        "previous_checkpoint_id": header.previous_checkpoint_id,
        "timestamp": header.timestamp,
        "iteration_count": header.iteration_count,
        "pending_request_ids": list(header.pending_request_ids),
        "pending_request_count": header.pending_request_count,
        "raw_bytes": header.raw_bytes,
        "stored_bytes": header.stored_bytes,
        "expires": None if header.expires is None else header.expires.isoformat(),
    }


def _expiry(header: CheckpointSummary) -> str:
    return "" if header.expires is None else moment(header.expires.isoformat())
