"""The commands that look at checkpoints and delete them, each as its user runs it, wrongly too."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cosmos_workflow_state import CosmosStateSettings
from cosmos_workflow_state._cli import _store
from cosmos_workflow_state._cli._commands import app
from cosmos_workflow_state._cli._output import CommandError, ExitCode
from cosmos_workflow_state.errors import (
    AccessDeniedError,
    CheckpointConflictError,
    CheckpointCorruptError,
    CosmosStateError,
    OperationTimeoutError,
    ProvisioningError,
    ServiceError,
    ServiceUnavailableError,
    ThrottledError,
)
from support.approvals import approvals, store
from support.commands import RunHere as Run
from support.items import stored_items
from support.servers import emulator_process
from support.states import ALLOWED_TYPES, WORKFLOW, checkpoint

ENDPOINT = "COSMOS_WORKFLOW_STATE_ENDPOINT"
TYPES = "COSMOS_WORKFLOW_STATE_ALLOWED_CHECKPOINT_TYPES"
CONTOSO = ("--tenant", "contoso")


def answer(run: Run, *arguments: str) -> dict[str, Any]:
    """Return the JSON document that a command prints; it prints nothing else."""
    code, output, complaints = run(*arguments, "--json")
    assert (code, complaints) == (0, "")
    found = json.loads(output)
    assert isinstance(found, dict)
    return found


def test_workflows_are_listed(own: Run) -> None:
    """By name, one a line, and as JSON."""
    assert own("workflows", "list", *CONTOSO) == (0, f"workflow\n{'-' * 16}\n{WORKFLOW}\nother\n", "")
    assert answer(own, "workflows", "list", *CONTOSO) == {
        "tenant_id": "contoso",
        "scope": "",
        "workflows": [WORKFLOW, "other"],
    }


def test_checkpoints_are_listed_oldest_first(own: Run) -> None:
    """With all that headers say; a limit keeps the newest."""
    found = answer(own, "checkpoints", "list", *CONTOSO)["checkpoints"]
    last = answer(own, "checkpoints", "list", *CONTOSO, "--workflow", WORKFLOW, "--limit", "2")["checkpoints"]
    output = own("checkpoints", "list", *CONTOSO)[1]

    assert [one["checkpoint_id"] for one in found] == ["cp-000", "cp-001", "cp-002", "cp-003", "cp-004", "cp-x"]
    assert [one["checkpoint_id"] for one in last] == ["cp-003", "cp-004"]
    assert found[2]["pending_request_ids"] == ["approve-2"]
    assert output.splitlines()[0].split()[:2] == ["checkpoint", "workflow"]
    assert len(output.splitlines()) == 8


@pytest.mark.parametrize(
    "arguments", [["workflows", "list"], ["checkpoints", "list"], ["checkpoints", "tree"]], ids=" ".join
)
def test_a_tenant_without_anything_is_an_empty_list(run: Run, arguments: list[str]) -> None:
    """There is no register of tenants, so an unknown one has nothing: a note for people, an empty list for programs."""
    code, output, complaints = run(*arguments, "--tenant", "fabrikam", "--scope", "s-1")
    found = answer(run, *arguments, "--tenant", "fabrikam")

    assert (code, output) == (0, "")
    assert "nothing is stored of tenant 'fabrikam' in scope 's-1'; " in complaints
    assert found.popitem()[1] == []


def test_a_scope_is_its_own(own: Run, tmp_path: Path) -> None:
    """What is in a scope is not listed without it."""
    assert answer(own, "workflows", "list", *CONTOSO, "--scope", "s-1")["workflows"] == []
    assert (tmp_path / "state.db").exists()


def test_a_tree_has_forks_and_what_waits(run: Run) -> None:
    """The whole lineage, or what is related to one checkpoint."""
    code, output, _ = run("checkpoints", "tree", *CONTOSO)
    [tree] = answer(run, "checkpoints", "tree", *CONTOSO)["workflows"]
    [branch] = answer(run, "checkpoints", "tree", *CONTOSO, "cp-009")["workflows"]

    assert code == 0
    assert output.splitlines()[0] == f"{WORKFLOW}: 20 checkpoints, 1 fork, 2 waiting for an answer"
    assert ": 7 more, step 1 to 7" in output
    assert (tree["forks"], tree["waiting"], tree["newest"]) == (["cp-008"], ["cp-011", "cp-019"], "cp-019")
    assert [one["checkpoint_id"] for one in branch["checkpoints"]] == [f"cp-{number:03}" for number in range(12)]
    assert len(run("checkpoints", "tree", *CONTOSO, "--all")[1].splitlines()) == 25


def test_a_tree_of_a_workflow_that_is_not_there(run: Run) -> None:
    """Whoever names a workflow is told that it is not there."""
    code, output, complaints = run("checkpoints", "tree", *CONTOSO, "--workflow", "nothing")

    assert (code, output) == (3, "")
    assert "for workflow 'nothing'" in complaints


@pytest.mark.parametrize("form", [(), ("--json",)], ids=["people", "programs"])
def test_a_workflow_that_is_named_has_to_be_there(own: Run, form: tuple[str, ...]) -> None:
    """Listing or deleting all of it is not found; nothing named is an empty list, and nothing deleted."""
    named = (*CONTOSO, "--workflow", "nothing", *form)
    whole = ("checkpoints", "delete", "--all")
    codes = [own("checkpoints", "list", *named), own(*whole, *named, "--dry-run"), own(*whole, *named, "--yes")]
    code, output, complaints = own(*whole, *named)

    assert [(code, output) for code, output, _ in codes] == [(3, "")] * 3
    assert all("for workflow 'nothing'" in complaints for _, _, complaints in codes)
    assert (code, output, "not_found" in complaints) == (3, "", bool(form))
    assert own(*whole, "--tenant", "fabrikam", "--yes", *form)[0] == 0


def test_a_checkpoint_is_shown_without_restoring_it(run: Run) -> None:
    """No type is allowed here, and the pickles are named in the text and in the JSON."""
    output = run("checkpoints", "show", "cp-011", *CONTOSO)[1]
    found = answer(run, "checkpoints", "show", "cp-011", *CONTOSO)

    assert "\n  invoice: <pickled support.states:Invoice, " in output
    assert found["decoded"] is False
    assert found["checkpoint"]["previous_checkpoint_id"] == "cp-010"
    assert found["fields"]["state"]["invoice"]["__type__"] == "support.states:Invoice"
    assert found["fields"]["state"]["totals"] == {"net": 1261}


def test_a_checkpoint_is_restored_when_that_is_asked_for(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """With --decode the values are there, of allowed types only."""
    assert run("checkpoints", "show", "cp-011", *CONTOSO, "--decode")[0] == 1

    monkeypatch.setenv(TYPES, ",".join(ALLOWED_TYPES))
    found = answer(run, "checkpoints", "show", "cp-011", *CONTOSO, "--decode")
    output = run("checkpoints", "diff", "cp-009", "cp-010", *CONTOSO, "--decode")[1]

    assert found["decoded"] is True
    assert found["fields"]["state"]["invoice"]["number"] == 2041
    assert '+ state.invoice.lines[1]: "paper"' in output


def test_differences_are_structural(run: Run) -> None:
    """Only what differs is there, by path, with both sides."""
    found = answer(run, "checkpoints", "diff", "cp-001", "cp-002", *CONTOSO)
    output = run("checkpoints", "diff", "cp-001", "cp-002", *CONTOSO)[1]

    assert (found["before"], found["after"]) == ("cp-001", "cp-002")
    assert [(change["kind"], change["path"]) for change in found["changes"]] == [
        ("changed", ["state", "totals", "net"]),
        ("added", ["state", "log", 1]),
        ("changed", ["iteration_count"]),
    ]
    assert "~ state.totals.net: 1251 -> 1252\n" in output


@pytest.mark.parametrize("command", ["show", "tree", "delete"])
def test_an_id_that_is_cut_short_must_be_unique(run: Run, command: str) -> None:
    """The beginning of one id will do; of several it is an error that lists them; of none it is not found."""
    code, output, complaints = run("checkpoints", command, "cp-00", *CONTOSO)
    assert (code, output) == (2, "")
    assert "'cp-00' may be any of 10 checkpoints; give more of it" in complaints
    assert complaints.count(f" of {WORKFLOW}\n") == 10
    assert "\n  and 10 more\n" in run("checkpoints", command, "cp", *CONTOSO)[2]

    code, output, complaints = run("checkpoints", command, "cq", *CONTOSO)
    assert (code, output) == (3, "")
    assert "`checkpoints list` shows what there is" in complaints


def test_an_id_that_begins_another_is_that_id(own: Run) -> None:
    """The whole of an id always means the checkpoint that has it."""
    store(os.environ[ENDPOINT], [checkpoint("cp"), checkpoint("cp-x")])

    assert answer(own, "checkpoints", "show", "cp", *CONTOSO)["checkpoint"]["checkpoint_id"] == "cp"
    code, _, complaints = own("checkpoints", "show", "cp-x", *CONTOSO)
    assert code == 2
    assert f"  cp-x of {WORKFLOW}\n" in complaints
    assert own("checkpoints", "show", "cp-x", *CONTOSO, "--workflow", "other")[0] == 0


def test_nothing_is_deleted_where_nobody_can_be_asked(own: Run) -> None:
    """Without a terminal and --yes a command that deletes refuses, and says what it would do."""
    for which in (["cp-001", "cp-002"], ["--all"]):
        code, output, complaints = own("checkpoints", "delete", *which, *CONTOSO)
        assert (code, output) == (2, "")
        assert "would delete " in complaints
        assert "--yes" in complaints
    assert len(answer(own, "checkpoints", "list", *CONTOSO)["checkpoints"]) == 6


def test_a_dry_run_deletes_nothing(own: Run) -> None:
    """It needs no yes, and shows what would go."""
    code, output, _ = own("checkpoints", "delete", "cp-001", "cp-001", *CONTOSO, "--dry-run")
    assert (code, output.splitlines()[-1]) == (0, "would delete 1 checkpoint")
    assert own("checkpoints", "delete", "--all", *CONTOSO, "--dry-run")[1] == "would delete 6 checkpoints\n"
    some = answer(own, "checkpoints", "delete", "cp-001", *CONTOSO, "--dry-run")
    assert some["checkpoints"] == [{"workflow_name": WORKFLOW, "checkpoint_id": "cp-001"}]
    assert len(answer(own, "checkpoints", "list", *CONTOSO)["checkpoints"]) == 6


def test_checkpoints_are_deleted(own: Run) -> None:
    """One by one, or all of a workflow and then of the scope; the second time there is nothing left."""
    assert own("checkpoints", "delete", "cp-001", "cp-002", *CONTOSO, "--yes") == (0, "deleted 2 checkpoints\n", "")
    whole = ("checkpoints", "delete", "--all", *CONTOSO, "--yes")
    assert own(*whole, "--workflow", "other") == (0, "deleted 1 checkpoint\n", "")
    assert answer(own, *whole)["erased"]["checkpoints"] == 3
    assert own(*whole)[:2] == (0, "deleted 0 checkpoints\n")
    assert answer(own, "workflows", "list", *CONTOSO)["workflows"] == []


def test_deleting_is_one_json_document(own: Run) -> None:
    """It names what was deleted, and what somebody else had deleted before."""
    assert answer(own, "checkpoints", "delete", "cp-001", *CONTOSO, "--yes") == {
        "tenant_id": "contoso",
        "scope": "",
        "dry_run": False,
        "checkpoints": [{"workflow_name": WORKFLOW, "checkpoint_id": "cp-001"}],
        "already_gone": [],
    }


def test_settings_are_shown_with_where_they_come_from(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Environment, .env and secrets directory; the key itself is nowhere."""
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    (secrets / "COSMOS_WORKFLOW_STATE_KEY").write_text("c2VjcmV0")
    (tmp_path / ".env").write_text("COSMOS_WORKFLOW_STATE_DATABASE=from-file\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COSMOS_WORKFLOW_STATE_SECRETS_DIR", str(secrets))

    output = run("config", "show")[1]
    settings = {row["name"]: row for row in answer(run, "config", "show")["settings"]}

    assert "c2VjcmV0" not in output + json.dumps(settings)
    assert {name: settings[name]["source"] for name in ("endpoint", "database", "auth.key", "log_level")} == {
        "endpoint": "the environment",
        "database": ".env",
        "auth.key": "the secrets directory",
        "log_level": "default",
    }
    assert settings["auth.key"]["variable"] == "COSMOS_WORKFLOW_STATE_KEY"


