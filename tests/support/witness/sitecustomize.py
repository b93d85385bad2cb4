"""Python imports this by itself where this folder is on ``PYTHONPATH``: it writes down what the factories do.

One line a factory that opens or closes, and one an operation, as the package logs them, into the file that
``WITNESS_FILE`` names. Nothing of the package is touched: this is an application's logging configuration.
"""

from __future__ import annotations

import json
import os
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any, NoReturn

import structlog


def write_down(_logger: object, _method: str, event: MutableMapping[str, Any]) -> NoReturn:
    """Append an event to the file; nothing is printed."""
    with Path(os.environ["WITNESS_FILE"]).open("a", encoding="utf-8") as file:
        file.write(json.dumps(event) + "\n")
    raise structlog.DropEvent


structlog.configure(processors=[write_down])
