"""The demo's child processes: how they are started and killed, and the events in which they tell what they do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from ._output import CommandError

Event: TypeAlias = Mapping[str, Any]

STARTED: Final = "demo.started"
PAUSED: Final = "demo.paused"
READY: Final = "demo.ready"
KILLED: Final = "demo.killed"
FOUND: Final = "demo.request_found"
FINISHED: Final = "demo.finished"
NOT_FOUND: Final = "demo.not_found"
LISTED: Final = "demo.checkpoint_listed"

_MODULE: Final = "cosmos_workflow_state._cli._demo_steps"
_FOREIGN: Final = ("COSMOS_WORKFLOW_STATE_", "AZURE_COSMOS_")


@dataclass(frozen=True, slots=True)
class Told:
    """What happened in one process.

    Attributes:
        step: Which step of the demo the process runs.
        number: The process's place among all of them, from 1.
        process: Its id.
        event: What it tells, or what was done with it.
    """

    step: str
    number: int
    process: int
    event: Event


class Child:
    """A process that runs one step of the demo."""

    def __init__(self, step: str, process: subprocess.Popen[str], log: Path) -> None:
        """Watch a process whose standard error goes to ``log``."""
        self._step = step
        self._process = process
        self._log = log

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def events(self) -> Iterator[Event]:
        """Yield what it tells, until it has ended.

        Raises:
            CommandError: It failed.
        """
        for line in self._process.stdout or ():
            yield json.loads(line)
        if self._process.wait() != 0:
            raise CommandError(f"the {self._step} process failed: {self._last_words()}")

    def kill(self) -> None:
        """Kill it with SIGKILL, so that it can do nothing more, and wait until it is gone."""
        self._process.kill()
        self._process.wait()

    def _last_words(self) -> str:
        lines = self._log.read_text("utf-8", errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")


@contextmanager
def child(step: str, state_file: Path, *arguments: str) -> Generator[Child]:
    """Start a process for one step; when the block ends it is gone, whatever happened.

    Args:
        step: Which one.
        state_file: The state file of the embedded engine; ``demo.log`` beside it takes its complaints.
        *arguments: What the step takes.

    Raises:
        OSError: The process cannot be started or its log not written.
    """
    command = [sys.executable, "-P", "-m", _MODULE, step, str(state_file), *arguments]
    log = state_file.with_name("demo.log")
    with (
        log.open("ab") as complaints,
        subprocess.Popen(  # noqa: S603 - our own interpreter and module, no shell
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=complaints,
            env=_environment(),
            text=True,
            encoding="utf-8",
            start_new_session=True,  # Ctrl-C is for the command, which then ends its child
        ) as process,
    ):
        try:
            yield Child(step, process, log)
        finally:
            process.kill()
    if log.stat().st_size == 0:
        log.unlink()


def _environment() -> dict[str, str]:
    """Return the environment without settings: an account of the user's has no say in the demo."""
    return {name: value for name, value in os.environ.items() if not name.upper().startswith(_FOREIGN)}
