"""How the command line configures structlog. The library itself never does."""

from __future__ import annotations

import logging
import os
import sys
from typing import TYPE_CHECKING

import structlog

from ._output import is_for_programs

if TYPE_CHECKING:
    from structlog.typing import EventDict, Processor, WrappedLogger

    from cosmos_workflow_state.settings import CosmosStateSettings


def log_json_lines() -> None:
    """Write every event to standard output as one JSON object a line, flushed at once."""
    structlog.configure(
        processors=[structlog.processors.add_log_level, structlog.processors.JSONRenderer()],
        logger_factory=structlog.PrintLoggerFactory(),
    )


def log_to_standard_error(settings: CosmosStateSettings) -> None:
    """Write events of the settings' level and above to standard error, for programs as JSON whatever the settings."""
    level = logging.getLevelNamesMapping()[settings.log_level.upper()]
    # What made the command fail is its message already; at the levels that tell of everything it is told as well.
    quiet: list[Processor] = [_drop_failures] if level >= logging.WARNING else []
    structlog.configure(
        processors=[
            *quiet,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            _renderer("json" if is_for_programs() else settings.log_format),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


def _renderer(style: str) -> Processor:
    if style == "json":
        return structlog.processors.JSONRenderer()
    return structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty() and not os.environ.get("NO_COLOR"))


def _drop_failures(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    if str(event["event"]).endswith("_failed"):
        raise structlog.DropEvent
    return event
