"""The demo as its user runs it, and each of its steps inside this process."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from cosmos_workflow_state._cli import _demo_steps
from cosmos_workflow_state._cli._demo_workflow import invoice_of

_COMMAND = [sys.executable, "-m", "cosmos_workflow_state", "demo"]

Step = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def step(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Step]:
    """Yield a function that runs one step in this process, with nobody at its input, and returns what it tells."""

    def run_step(*arguments: str) -> list[dict[str, Any]]:
        monkeypatch.setattr(sys, "stdin", io.StringIO())
        _demo_steps.main(arguments)
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    yield run_step
    structlog.reset_defaults()


def named(events: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    """Return the events of one name."""
    return [event for event in events if event["event"] == name]


def run_demo(directory: Path, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Return the demo run with its state under a directory."""
    return subprocess.run(
        [*_COMMAND, *options],
        env={**os.environ, "TMPDIR": str(directory), **environment},
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return what the demo prints, with settings of the user's around that it must not read."""
    directory = tmp_path_factory.mktemp("demo")
    (directory / ".env").write_text("COSMOS_WORKFLOW_STATE_NONSENSE=1\n")
    done = run_demo(directory, COSMOS_WORKFLOW_STATE_ENDPOINT="ftp://wrong")
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_demo_as_json(tmp_path: Path) -> None:
    """One document: what each process did, that the first one was killed, and what is stored at the end."""
    done = run_demo(tmp_path, "--json")
    document = json.loads(done.stdout)
    steps = [(step["step"], [event["event"] for event in step["events"]]) for step in document["steps"]]
    asked = document["steps"][0]["events"][0]

    assert (done.returncode, done.stderr) == (0, "")
    assert steps == [
        ("pause", ["paused", "paused", "killed"]),
        ("resume", ["request_found", "finished"]),
        ("trespass", ["not_found"]),
        ("resume", ["request_found", "finished"]),
    ]
    assert len({step["process"] for step in document["steps"]}) == 4
    assert document["steps"][2]["events"] == [
        {
            "event": "not_found",
            "tenant_id": "fabrikam",
            "checkpoint_id": asked["checkpoint_id"],
            "error": "CheckpointNotFoundError",
        }
    ]
    assert len(document["checkpoints"]) == 12
    assert asked["checkpoint_id"] in [one["checkpoint_id"] for one in document["checkpoints"]]
    assert Path(document["state_file"]).read_bytes().startswith(b"SQLite format 3\0")


def test_the_demo_tells_its_story(output: str) -> None:
    """A kill, both resumptions in other processes, and "not found" for the other tenant."""
    processes = re.findall(r"^\d\. Process (\d+) ", output, re.MULTILINE)

    assert len(set(processes)) == 4
    assert "SIGKILL" in output
    assert re.search(r"contoso .*finished: invoice contoso-2041 of .* was paid", output)
    assert re.search(r"fabrikam .*finished: invoice fabrikam-2041 of .* was rejected", output)
    assert re.search(r"fabrikam  [0-9a-f-]{36}: not found\n   fabrikam  \(CheckpointNotFoundError", output)


def test_the_demo_can_be_read_at_80_columns_and_in_any_terminal(output: str) -> None:
    """No line but the path of the state file is longer than 80 characters, and all is ASCII without colours."""
    assert output.isascii()
    assert "\x1b" not in output
    assert [line for line in output.splitlines() if len(line) > 80 and "state.db" not in line] == []


def test_the_demo_lists_the_checkpoints_of_both_tenants(output: str) -> None:
    """The table has tenant, workflow, id, iteration and two sizes, and what is stored is smaller than what it holds."""
    rows = re.findall(
        r"^ +(\w+) +invoice-approval +([0-9a-f]{8})\.\.\. +(\d+) +([\d,]+) +([\d,]+)$", output, re.MULTILINE
    )

    assert [row[0] for row in rows] == ["contoso"] * 6 + ["fabrikam"] * 6
    assert len({row[1] for row in rows}) == 12
    assert [int(row[2]) for row in rows] == [0, 1, 2, 2, 3, 4] * 2
    assert all(int(stored.replace(",", "")) < int(raw.replace(",", "")) for *_, stored, raw in rows)


def test_the_demo_leaves_a_state_file_in_a_private_directory(output: str) -> None:
    """The file is where the last line says, is SQLite, and only its owner gets at it."""
    state_file = Path(output.splitlines()[-1].strip())

    assert state_file.read_bytes().startswith(b"SQLite format 3\0")
    assert stat.S_IMODE(state_file.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(state_file.stat().st_mode) == 0o600


def test_the_demo_runs_again(output: str, tmp_path: Path) -> None:
    """A second run has a directory of its own and ends with 0 as well."""
    again = run_demo(tmp_path)

    assert (again.returncode, again.stderr) == (0, "")
    assert again.stdout.splitlines()[-1] != output.splitlines()[-1]


def test_ctrl_c_ends_the_demo_cleanly(tmp_path: Path) -> None:
    """An interrupt in the middle is one line and exit code 130, and leaves neither a process nor a file behind."""
    with subprocess.Popen(
        _COMMAND, env={**os.environ, "TMPDIR": str(tmp_path)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        started = next(found for line in process.stdout if (found := re.match(r"1\. Process (\d+)", line)))
        process.send_signal(signal.SIGINT)
        complaints = process.stderr.read()

    assert process.returncode == 130
    assert complaints == "cosmos-workflow-state: interrupted\n"
    with pytest.raises(ProcessLookupError):
        os.kill(int(started[1]), 0)
    assert list(tmp_path.iterdir()) == []


def test_a_reader_that_leaves_leaves_nothing_behind(tmp_path: Path) -> None:
    """In "demo | head -1" no directory stays that nobody was told of."""
    with subprocess.Popen(
        _COMMAND, env={**os.environ, "TMPDIR": str(tmp_path)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        complaints = process.stderr.read()

    assert (process.returncode, complaints) == (1, "")
    assert list(tmp_path.iterdir()) == []


def test_the_steps_in_one_process(tmp_path: Path, step: Step) -> None:
    """Pause, trespass and resume, each as its process runs it: what each tells is what happened."""
    state_file = str(tmp_path / "state.db")

    pausing = step("pause", state_file, "contoso")
    [paused] = named(pausing, "demo.paused")
    assert paused["question"].startswith(f"Pay invoice {invoice_of('contoso').number} of ")
    assert len(named(pausing, "demo.ready")) == 1

    other = step("trespass", state_file, "fabrikam", paused["checkpoint_id"])
    assert [event["tenant_id"] for event in named(other, "demo.not_found")] == ["fabrikam"]
    assert named(step("trespass", state_file, "contoso", paused["checkpoint_id"]), "demo.not_found") == []

    resuming = step("resume", state_file, "contoso", "no")
    assert named(resuming, "demo.request_found")[0]["checkpoint_id"] == paused["checkpoint_id"]
    assert named(resuming, "demo.finished")[0]["outcome"].endswith("was rejected")
    assert len(named(resuming, "demo.checkpoint_listed")) == 6

    with pytest.raises(SystemExit, match="waits for nothing"):
        step("resume", state_file, "contoso", "no")


def test_resuming_what_was_never_paused_is_an_error(tmp_path: Path, step: Step) -> None:
    """A tenant without a checkpoint is told so."""
    with pytest.raises(SystemExit, match="no checkpoint was stored"):
        step("resume", str(tmp_path / "state.db"), "contoso", "yes")
