"""The transcripts of the how-to about the command line are what the commands print.

Run as a program it writes them anew: ``PYTHONPATH=tests python tests/integration/test_command_transcripts.py``.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import re
import shlex
import socket
import sys
import tempfile
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from unittest import mock
from urllib.parse import urlsplit

import pytest
import structlog

from cosmos_workflow_state._cli import _doctor, main
from support.approvals import approvals, store
from support.drifts import drifted
from support.servers import emulator_process

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "command-line.md"
BLOCK = re.compile(r"(?<=^```console\n).*?(?=^```$)", re.MULTILINE | re.DOTALL)
SIZES = (
    re.compile(r"(?<=, )[\d,]+(?= bytes?>)"),
    re.compile(r"(?<=^size        )[\d,]+ bytes, stored in [\d,]+$", re.MULTILINE),
    re.compile(r"[\d,]+ +[\d,]+$", re.MULTILINE),
    re.compile(r"(?<=^ok       round trip  )[\d.]+ ms", re.MULTILINE),
    re.compile(r"(?<=that differs by )\d+(?= s,)"),
    re.compile(r"(?<=^ok       versions    )agent-framework-core [^$]*?(?=\n\n)", re.MULTILINE),
)
"""Bytes of pickles and of what is compressed, which differ between versions of Python and of zstd; time; versions."""

PROMPT = "$ "
EXPORT = "export "
PORTS: dict[str, str] = {}
"""By the ports that the system gave, those of the page: all have five digits, so that columns stay as wide."""
ENDPOINT = "COSMOS_WORKFLOW_STATE_ENDPOINT"


def regenerated(page: str) -> str:
    """Return the page with what its commands print now, one after another on the same state file."""
    return BLOCK.sub(lambda block: transcripts(block[0]), page)


def without_sizes(page: str) -> str:
    """Return a page in which all sizes are the same."""
    for size in SIZES:
        page = size.sub("SIZE", page)
    return page


def commands(block: str) -> list[str]:
    """Return the commands of a block."""
    return [line.removeprefix(PROMPT) for line in block.splitlines() if line.startswith(PROMPT)]


def transcripts(block: str) -> str:
    """Return a block with what its commands print now; what it exports is for the commands of the block."""
    with mock.patch.dict(os.environ):
        return "\n".join(map(transcript, commands(block)))


def transcript(command: str) -> str:
    """Return a command with its output, and then its complaint, as a terminal would show them."""
    if command.startswith(EXPORT):
        name, _, value = command.removeprefix(EXPORT).partition("=")
        os.environ[name] = with_ports(value, {shown: real for real, shown in PORTS.items()})
        return f"{PROMPT}{command}"
    output, complaint = io.StringIO(), io.StringIO()
    # What the doctor says is wrapped, on terminals only.
    terminal = mock.patch.object(_doctor, "width", return_value=80)
    with terminal, contextlib.redirect_stdout(output), contextlib.redirect_stderr(complaint):
        main(shlex.split(command)[1:])
    return f"{PROMPT}{command}\n{with_ports(output.getvalue() + complaint.getvalue(), PORTS)}"


def with_ports(text: str, other: Mapping[str, str]) -> str:
    """Return a text with other ports."""
    return re.sub(r"\b\d{5}\b", lambda found: other.get(found[0], found[0]), text)


@contextlib.contextmanager
def world(directory: Path) -> Generator[None]:
    """Make what the page is about: its state files in a directory, an emulator, and an endpoint that never answers."""
    store(f"embedded:{directory}/state.db", approvals())
    wrong = {"defaultTtl": None, "indexingPolicy": {"includedPaths": [{"path": "/*"}]}}
    asyncio.run(drifted(directory / "drifted.db", **wrong))
    with emulator_process() as emulator, socket.create_server(("127.0.0.1", 0)) as silent:
        real = (str(urlsplit(emulator.shown("endpoint")).port), str(silent.getsockname()[1]))
        PORTS.update(zip(real, ("18081", "18082"), strict=True))
        yield


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Yield the page, in a directory with the state file that it is about."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(ENDPOINT, "embedded:state.db")
    with world(tmp_path):
        yield PAGE.read_text("utf-8")
    structlog.reset_defaults()


def test_transcripts_are_what_is_printed(page: str) -> None:
    """Every command of the page prints what stands below it."""
    assert without_sizes(regenerated(page)) == without_sizes(page)
    assert sum(len(commands(block)) for block in BLOCK.findall(page)) == 24


def test_transcripts_fit_the_page(page: str) -> None:
    """Results are readable at 80 columns; messages may be longer, and commands to copy are whole."""
    lines = [line for block in BLOCK.findall(page) for line in block.splitlines()]
    whole = ("cosmos-workflow-state: ", '{"error": ', "az ")

    assert [line for line in lines if len(line) > 80 and not line.lstrip().startswith(whole)] == []


def _rewrite() -> None:
    with tempfile.TemporaryDirectory() as directory, contextlib.chdir(directory):
        os.environ[ENDPOINT] = "embedded:state.db"
        with world(Path(directory)):
            PAGE.write_text(regenerated(PAGE.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    sys.exit(_rewrite())
