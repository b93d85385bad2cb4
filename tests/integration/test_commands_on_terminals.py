"""The commands on real terminals: widths, colours, questions and progress."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from cosmos_workflow_state._cli import _screen
from support.approvals import approvals, state_file
from support.terminals import on_terminal, without_escapes

CONTOSO = ("--tenant", "contoso")


@pytest.fixture(scope="module")
def around(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the environment with 100 checkpoints that no test changes."""
    return {"COSMOS_WORKFLOW_STATE_ENDPOINT": state_file(tmp_path_factory.mktemp("stored"), approvals())}


@pytest.mark.parametrize("columns", [80, 40])
@pytest.mark.parametrize(
    "arguments",
    [
        ["checkpoints", "tree", *CONTOSO],
        ["checkpoints", "list", *CONTOSO, "--limit", "3"],
        ["checkpoints", "diff", "cp-041", "cp-058", *CONTOSO],
        ["checkpoints", "show", "cp-099", *CONTOSO],
    ],
    ids=lambda arguments: arguments[1],
)
def test_nothing_is_wider_than_the_terminal(arguments: list[str], columns: int, around: dict[str, str]) -> None:
    """No line is broken in two by the terminal."""
    code, shown = on_terminal(*arguments, columns=columns, environment=around)

    assert code == 0
    assert max(map(len, without_escapes(shown).splitlines())) <= columns


def test_colours_are_for_who_wants_them(around: dict[str, str]) -> None:
    """A terminal has colours, unless NO_COLOR is set; what is read is the same."""
    arguments = ("checkpoints", "diff", "cp-001", "cp-002", *CONTOSO)
    _, coloured = on_terminal(*arguments, columns=80, environment=around)
    _, plain = on_terminal(*arguments, columns=80, environment={**around, "NO_COLOR": "1"})

    assert "\x1b[32m" in coloured
    assert "\x1b[3" not in plain
    assert without_escapes(coloured) == without_escapes(plain)


@pytest.mark.parametrize(
    ("typed", "code", "said"),
    [
        ("n\n", 1, "nothing was deleted"),
        ("\x04", 1, "nothing was deleted"),
        ("y\n", 0, "deleted 2 checkpoints"),
    ],
    ids=["no", "Ctrl-D", "yes"],
)
def test_who_deletes_is_asked(typed: str, code: int, said: str, tmp_path: Path) -> None:
    """On a terminal the question names what goes; only yes deletes."""
    environment = {"COSMOS_WORKFLOW_STATE_ENDPOINT": state_file(tmp_path, approvals(5))}

    ended, shown = on_terminal(
        "checkpoints", "delete", "cp-001", "cp-002", *CONTOSO, columns=80, environment=environment, typed=typed
    )

    assert ended == code
    assert "  cp-002 of invoice-approval\n" in shown
    assert "Delete 2 checkpoints of tenant 'contoso' in the unnamed scope? [y/N]" in shown
    assert said in shown


def test_progress_of_long_work_is_shown_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal a bar counts what is done, and is wiped away; the output has none of it."""

    class Terminal(io.StringIO):
        """A terminal that remembers all that was written to it."""

        def isatty(self) -> bool:
            """Say that it is one."""
            return True

    shown = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", shown)

    with _screen.progress("deleting", after=0.0) as report:
        report(3, 1000)

    assert "deleting" in shown.getvalue()
    assert "3/1000" in shown.getvalue()
    assert shown.getvalue().endswith("\x1b[2K")


@pytest.mark.parametrize("after", [0.0, 60.0], ids=["long", "short"])
def test_there_is_no_progress_in_a_pipe_or_of_short_work(after: float, capsys: pytest.CaptureFixture[str]) -> None:
    """What is no terminal, or over at once, gets no bar."""
    with _screen.progress("deleting", after=after) as report:
        report(3, 1000)

    assert capsys.readouterr() == ("", "")
