"""Fixtures of the emulator's tests."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from support.service import Service, running


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    """Yield a gateway over memory with the usual database and container."""
    async with running() as made:
        yield made
