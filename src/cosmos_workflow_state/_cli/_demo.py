"""``cosmos-workflow-state demo``: two tenants, one workflow, three processes, told so that anybody can follow."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from cosmos_workflow_state._logging import CHECKPOINT_SAVE

from ._demo_processes import FINISHED, FOUND, LISTED, NOT_FOUND, PAUSED, READY, Child, Event, child
from ._output import CommandError, say, table

_FIRST: Final = "contoso"
_SECOND: Final = "fabrikam"
_SHOWN_ID: Final = 8


def demo() -> None:
    """Run the demo; its directory is left only where it ends by saying which that is.

    Raises:
        CommandError: A process of the demo failed, or there is no directory for the state file.
        OSError: A process cannot be started, or what it tells not be printed.
    """
    directory = _make_directory()
    try:
        _show(directory / "state.db")
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


def _show(state_file: Path) -> None:
    say("Two tenants, contoso and fabrikam, each have an invoice that a human must")
    say("approve. No account, no network: an embedded engine keeps all state in a file.")
    told = [*_pause(state_file)]
    checkpoint_id = _paused_checkpoint(told, _FIRST)
    told += _resume(2, state_file, _FIRST, "yes")
    _trespass(state_file, checkpoint_id)
    told += _resume(4, state_file, _SECOND, "no")
    say("\nWhat is stored now, oldest first (sizes in bytes, ids shortened):\n")
    for line in _checkpoints(told):
        say(f"  {line}")
    say("\nEach process found everything in the state file, which stays for you to look at")
    say("(SQLite; delete the directory when you are done):")
    say(f"  {state_file}")


def _pause(state_file: Path) -> Iterator[Event]:
    with child("pause", state_file, _FIRST, _SECOND) as process:
        _heading(1, process, "starts the approval workflow of both tenants.")
        for event in process.events():
            yield event
            if event["event"] == PAUSED:
                _say_of(event, f"asks: {event['question']}")
            if event["event"] == READY:
                break
        else:
            raise CommandError("the pause process ended before it was killed")
        process.kill()
        say("   Both wait. The process is killed now (SIGKILL): it cannot clean up, and")
        say("   only the file is left.")


def _resume(number: int, state_file: Path, tenant_id: str, answer: str) -> Iterator[Event]:
    with child("resume", state_file, tenant_id, answer) as process:
        _heading(number, process, f"is new. It looks up what {tenant_id}'s workflow waits for.")
        for event in process.events():
            yield event
            if event["event"] == FOUND:
                _say_of(event, f"finds: {event['question']}")
                _say_of(event, f"the human answers: {answer}")
            if event["event"] == FINISHED:
                _say_of(event, f"finished: {event['outcome']}")


def _trespass(state_file: Path, checkpoint_id: str) -> None:
    with child("trespass", state_file, _SECOND, checkpoint_id) as process:
        _heading(3, process, f"acts for {_SECOND} and asks for {_FIRST}'s checkpoint by id.")
        if not any(_tell_not_found(event, checkpoint_id) for event in process.events()):
            raise CommandError("the second tenant was not told that the checkpoint is not found")


def _tell_not_found(event: Event, checkpoint_id: str) -> bool:
    if event["event"] != NOT_FOUND:
        return False
    _say_of(event, f"{checkpoint_id}: not found")
    _say_of(event, f"({event['error']}, as if it did not exist)")
    return True


def _heading(number: int, process: Child, what: str) -> None:
    say(f"\n{number}. Process {process.pid} {what}")


def _say_of(event: Event, text: str) -> None:
    say(f"   {event['tenant_id']:<8}  {text}")


def _paused_checkpoint(told: Iterable[Event], tenant_id: str) -> str:
    return next(
        str(event["checkpoint_id"]) for event in told if event["event"] == PAUSED and event["tenant_id"] == tenant_id
    )


def _checkpoints(told: Iterable[Event]) -> Iterator[str]:
    """Yield a table: the checkpoints as listed, their sizes from the event of each save."""
    events = list(told)
    saved = {event["checkpoint_id"]: event for event in events if event["event"] == CHECKPOINT_SAVE.done}
    rows: list[list[str | int]] = []
    for event in events:
        if event["event"] == LISTED:
            save = saved[event["checkpoint_id"]]
            shown = f"{event['checkpoint_id'][:_SHOWN_ID]}..."
            sizes = (save["stored_bytes"], save["raw_bytes"])
            rows.append([event["tenant_id"], save["workflow_name"], shown, event["iteration"], *sizes])
    return table(("tenant", "workflow", "id", "iteration", "stored", "raw"), rows)
