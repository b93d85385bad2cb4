"""What azure's packages and python-dotenv log while a command runs.

Python itself prints it where nobody listens: beside our one message, with bodies of answers in it. Here somebody
listens. Imports nothing that is slow: it has to be there before the settings are read, which say whether it is told.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

_LOGGERS: Final = ("azure", "dotenv", "msal")

Tell = Callable[[logging.LogRecord], None]


class _Listener(logging.Handler):
    """Keeps records until it is known what becomes of them."""

    def __init__(self) -> None:
        """Listen to what Python would print."""
        super().__init__(logging.WARNING)
        self.kept: list[logging.LogRecord] = []
        self.tell: Tell = self.kept.append

    def emit(self, record: logging.LogRecord) -> None:
        """Do with a record what was decided."""
        self.tell(record)


_LISTENER: Final = _Listener()


def hear_others() -> None:
    """Listen from now on, so that Python prints nothing."""
    _LISTENER.kept.clear()
    _LISTENER.tell = _LISTENER.kept.append
    for name in _LOGGERS:
        logging.getLogger(name).addHandler(_LISTENER)


def decide_on_others(tell: Tell | None) -> None:
    """Decide what becomes of what was heard, and of what will be.

    Args:
        tell: Told each record; without it all are dropped.
    """
    _LISTENER.tell = tell or _drop
    for record in _LISTENER.kept:
        _LISTENER.tell(record)
    _LISTENER.kept.clear()


def _drop(_record: logging.LogRecord) -> None:
    """Let nobody hear of it."""
