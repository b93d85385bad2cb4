"""Large states in one file, several processes, some of them killed while they send parts: nothing is lost or left."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

import pytest

from cosmos_workflow_state import TenantCheckpointStorage
from support.engines import moved_account
from support.large_writers import KEPT, OTHERS_SIZE, SENT, large, save_and_keep_few, save_large_for_ever
from support.references import ITEMS, missing, unreferenced
from support.states import WORKFLOW
from support.writers import start

_SIZE: Final = 20_000_000
_KEPT: Final = 5
_SCOPES: Final = ("one", "other")
_LIMITS_ARE_OVER: Final = 25 * 3600.0
"""Seconds: past the life of every guard of an upload or of a keyframe."""


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    """Yield where a state file may be, of gigabytes, which nobody should find afterwards."""
    folder = tmp_path / "large"
    folder.mkdir()
    yield folder / "state.db"
    shutil.rmtree(folder)


async def test_kill_minus_nine_loses_no_large_state_and_a_sweep_leaves_nothing(path: Path, full_size: bool) -> None:
    """Demands 1 and 7: killed in the middle of 20 MB, again and again; then swept while other processes save."""
    chance, last = random.Random(2026), -1
    for _ in range(50 if full_size else 3):
        first = last + 1
        returned = _killed_after(path, first=first, requests=chance.randint(1, 100))
        async with moved_account(path) as account, account.factory() as factory:
            last = await _check(factory.for_tenant("contoso").checkpoints, first, returned)
    kept = list(range(max(0, last - _KEPT + 1), last + 1))

    async with moved_account(path, ahead=_LIMITS_ARE_OVER) as account:
        assert unreferenced(await account.items(ITEMS))
        async with account.factory() as factory:
            storage = factory.for_tenant("contoso").checkpoints
            count = 200 if full_size else 18
            others = [_start_other(path, scope, count) for scope in _SCOPES]
            while any(_is_running(reports) for reports in others):
                await storage.sweep()
            await storage.sweep()
            await _expect(storage, kept, _SIZE)
            for scope in _SCOPES:
                await _expect(storage.scoped(scope), list(range(count - KEPT, count)), OTHERS_SIZE)
        items = await account.items(ITEMS)
        assert unreferenced(items) == missing(items) == set()


def _killed_after(path: Path, *, first: int, requests: int) -> int:
    """Let a writer begin so many requests, kill it, and return the last number it reported."""
    process, reports = start(save_large_for_ever, path, first, _SIZE)
    last, begun = first - 1, 0
    while begun < requests:
        report = reports.recv()
        begun += report == SENT
        last = last if report == SENT else report
    process.kill()
    process.join()
    return max([last, *(report for report in _rest(reports) if isinstance(report, int))])


def _rest(reports: Connection) -> Iterator[int | str]:
    """Yield what a process that has ended still reported; it may have been killed in the middle of a report."""
    with reports:
        while True:
            try:
                yield reports.recv()
            except EOFError:
                return


async def _check(storage: TenantCheckpointStorage, first: int, returned: int) -> int:
    """Check what a killed writer has saved, delete all but the last few, and return the number of the newest."""
    latest = await storage.get_latest(workflow_name=WORKFLOW)
    newest = -1 if latest is None else int(latest.checkpoint_id.removeprefix("cp-"))
    assert newest in {returned, returned + 1}
    for number in range(first, newest + 1):
        assert await storage.load(f"cp-{number:06}") == large(number, _SIZE)
    for checkpoint_id in (await storage.list_checkpoint_ids(workflow_name=WORKFLOW))[:-_KEPT]:
        assert await storage.delete(checkpoint_id)
    return newest


def _start_other(path: Path, scope: str, count: int) -> Connection:
    """Start a process that saves large states in a scope of its own and deletes most of them at once."""
    return start(save_and_keep_few, path, scope, count, _LIMITS_ARE_OVER)[1]


def _is_running(reports: Connection) -> bool:
    """Return whether a process goes on saving; what went wrong in it is raised here."""
    while not reports.closed and reports.poll():
        report = reports.recv()
        assert report == "done" or isinstance(report, int), report
        if report == "done":
            reports.close()
    return not reports.closed


async def _expect(storage: TenantCheckpointStorage, numbers: list[int], size: int) -> None:
    """Check that exactly these checkpoints are there, and whole."""
    ids = await storage.list_checkpoint_ids(workflow_name=WORKFLOW)
    assert ids == [f"cp-{number:06}" for number in numbers]
    for number in numbers:
        assert await storage.load(f"cp-{number:06}") == large(number, size)
