"""Processes that save large states into a state file, and delete old ones, to be raced and killed."""

from __future__ import annotations

import asyncio
import random
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

from agent_framework import WorkflowCheckpoint

from support.engines import moved_account
from support.states import checkpoint

SENT: Final = "sent"
"""What a writer reports before each request for items; after each save it reports its number."""

OTHERS_SIZE: Final = 2_000_000
"""Bytes, that cannot be compressed, of each state of a writer that deletes."""

KEPT: Final = 3
"""How many checkpoints are left by a writer that deletes."""

_SAVES_ALIKE: Final = 3
_LARGE_CHANGE: Final = 700_000


def large(number: int, size: int) -> WorkflowCheckpoint:
    """Return the checkpoint that a writer of large states saves as its ``number``-th.

    Every third is all new, so that a keyframe in parts is written; the next one is a difference to that in one item,
    the last one a difference in parts of its own.

    Args:
        number: From 0.
        size: Bytes that cannot be compressed.
    """
    alike, step = divmod(number, _SAVES_ALIKE)
    changed = _LARGE_CHANGE if step == _SAVES_ALIKE - 1 else 1_000
    return checkpoint(
        f"cp-{number:06}",
        previous_checkpoint_id=f"cp-{number - 1:06}" if number else None,
        timestamp=f"2026-11-29T{number // 3600:02}:{number // 60 % 60:02}:{number % 60:02}+00:00",
        state={"photo": random.Random(alike).randbytes(size), "log": random.Random(-number).randbytes(changed)},
    )


def save_large_for_ever(reports: Connection, path: Path, first: int, size: int) -> None:
    """Save large checkpoints of one tenant until killed; report each request before it is sent, and each save."""

    async def run() -> None:
        async with moved_account(path) as account, account.factory(lambda _: reports.send(SENT)) as factory:
            storage = factory.for_tenant("contoso").checkpoints
            number = first
            while True:
                await storage.save(large(number, size))
                reports.send(number)
                number += 1

    asyncio.run(run())


def save_and_keep_few(reports: Connection, path: Path, scope: str, count: int, ahead: float) -> None:
    """Save large checkpoints in a scope, keep the last ones, and report each save; at the end what failed.

    The others are deleted at once, so that nothing refers to the keyframe that the next one is to be a difference to.

    Args:
        reports: Where to.
        path: The state file.
        scope: The scope.
        count: How many.
        ahead: Seconds that the clock is ahead.
    """

    async def run() -> None:
        async with moved_account(path, ahead=ahead) as account, account.factory() as factory:
            storage = factory.for_tenant("contoso").checkpoints.scoped(scope)
            for number in range(count):
                await storage.save(large(number, OTHERS_SIZE))
                if number < count - KEPT:
                    await storage.delete(f"cp-{number:06}")
                reports.send(number)

    try:
        asyncio.run(run())
    except Exception as error:
        reports.send(repr(error))
        raise
    reports.send("done")
