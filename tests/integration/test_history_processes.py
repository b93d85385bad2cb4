"""Several processes on one session: nothing lost, nothing doubled, one order for all, whoever is killed when."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import pytest

from cosmos_workflow_state import CosmosStateFactory, TenantHistoryProvider
from support.chat_writers import SESSION, large, save_large_for_ever, save_turns, settings_of, share
from support.chats import texts
from support.items import items_of
from support.writers import start


@pytest.mark.parametrize("stateful", [True, False], ids=["with state", "without"])
async def test_two_writers_of_one_session(tmp_path: Path, full_size: bool, *, stateful: bool) -> None:
    """Two processes add to one session at once; while they do, every reading is the beginning of the next one."""
    path, turns = tmp_path / "state.db", 500 if full_size else 50
    async with CosmosStateFactory(settings_of(path)) as factory:
        history = factory.for_tenant("contoso").history()
        await history.count(SESSION)  # the file and its containers are there
        started = [start(_writer, path, writer, turns, stateful) for writer in range(2)]
        readings = [await history.get_messages(SESSION)]
        while any(process.is_alive() for process, _ in started):
            readings.append(await history.get_messages(SESSION))
        for process, reports in started:
            assert reports.recv() == "done"
            process.join()
            reports.close()
        last = texts(await history.get_messages(SESSION))
        for reading in readings:
            assert texts(reading) == last[: len(reading)]
        _assert_whole(last, writers=2, turns=turns)
        assert await history.count(SESSION) == len(last)


def _writer(reports: Any, path: Path, writer: int, turns: int, stateful: bool) -> None:
    save_turns(reports, path, writer, turns, stateful=stateful)


def _assert_whole(last: list[str], *, writers: int, turns: int) -> None:
    """Check that each writer's turns are there once, in its order, and each turn is together."""
    expected = {
        writer: texts([one for number in range(turns) for one in share(writer, number)]) for writer in range(writers)
    }
    found = {writer: [text for text in last if text.startswith(f"{writer} ")] for writer in range(writers)}
    assert found == expected
    assert len(last) == writers * turns * 2
    assert all(last[at].split()[0] == last[at + 1].split()[0] for at in range(0, len(last), 2))


async def test_kill_minus_nine_in_the_middle_of_a_large_save(tmp_path: Path, full_size: bool) -> None:
    """A save is there whole or not at all; the same save again adds it once; a deleted session leaves nothing."""
    path, chance, number = tmp_path / "state.db", random.Random(9), 0
    for _ in range(20 if full_size else 3):
        number = _killed_after(path, number, saves=chance.randrange(2), seconds=chance.uniform(0, 0.15))
        async with CosmosStateFactory(settings_of(path)) as factory:
            history = factory.for_tenant("contoso").history()
            found = await _saved(history)
            assert found in {number, number + 1}
            await history.save_messages(SESSION, large(number))
            number += 1
            assert await _saved(history) == number
    async with CosmosStateFactory(settings_of(path)) as factory:
        assert await factory.for_tenant("contoso").history().delete_session(SESSION)
    assert await items_of(settings_of(path), "history") == []


async def _saved(history: TenantHistoryProvider) -> int:
    """Return how many saves are there, each of them whole and once."""
    found = texts(await history.get_messages(SESSION))
    saves, rest = divmod(len(found), 3)
    assert rest == 0
    assert found == [text for number in range(saves) for text in texts(large(number))]
    return saves


def _killed_after(path: Path, first: int, *, saves: int, seconds: float) -> int:
    """Let a writer save so often, kill it in the middle of the save after that; return the number of that one."""
    process, reports = start(save_large_for_ever, path, first)
    while reports.recv() != ("begun", first + saves):
        pass
    time.sleep(seconds)  # the moment of the kill, anywhere in a save
    process.kill()
    process.join()
    told: list[tuple[str, int]] = [("begun", first + saves)]
    while reports.poll():
        try:
            told.append(reports.recv())
        except EOFError:
            break
    reports.close()
    return max(number for kind, number in told if kind == "begun")
