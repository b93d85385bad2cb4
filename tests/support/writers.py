"""Processes that save checkpoints into a state file, to be watched, raced and killed."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

from agent_framework import WorkflowCheckpoint

from cosmos_workflow_state import CosmosStateFactory, CosmosStateSettings
from support.states import ALLOWED_TYPES, Invoice, checkpoint

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["support.writers"])


def start(target: Callable[..., None], *arguments: Any) -> tuple[ForkServerProcess, Connection]:
    """Start a process; return it and what it reports through."""
    ours, theirs = _CONTEXT.Pipe(duplex=False)
    process = _CONTEXT.Process(target=target, args=(theirs, *arguments))
    process.start()
    theirs.close()
    return process, ours


def numbered(number: int, tenant: str) -> WorkflowCheckpoint:
    """Return the checkpoint that a writer of a tenant saves as its ``number``-th."""
    return checkpoint(
        f"cp-{number:06}",
        previous_checkpoint_id=f"cp-{number - 1:06}" if number else None,
        timestamp=f"2026-11-29T10:{number // 60 % 60:02}:{number % 60:02}+00:00",
        state={"tenant": tenant, "invoice": Invoice(number, [f"line {line}" for line in range(200)])},
    )


def save_for_ever(reports: Connection, path: Path, first: int) -> None:
    """Save numbered checkpoints of one tenant until killed, reporting each number once its save has returned."""

    async def run() -> None:
        async with CosmosStateFactory(_settings(path)) as factory:
            storage = factory.for_tenant("contoso").checkpoints
            number = first
            while True:
                await storage.save(numbered(number, "contoso"))
                reports.send(number)
                number += 1

    asyncio.run(run())


def save_share(reports: Connection, path: Path, tenants: list[str], numbers: list[int]) -> None:
    """Save these checkpoints for each of these tenants, several at a time, and report what failed."""

    async def run() -> list[str]:
        async with CosmosStateFactory(_settings(path)) as factory:
            saves = (
                factory.for_tenant(tenant).checkpoints.save(numbered(number, tenant))
                for number in numbers
                for tenant in tenants
            )
            outcomes = await asyncio.gather(*saves, return_exceptions=True)
        return [repr(outcome) for outcome in outcomes if isinstance(outcome, BaseException)]

    reports.send(asyncio.run(run()))


def _settings(path: Path) -> CosmosStateSettings:
    return CosmosStateSettings(endpoint=f"embedded:{path}", allowed_checkpoint_types=ALLOWED_TYPES, _env_file=None)
