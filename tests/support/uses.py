"""When a process used its storages: what `support/witness` has written down of it, and what is wrong with that."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

WITNESS = Path(__file__).with_name("witness")

Event = dict[str, Any]


def witnessed(file: Path) -> dict[str, str]:
    """Return the environment in which a Python process writes its uses into a file."""
    return {"PYTHONPATH": str(WITNESS), "WITNESS_FILE": str(file)}


def events_in(file: Path) -> list[Event]:
    """Return what was written down, in order; nothing when no factory was used."""
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file.exists() else []


def uses_in(events: list[Event]) -> list[Event]:
    """Return the operations among the events; each of them says what it has cost, when it has ended."""
    return [event for event in events if "requests" in event]


def misuses_in(events: list[Event]) -> list[str]:
    """Return what happened while no client was open, and that one was left open; one factory at a time.

    An operation is written down when it ends, and a factory as closed once it is. So an operation that is written
    between the opening and the closing was over before the client was gone; one that began later is written after it,
    and has failed, whether or not the framework has passed over that.
    """
    is_open = False
    found: list[str] = []
    for event in events:
        if event["event"].startswith("factory."):
            is_open = event["event"] == "factory.opened"
        elif not is_open or event.get("error_type") == "FactoryClosedError":
            found.append(event["event"])
    return [*found, "left open"] if is_open else found
