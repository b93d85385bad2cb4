"""Fixtures for the test suites of applications, and the mark of the conformance kit; pytest finds both by itself.

Owns the fixtures. Imports only pytest: it is loaded at the start of every run, needed or not.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from cosmos_workflow_state import CosmosStateFactory
    from cosmos_workflow_state.emulator import CosmosEmulator

# Its asserts are the tests of who subclasses it: pytest has to know before it is imported that it may explain them.
pytest.register_assert_rewrite("cosmos_workflow_state.testing")


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark of the conformance kit."""
    config.addinivalue_line(
        "markers", "checkpoint_contract(capability, also): a test of cosmos_workflow_state.testing, and its subject"
    )


@pytest.fixture(scope="session")
def _cosmos_emulator_of_the_run() -> Iterator[CosmosEmulator]:
    """Run one emulator for all tests, on a thread of its own."""
    from cosmos_workflow_state.emulator import CosmosEmulator  # noqa: PLC0415 - only for who uses it

    with CosmosEmulator() as emulator:
        yield emulator


@pytest.fixture
def cosmos_emulator(_cosmos_emulator_of_the_run: CosmosEmulator) -> Iterator[CosmosEmulator]:
    """Give the run's Cosmos DB emulator, in memory; its faults and its clock are put back after the test."""
    yield _cosmos_emulator_of_the_run
    _cosmos_emulator_of_the_run.faults.clear()
    _cosmos_emulator_of_the_run.clock.offset = 0.0


@pytest.fixture
def cosmos_state_factory(cosmos_emulator: CosmosEmulator) -> Callable[..., CosmosStateFactory]:
    """Build factories on the emulator, in a new and empty database.

    To be called with further settings by name; use the result with ``async with``.
    """
    from cosmos_workflow_state import CosmosStateFactory  # noqa: PLC0415 - only for who uses it

    database = f"test-{uuid.uuid4()}"

    def build(**settings: Any) -> CosmosStateFactory:
        return CosmosStateFactory(cosmos_emulator.settings(**{"database": database, **settings}))

    return build
