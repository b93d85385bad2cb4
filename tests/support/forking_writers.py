"""Processes that go on from one and the same checkpoint."""

from __future__ import annotations

import asyncio
import random
from multiprocessing.connection import Connection
from pathlib import Path

from agent_framework import WorkflowCheckpoint

from support.engines import moved_account
from support.states import Invoice, checkpoint


def grown(checkpoint_id: str, parent: str | None, second: int) -> WorkflowCheckpoint:
    """Return a checkpoint that is large enough for a keyframe and differs from its parent in a line.

    Args:
        checkpoint_id: Its id.
        parent: Its parent.
        second: Its timestamp's.
    """
    chance = random.Random(7)
    lines = [f"{line:06}: {chance.random()}" for line in range(2_000)]
    return checkpoint(
        checkpoint_id,
        previous_checkpoint_id=parent,
        timestamp=f"2026-11-29T10:00:{second:02}+00:00",
        state={"invoice": Invoice(second, [*lines, checkpoint_id])},
    )


def go_on(reports: Connection, path: Path, parent: str, branch: str, count: int) -> None:
    """Load a checkpoint and save some after it, each the parent of the next; report what failed, None for nothing."""

    async def run() -> None:
        async with moved_account(path) as account, account.factory() as factory:
            storage = factory.for_tenant("contoso").checkpoints
            last = (await storage.load(parent)).checkpoint_id
            for number in range(count):
                last = await storage.save(grown(f"{branch}-{number}", last, 10 + number))

    try:
        asyncio.run(run())
    except Exception as error:
        reports.send(repr(error))
        raise
    reports.send(None)
