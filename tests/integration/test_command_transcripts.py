"""The transcripts of the how-to about the command line are what the commands print.

Run as a program it writes them anew: ``python tests/integration/test_command_transcripts.py``.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest
import structlog

from cosmos_workflow_state._cli import _doctor, main
from support.approvals import approvals, store

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "command-line.md"
BLOCK = re.compile(r"(?<=^```console\n).*?(?=^```$)", re.MULTILINE | re.DOTALL)
SIZES = (
    re.compile(r"(?<=, )[\d,]+(?= bytes?>)"),
    re.compile(r"(?<=^size        )[\d,]+ bytes, stored in [\d,]+$", re.MULTILINE),
    re.compile(r"[\d,]+ +[\d,]+$", re.MULTILINE),
    re.compile(r"(?<=^ok       round trip  )[\d.]+ ms", re.MULTILINE),
    re.compile(r"(?<=^ok       versions    )agent-framework-core [^$]*?(?=\n\n)", re.MULTILINE),
)
"""Bytes of pickles and of what is compressed, which differ between versions of Python and of zstd; time; versions."""

PROMPT = "$ cosmos-workflow-state "
ENDPOINT = "COSMOS_WORKFLOW_STATE_ENDPOINT"


def regenerated(page: str) -> str:
    """Return the page with what its commands print now, one after another on the same state file."""
    return BLOCK.sub(lambda block: "\n".join(map(transcript, commands(block[0]))), page)


def without_sizes(page: str) -> str:
    """Return a page in which all sizes are the same."""
    for size in SIZES:
        page = size.sub("SIZE", page)
    return page


def commands(block: str) -> list[str]:
    """Return the commands of a block."""
    return [line.removeprefix(PROMPT) for line in block.splitlines() if line.startswith(PROMPT)]


def transcript(command: str) -> str:
    """Return a command with its output, and then its complaint, as a terminal would show them."""
    output, complaint = io.StringIO(), io.StringIO()
    # What the doctor says is wrapped, on terminals only.
    terminal = mock.patch.object(_doctor, "width", return_value=80)
    with terminal, contextlib.redirect_stdout(output), contextlib.redirect_stderr(complaint):
        main(shlex.split(command))
    return f"{PROMPT}{command}\n{output.getvalue()}{complaint.getvalue()}"


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Yield the page, in a directory with the state file that it is about."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(ENDPOINT, "embedded:state.db")
    store("embedded:state.db", approvals())
    yield PAGE.read_text("utf-8")
    structlog.reset_defaults()


def test_transcripts_are_what_is_printed(page: str) -> None:
    """Every command of the page prints what stands below it."""
    assert without_sizes(regenerated(page)) == without_sizes(page)
    assert sum(len(commands(block)) for block in BLOCK.findall(page)) == 11


def test_transcripts_fit_the_page(page: str) -> None:
    """Results are readable at 80 columns; messages may be longer."""
    lines = [line for block in BLOCK.findall(page) for line in block.splitlines()]

    assert [line for line in lines if len(line) > 80 and not line.startswith("cosmos-workflow-state: ")] == []


def _rewrite() -> None:
    with tempfile.TemporaryDirectory() as directory, contextlib.chdir(directory):
        os.environ[ENDPOINT] = "embedded:state.db"
        store("embedded:state.db", approvals())
        PAGE.write_text(regenerated(PAGE.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    sys.exit(_rewrite())
