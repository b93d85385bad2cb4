"""A pytest plugin that writes how each test ended, one JSON object a line, to the file that PEER_OUTCOMES names."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Write a line for the call, and for a set-up or tear-down that did not pass."""
    if report.when != "call" and report.passed:
        return
    module, *_, test = report.nodeid.split("::")
    line = {
        "module": Path(module).stem,
        "test": test,
        "outcome": report.outcome,
        "message": _message(report),
    }
    with Path(os.environ["PEER_OUTCOMES"]).open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(line) + "\n")


def _message(report: pytest.TestReport) -> str:
    """Return the first line of what went wrong, empty when nothing did."""
    if isinstance(report.longrepr, tuple):
        return report.longrepr[2]
    crash = getattr(report.longrepr, "reprcrash", None)
    return crash.message.partition("\n")[0] if crash else ""
