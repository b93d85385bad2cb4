"""``cosmos-workflow-state emulator`` as its user runs it."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import pytest
from pydantic import SecretStr

from cosmos_workflow_state import CosmosStateFactory, CosmosStateSettings, KeyAuth
from cosmos_workflow_state._cli import _emulator, main
from cosmos_workflow_state._cli._emulator import WELL_KNOWN_KEY
from cosmos_workflow_state._cli._output import CommandError
from support.servers import COMMAND, emulator_process, loaded_by
from support.states import ALLOWED_TYPES, WORKFLOW, checkpoint

KEY = "c29tZSBrZXk="


@contextmanager
def started(*arguments: str) -> Generator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """Yield the process of an emulator that speaks JSON, and the document with which it is ready."""
    command = [sys.executable, "-c", COMMAND, "emulator", "--port", "0", "--json", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, json.loads(process.stdout.readline())
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_it_runs_until_it_is_told_to_end(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it prints is all that a factory needs; both signals end it with 0, and the data is there next time."""
    one = checkpoint("cp-1")
    for run in (1, 2):
        with emulator_process("--data", str(tmp_path / "state.db"), "--key", KEY) as emulator:
            assert emulator.shown("key") == KEY
            for name, value in emulator.environment().items():
                monkeypatch.setenv(name, value)
            async with CosmosStateFactory(CosmosStateSettings(allowed_checkpoint_types=ALLOWED_TYPES)) as factory:
                storage = factory.for_tenant("contoso").checkpoints
                if run == 1:
                    await storage.save(one)
                assert await storage.get_latest(workflow_name=WORKFLOW) == one
            assert emulator.end(number) == (0, "The emulator has ended.\n", "")


async def test_tls_is_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    """With --tls the endpoint is https, and works."""
    with emulator_process("--tls", "--partitions", "2") as emulator:
        assert emulator.shown("endpoint").startswith("https://127.0.0.1:")
        for name, value in emulator.environment().items():
            monkeypatch.setenv(name, value)
        async with CosmosStateFactory() as factory:
            assert await factory.for_tenant("contoso").checkpoints.get_latest(workflow_name=WORKFLOW) is None
        assert emulator.end(signal.SIGTERM)[0] == 0


@pytest.mark.parametrize(
    ("key", "shown"), [(WELL_KNOWN_KEY, WELL_KNOWN_KEY), (KEY, None)], ids=["well-known key", "own key"]
)
async def test_ready_is_one_line_of_json(key: str, shown: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has what a factory needs but for a key that is a secret; nothing follows until it is told to end."""
    with started("--key", key) as (process, ready):
        for name, value in ready["environment"].items():
            monkeypatch.setenv(name, value)
        async with CosmosStateFactory(CosmosStateSettings(auth=KeyAuth(key=SecretStr(key)))) as factory:
            assert await factory.for_tenant("contoso").checkpoints.get_latest(workflow_name=WORKFLOW) is None
        process.send_signal(signal.SIGINT)
        ended = process.communicate(timeout=20)

    assert (process.returncode, *ended) == (0, "", "")
    assert (ready["key"], ready["key_is_well_known"], ready["data"], ready["tls"]) == (
        shown,
        shown is not None,
        None,
        False,
    )
    assert (ready["process"], ready["endpoint"]) == (
        process.pid,
        ready["environment"]["COSMOS_WORKFLOW_STATE_ENDPOINT"],
    )
    assert (key in json.dumps(ready)) is (shown is not None)


def test_the_key_is_not_among_the_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everybody on a machine can read the arguments of a process, and only its owner its environment."""
    monkeypatch.setenv("COSMOS_EMULATOR_KEY", KEY)
    with emulator_process() as emulator:
        assert emulator.shown("key") == KEY
    with started() as (_, ready):
        assert ready["key"] is None
    monkeypatch.setenv("COSMOS_EMULATOR_KEY", "no base64")
    assert main(["emulator"]) == 2


def test_warnings_are_json_for_programs() -> None:
    """Each on a line of its own, on standard error."""
    everywhere = ("--host", "0.0.0.0", "--allow-remote")  # noqa: S104 - allowed
    with started("--key", KEY, *everywhere) as (process, _):
        process.send_signal(signal.SIGTERM)
        errors = process.communicate(timeout=20)[1]

    warnings = [json.loads(line)["warning"] for line in errors.splitlines()]
    assert [warning.partition(" ")[0] for warning in warnings] == ["other", "without"]


@pytest.mark.parametrize(("arguments", "plain"), [((), True), (("--tls",), False)], ids=["http", "https"])
def test_other_machines_are_a_loud_matter(arguments: tuple[str, ...], *, plain: bool) -> None:
    """Allowed to be reached by others, it says on standard error what that means."""
    everywhere = ("--host", "0.0.0.0", "--allow-remote")  # noqa: S104 - allowed
    with emulator_process(*everywhere, *arguments) as emulator:
        code, _, errors = emulator.end(signal.SIGTERM)
    assert code == 0
    assert "WARNING: other machines can reach this emulator" in errors
    assert ("without --tls" in errors) is plain
    assert max(map(len, errors.splitlines())) <= 80


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--host", "0.0.0.0"], "--allow-remote"),  # noqa: S104 - refused
        (["--data", "FOREIGN"], "state"),
        (
            ["--data", "/nowhere/state.db"],
            "'/nowhere/state.db' cannot be opened (no such file or directory); --data takes",
        ),
    ],
    ids=["remote", "file", "directory"],
)
def test_what_cannot_run_is_one_line(arguments: list[str], message: str, tmp_path: Path) -> None:
    """The reason is one line on standard error, and the exit code 1."""
    foreign = tmp_path / "foreign"
    foreign.write_text("nothing of ours, but long enough to be looked at " * 100)
    given = [str(foreign) if argument == "FOREIGN" else argument for argument in arguments]
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, "emulator", *given], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert message in done.stderr


