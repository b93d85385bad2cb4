"""Adapters without the packages of their host: which extra has them is said, by whichever module is imported first."""

from __future__ import annotations

import subprocess
import sys

import pytest

from cosmos_workflow_state.hosts._extras import PackagesOf

BLOCKED = """
import sys

sys.modules[sys.argv[2]] = None
try:
    __import__(f"cosmos_workflow_state.hosts.{sys.argv[1]}")
except ImportError as error:
    print(error.name, error, sep="; ")
"""


@pytest.mark.parametrize(
    ("module", "package", "extra"),
    [
        ("ag_ui", "fastapi", "ag-ui"),
        ("foundry", "agent_framework_foundry_hosting", "foundry-hosting"),
        ("foundry_sessions", "agent_framework_foundry_hosting", "foundry-hosting"),
        ("foundry_sessions", "azure.ai.agentserver.core", "foundry-hosting"),
    ],
)
def test_the_extra_is_named(module: str, package: str, extra: str) -> None:
    """In a process that cannot import the package."""
    done = subprocess.run([sys.executable, "-c", BLOCKED, module, package], capture_output=True, text=True, check=True)

    assert done.stdout.startswith(f"{package}; ")
    assert f"needs the extra {extra} of cosmos-workflow-state" in done.stdout
    assert f"pip install '.[{extra}]'" in done.stdout


def test_another_error_is_left_as_it_is() -> None:
    """Only what an installation mends is blamed on the installation."""
    with pytest.raises(ValueError, match="broken"), PackagesOf("ag-ui"):
        raise ValueError("broken")
