"""How the command line configures structlog. The library itself never does."""

from __future__ import annotations

import structlog


def log_json_lines() -> None:
    """Write every event to standard output as one JSON object a line, flushed at once."""
    structlog.configure(
        processors=[structlog.processors.add_log_level, structlog.processors.JSONRenderer()],
        logger_factory=structlog.PrintLoggerFactory(),
    )
