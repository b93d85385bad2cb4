"""Options of the whole suite."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --full: randomised runs at the size that a release needs, not at the size of every day."""
    parser.addoption("--full", action="store_true", help="run the long randomised tests at their full size")


@pytest.fixture
def full_size(request: pytest.FixtureRequest) -> bool:
    """Return whether the long randomised tests run at their full size."""
    return bool(request.config.getoption("--full"))
