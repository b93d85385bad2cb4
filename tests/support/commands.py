"""Commands run in this process, with nothing but the settings that a test gives."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from cosmos_workflow_state._cli import main
from cosmos_workflow_state.emulator import CosmosEmulator

PREFIX = "COSMOS_WORKFLOW_STATE_"

Run = Callable[..., Awaitable[tuple[int, str, str]]]
"""Given arguments, and settings by name: exit code, output and complaints."""


RunHere = Callable[..., tuple[int, str, str]]
"""The same without settings, where nothing in this process has to serve the command."""


def runner(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs a command beside the event loop, which may be serving it."""

    async def run_command(*arguments: str, **settings: str) -> tuple[int, str, str]:
        with monkeypatch.context() as patch:
            for name, value in settings.items():
                patch.setenv(f"{PREFIX}{name}", value)
            code = await asyncio.to_thread(main, arguments)
        return code, *capsys.readouterr()

    return run_command


def by_key(emulator: CosmosEmulator) -> dict[str, str]:
    """Return settings."""
    return {"ENDPOINT": emulator.endpoint, "KEY": emulator.key}


async def checked(run: Run, *arguments: str, **settings: str) -> tuple[int, dict[str, list[str]], dict[str, Any]]:
    """Return the code of the doctor, the statuses of its checks by name, and its document."""
    code, output, complaints = await run("doctor", "--json", *arguments, **settings)
    assert complaints == ""
    document: dict[str, Any] = json.loads(output)
    statuses: dict[str, list[str]] = {}
    for check in document["checks"]:
        statuses.setdefault(check["name"], []).append(check["status"])
    return code, statuses, document
