"""A program that stands in for the Azure CLI: it writes down how it was called, and answers what it was told to."""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

# In the shell's language: another one takes longer to start than all that it does.
_PROGRAM = """#!/bin/sh
here=${0%/*}
{ printf '%s\\0' "$@"; printf '\\n\\0'; } >> "$here/calls"
cat "$here/output"
cat "$here/complaint" >&2
[ ! -s "$here/complaint" ]
"""


class AzureCli:
    """The program ``az`` in a directory.

    Attributes:
        directory: To be put in front of PATH.
    """

    def __init__(self, directory: Path) -> None:
        """Write the program."""
        self.directory = directory
        directory.mkdir()
        program = directory / "az"
        program.write_text(_PROGRAM)
        program.chmod(0o700)
        self.answer()

    def answer(self, output: str = "", complaint: str = "") -> None:
        """Set what it says from now on; with a complaint it fails."""
        (self.directory / "output").write_text(output)
        (self.directory / "complaint").write_text(complaint)

    def answer_token(self, token: str, expires_on: int) -> None:
        """Let it give a token, as ``az account get-access-token`` does."""
        found = {"accessToken": token, "expires_on": expires_on, "expiresOn": "2999-01-01 00:00:00.000000"}
        self.answer(json.dumps({**found, "subscription": "s", "tenant": "t", "tokenType": "Bearer"}))

    def calls(self) -> list[list[str]]:
        """Return the arguments of each call until now."""
        written = self.directory / "calls"
        calls = written.read_text("utf-8").split("\n\0")[:-1] if written.exists() else []
        return [call.split("\0")[:-1] for call in calls]


@contextmanager
def azure_cli(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[AzureCli]:
    """Put the program in front of all others for as long as the context is open."""
    program = AzureCli(directory)
    with monkeypatch.context() as patch:
        patch.setenv("PATH", f"{directory}{os.pathsep}{os.environ['PATH']}")
        yield program
