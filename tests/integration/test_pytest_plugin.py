"""The fixtures for users' test suites, in runs of pytest of their own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from support.servers import loaded_by

ROOT = Path(__file__).parents[2]
HOW_TO = ROOT / "docs" / "how-to" / "test-against-the-embedded-engine.md"
PLUGIN = "cosmos_workflow_state._pytest_plugin"
CONFIGURATION = """
[pytest]
asyncio_mode = auto
asyncio_default_fixture_loop_scope = function
filterwarnings = error
"""
SUITE = """
import pytest
from azure.cosmos import CosmosClient
from cosmos_workflow_state.emulator import Fault

DATABASES = set()


async def latest(factory):
    return await factory.for_tenant("contoso").checkpoints.get_latest(workflow_name="invoices")


@pytest.mark.parametrize("run", [1, 2])
async def test_factories_have_a_database_of_their_own(run, cosmos_state_factory, cosmos_emulator):
    for _ in range(2):
        async with cosmos_state_factory(log_level="debug") as factory:
            assert await latest(factory) is None
            DATABASES.add(factory._settings.database)
    assert len(DATABASES) == run
    assert cosmos_emulator.faults.pending == ()
    assert cosmos_emulator.clock.offset == 0
    cosmos_emulator.faults.add(Fault(status=503))
    cosmos_emulator.clock.advance(60)


def test_the_emulator_is_for_any_client(cosmos_emulator):
    assert cosmos_emulator.clock.offset == 0
    with CosmosClient(cosmos_emulator.endpoint, cosmos_emulator.key) as client:
        assert {database["id"] for database in client.list_databases()} == DATABASES
"""


def run_pytest(directory: Path, suite: str) -> str:
    """Run a suite in a directory with the plugin, and return what pytest printed."""
    (directory / "test_suite.py").write_text(suite, "utf-8")
    (directory / "pytest.ini").write_text(CONFIGURATION)
    plugins = ("-p", "pytest_asyncio.plugin", "-p", PLUGIN, "-p", "no:cacheprovider")
    # Left to find plugins itself, pytest would have ours twice where the package is installed.
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", "-q", *plugins]
    done = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def test_a_suite_with_both_fixtures(tmp_path: Path) -> None:
    """A user's suite gets an emulator for the run and factories on a new database for each test."""
    printed = run_pytest(tmp_path, SUITE)
    assert "3 passed" in printed, printed


def test_the_documented_suite(tmp_path: Path) -> None:
    """The tests that the how-to shows pass as they stand."""
    [suite] = re.findall(r"^```py\n(.*?)^```$", HOW_TO.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    printed = run_pytest(tmp_path, suite)
    assert "3 passed" in printed, printed


def test_pytest_finds_the_plugin() -> None:
    """The package names the plugin as pytest looks for it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {"cosmos-workflow-state": PLUGIN}


def test_the_plugin_imports_only_pytest() -> None:
    """Runs of pytest that do not use it do not wait for it."""
    heavy = ("azure", "agent_framework", "aiohttp", "pydantic", "lark", "structlog")
    assert loaded_by(f"import {PLUGIN}", *heavy, "cosmos_workflow_state.emulator") == []
