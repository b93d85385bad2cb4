"""The command line: help, version, exit codes, one line for every failure, and tables that fit a terminal."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import NoReturn

import pytest
import structlog

from cosmos_workflow_state._cli import _demo, _demo_processes, _output, main
from cosmos_workflow_state._cli._asking import ask
from cosmos_workflow_state._cli._demo_processes import Child, Event, child
from cosmos_workflow_state._cli._log import log_json_lines
from support.servers import loaded_by


def run_cli(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Return the command line run as its user runs it."""
    return subprocess.run(
        [sys.executable, "-m", "cosmos_workflow_state", *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_package_runs_as_a_module() -> None:
    """``python -m cosmos_workflow_state`` is the command line, its exit code included."""
    assert run_cli("--version").stdout == f"cosmos-workflow-state {version('cosmos-workflow-state')}\n"
    assert run_cli("dem0").returncode == 2


def test_version_is_the_installed_one(capsys: pytest.CaptureFixture[str]) -> None:
    """--version prints the program and the version of the distribution, and ends with 0."""
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"cosmos-workflow-state {version('cosmos-workflow-state')}\n"


@pytest.mark.parametrize("arguments", [["--help"], ["demo", "--help"]], ids=["program", "demo"])
def test_help_tells_what_the_demo_does(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Both helps say what the demo does and fit into 80 columns."""
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    assert "kill its process" in printed
    assert max(map(len, printed.splitlines())) <= 80


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["dem0"],
        ["demo", "x"],
        ["checkpoints"],
        ["checkpoints", "list"],
        ["checkpoints", "list", "--tenant", "contoso", "--limit", "0"],
        ["checkpoints", "delete", "--tenant", "contoso"],
        ["checkpoints", "delete", "--tenant", "contoso", "cp-1", "--all"],
    ],
    ids=["none", "unknown", "too many", "group", "no tenant", "no limit", "delete nothing", "delete some and all"],
)
def test_wrong_arguments_end_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Arguments that are no command end with code 2 and the usage, and nothing on standard output."""
    assert main(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "Usage: cosmos-workflow-state" in printed.err


@pytest.mark.parametrize(
    "arguments", [["--version"], ["--help"], ["checkpoints", "diff", "--help"], ["config", "--help"]], ids=" ".join
)
def test_the_command_line_starts_without_the_framework_and_azure(arguments: list[str]) -> None:
    """Neither the version nor any help must take the second that importing them takes."""
    program = f"from cosmos_workflow_state._cli import main; assert main({arguments}) == 0"

    assert loaded_by(program, "azure", "agent_framework", "rich.console") == []


def test_completion_is_typers() -> None:
    """The program prints the completion of a shell and, asked by it, completes without loading what is slow."""
    assert "COSMOS_WORKFLOW_STATE_COMPLETE" in run_cli("--show-completion", "bash").stdout

    asked = {"_COSMOS_WORKFLOW_STATE_COMPLETE": "complete_bash", "COMP_CWORD": "2"}
    assert run_cli(COMP_WORDS="cosmos-workflow-state checkpoints d", **asked).stdout.split() == ["diff", "delete"]


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (_output.CommandError("it failed"), 1, "it failed"),
        (_output.CommandError("not there", _output.ExitCode.NOT_FOUND), 3, "not there"),
        (_output.CommandError("an \x1b[31mid\u202e"), 1, "an \\x1b[31mid\\u202e"),
        (PermissionError(13, "Permission denied", "/locked"), 1, "[Errno 13] Permission denied: '/locked'"),
    ],
    ids=["Ctrl-C", "command", "code", "control characters", "file system"],
)
def test_a_failure_is_one_line(
    error: BaseException,
    code: int,
    line: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Whatever ends a command, its user sees one line on standard error and an exit code that is not 0."""

    def fail(**_options: bool) -> NoReturn:
        raise error

    monkeypatch.setattr(_demo, "demo", fail)

    assert main(["demo"]) == code
    assert capsys.readouterr() == ("", f"cosmos-workflow-state: {line}\n")
    assert main(["demo", "--json"]) == code
    printed = capsys.readouterr()
    kind = _output.ExitCode(code).name.lower()
    assert json.loads(printed.err) == {"error": {"kind": kind, "code": code, "message": str(error) or line}}
    assert (printed.out, printed.err.count("\n"), printed.err.isascii()) == ("", 1, True)


def test_a_mistake_of_ours_is_no_traceback(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """An error that nobody has thought of may quote somebody's state, so only its type and place are shown."""

    def fail(**_options: bool) -> NoReturn:
        raise RuntimeError("the state of contoso")

    monkeypatch.setattr(_demo, "demo", fail)

    assert main(["demo"]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert re.fullmatch(r"cosmos-workflow-state: unexpected RuntimeError at test_cli\.py:\d+; .*\n", printed.err)


def test_ctrl_c_at_a_question_interrupts(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """It is neither yes nor no, and ends as an interrupt anywhere else does."""

    class Terminal(io.StringIO):
        """A terminal at which Ctrl-C is typed."""

        def isatty(self) -> bool:
            """Say that it is one."""
            return True

        def readline(self, size: int | None = -1, /) -> str:
            """Interrupt, whatever is asked for."""
            del size
            raise KeyboardInterrupt

    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr(_demo, "demo", lambda **_: ask("do it", yes=False, no="not done", about=["this"]))

    assert main(["demo"]) == 130
    assert re.fullmatch(r"  this\nDo it\? \[y/N\]: ?\ncosmos-workflow-state: interrupted\n", capsys.readouterr().err)
    assert main(["demo", "--json"]) == 130
    error = json.loads(capsys.readouterr().err.splitlines()[-1])["error"]
    assert error == {"kind": "interrupted", "code": 130, "message": "interrupted"}


@pytest.mark.parametrize(
    ("closed", "complaint"),
    [
        (">&-", "cosmos-workflow-state: standard output is closed\n"),
        (">&- 2>&-", ""),
    ],
    ids=["output", "output and errors"],
)
def test_closed_standard_streams_are_no_traceback(closed: str, complaint: str) -> None:
    """Without a standard output the demo says so where it can, and does not start."""
    command = f'"$1" -m cosmos_workflow_state demo {closed}'
    done = subprocess.run(["/bin/sh", "-c", command, "sh", sys.executable], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (1, "", complaint)


def test_ctrl_c_while_the_command_line_is_imported_is_one_line() -> None:
    """An interrupt in the first moments, when modules are still imported, ends as one in the middle does."""
    program = (
        "import signal, sys\n"
        # A shell that runs things in the background has them ignore it.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "class Interrupted:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'typer': signal.raise_signal(signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupted())\n"
        "from cosmos_workflow_state._cli import main\n"
        "sys.exit(main(['demo']))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (130, "", "cosmos-workflow-state: interrupted\n")


def test_a_directory_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    """A TMPDIR that cannot be used is refused by both names, without a traceback and without taking another one."""
    done = run_cli("demo", TMPDIR=str(tmp_path / "missing"))

    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "TMPDIR" in done.stderr
    assert "missing" in done.stderr


def test_without_tmpdir_it_is_the_systems_directory_that_cannot_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure of the system's own directory does not blame a variable that is not set."""
    monkeypatch.delenv("TMPDIR", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere/at/all")

    with pytest.raises(_output.CommandError, match=r"^the system's directory for temporary files .*nowhere"):
        _demo.demo(as_json=False)


@pytest.mark.parametrize(
    "ending", [KeyboardInterrupt(), BrokenPipeError(), OSError(28, "No space left on device")], ids=repr
)
def test_a_demo_cut_short_leaves_no_directory(
    ending: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupted, or when nobody reads what it prints, the demo takes away what nobody was told of."""

    def end(state_file: Path, **_options: bool) -> NoReturn:
        state_file.touch()
        raise ending

    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(_demo, "_show", end)

    with pytest.raises(type(ending)):
        _demo.demo(as_json=False)
    assert list(tmp_path.iterdir()) == []


def test_a_demo_that_fails_names_its_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a failed demo leaves, its log among it, may tell why: the error says where it is."""

    def fail(_state_file: Path, **_options: bool) -> NoReturn:
        raise _output.CommandError("it failed")

    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(_demo, "_show", fail)

    with pytest.raises(_output.CommandError) as caught:
        _demo.demo(as_json=False)
    [left] = tmp_path.iterdir()
    assert str(caught.value) == f"it failed (what it left is in {left.resolve()})"


def test_a_reader_that_is_gone_is_no_traceback() -> None:
    """In "demo | head" the command ends quietly when nobody reads any more."""
    program = (
        "import sys; from cosmos_workflow_state._cli import _demo, _main, _output\n"
        "def chatter(as_json):\n"
        "    while True: _output.say('x' * 1000)\n"
        "_demo.demo = chatter\n"
        "sys.exit(_main.run(['demo']))"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        complaints = process.stderr.read()

    assert (process.returncode, complaints) == (1, b"")


def test_a_table_aligns_texts_left_and_numbers_right() -> None:
    """Columns are as wide as their widest cell; thousands are apart; no line ends in spaces."""
    lines = list(_output.table(("tenant", "bytes"), [["a", 1234567], ["contoso", 8]]))

    assert lines == ["tenant       bytes", "-------  ---------", "a        1,234,567", "contoso          8"]


def test_a_table_without_rows_has_its_headings() -> None:
    """Nothing to show is a heading, not an error."""
    assert list(_output.table(("tenant",), [])) == ["tenant", "------"]


def test_a_child_that_fails_is_told_with_its_last_words(tmp_path: Path) -> None:
    """A step that does not exist ends the child; the error has the last line of its traceback."""
    state_file = tmp_path / "state.db"

    with (
        pytest.raises(_output.CommandError, match=r"^the nosuch process failed: KeyError: 'nosuch'$"),
        child("nosuch", state_file) as process,
    ):
        list(process.events())


def test_a_child_that_dies_silently_is_told_so(tmp_path: Path) -> None:
    """A process that ends without a word has no last words, and that is said."""
    log = tmp_path / "demo.log"
    log.write_bytes(b"\n")
    with (
        subprocess.Popen(
            [sys.executable, "-c", "import os; os._exit(3)"], stdout=subprocess.PIPE, text=True
        ) as process,
        pytest.raises(_output.CommandError, match="it said nothing"),
    ):
        list(Child("pause", process, log).events())


def test_a_child_is_gone_when_its_block_fails(tmp_path: Path) -> None:
    """Whatever happens while a child runs, it is not left behind."""
    pids: list[int] = []

    def interrupted() -> None:
        with child("pause", tmp_path / "state.db") as process:
            pids.append(process.pid)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)


def test_children_do_not_see_the_settings_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """The demo must not reach an account that the user has configured."""
    monkeypatch.setenv("COSMOS_WORKFLOW_STATE_ENDPOINT", "https://contoso.documents.azure.com")
    monkeypatch.setenv("AZURE_COSMOS_KEY", "secret")
    monkeypatch.setenv("UNRELATED", "kept")

    environment = _demo_processes._environment()

    assert "UNRELATED" in environment
    assert not [name for name in environment if "COSMOS" in name]


def test_a_tenant_that_is_not_refused_fails_the_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If another tenant's checkpoint were found, the demo would say so and not go on."""

    def found(_child: Child) -> Iterator[Event]:
        return iter([{"event": "checkpoint.loaded"}])

    monkeypatch.setattr(Child, "events", found)

    with pytest.raises(_output.CommandError, match="not told"):
        list(_demo._trespass(tmp_path / "state.db", "some-id"))


def test_a_process_that_ends_before_it_is_killed_fails_the_demo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The demo shows a kill or fails; it does not tell of one that did not happen."""

    def nothing(_child: Child) -> Iterator[Event]:
        return iter(())

    monkeypatch.setattr(Child, "events", nothing)

    with pytest.raises(_output.CommandError, match="before it was killed"):
        list(_demo._pause(tmp_path / "state.db"))


@pytest.mark.parametrize("earlier", ["", "a warning\n"], ids=["nothing", "a warning"])
def test_only_a_log_with_something_in_it_is_kept(earlier: str, tmp_path: Path) -> None:
    """The directory that the demo leaves has no empty log in it."""
    log = tmp_path / "demo.log"
    log.write_text(earlier)

    with child("pause", tmp_path / "state.db"):
        pass

    assert log.exists() == bool(earlier)


def test_events_are_json_lines_on_standard_output(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command line writes an event as one JSON object a line, in ASCII, with its level."""
    written = io.StringIO()
    monkeypatch.setattr(sys, "stdout", written)
    try:
        log_json_lines()
        structlog.get_logger().info("demo.paused", tenant_id="contoso", question="schön?\n")
    finally:
        structlog.reset_defaults()

    assert written.getvalue().isascii()
    assert json.loads(written.getvalue()) == {
        "event": "demo.paused",
        "level": "info",
        "tenant_id": "contoso",
        "question": "schön?\n",
    }
