"""Fixtures of the integration tests: settings, factories and clients of what ``--against`` names.

Without that option it is the embedded engine, in memory or on a file; tests that need just that one do not use these.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator, MutableMapping
from pathlib import Path
from typing import Any

import pytest
import structlog
from azure.cosmos.aio import CosmosClient
from structlog.testing import LogCapture

from cosmos_workflow_state import CosmosStateFactory, CosmosStateSettings
from cosmos_workflow_state._cli import main
from support.approvals import approvals, state_file
from support.commands import PREFIX, RunHere
from support.sessions import Account, Process, account_of_sessions, session
from support.states import ALLOWED_TYPES, checkpoint
from support.targets import ACCOUNT, EMBEDDED, Target, client_of, emulator_target, factory_of


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is the same against everything, unless it is the turn of the embedded engine."""
    if config.getoption("--against") == EMBEDDED:
        return
    here = Path(__file__).parent
    same = [item for item in items if here in item.path.parents and "target" not in _fixtures(item)]
    config.hook.pytest_deselected(items=same)
    items[:] = [item for item in items if item not in same]


def _fixtures(item: pytest.Item) -> list[str]:
    return item.fixturenames if isinstance(item, pytest.Function) else []


@pytest.fixture(scope="session")
def listening(request: pytest.FixtureRequest) -> Iterator[Target | None]:
    """Yield what listens for this run; None for the embedded engine."""
    how: str = request.config.getoption("--against")
    if how == EMBEDDED:
        yield None
    elif how == ACCOUNT:
        found = _account()
        yield found
        found.remove()
    else:
        with emulator_target(how) as found:
            yield found


@pytest.fixture
def target(listening: Target | None) -> Iterator[Target | None]:
    """Yield what the test runs against, without containers; None for an embedded engine of its own."""
    yield listening
    if listening is not None:
        listening.clear()


def _account() -> Target:
    endpoint, key = (os.environ.get(f"TEST_COSMOS_{name}", "") for name in ("ENDPOINT", "KEY"))
    if not (endpoint and key):
        pytest.skip("--against account needs TEST_COSMOS_ENDPOINT and TEST_COSMOS_KEY in the environment")
    return Target(endpoint, key)


@pytest.fixture
def settings(target: Target | None) -> CosmosStateSettings:
    """Return settings that may restore the test types; of an engine in memory, or of a container of the test's own."""
    if target is not None:
        return target.settings()
    return CosmosStateSettings(endpoint="embedded:", allowed_checkpoint_types=ALLOWED_TYPES)


@pytest.fixture
def file_settings(target: Target | None, tmp_path: Path) -> CosmosStateSettings:
    """Return settings under which a second factory finds what a first one stored; of an engine on a file."""
    if target is not None:
        return target.settings()
    return CosmosStateSettings(endpoint=f"embedded:{tmp_path / 'state.db'}", allowed_checkpoint_types=ALLOWED_TYPES)


@pytest.fixture
async def factory(settings: CosmosStateSettings) -> AsyncIterator[CosmosStateFactory]:
    """Yield an open factory."""
    async with factory_of(settings) as opened:
        yield opened


@pytest.fixture
async def client(file_settings: CosmosStateSettings) -> AsyncIterator[CosmosClient]:
    """Yield an open client of what is tested, without a factory; the database of the settings need not exist yet."""
    async with client_of(file_settings) as opened:
        yield opened


@pytest.fixture
def events() -> Iterator[list[MutableMapping[str, Any]]]:
    """Configure structlog as an application does, and yield the events of factories built from now on."""
    capture = LogCapture()
    structlog.configure(processors=[capture])
    yield capture.entries
    structlog.reset_defaults()


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the endpoint of a state file with checkpoints that no test changes."""
    return state_file(tmp_path_factory.mktemp("stored"), approvals(20))


@pytest.fixture
def run(stored: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[RunHere]:
    """Yield a function that runs the command line in this process: exit code, output and complaints."""
    monkeypatch.setenv(f"{PREFIX}ENDPOINT", stored)

    def run_command(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        return code, *capsys.readouterr()

    yield run_command
    structlog.reset_defaults()


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: RunHere) -> RunHere:
    """Return such a function on checkpoints of the test's own."""
    monkeypatch.setenv(f"{PREFIX}ENDPOINT", state_file(tmp_path, [*approvals(5), checkpoint("cp-x", workflow="other")]))
    return run


@pytest.fixture
def quick_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut all waits of sessions short."""
    monkeypatch.setattr("cosmos_workflow_state._gateway._FIRST_DELAY", 0.0)
    monkeypatch.setattr("cosmos_workflow_state._session_writing._FIRST_DELAY", 0.0)
    monkeypatch.setattr("cosmos_workflow_state._session_reading._DELAYS", (0.0, 0.0))


@pytest.fixture
async def account() -> AsyncIterator[Account]:
    """Yield an engine in memory, for the sessions of several processes."""
    async with account_of_sessions() as opened:
        yield opened


@pytest.fixture
async def process(account: Account) -> AsyncIterator[Process]:
    """Yield a process that has set the session k."""
    async with account.process() as started:
        await started.store.set("k", session({"n": 0}))
        started.sent()
        yield started


@pytest.fixture
async def pair(account: Account, process: Process) -> AsyncIterator[tuple[Process, Process]]:
    """Yield it and another process, which has read that session."""
    async with account.process() as other:
        await other.store.get("k")
        other.sent()
        yield process, other
