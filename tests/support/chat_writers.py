"""Processes that add messages to a session in a state file, to be raced and killed."""

from __future__ import annotations

import asyncio
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

from agent_framework import Message

from cosmos_workflow_state import CosmosStateFactory, CosmosStateSettings
from support.chats import incompressible, said

SESSION: Final = "s-1"
LARGE_BYTES: Final = 1_500_000


def settings_of(path: Path) -> CosmosStateSettings:
    """Return settings of a state file."""
    return CosmosStateSettings(endpoint=f"embedded:{path}", _env_file=None)


def share(writer: int, number: int) -> list[Message]:
    """Return what a writer saves as its ``number``-th turn."""
    return [said(f"{writer} asks {number}"), said(f"{writer} is told {number}", "assistant")]


def large(number: int) -> list[Message]:
    """Return a save of a small, a large and a small message."""
    text = incompressible(LARGE_BYTES, seed=number)
    return [said(f"before {number}"), said(text, "assistant", message_id=f"{number}"), said(f"after {number}")]


def save_turns(reports: Connection, path: Path, writer: int, turns: int, *, stateful: bool) -> None:
    """Save turns one after another; report how it went."""

    async def run() -> str:
        state: dict[str, Any] | None = {} if stateful else None
        async with CosmosStateFactory(settings_of(path)) as factory:
            history = factory.for_tenant("contoso").history()
            for number in range(turns):
                if stateful and number % 5 == 0:
                    await history.get_messages(SESSION, state=state)
                await history.save_messages(SESSION, share(writer, number), state=state)
        return "done"

    try:
        reports.send(asyncio.run(run()))
    except Exception as error:
        reports.send(repr(error))
        raise


def save_large_for_ever(reports: Connection, path: Path, first: int) -> None:
    """Save large messages until killed, telling of each save when it begins and when it has returned."""

    async def run() -> None:
        async with CosmosStateFactory(settings_of(path)) as factory:
            history = factory.for_tenant("contoso").history()
            number = first
            while True:
                reports.send(("begun", number))
                await history.save_messages(SESSION, large(number))
                reports.send(("saved", number))
                number += 1

    asyncio.run(run())
