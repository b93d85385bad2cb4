"""Every way a command ends, to an exit code and at most one message on standard error. Never a traceback."""

from __future__ import annotations

import io
import os
import sys
import traceback
from collections.abc import Sequence

import typer
from typer.main import get_command

from ._commands import app
from ._other_logs import hear_others
from ._output import PROGRAM, CommandError, ExitCode, complain, is_for_programs


def run(arguments: Sequence[str]) -> int:
    """Run the command that the arguments name; see ``main``.

    Raises:
        KeyboardInterrupt: It was interrupted.
    """
    if sys.stdout is None:  # the shell's ">&-"
        return _fail("standard output is closed")
    _write_everything_in_some_way()
    hear_others()
    try:
        return _run(arguments)
    except CommandError as error:
        return _fail(str(error), error.code)
    except OSError as error:
        return _fail(str(error))
    except Exception as error:  # noqa: BLE001 - a traceback would print the error, which may quote somebody's state
        return _fail(_bug(error))


def _run(arguments: Sequence[str]) -> int:
    try:
        # For people typer itself says what is wrong with arguments, below the usage.
        ended = get_command(app).main(arguments, prog_name=PROGRAM, standalone_mode=not is_for_programs())
        return _checked(ended) if isinstance(ended, int) else ExitCode.DONE
    except SystemExit as ended:
        return _ended(ended)
    except typer.TyperException as error:
        raise CommandError(error.format_message(), ExitCode(error.exit_code)) from error


def _write_everything_in_some_way() -> None:
    """Let a character that the terminal's encoding does not have be written out, in place of an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _ended(ended: SystemExit) -> int:
    """Return the code with which typer ends: after every command, after help, on wrong usage and on Ctrl-C."""
    if isinstance(ended.__context__, BrokenPipeError):
        # The reader is gone ("… | head"). What is still buffered must not be written at exit: that would fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno() if sys.__stdout__ else 1)
    return _checked(ended.code) if isinstance(ended.code, int) else ExitCode.DONE


def _checked(code: int) -> int:
    """Return the code, unless it is the one that typer makes of Ctrl-C.

    Raises:
        KeyboardInterrupt: It is.
    """
    if code == ExitCode.INTERRUPTED:
        raise KeyboardInterrupt from None
    return code


def _bug(error: Exception) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{os.path.basename(frame.filename)}:{frame.lineno}"  # noqa: PTH119 - a text, not a file to work with
    return f"unexpected {type(error).__name__} at {where}; this is a mistake in {PROGRAM}, please report it"


def _fail(message: str, code: ExitCode = ExitCode.FAILED) -> int:
    complain(message, code)
    return code