@pytest.mark.parametrize(
    "arguments", [["config", "show"], ["workflows", "list", *CONTOSO]], ids=["config", "workflows"]
)
def test_missing_settings_are_told_with_what_to_do(
    run: Run, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new user without any settings is told which variable to set, and to what."""
    monkeypatch.delenv(ENDPOINT)

    code, output, complaints = run(*arguments)

    assert (code, output) == (2, "")
    assert f"{ENDPOINT} is not set" in complaints
    assert f"{ENDPOINT}=embedded:state.db" in complaints


def test_ids_that_are_refused_are_wrong_usage(run: Run) -> None:
    """A tenant id that no application can have is refused as such."""
    code, output, complaints = run("workflows", "list", "--tenant", "a b")

    assert (code, output) == (2, "")
    assert "tenant_id_pattern" in complaints


def test_a_state_file_that_cannot_be_opened(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names the variable; the log does not say the same again."""
    monkeypatch.setenv(ENDPOINT, "embedded:/nowhere/state.db")

    code, output, complaints = run("workflows", "list", *CONTOSO)

    assert (code, output) == (6, "")
    assert complaints.startswith("cosmos-workflow-state: the state file that COSMOS_WORKFLOW_STATE_ENDPOINT names")
    assert complaints.count("\n") == 1


@pytest.mark.parametrize("style", ["json", "console"])
def test_the_log_is_on_standard_error(run: Run, style: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At level info each operation is an event there, in the format that is set, and none is in the output."""
    monkeypatch.setenv("COSMOS_WORKFLOW_STATE_LOG_LEVEL", "info")
    monkeypatch.setenv("COSMOS_WORKFLOW_STATE_LOG_FORMAT", style)

    code, output, complaints = run("workflows", "list", *CONTOSO, "--json")

    assert (code, json.loads(output)["workflows"]) == (0, [WORKFLOW])
    assert "workflow.listed" in complaints
    if style == "json":
        assert all(json.loads(line)["level"] == "info" for line in complaints.splitlines())


def test_what_is_left_out_of_a_list_is_told(own: Run) -> None:
    """A header that cannot be read is a warning on standard error, which is there without asking for a log."""

    async def damage() -> None:
        settings = CosmosStateSettings(_env_file=None)
        async with stored_items(settings) as items:
            await items.overwrite("contoso", "cp-001", iteration_count="many")

    asyncio.run(damage())

    code, output, complaints = own("checkpoints", "list", *CONTOSO)

    assert (code, "cp-001" in output, len(output.splitlines())) == (0, False, 7)
    assert "checkpoint.undecodable" in complaints
    assert "cp-001" in complaints


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (AccessDeniedError("no right"), ExitCode.ACCESS_DENIED, "no right; check the key or the role"),
        (ThrottledError("too much"), ExitCode.TRY_AGAIN, "too much; try again later"),
        (ServiceUnavailableError("away"), ExitCode.TRY_AGAIN, "away; `cosmos-workflow-state doctor` shows where"),
        (ServiceUnavailableError("away?"), ExitCode.TRY_AGAIN, "away? `cosmos-workflow-state doctor` shows where"),
        (OperationTimeoutError("too long"), ExitCode.TRY_AGAIN, "too long"),
        (CheckpointConflictError("others"), ExitCode.TRY_AGAIN, "others"),
        (ProvisioningError("no container"), ExitCode.NOT_PROVISIONED, "no container"),
        (CheckpointCorruptError("damaged"), ExitCode.FAILED, "damaged"),
        (ServiceError("refused"), ExitCode.FAILED, "refused"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, CosmosStateError) else "",
)
def test_errors_have_codes_and_remedies(error: CosmosStateError, code: ExitCode, said: str) -> None:
    """What may pass is told apart from what will not, and who lacks a right from what is not there."""
    explained = _store.explained(error)

    assert explained.code == code
    assert str(explained).startswith(said)


def test_the_commands_run_in_typers_own_runner(run: Run) -> None:
    """They are ordinary commands of typer: what wraps them only turns their errors into messages and codes."""
    runner = CliRunner()
    found = runner.invoke(app, ["workflows", "list", *CONTOSO, "--json"])
    missing = runner.invoke(app, ["checkpoints", "show", "nothing", *CONTOSO])

    assert json.loads(found.output)["workflows"] == [WORKFLOW]
    assert isinstance(missing.exception, CommandError)
    assert run("checkpoints", "show", "nothing", *CONTOSO)[0] == missing.exception.code == ExitCode.NOT_FOUND


def test_every_command_works_on_the_emulator(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """An endpoint and a key in the environment are all that it takes to use an account."""
    with emulator_process() as emulator:
        environment = emulator.environment()
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        key = environment["COSMOS_WORKFLOW_STATE_KEY"]
        store(environment[ENDPOINT], approvals(10), auth={"key": key}, provisioning="create")

        assert answer(run, "workflows", "list", *CONTOSO)["workflows"] == [WORKFLOW]
        assert answer(run, "checkpoints", "tree", *CONTOSO)["workflows"][0]["forks"] == ["cp-004"]
        assert len(answer(run, "checkpoints", "list", *CONTOSO)["checkpoints"]) == 10
        assert answer(run, "checkpoints", "show", "cp-001", *CONTOSO)["decoded"] is False
        assert answer(run, "checkpoints", "diff", "cp-001", "cp-002", *CONTOSO)["changes"]
        assert run("checkpoints", "delete", "cp-001", *CONTOSO, "--yes")[:2] == (0, "deleted 1 checkpoint\n")
        assert answer(run, "checkpoints", "delete", "--all", *CONTOSO, "--yes")["erased"]["checkpoints"] == 9
        monkeypatch.setenv("COSMOS_WORKFLOW_STATE_KEY", "d3Jvbmc=")
        code, output, complaints = run("workflows", "list", *CONTOSO)

    assert (code, output) == (4, "")
    assert "az cosmosdb keys list" in complaints
    assert "config show" not in complaints
    assert key not in complaints


def test_an_endpoint_where_nobody_listens(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be there later, so the code says so."""
    monkeypatch.setenv(ENDPOINT, "http://127.0.0.1:9")
    monkeypatch.setenv("COSMOS_WORKFLOW_STATE_KEY", "a2V5")
    monkeypatch.setenv("COSMOS_WORKFLOW_STATE_OPERATION_TIMEOUT", "2")

    code, output, complaints = run("workflows", "list", *CONTOSO)

    assert (code, output) == (5, "")
    assert "Traceback" not in complaints


def test_piped_output_is_plain_and_whole(stored: str) -> None:
    """In a pipe there are no control characters, no progress, no shortened ids, and in ASCII nothing fails."""
    command = [sys.executable, "-m", "cosmos_workflow_state", "checkpoints", "tree", *CONTOSO]
    environment = {**os.environ, ENDPOINT: stored, "COLUMNS": "20", "PYTHONIOENCODING": "ascii"}

    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)

    assert done.stderr == ""
    assert done.stdout.replace("\n", "").isprintable()
    assert f"* cp-019  2026-11-29 10:02:13  step 19  newest, WAITS for 1 answer{os.linesep}" in done.stdout
