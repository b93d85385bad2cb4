"""What the tests of hosts share: a client of an app in this process, the apps' settings and the events they send."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from cosmos_workflow_state import CosmosStateSettings
from support.trips import ALLOWED


def settings_in(directory: Path, **changes: Any) -> CosmosStateSettings:
    """Return settings of a state file, under which the trips' types may be restored."""
    given: dict[str, Any] = {
        "endpoint": f"embedded:{directory / 'state.db'}",
        "allowed_checkpoint_types": sorted(ALLOWED),
        "_env_file": None,
    }
    return CosmosStateSettings(**given | changes)


@asynccontextmanager
async def client_of(app: Any) -> AsyncGenerator[httpx.AsyncClient]:
    """Start an app, as its server would, and yield a client of it."""
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://host.test") as client,
    ):
        yield client


def events_of(response: httpx.Response) -> list[dict[str, Any]]:
    """Return the server-sent events in a response."""
    lines = response.text.splitlines()
    return [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]
