"""The commands where things are not there, and where what is stored was not written by a save."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from cosmos_workflow_state import CosmosStateSettings
from cosmos_workflow_state._cli import _look
from cosmos_workflow_state._cli._views._values import plain
from support.approvals import store
from support.commands import RunHere as Run
from support.items import stored_items
from support.states import ALLOWED_TYPES, WORKFLOW, checkpoint

ENDPOINT = "COSMOS_WORKFLOW_STATE_ENDPOINT"
TYPES = "COSMOS_WORKFLOW_STATE_ALLOWED_CHECKPOINT_TYPES"
CONTOSO = ("--tenant", "contoso")

CREATING = "COSMOS_WORKFLOW_STATE_PROVISIONING"
LOOKING = [
    ("workflows", "list"),
    ("checkpoints", "list"),
    ("checkpoints", "tree"),
    ("checkpoints", "show", "cp-1"),
    ("checkpoints", "diff", "cp-1", "cp-2"),
    ("checkpoints", "delete", "cp-1", "--dry-run"),
    ("checkpoints", "delete", "--all", "--dry-run"),
    ("checkpoints", "delete", "--all", "--yes"),
]


@pytest.mark.parametrize("arguments", LOOKING, ids=" ".join)
def test_looking_creates_nothing(
    run: Run, arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A path that is mistyped is an error that names it; a database is not created, whatever the settings say."""
    monkeypatch.setenv(CREATING, "create")
    monkeypatch.setenv("COSMOS_WORKFLOW_STATE_DATABASE", "ghost")
    before = (stored := _path_of(os.environ[ENDPOINT])).read_bytes()
    code, output, complaints = run(*arguments, *CONTOSO)
    assert (code, output, stored.read_bytes()) == (6, "", before)
    assert "there is no container 'checkpoints' in a database 'ghost'" in complaints

    monkeypatch.setenv(ENDPOINT, f"embedded:{tmp_path}/typo.db")
    code, output, complaints = run(*arguments, *CONTOSO)
    assert (code, output) == (6, "")
    assert f"there is no state file '{tmp_path}/typo.db'; " in complaints
    assert list(tmp_path.iterdir()) == []


def _path_of(endpoint: str) -> Path:
    return Path(endpoint.removeprefix("embedded:"))


def test_memory_has_nothing_to_look_at(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine in memory is another one in each process."""
    monkeypatch.setenv(ENDPOINT, "embedded:")
    code, _, complaints = run("workflows", "list", *CONTOSO)

    assert code == 6
    assert "embedded:PATH names a state file" in complaints


def test_who_verifies_nothing_may_look(own: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the settings leave the container unverified, so does the command line."""
    monkeypatch.setenv(CREATING, "skip")
    assert own("workflows", "list", *CONTOSO)[0] == 0


ESCAPES = "\x1b[31mEVIL\x1b]0;title\x07"


async def spoil(checkpoint_id: str, /, **changes: Any) -> None:
    """Change an item as no save does."""
    async with stored_items(CosmosStateSettings(_env_file=None)) as items:
        await items.overwrite("contoso", checkpoint_id, **changes)


def test_nothing_that_is_stored_steers_the_terminal(own: Run) -> None:
    """Neither a time that is none, nor what the log says of an item that cannot be read or of what was asked."""
    asyncio.run(spoil("cp-002", timestamp=ESCAPES))
    asyncio.run(spoil("cp-003", checkpoint_id=ESCAPES, schema=99))
    shown = [
        *own("checkpoints", "tree", *CONTOSO, "--all")[1:],
        *own("checkpoints", "list", *CONTOSO)[1:],
        *own("checkpoints", "show", "cp-002", *CONTOSO)[1:],
        *own("checkpoints", "list", *CONTOSO, "--scope", "s\x1b[31m")[1:],
    ]

    assert all(line.isprintable() for text in shown for line in text.split("\n"))
    assert r"\x1b[31mEVIL" in shown[0]
    assert r"\x1b[31mEVIL" in shown[1] + shown[3]


def test_an_event_that_is_asked_for_does_not_steer_the_terminal(own: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """At level info what was asked is in the log, too."""
    monkeypatch.setenv("COSMOS_WORKFLOW_STATE_LOG_LEVEL", "info")
    complaints = own("checkpoints", "list", *CONTOSO, "--scope", "s\x1b[31m")[2]

    assert r"s\x1b[31m" in complaints
    assert all(line.isprintable() for line in complaints.split("\n"))


def test_an_id_is_no_line_of_ours(own: Run) -> None:
    """Of several ids each has one line, whatever is in it."""
    store(os.environ[ENDPOINT], [checkpoint("id-1\n  id-2 of invoices"), checkpoint("id-3")])
    complaints = own("checkpoints", "show", "id", *CONTOSO)[2]

    assert complaints.splitlines()[1:] == [rf"  id-1\n  id-2 of invoices of {WORKFLOW}", f"  id-3 of {WORKFLOW}"]


def test_what_cannot_be_read_is_named(own: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it is to be an error, that says which checkpoint it is about."""
    monkeypatch.setenv("COSMOS_WORKFLOW_STATE_ON_UNDECODABLE", "raise")
    asyncio.run(spoil("cp-003", schema=99))
    code, _, complaints = own("checkpoints", "list", *CONTOSO)

    assert code == 1
    assert "(checkpoint 'cp-003' of workflow 'invoice-approval')" in complaints
    assert complaints.count("cp-003") == 1


def test_a_state_with_more_values_than_time_is_shown_in_part(own: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends, and says that there is more."""
    monkeypatch.setattr(_look, "plain", lambda value: plain(value, budget=10))
    monkeypatch.setenv(TYPES, ",".join(ALLOWED_TYPES))
    code, output, complaints = own("checkpoints", "show", "cp-003", *CONTOSO, "--decode")

    assert (code, len(output.splitlines()) < 30) == (0, True)
    assert complaints.startswith("WARNING: checkpoint 'cp-003' has more values than can be shown")


@pytest.mark.parametrize("arguments", [("show", "cp-003"), ("diff", "cp-002", "cp-003")], ids=lambda found: found[0])
def test_a_state_that_no_save_writes_is_refused(
    own: Run, arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that nests too deep has come there in another way."""
    monkeypatch.setattr(_look, "MAX_DEPTH", 2)
    code, output, complaints = own("checkpoints", *arguments, *CONTOSO)

    assert (code, output) == (1, "")
    assert "nests deeper than 2 levels: no save writes that" in complaints
