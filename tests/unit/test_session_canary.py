"""What is relied on of the framework's sessions, all of it public; and when its warning about them is heard."""

from __future__ import annotations

import inspect
import subprocess
import sys
from typing import Any

import pytest
from agent_framework import AgentSession, SessionStore

from cosmos_workflow_state import TenantSessionStore

ASK = "factory.for_tenant('contoso')"
FACTORY = """
import asyncio, warnings
import cosmos_workflow_state, cosmos_workflow_state.testing, cosmos_workflow_state.typing
from cosmos_workflow_state import *
from cosmos_workflow_state import CosmosStateFactory, CosmosStateSettings

async def main():
    settings = CosmosStateSettings(endpoint="embedded:", _env_file=None)
    async with CosmosStateFactory(settings) as factory:
        {}

asyncio.run(main())
"""


def members(of: type[Any]) -> dict[str, list[str]]:
    """Return the public methods of a class with their parameters."""
    found = {name: getattr(of, name) for name in dir(of) if not name.startswith("_")}
    return {name: list(inspect.signature(one).parameters) for name, one in found.items() if callable(one)}


def test_the_methods_of_a_session_store() -> None:
    """A method that is new is one that ours would inherit: it would work on the dict that ours does not have."""
    assert members(SessionStore) == {
        "delete": ["self", "session_id"],
        "get": ["self", "session_id"],
        "set": ["self", "session_id", "session"],
        "validate_session_id": ["session_id"],
    }
    ours = members(TenantSessionStore)
    assert ours == members(SessionStore) | {
        "get_stored": ["self", "session_id"],
        "set": ["self", "session_id", "session", "if_match"],
        "set_stored": ["self", "session_id", "session", "if_match"],
    }
    assert {name for name in ours if name in vars(TenantSessionStore)} == set(ours), "nothing is inherited"


def test_what_a_session_is_made_of() -> None:
    """What is new of a session would be lost."""
    assert set(vars(AgentSession())) == {"_session_id", "service_session_id", "state"}
    assert set(AgentSession().to_dict()) == {"type", "session_id", "service_session_id", "state"}
    assert members(AgentSession).keys() == {"from_dict", "to_dict"}


@pytest.mark.parametrize(
    ("done", "warns"),
    [
        pytest.param(f"print({ASK}.checkpoints, {ASK}.history())", False, id="no sessions"),
        pytest.param(f"print({ASK}.sessions, {ASK}.sessions)", True, id="sessions"),
    ],
)
def test_the_warning_of_the_framework(done: str, *, warns: bool) -> None:
    """That session stores are experimental is said once, to whoever asks for one, and to nobody else."""
    code = FACTORY.format(done)
    if not warns:
        code = code.replace("from cosmos_workflow_state import *\n", "")
    shown = subprocess.run([sys.executable, "-W", "always", "-c", code], check=True, capture_output=True, text=True)
    assert shown.stderr.count("[SESSION_STORE] SessionStore is experimental") == warns
    assert "Warning" not in shown.stderr.replace("ExperimentalWarning: [SESSION_STORE]", "")


def test_the_warning_as_an_error() -> None:
    """Where warnings are errors it can be left out by its category or its text, and then sessions are usable."""
    code = FACTORY.format(f"print({ASK}.sessions)").replace("from cosmos_workflow_state import *\n", "")
    told = [sys.executable, "-W", "error", "-c"]
    refused = subprocess.run([*told, code], check=False, capture_output=True, text=True)
    assert "ExperimentalWarning: [SESSION_STORE]" in refused.stderr.splitlines()[-1]
    left_out = "import warnings; warnings.filterwarnings('ignore', r'\\[SESSION_STORE\\]', FutureWarning)\n"
    shown = subprocess.run([*told, left_out + code], check=True, capture_output=True, text=True)
    assert shown.stdout.strip() == "TenantSessionStore(tenant_id='contoso')"
    assert shown.stderr == ""
