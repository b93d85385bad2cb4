"""Containers that the framework's own stores have written, the migration of them, and ways to disturb it."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import structlog
from agent_framework import Message, WorkflowCheckpoint
from agent_framework_azure_cosmos import CosmosCheckpointStorage, CosmosHistoryProvider
from azure.core.pipeline.transport import HttpRequest
from azure.cosmos import PartitionKey
from azure.cosmos.aio import CosmosClient, DatabaseProxy

from cosmos_workflow_state import CosmosStateFactory, CosmosStateSettings
from cosmos_workflow_state._cli import main
from cosmos_workflow_state._embedded import EmbeddedResponse, EmbeddedTransport
from cosmos_workflow_state.emulator._clock import MovableClock
from cosmos_workflow_state.emulator._engine._engine import Engine
from cosmos_workflow_state.testing import _values as values
from support.states import ALLOWED_TYPES
from support.targets import client_of

DATABASE = "agent-db"
CHECKPOINTS = f"{DATABASE}/checkpoints"
HISTORY = f"{DATABASE}/history"

_DEADLY = """
import os, signal, sys
from cosmos_workflow_state._cli import main
from cosmos_workflow_state._cli import main
from cosmos_workflow_state._embedded import EmbeddedTransport

send, sent = EmbeddedTransport.send, 0

async def deadly(self, request, **options):
    global sent
    sent += 1
    last = sent == int(os.environ["DIES_AT"])
    if last and os.environ["DIES"] == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    answer = await send(self, request, **options)
    if last:
        os.kill(os.getpid(), signal.SIGKILL)
    return answer

