"""Every way a command ends, to an exit code and at most one message on standard error. Never a traceback."""

from __future__ import annotations

import io
import os
import sys
import traceback
from collections.abc import Sequence

from typer.main import get_command

from ._commands import app
from ._output import PROGRAM, CommandError, ExitCode, complain


def run(arguments: Sequence[str] | None) -> int:
    """Run the command that the arguments name; see ``main``.

    Raises:
        KeyboardInterrupt: It was interrupted.
    """
    if sys.stdout is None:  # the shell's ">&-"
        return _fail("standard output is closed")
    _write_everything_in_some_way()
    try:
        get_command(app).main(arguments, prog_name=PROGRAM)
    except SystemExit as ended:
        return _ended(ended)
    except CommandError as error:
        return _fail(str(error), error.code)
    except OSError as error:
        return _fail(str(error))
    except Exception as error:  # noqa: BLE001 - a traceback would print the error, which may quote somebody's state
        return _fail(_bug(error))
    return ExitCode.DONE


def _write_everything_in_some_way() -> None:
    """Let a character that the terminal's encoding does not have be written out, in place of an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _ended(ended: SystemExit) -> int:
    """Return the code with which typer ends: after every command, after help, on wrong usage and on Ctrl-C."""
    if ended.code == ExitCode.INTERRUPTED:
        raise KeyboardInterrupt from None
    if isinstance(ended.__context__, BrokenPipeError):
        # The reader is gone ("… | head"). What is still buffered must not be written at exit: that would fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno() if sys.__stdout__ else 1)
    return ended.code if isinstance(ended.code, int) else ExitCode.DONE


def _bug(error: Exception) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{os.path.basename(frame.filename)}:{frame.lineno}"  # noqa: PTH119 - a text, not a file to work with
    return f"unexpected {type(error).__name__} at {where}; this is a mistake in {PROGRAM}, please report it"


def _fail(message: str, code: ExitCode = ExitCode.FAILED) -> int:
    complain(message)
    return code
