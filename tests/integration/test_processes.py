"""One state file, several processes, some of them killed: nothing that was reported as saved is ever lost."""

from __future__ import annotations

import random
import time
from pathlib import Path

from cosmos_workflow_state import CosmosStateFactory, CosmosStateSettings
from support.states import ALLOWED_TYPES, WORKFLOW
from support.writers import numbered, save_for_ever, save_share, start


def _settings(path: Path) -> CosmosStateSettings:
    return CosmosStateSettings(endpoint=f"embedded:{path}", allowed_checkpoint_types=ALLOWED_TYPES, _env_file=None)


async def test_kill_minus_nine_loses_nothing_that_was_saved(tmp_path: Path, full_size: bool) -> None:
    """A writer killed at random moments, again and again: what returned is there, equal, and the file is readable."""
    path, rounds, chance = tmp_path / "state.db", 50 if full_size else 8, random.Random(2026)
    last = -1
    for _ in range(rounds):
        before = last
        last = _killed_after(path, first=last + 1, saves=chance.randint(1, 12), seconds=chance.uniform(0, 0.02))

        async with CosmosStateFactory(_settings(path)) as factory:
            storage = factory.for_tenant("contoso").checkpoints
            latest = await storage.get_latest(workflow_name=WORKFLOW)
            assert latest is not None
            in_flight = int(latest.checkpoint_id.removeprefix("cp-"))
            assert in_flight in {last, last + 1}
            for number in range(before + 1, in_flight + 1):
                assert await storage.load(f"cp-{number:06}") == numbered(number, "contoso")
            last = in_flight
    async with CosmosStateFactory(_settings(path)) as factory:
        listed = await factory.for_tenant("contoso").checkpoints.list_checkpoints(workflow_name=WORKFLOW)
        assert listed == [numbered(number, "contoso") for number in range(last + 1)]


def _killed_after(path: Path, *, first: int, saves: int, seconds: float) -> int:
    """Let a writer save so often and run so much longer, kill it, and return the last number it reported."""
    process, reports = start(save_for_ever, path, first)
    last = first - 1
    for _ in range(saves):
        last = reports.recv()
    time.sleep(seconds)  # the moment of the kill, anywhere in a save
    process.kill()
    process.join()
    while reports.poll():
        try:
            last = reports.recv()
        except EOFError:
            break
    reports.close()
    return last


async def test_four_processes_eight_tenants_one_file(tmp_path: Path, full_size: bool) -> None:
    """Four processes save for eight tenants at once: no error, none lost, no tenant sees another's."""
    path, each = tmp_path / "state.db", 250 if full_size else 25
    tenants = [f"t{number}" for number in range(8)]
    shares = [range(process, each, 4) for process in range(4)]
    started = [start(save_share, path, tenants, list(share)) for share in shares]
    for process, reports in started:
        assert reports.recv() == []
        process.join()
        assert process.exitcode == 0
        reports.close()

    async with CosmosStateFactory(_settings(path)) as factory:
        for tenant in tenants:
            found = await factory.for_tenant(tenant).checkpoints.list_checkpoints(workflow_name=WORKFLOW)
            assert {one.checkpoint_id: one for one in found} == {
                f"cp-{number:06}": numbered(number, tenant) for number in range(each)
            }
            assert len(found) == each
