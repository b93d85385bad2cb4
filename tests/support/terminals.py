"""The command line on a terminal of some width, in a process of its own, typed at and watched."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Mapping

from cosmos_workflow_state._cli._output import PROGRAM

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def on_terminal(
    *arguments: str, columns: int, environment: Mapping[str, str], typed: str = "", rows: int = 200
) -> tuple[int, str]:
    """Run the command line with a terminal for all three streams; return the exit code and all that it has shown."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    unset = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR")
    around = {name: value for name, value in os.environ.items() if name not in unset and "COSMOS" not in name}
    with subprocess.Popen(
        [sys.executable, "-m", PROGRAM.replace("-", "_"), *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**around, "TERM": "xterm-256color", **environment},
        start_new_session=True,
    ) as process:
        os.close(theirs)
        os.write(ours, typed.encode())
        shown = _read_all(ours)
    os.close(ours)
    return process.returncode, shown.replace("\r\n", "\n")


def without_escapes(shown: str) -> str:
    """Return what a person reads of it."""
    return _ESCAPES.sub("", shown)


def _read_all(terminal: int) -> str:
    chunks: list[bytes] = []
    while True:
        try:
            chunk = os.read(terminal, 65536)
        except OSError:  # what Linux says at the end, in place of nothing to read
            break
        if not chunk:
            break
        chunks.append(chunk)
    return b"".join(chunks).decode()
