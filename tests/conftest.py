"""Options of the whole suite."""

from __future__ import annotations

import pytest

# Written out here: pytest reads this file before any other, and what knows the targets is slow to import.
TARGETS = ("embedded", "http", "https", "account")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --full, for the size of a release in place of the one of every day, and --against."""
    parser.addoption("--full", action="store_true", help="run the long randomised tests at their full size")
    parser.addoption(
        "--against",
        choices=TARGETS,
        default="embedded",
        help="what the integration tests run against: the embedded engine, an emulator over http by key, one over "
        "https by token, or the account of TEST_COSMOS_ENDPOINT and TEST_COSMOS_KEY; tests that reach none of them "
        "run with 'embedded' only",
    )


@pytest.fixture
def full_size(request: pytest.FixtureRequest) -> bool:
    """Return whether the long randomised tests run at their full size."""
    return bool(request.config.getoption("--full"))
