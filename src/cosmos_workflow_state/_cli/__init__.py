"""The command line: one thin function a command. Nothing imports this package; it alone configures structlog."""

from ._main import main

__all__ = ["main"]
