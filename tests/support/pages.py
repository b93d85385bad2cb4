"""The pages of the documentation: their code blocks, and how these are run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).parents[2]
README: Final = ROOT / "README.md"
PAGES: Final = [README, ROOT / "samples" / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
NOT_SAVED: Final = "waits, but is not saved"
_OF_HOSTS: Final = re.compile(r"^from (agent_framework_foundry_hosting|agent_framework_ag_ui|fastapi) ", re.MULTILINE)


def blocks(page: Path, language: str) -> list[str]:
    """Return the fenced blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)


def name_of(page: Path) -> str:
    """Return a page's path as a test id."""
    return page.relative_to(ROOT).as_posix()


def programs(*, of_hosts: bool) -> list[Any]:
    """Return the Python blocks of the pages as parameters: those that need the packages of hosts, or the others."""
    return [
        pytest.param(block, id=f"{name_of(page)}-{number}")
        for page in PAGES
        if page != README  # its program needs the environment that the page sets, and has a test of its own
        for number, block in enumerate(blocks(page, "python"), start=1)
        if NOT_SAVED not in block  # the framework warns on standard error; this program has a test of its own too
        if (_OF_HOSTS.search(block) is not None) is of_hosts
    ]


def run(code: str, directory: Path, **settings: str) -> str:
    """Return what a code block prints; it must not complain."""
    done = start(code, directory, **settings)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def start(code: str, directory: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    """Return a code block run as a script, without other settings around."""
    script = directory / "block.py"
    script.write_text(code, "utf-8")
    environment = {name: value for name, value in os.environ.items() if "COSMOS" not in name} | settings
    return subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
