"""How the command line configures structlog. The library itself never does."""

from __future__ import annotations

import logging
import os
import sys
from typing import TYPE_CHECKING

import structlog

from ._other_logs import decide_on_others
from ._output import is_for_programs, printable

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
            *_rendered("json" if is_for_programs() else settings.log_format),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    decide_on_others(_tell_of if level <= logging.DEBUG else None)


def _tell_of(record: logging.LogRecord) -> None:
    said, _, _ = record.getMessage().partition("\n")  # below its first line there may be the body of an answer
    structlog.get_logger().log(record.levelno, "log.other", logger=record.name, said=said)


def _rendered(style: str) -> list[Processor]:
    if style == "json":
        return [structlog.processors.JSONRenderer()]
    colours = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    return [_write_out, structlog.dev.ConsoleRenderer(colors=colours)]


def _write_out(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Let no text of an event steer the terminal; what is no text is shown by its ``repr``, which cannot."""
    return {name: printable(value) if isinstance(value, str) else value for name, value in event.items()}


def _drop_failures(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    if str(event["event"]).endswith("_failed"):
        raise structlog.DropEvent
    return event