@pytest.mark.parametrize("host", ["192.0.2.1", "no.such.invalid"])
def test_an_address_of_another_machine_is_named(host: str) -> None:
    """Below the warning, with what to do about it."""
    command = [sys.executable, "-c", COMMAND, "emulator", "--host", host, "--allow-remote"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = f"{host}:8081 is no address of this machine; --host takes one, 127.0.0.1 is the one that only it can reach"
    assert (done.returncode, done.stderr.splitlines()[-1]) == (1, f"cosmos-workflow-state: {said}")


def test_a_port_that_is_taken_is_named() -> None:
    """With what to do about it."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = subprocess.run(
            [sys.executable, "-c", COMMAND, "emulator", "--port", str(port)],
            capture_output=True,
            text=True,
            check=False,
        )
    said = f"port {port} of 127.0.0.1 is in use; --port takes another one, 0 a free one"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"cosmos-workflow-state: {said}\n")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (PermissionError(13, "Permission denied"), "cannot run at 127.0.0.1:80: permission denied"),
        (TimeoutError(), "cannot run at 127.0.0.1:80: TimeoutError"),
    ],
    ids=["refused", "no number"],
)
def test_what_the_system_refuses_is_told(error: OSError, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever else it is: where, and what the system says."""

    def refuse(**_options: object) -> NoReturn:
        raise error

    monkeypatch.setattr(_emulator.emulator, "CosmosEmulator", refuse)
    options = _emulator.Options(
        data=None, host="127.0.0.1", port=80, tls=False, key=None, partitions=None, allow_remote=False, admin=False
    )
    with pytest.raises(CommandError, match=said):
        _emulator.run_emulator(options, as_json=False)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--port", "65536"],
        ["--port", "-1"],
        ["--port", "x"],
        ["--partitions", "0"],
        ["--key", "no base64"],
        ["--key", "é"],
        ["--key", ""],
    ],
)
def test_wrong_arguments_end_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """What cannot be meant is refused with the usage, before anything is opened."""
    assert main(["emulator", *arguments]) == 2
    assert "Usage: cosmos-workflow-state emulator" in capsys.readouterr().err


def test_help_fits_a_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The help has every argument and fits into 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["emulator", "--help"]) == 0
    printed = capsys.readouterr().out
    for argument in (
        "--host",
        "--port",
        "--data",
        "--tls",
        "--key",
        "--partitions",
        "--allow-remote",
        "--admin",
        "--json",
    ):
        assert argument in printed
    assert max(map(len, printed.splitlines())) <= 80


def test_the_command_loads_neither_azure_nor_the_framework() -> None:
    """Started by the command, too, the emulator needs neither."""
    program = (
        "import os, signal, threading\n"
        "from cosmos_workflow_state._cli import _emulator, main\n"
        "_emulator._tell = lambda *_: os.kill(os.getpid(), signal.SIGTERM)\n"
        "assert main(['emulator', '--port', '0']) == 0"
    )
    assert loaded_by(program, "azure", "agent_framework") == []
