"""What becomes of the logs of other packages while a command runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM_THAT_LOGS = r"""
import logging, sys
from cosmos_workflow_state import CosmosStateSettings
from cosmos_workflow_state._cli import _demo, main
from cosmos_workflow_state._cli._log import log_to_standard_error
def logs(as_json):
    logging.getLogger("azure.identity").warning("before the settings are read")
    log_to_standard_error(CosmosStateSettings())
    logging.getLogger("azure.identity.aio").warning("no \x1b[31midentity\nContent: a body")
    logging.getLogger("azure.core").info("a request")
_demo.demo = logs
sys.exit(main(["demo", *sys.argv[1:]]))
"""


def logged(directory: Path, level: str, *arguments: str) -> str:
    """Return what is on standard error after others have logged; a line of the .env file is none."""
    (directory / ".env").write_text("no setting\nCOSMOS_WORKFLOW_STATE_ENDPOINT=embedded:state.db\n")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM_THAT_LOGS, *arguments],
        env={**os.environ, "COSMOS_WORKFLOW_STATE_LOG_LEVEL": level},
        cwd=directory,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stderr


@pytest.mark.parametrize("level", ["warning", "info"])
def test_what_other_packages_log_is_not_printed(level: str, tmp_path: Path) -> None:
    """Python prints warnings that nobody listens to: noise beside our one message, and with answers' bodies in it."""
    assert logged(tmp_path, level) == ""


def test_what_other_packages_log_is_told_who_asks_for_it(tmp_path: Path) -> None:
    """At level debug, also what came before the level was known; one line each, which steers no terminal."""
    for_people = logged(tmp_path, "debug")
    events = [json.loads(line) for line in logged(tmp_path, "debug", "--json").splitlines()]

    assert for_people.count("log.other") == len(for_people.splitlines()) == len(events) == 3
    assert r"x1b[31midentity" in for_people
    assert "\x1b" not in for_people
    assert "body" not in for_people
    assert [event["logger"] for event in events] == ["azure.identity", "dotenv.main", "azure.identity.aio"]
    assert events[2]["said"] == "no \x1b[31midentity"
