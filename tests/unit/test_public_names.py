"""What is public: the names in `__all__`, no more and no fewer."""

from __future__ import annotations

import subprocess
import sys
from importlib import resources
from types import ModuleType

import pytest

import cosmos_workflow_state
from cosmos_workflow_state import errors, settings, testing, typing


def test_public_names_of_the_package() -> None:
    """Adding or taking away a public name is a decision, so it needs a change here."""
    assert cosmos_workflow_state.__all__ == [
        "AzureCliAuth",
        "ConnectionStringAuth",
        "CosmosStateFactory",
        "CosmosStateSettings",
        "DefaultAuth",
        "KeyAuth",
        "ManagedIdentityAuth",
        "TenantCheckpointStorage",
        "TenantHistoryProvider",
        "TenantSessionStore",
        "TenantState",
        "WorkloadIdentityAuth",
    ]


def test_public_names_of_the_types() -> None:
    """What callers implement and are handed is as much a decision."""
    assert typing.__all__ == [
        "CheckpointOutline",
        "CheckpointSummary",
        "EraseProgress",
        "EraseProgressHook",
        "HistoryOptions",
        "PickledValue",
        "SaveFailedHook",
        "SaveFailure",
        "SaveFailures",
        "StoredSession",
        "SweepReport",
    ]


@pytest.mark.parametrize("name", cosmos_workflow_state.__all__)
def test_each_name_resolves_to_a_documented_class(name: str) -> None:
    """Each name is importable, named so, and documented."""
    found = getattr(cosmos_workflow_state, name)
    assert found.__name__ == name
    assert found.__doc__


def test_names_are_resolved_where_they_live() -> None:
    """The name from the package is the very class that its module defines."""
    assert cosmos_workflow_state.CosmosStateSettings is settings.CosmosStateSettings


@pytest.mark.parametrize("name", ["Nothing", "_Nothing", "CosmosStateError", "import_module_"])
def test_other_names_are_attribute_errors(name: str) -> None:
    """A name that is not public is the usual error, so that hasattr and from-import work as everywhere."""
    with pytest.raises(AttributeError, match=f"module 'cosmos_workflow_state' has no attribute '{name}'"):
        getattr(cosmos_workflow_state, name)
    assert not hasattr(cosmos_workflow_state, name)
    with pytest.raises(ImportError):
        exec(f"from cosmos_workflow_state import {name}", {})  # noqa: S102 - the statement is what is tested


@pytest.mark.parametrize("module", [errors, settings, testing, typing, cosmos_workflow_state])
def test_public_modules_list_their_names(module: ModuleType) -> None:
    """`__all__` is sorted, without duplicates, and each entry is there."""
    names: list[str] = module.__all__
    assert sorted(set(names), key=str.upper) == sorted(names, key=str.upper)
    assert all(hasattr(module, name) for name in names)


def test_star_import_gives_exactly_the_public_names() -> None:
    """What a star import brings is what is public."""
    namespace: dict[str, object] = {}
    exec("from cosmos_workflow_state import *", namespace)  # noqa: S102 - the statement is what is tested
    assert namespace.keys() - {"__builtins__"} == set(cosmos_workflow_state.__all__)


def test_importing_the_package_loads_neither_client_nor_framework() -> None:
    """The emulator lives in this package and needs neither: they are loaded with the first name that does."""
    loaded = "[name for name in ('azure', 'agent_framework', 'pydantic') if name in sys.modules]"
    code = f"import sys, cosmos_workflow_state; print({loaded})"
    shown = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert shown.stdout.strip() == "[]"


def test_package_is_typed() -> None:
    """Type checkers of users read the package's own annotations."""
    assert resources.files("cosmos_workflow_state").joinpath("py.typed").is_file()
