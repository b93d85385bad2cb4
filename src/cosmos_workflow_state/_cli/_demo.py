"""``cosmos-workflow-state demo``: two tenants, one workflow, three processes, told so that anybody can follow."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Generator, Iterable
from contextlib import closing
from pathlib import Path
from typing import Final

from ._demo_processes import KILLED, NOT_FOUND, PAUSED, READY, STARTED, Event, Told, child
from ._output import CommandError, say, say_json
from ._views._demo import END, INTRODUCTION, demo_json, stored_lines, told_lines

_FIRST: Final = "contoso"
_SECOND: Final = "fabrikam"


def demo(*, as_json: bool) -> None:
    """Run the demo; its directory is left only where it ends by saying which that is.

    Args:
        as_json: Whether what has happened is one JSON document, at the end.

    Raises:
        CommandError: A process of the demo failed, or there is no directory for the state file.
        OSError: A process cannot be started, or what it tells not be printed.
    """
    directory = _make_directory()
    try:
        _show(directory / "state.db", as_json=as_json)
    except CommandError as error:
        raise CommandError(f"{error} (what it left is in {directory})") from error
    except (KeyboardInterrupt, OSError):
        shutil.rmtree(directory, ignore_errors=True)
        raise


def _make_directory() -> Path:
    # Where TMPDIR is set it is used or refused; Python would quietly take another directory.
    given = os.environ.get("TMPDIR") or None
    try:
        return Path(tempfile.mkdtemp(prefix="cosmos-workflow-state-", dir=given)).resolve()
    except OSError as error:
        where = "the system's directory for temporary files" if given is None else "the directory that TMPDIR names"
        raise CommandError(f"{where} cannot be used: {error}") from error


def _show(state_file: Path, *, as_json: bool) -> None:
    told: list[Told] = []
    # Closed before anything else is done about a failure: then no process is left that could write to the directory.
    with closing(_play(state_file)) as playing:
        if not as_json:
            _say_all(INTRODUCTION)
        for one in playing:
            told.append(one)
            if not as_json:
                _say_all(told_lines(one))
    if as_json:
        say_json(demo_json(told, str(state_file)))
    else:
        _say_all([*stored_lines(told), *END, f"  {state_file}"])


def _say_all(lines: Iterable[str]) -> None:
    for line in lines:
        say(line)


def _play(state_file: Path) -> Generator[Told]:
    """Yield what happens, as it happens."""
    paused = yield from _pause(state_file)
    yield from _run(2, "resume", state_file, _FIRST, "yes")
    yield from _trespass(state_file, paused[_FIRST])
    yield from _run(4, "resume", state_file, _SECOND, "no")


def _pause(state_file: Path) -> Generator[Told, None, dict[str, str]]:
    """Return, by tenant, the checkpoint that waits."""
    told = yield from _run(1, "pause", state_file, _FIRST, _SECOND)
    if not any(event["event"] == KILLED for event in told):
        raise CommandError("the pause process ended before it was killed")
    return {event["tenant_id"]: event["checkpoint_id"] for event in told if event["event"] == PAUSED}


def _trespass(state_file: Path, checkpoint_id: str) -> Generator[Told]:
    told = yield from _run(3, "trespass", state_file, _SECOND, checkpoint_id)
    if not any(event["event"] == NOT_FOUND for event in told):
        raise CommandError("the second tenant was not told that the checkpoint is not found")


def _run(number: int, step: str, state_file: Path, *arguments: str) -> Generator[Told, None, list[Event]]:
    """Yield what the process of a step tells, and return all of it; once it is ready to be killed, it is killed."""
    told: list[Event] = [{"event": STARTED, "tenant_id": arguments[0]}]
    with child(step, state_file, *arguments) as process:
        yield Told(step, number, process.pid, told[0])
        for event in process.events():
            told.append(event)
            if event["event"] == READY:
                process.kill()
                told.append({"event": KILLED, "signal": "SIGKILL"})
            yield Told(step, number, process.pid, told[-1])
            if told[-1]["event"] == KILLED:
                break
    return told