EmbeddedTransport.send = deadly
sys.exit(main())
"""


class Account:
    """An account with containers of the framework's own stores and of ours; a state file, if nothing else is said.

    Attributes:
        endpoint: As a setting.
        environment: What the command line finds, whatever else is around.
    """

    def __init__(self, directory: Path) -> None:
        self._reach(f"embedded:{directory / 'state.db'}")

    @classmethod
    def at(cls, endpoint: str, key: str) -> Account:
        """Return an account that listens, in place of a state file."""
        account = cls.__new__(cls)
        account._reach(endpoint, key)
        return account

    def _reach(self, endpoint: str, key: str | None = None) -> None:
        self.endpoint, self._key = endpoint, key
        self.environment = {
            "COSMOS_WORKFLOW_STATE_ENDPOINT": self.endpoint,
            "COSMOS_WORKFLOW_STATE_ALLOWED_CHECKPOINT_TYPES": ",".join(_ALLOWED),
            "PYTHONPATH": os.pathsep.join(sys.path),
        }
        if key is not None:
            self.environment["COSMOS_WORKFLOW_STATE_KEY"] = key
            self.environment["COSMOS_WORKFLOW_STATE_PROVISIONING"] = "create"

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """Run the command line in this process: exit code, output and complaints."""
        output, complaints = io.StringIO(), io.StringIO()
        with (
            pytest.MonkeyPatch.context() as patched,
            contextlib.redirect_stdout(output),
            contextlib.redirect_stderr(complaints),
        ):
            for name in [name for name in os.environ if "COSMOS" in name]:
                patched.delenv(name)
            for name, value in self.environment.items():
                patched.setenv(name, value)
            code = main(arguments)
        structlog.reset_defaults()
        return code, output.getvalue(), complaints.getvalue()

    def answer(self, *arguments: str) -> dict[str, Any]:
        """Return the JSON document that a command prints."""
        found = json.loads(self.run(*arguments, "--json")[1])
        assert isinstance(found, dict)
        return found

    def settings(self, **given: Any) -> CosmosStateSettings:
        """Return settings that allow the types of the tests."""
        known: dict[str, Any] = {
            "endpoint": self.endpoint,
            "allowed_checkpoint_types": _ALLOWED,
            "provisioning": "create",
            "_env_file": None,
        }
        if self._key is not None:
            known["auth"] = {"mode": "key", "key": self._key}
        return CosmosStateSettings(**{**known, **given})

    def in_framework(self, use: Callable[[CosmosCheckpointStorage], Awaitable[Any]]) -> Any:
        """Do something with the framework's checkpoint storage."""

        async def work(client: CosmosClient) -> Any:
            types = list(_ALLOWED)
            return await use(
                CosmosCheckpointStorage(
                    cosmos_client=client,
                    database_name=DATABASE,
                    container_name="checkpoints",
                    allowed_checkpoint_types=types,
                )
            )

        return self._with_client(work)

    def save(self, checkpoints: Iterable[WorkflowCheckpoint]) -> None:
        """Save checkpoints with the framework's storage."""

        async def work(storage: CosmosCheckpointStorage) -> None:
            for checkpoint in checkpoints:
                await storage.save(checkpoint)

        self.in_framework(work)

    def in_history(self, use: Callable[[CosmosHistoryProvider], Awaitable[Any]], **options: Any) -> Any:
        """Do something with the framework's history provider."""

        async def work(client: CosmosClient) -> Any:
            await client.create_database_if_not_exists(DATABASE)
            provider = CosmosHistoryProvider(
                cosmos_client=client, database_name=DATABASE, container_name="history", **options
            )
            return await use(provider)

        return self._with_client(work)

    def say(self, session_id: str, messages: Sequence[Message], **options: Any) -> None:
        """Save messages with the framework's history provider."""
        self.in_history(lambda provider: provider.save_messages(session_id, messages), **options)

    def in_ours(self, use: Callable[[CosmosStateFactory], Awaitable[Any]], **given: Any) -> Any:
        """Do something with a factory of ours."""

        async def work() -> Any:
            async with CosmosStateFactory(self.settings(**given)) as factory:
                return await use(factory)

        return asyncio.run(work())

    def items(self, source: str) -> list[dict[str, Any]]:
        """Return all items of a container, system fields included, in an order of their own."""

        async def work(client: CosmosClient) -> list[dict[str, Any]]:
            database, container = source.split("/")
            proxy = client.get_database_client(database).get_container_client(container)
            return [dict(item) async for item in proxy.query_items("SELECT * FROM c")]

        return sorted(self._with_client(work), key=lambda item: str(item["id"]))

    def change(self, source: str, item: Mapping[str, Any]) -> None:
        """Write an item behind everybody's back."""
        asyncio.run(self.write(source, item))

    async def write(self, source: str, item: Mapping[str, Any]) -> None:
        """Write an item behind everybody's back, from a test's own hook."""
        async with client_of(self.settings()) as client:
            database, container = source.split("/")
            await client.get_database_client(database).get_container_client(container).upsert_item(dict(item))

    def containers(self) -> set[str]:
        """Return the names of all containers."""

        async def work(client: CosmosClient) -> set[str]:
            databases = [client.get_database_client(found["id"]) async for found in client.list_databases()]
            return {f"{one.id}/{found['id']}" for one in databases async for found in one.list_containers()}

        found: set[str] = self._with_client(work)
        return found

    async def delete(self, source: str, item_id: str, partition: str) -> None:
        """Delete an item behind everybody's back, from a test's own hook."""
        async with client_of(self.settings()) as client:
            database, container = source.split("/")
            proxy = client.get_database_client(database).get_container_client(container)
            await proxy.delete_item(item_id, partition_key=partition)

    def create(self, source: str, key_path: str) -> None:
        """Create an empty container."""

        async def work(client: CosmosClient) -> None:
            name, container = source.split("/")
            database: DatabaseProxy = await client.create_database_if_not_exists(name)
            await database.create_container(container, PartitionKey(key_path))

        self._with_client(work)

    def killed(self, *arguments: str, dies_at: int, after: bool) -> int:
        """Migrate in a process that is killed at one of its requests; return how it ended.

        Args:
            *arguments: Of the command line.
            dies_at: Number of the request.
            after: Whether the engine has answered it by then.
        """
        done = subprocess.run(
            [sys.executable, "-c", _DEADLY, *arguments],
            env={**self._around(), "DIES_AT": str(dies_at), "DIES": "after" if after else "before"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode in {0, -signal.SIGKILL}, done.stderr
        return done.returncode

    def started(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a migration in a process of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "cosmos_workflow_state", *arguments, "--json"],
            env=self._around(),
            stdout=subprocess.PIPE,
            text=True,
        )

    def _around(self) -> dict[str, str]:
        return {name: value for name, value in os.environ.items() if "COSMOS" not in name} | self.environment

    def _with_client(self, work: Callable[[CosmosClient], Awaitable[Any]]) -> Any:
        async def run() -> Any:
            async with client_of(self.settings()) as client:
                return await work(client)

        return asyncio.run(run())


def counts(document: Mapping[str, Any]) -> tuple[int, int, int, int]:
    """Return what a migration has found, written, found there already, and what failed."""
    return document["found"], document["written"], document["already_there"], document["failed"]


class Requests:
    """Counts the requests of this process to an embedded engine, can disturb them, and moves the engine's clock.

    Attributes:
        sent: Method and body of each, in order.
        before: Called with each before the engine sees it; what it raises the client gets in place of an answer.
        clock: Of all engines that are opened.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sent: list[tuple[str, str]] = []
        self.before: Callable[[str], Awaitable[None]] | None = None
        self.clock = MovableClock()
        send, open_engine = EmbeddedTransport.send, Engine.open

        async def watched(transport: EmbeddedTransport, request: HttpRequest, **options: Any) -> EmbeddedResponse:
            body = request.data.decode() if isinstance(request.data, bytes) else str(request.data or "")
            self.sent.append((str(request.method), body))
            if self.before is not None:
                await self.before(body)
            return await send(transport, request, **options)

        monkeypatch.setattr(EmbeddedTransport, "send", watched)
        monkeypatch.setattr(Engine, "open", lambda path: open_engine(path, clock=self.clock))

    @property
    def written(self) -> list[str]:
        """The requests that were to write: queries are sent with POST, too."""
        return [body for method, body in self.sent if method != "GET" and '"query"' not in body]


_ALLOWED = (*ALLOWED_TYPES, *values.ALLOWED_TYPES)
