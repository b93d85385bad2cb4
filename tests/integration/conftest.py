"""Fixtures of the integration tests: factories on the embedded engine, in memory and on a file."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, MutableMapping
from pathlib import Path
from typing import Any

import pytest
import structlog
from structlog.testing import LogCapture

from cosmos_workflow_state import CosmosStateFactory, CosmosStateSettings
from support.states import ALLOWED_TYPES


@pytest.fixture
def settings() -> CosmosStateSettings:
    """Return the settings of an engine in memory that may restore the test types."""
    return CosmosStateSettings(endpoint="embedded:", allowed_checkpoint_types=ALLOWED_TYPES)


@pytest.fixture
def file_settings(tmp_path: Path) -> CosmosStateSettings:
    """Return the settings of an engine on a file that may restore the test types."""
    return CosmosStateSettings(endpoint=f"embedded:{tmp_path / 'state.db'}", allowed_checkpoint_types=ALLOWED_TYPES)


@pytest.fixture
async def factory(settings: CosmosStateSettings) -> AsyncIterator[CosmosStateFactory]:
    """Yield an open factory in memory."""
    async with CosmosStateFactory(settings) as opened:
        yield opened


@pytest.fixture
def events() -> Iterator[list[MutableMapping[str, Any]]]:
    """Configure structlog as an application does, and yield the events of factories built from now on."""
    capture = LogCapture()
    structlog.configure(processors=[capture])
    yield capture.entries
    structlog.reset_defaults()
