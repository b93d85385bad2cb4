"""The kit itself: it catches what it is for, runs under what users have, and its pages say what is so."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.broken_storages import CAUGHT_BY
from cosmos_workflow_state.testing import Capability
from support.servers import loaded_by

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
HOW_TO = ROOT / "docs" / "how-to" / "test-your-own-storage.md"
QUICK = ("-p", "no:cacheprovider", "--tb=no", "-q")

ONE_OF_MEMORY = """
import pytest
from agent_framework import InMemoryCheckpointStorage
from cosmos_workflow_state.testing import Capability, CheckpointStorageContract

@pytest.fixture
def anyio_backend():
    return "asyncio"

{mark}
class TestMemory(CheckpointStorageContract):
    unclaimed = dict.fromkeys(set(Capability) - {{Capability.BASE, Capability.GRAPH_RESUME}}, "not now")

    @pytest.fixture
    def storage(self):
        return InMemoryCheckpointStorage()
"""

WITHOUT_FIXTURES = """
from cosmos_workflow_state.testing import CheckpointStorageContract

class TestNothing(CheckpointStorageContract):
    pass
"""


def run(folder: Path, *arguments: str, plugins: tuple[str, ...] = ("pytest_asyncio.plugin",)) -> str:
    """Run pytest as a user does, with the plugins named and no others, and return what it prints."""
    named = [part for plugin in (*plugins, "cosmos_workflow_state._pytest_plugin") for part in ("-p", plugin)]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *QUICK, *named, *arguments],
        cwd=folder,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


def suite(folder: Path, text: str, mode: str = "auto") -> Path:
    """Write a suite of a user, strict about marks and warnings."""
    (folder / "test_suite.py").write_text(text, "utf-8")
    options = f"asyncio_mode = {mode}\nasyncio_default_fixture_loop_scope = function\n" if mode else ""
    (folder / "pytest.ini").write_text(f"[pytest]\naddopts = --strict-markers\nfilterwarnings = error\n{options}")
    return folder


def test_the_page_is_what_the_ledger_and_the_tests_say() -> None:
    """Nobody writes it by hand; and the ledger lists no test that is not there."""
    command = [sys.executable, str(HERE / "table.py"), "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_broken_storages_are_caught() -> None:
    """Each fails the test that is made for its fault, and a sound one fails none."""
    broken = f"{HERE / 'broken_storages.py'}::"
    printed = run(
        ROOT, f"{broken}TestSound", *(f"{broken}Test{kind.__name__}::{test}" for kind, test in CAUGHT_BY.items()), "-rf"
    )
    failed = set(re.findall(r"^FAILED \S+::Test(\w+)::(\w+)", printed, re.MULTILINE))
    assert failed == {(kind.__name__, test) for kind, test in CAUGHT_BY.items()}, printed
    assert re.search(r"^\d+ failed, \d+ passed, \d+ skipped in", printed, re.MULTILINE), printed


@pytest.mark.parametrize(
    ("mode", "mark", "plugin"),
    [
        pytest.param("auto", "", "pytest_asyncio.plugin", id="asyncio-auto"),
        pytest.param("strict", "@pytest.mark.asyncio", "pytest_asyncio.plugin", id="asyncio-strict"),
        pytest.param("", "@pytest.mark.anyio", "anyio.pytest_plugin", id="anyio"),
    ],
)
def test_plugins_that_run_it(tmp_path: Path, mode: str, mark: str, plugin: str) -> None:
    """The kit asks for no plugin of its own: what runs the user's coroutines runs its tests."""
    printed = run(suite(tmp_path, ONE_OF_MEMORY.format(mark=mark), mode), plugins=(plugin,))
    assert re.search(r"^26 passed, \d+ skipped in", printed, re.MULTILINE), printed


def test_one_capability_is_selected(tmp_path: Path) -> None:
    """By the mark, with the word of the capability."""
    folder = suite(tmp_path, ONE_OF_MEMORY.format(mark=""))
    printed = run(folder, "-m", "checkpoint_contract(capability='graph-resume')")
    assert re.search(r"^3 passed, \d+ deselected in", printed, re.MULTILINE), printed


def test_skipped_tests_say_why(tmp_path: Path) -> None:
    """A report names the capability and the reason."""
    printed = run(suite(tmp_path, ONE_OF_MEMORY.format(mark="")), "-rs")
    assert "large is not claimed: not now" in printed


@pytest.mark.parametrize(
    ("capability", "said"),
    [
        ("base", "TestNothing has to override the fixture `storage`"),
        ("lifecycle", "TestNothing has to override the fixture `storage`"),
        ("isolation", "`storage_of`, or leave Capability.ISOLATION unclaimed"),
    ],
)
def test_a_fixture_that_is_not_overridden(tmp_path: Path, capability: str, said: str) -> None:
    """What is missing is said by name, and is an error, not a skip."""
    folder = suite(tmp_path, WITHOUT_FIXTURES)
    printed = run(folder, "-m", f"checkpoint_contract(capability='{capability}')", "--tb=line")
    assert said in printed
    assert re.search(r"^\d+ deselected, \d+ errors in", printed, re.MULTILINE), printed


def test_a_storage_that_claims_lifecycle_has_to_reopen(tmp_path: Path) -> None:
    """Otherwise its tests would pass on one object."""
    text = ONE_OF_MEMORY.format(mark="").replace("Capability.BASE,", "Capability.LIFECYCLE,")
    printed = run(suite(tmp_path, text), "-k", "another_process_finds_it", "--tb=line")
    assert "TestMemory has to override the fixture `reopen`, or leave Capability.LIFECYCLE unclaimed" in printed


def test_the_how_to_runs(tmp_path: Path) -> None:
    """The suite on the page runs as it stands, and nothing in it fails that it does not expect."""
    [text] = re.findall(r"^```py\n(.*?)^```$", HOW_TO.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    printed = run(suite(tmp_path, text))
    assert re.search(r"^\d+ passed, \d+ skipped, \d+ xfailed in", printed, re.MULTILINE), printed


def test_the_how_to_names_every_capability() -> None:
    """With the sentence that the kit itself has."""
    page = HOW_TO.read_text("utf-8")
    assert [one for one in Capability if f"| `{one}` | {one.about} |" not in page] == []


def test_importing_the_kit_loads_nothing_of_ours() -> None:
    """It knows no storage: neither the engine nor the client is loaded with it."""
    ours = ("azure", "structlog", "pydantic_settings", "cosmos_workflow_state.errors", "cosmos_workflow_state.emulator")
    assert loaded_by("import cosmos_workflow_state.testing", *ours) == []
    assert loaded_by("import cosmos_workflow_state", "cosmos_workflow_state.testing", "pytest") == []
