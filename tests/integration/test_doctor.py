"""``doctor`` and ``provision`` as their users run them: on a state file, on an emulator over TLS by key and token."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path

import pytest
import structlog
from azure.cosmos.aio import CosmosClient

from cosmos_workflow_state._definitions import (
    CHECKPOINTS,
    CONTAINERS,
    DATA_ACTIONS,
    HISTORY,
    SESSIONS,
    ContainerDefinition,
)
from cosmos_workflow_state.emulator import CosmosEmulator
from support.commands import PREFIX, Run, by_key, checked, runner
from support.drifts import drifted
from support.terminals import on_terminal, without_escapes

RIGHT = CHECKPOINTS.properties("checkpoints")
ITEMS = "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Run]:
    """Yield a function that runs a command with these settings only: exit code, output and complaints."""
    monkeypatch.chdir(tmp_path)
    yield runner(monkeypatch, capsys)
    structlog.reset_defaults()


@pytest.fixture
async def emulator() -> AsyncIterator[CosmosEmulator]:
    """Yield an emulator over TLS, without a container."""
    async with CosmosEmulator(tls=True) as opened:
        yield opened


async def test_a_state_file_that_is_not_there(run: Run, tmp_path: Path) -> None:
    """Looking creates nothing."""
    code, statuses, _ = await checked(run, ENDPOINT="embedded:state.db")

    assert (code, statuses) == (0, {"engine": ["ok"], "versions": ["ok"]})
    assert await asyncio.to_thread(lambda: list(tmp_path.iterdir())) == []


async def test_memory(run: Run) -> None:
    """There is all that a process makes of it, and it is said that no other one sees that."""
    code, statuses, document = await checked(run, ENDPOINT="embedded:")

    assert (code, statuses["container"]) == (0, ["ok"] * 3)
    assert "in memory" in document["checks"][0]["found"]


@pytest.mark.parametrize("yes", [(), ("--yes",)], ids=["asked", "yes"])
async def test_memory_is_not_provisioned(run: Run, yes: tuple[str, ...]) -> None:
    """What would be gone with the command is not created, let alone called so."""
    code, output, complaints = await run("provision", *yes, ENDPOINT="embedded:")

    assert (code, output) == (6, "")
    assert "so what is created here would be gone at once; COSMOS_WORKFLOW_STATE_ENDPOINT=embedded:PATH" in complaints


async def test_what_cannot_be_opened_is_no_engine(run: Run, tmp_path: Path) -> None:
    """A file of something else fails the line of the engine, which nothing else can be right behind."""
    await asyncio.to_thread((tmp_path / "notes.txt").write_text, "no state " * 100)
    code, statuses, document = await checked(run, ENDPOINT="embedded:notes.txt")

    assert (code, statuses) == (6, {"engine": ["failed"], "versions": ["ok"]})
    assert "the state file that COSMOS_WORKFLOW_STATE_ENDPOINT names cannot be opened" in document["checks"][0]["found"]


async def test_wrong_settings_are_shown_to_people(run: Run) -> None:
    """Without settings there is no table of them."""
    code, output, _ = await run("doctor", PROVISIONING="maybe")

    assert code == 2
    assert output.startswith("failed   settings    ")


async def test_a_state_file(run: Run) -> None:
    """Provisioned by command, it is all well; a second time there is nothing to do."""
    endpoint = "embedded:state.db"
    created = await run("provision", "--yes", ENDPOINT=endpoint)
    again = await run("provision", "--json", ENDPOINT=endpoint)
    code, statuses, document = await checked(run, ENDPOINT=endpoint)

    assert created[0] == 0
    assert created[1].splitlines() == [
        "created database workflow-state",
        *(f"created container workflow-state/{wanted.kind}" for wanted in CONTAINERS),
    ]
    assert json.loads(again[1]) == {
        "database": "workflow-state",
        "containers": [
            {"kind": wanted.kind, "name": wanted.kind, "state": "there", "problems": []} for wanted in CONTAINERS
        ],
    }
    assert (code, document["worst"]) == (0, "ok")
    assert list(statuses) == ["engine", "account", "rights", "container", "round trip", "versions"]


async def test_repair(run: Run, tmp_path: Path) -> None:
    """All drift is named; asked to, it is repaired; asked without a yes it is shown, with what would be done."""
    await drifted(tmp_path / "state.db", defaultTtl=None, indexingPolicy={"includedPaths": [{"path": "/*"}]})
    before = await checked(run, ENDPOINT="embedded:state.db")
    unasked = await run("doctor", "--fix", ENDPOINT="embedded:state.db")
    document = await run("doctor", "--fix", "--json", ENDPOINT="embedded:state.db")
    fixed = await checked(run, "--fix", "--yes", ENDPOINT="embedded:state.db")
    again = await run("doctor", "--fix", "--yes", ENDPOINT="embedded:state.db")

    assert (before[0], before[1]["container"]) == (6, ["failed", "failed", "ok", "ok"])
    assert unasked[0] == 2
    assert "its time to live is off" in unasked[1]
    assert unasked[2] == (
        "cosmos-workflow-state: would replace the default TTL and the indexing policy of container "
        "workflow-state/checkpoints, and keep all items, the indexes that others have added and all else; add --yes to "
        "do so where nobody can be asked\n"
    )
    assert (document[0], json.loads(document[1])["worst"]) == (2, "failed")
    assert json.loads(document[2])["error"]["kind"] == "usage"
    assert (fixed[0], fixed[1]["container"]) == (0, ["ok"] * 3)
    assert [change.partition(",")[0] for change in fixed[2]["changed"]] == [
        "workflow-state/checkpoints: its time to live is off",
        "workflow-state/checkpoints: its indexing policy includes /*",
    ]
    assert "changed: " not in again[1]


@pytest.mark.parametrize("wanted", [HISTORY, SESSIONS], ids=lambda wanted: wanted.kind)
async def test_every_container_is_examined(run: Run, tmp_path: Path, wanted: ContainerDefinition) -> None:
    """Drift of one that is there fails, is repaired, and is created around; the one for checkpoints is missing here."""
    await drifted(tmp_path / "state.db", wanted, defaultTtl=60)
    settings = {"ENDPOINT": "embedded:state.db"}
    code, _, document = await checked(run, **settings)
    provisioned = await run("provision", "--yes", "--json", **settings)
    fixed = await checked(run, "--fix", "--yes", **settings)
    states = {one["kind"]: one["state"] for one in json.loads(provisioned[1])["containers"]}

    assert code == 6
    assert f"workflow-state/{wanted.kind}: its default TTL is 60 seconds" in json.dumps(document)
    assert provisioned[0] == json.loads(provisioned[2])["error"]["code"] == 6
    assert states == {one.kind: "drifted" if one is wanted else "created" for one in CONTAINERS}
    assert (fixed[0], fixed[1]["container"]) == (0, ["ok"] * 3)


async def test_what_is_not_ours_is_left_alone(run: Run, tmp_path: Path) -> None:
    """A container with another partition key is offered no repair, and gets none beside another that is repaired."""
    key = {"partitionKey": {"paths": ["/workflow_name"], "kind": "Hash", "version": 2}}
    await drifted(tmp_path / "state.db", defaultTtl=None, **key)
    settings = {"ENDPOINT": "embedded:state.db"}
    before = await run("doctor", **settings)
    fixed = await checked(run, "--fix", **settings)
    await drifted(tmp_path / "state.db", HISTORY, defaultTtl=None)
    both = await checked(run, "--fix", "--yes", **settings)

    assert before[0] == 6
    assert "--fix" not in before[1]
    assert (fixed[0], fixed[2]["changed"]) == (6, [])
    assert (both[0], both[1]["container"]) == (6, ["failed", "failed", "ok", "ok"])
    assert [change.partition(":")[0] for change in both[2]["changed"]] == ["workflow-state/history"]


async def test_repair_says_what_changed(run: Run, tmp_path: Path) -> None:
    """In words too, and then all is well."""
    await drifted(tmp_path / "state.db", defaultTtl=60)
    code, output, _ = await run("doctor", "--fix", "--yes", ENDPOINT="embedded:state.db")

    assert code == 0
    assert "changed: workflow-state/checkpoints: its default TTL is 60 seconds" in output
    assert output.endswith("all is well\n")


async def test_provision_changes_nothing_that_exists(run: Run, tmp_path: Path) -> None:
    """A container that drifted is an error with every difference and the command that repairs it."""
    await drifted(tmp_path / "state.db", defaultTtl=None)
    code, output, complaints = await run("provision", "--yes", ENDPOINT="embedded:state.db")

    assert (code, output.splitlines()) == (
        6,
        [
            "container workflow-state/checkpoints is not as it must be",
            "created container workflow-state/history",
            "created container workflow-state/sessions",
        ],
    )
    assert "`doctor --fix` repairs it:\n  its time to live is off" in complaints


async def test_an_account_by_key(run: Run, emulator: CosmosEmulator) -> None:
    """Every step is a check of its own, before and after the container is there; no key is shown."""
    before = await checked(run, **by_key(emulator))
    refused = await run("provision", **by_key(emulator))
    created = await run("provision", "--yes", THROUGHPUT="manual:400", **by_key(emulator))
    code, statuses, document = await checked(run, **by_key(emulator))

    assert (before[0], before[1]["container"]) == (6, ["failed", "note", "note"])
    assert refused[0] == 2
    assert "would create database 'workflow-state', and in it containers 'checkpoints', 'history' and" in refused[2]
    assert "throughput serverless; add --yes" in refused[2]
    assert created[0] == 0
    assert (code, {one for found in statuses.values() for one in found}) == (0, {"ok"})
    assert list(statuses) == [
        *("dns", "tls", "auth", "account", "clock", "rights", "container", "round trip", "versions"),
    ]
    assert emulator.key not in json.dumps(document)


async def test_who_uses_one_kind_only(run: Run, emulator: CosmosEmulator) -> None:
    """What is used is said; then that has to be there and nothing else, and stands for all where rights are tried."""
    settings = by_key(emulator)
    async with CosmosClient(emulator.endpoint, emulator.key) as client:
        await client.create_database("workflow-state")
        await client.client_connection.CreateContainer("dbs/workflow-state", HISTORY.properties("history"))
    unsaid = await checked(run, **settings)
    said = await checked(run, "--for", "history", **settings)
    both = await checked(run, "--for", "history", "--for", "sessions", **settings)
    wrong = await run("doctor", "--for", "messages", **settings)
    provisioned = await run("provision", **settings)

    assert (unsaid[0], unsaid[1]["container"]) == (6, ["failed", "ok", "note"])
    assert (said[0], said[1]["container"]) == (0, ["note", "ok", "note"])
    assert (both[0], both[1]["container"]) == (6, ["note", "ok", "failed"])
    assert said[1]["round trip"] == ["ok"]
    assert "an item and a query" in json.dumps(said[2])
    assert wrong[0] == 2
    assert "would create containers 'checkpoints' and 'sessions' in http" in provisioned[2]


async def test_keys_that_are_refused(run: Run, emulator: CosmosEmulator) -> None:
    """The wrong key fails the check of who asks; with a secondary one that fits it is a warning."""
    await run("provision", "--yes", **by_key(emulator))
    settings = by_key(emulator) | {"KEY": "d3Jvbmc="}
    wrong = await checked(run, **settings)
    second = await checked(run, AUTH__SECONDARY_KEY=emulator.key, **settings)

    assert (wrong[0], wrong[1]["auth"]) == (4, ["failed"])
    assert "az cosmosdb keys list" in json.dumps(wrong[2])
    assert (second[0], second[1]["auth"], second[2]["worst"]) == (0, ["warning"], "warning")


@pytest.mark.parametrize(
    ("missing", "named"),
    [("readMetadata", "readMetadata"), ("items/read", f"{ITEMS}/read"), ("executeQuery", "executeQuery")],
)
async def test_a_token_without_a_right(
    run: Run, emulator: CosmosEmulator, monkeypatch: pytest.MonkeyPatch, missing: str, named: str
) -> None:
    """It is named, with the commands that give it; and who asks is accepted all the same."""
    await run("provision", "--yes", **by_key(emulator))
    actions = [action for action in DATA_ACTIONS if not action.endswith(missing)]
    async with emulator.identity_endpoint(role=None, actions=actions) as identity:
        _set(monkeypatch, identity.app_service_environment)
        code, statuses, document = await checked(run, ENDPOINT=emulator.endpoint, AUTH__MODE="managed_identity")
    rights = next(check for check in document["checks"] if check["name"] == "rights")

    assert (code, statuses["rights"]) == (4, ["failed"])
    assert named in rights["found"] + rights["remedy"]
    assert "az cosmosdb sql role assignment create" in rights["remedy"]


async def test_a_token_may_not_create(run: Run, emulator: CosmosEmulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says so, prints the commands for who may, and ends with the code for that; what is right needs nobody."""
    async with emulator.identity_endpoint() as identity:
        _set(monkeypatch, identity.app_service_environment)
        settings = {"ENDPOINT": emulator.endpoint, "AUTH__MODE": "managed_identity"}
        code, output, complaints = await run("provision", **settings)
        document = await run("provision", "--json", **settings)
        await run("provision", "--yes", **by_key(emulator), AUTH__MODE="key")
        right = await run("provision", **settings)
        seen = await checked(run, **settings)

    assert code == 4
    assert "no role lets a token create" in complaints
    assert "az cosmosdb sql role assignment create" in output
    assert json.loads(document[1])["format"] == "az"
    assert {one["state"] for one in json.loads(document[1])["containers"]} == {"missing"}
    assert right[0] == 0
    assert right[1].startswith("container workflow-state/checkpoints is as it must be\n")
    assert (seen[0], seen[1]["auth"]) == (0, ["ok"])


async def test_a_token_may_look_and_not_repair(
    run: Run, emulator: CosmosEmulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The built-in reader sees all that is wrong; the repair is refused, with the command for who may."""
    async with CosmosClient(emulator.endpoint, emulator.key) as client:
        await client.create_database("workflow-state")
        await client.client_connection.CreateContainer("dbs/workflow-state", RIGHT | {"defaultTtl": 60})
    async with emulator.identity_endpoint(role="reader") as identity:
        _set(monkeypatch, identity.app_service_environment)
        settings = {"ENDPOINT": emulator.endpoint, "AUTH__MODE": "managed_identity"}
        seen = await checked(run, **settings)
        code, output, complaints = await run("doctor", "--fix", "--yes", **settings)

    assert (seen[1]["rights"], seen[1]["container"]) == (["ok"], ["failed", "note", "note"])
    assert code == 4
    assert "its default TTL is 60 seconds" in output
    assert "az cosmosdb sql container update" in complaints


def _set(monkeypatch: pytest.MonkeyPatch, variables: Mapping[str, str]) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize(
    ("settings", "code", "failed"),
    [
        ({}, 2, "settings"),
        ({"ENDPOINT": "https://no-such-account.invalid"}, 5, "dns"),
        ({"ENDPOINT": "http://127.0.0.1:9", "KEY": "a2V5"}, 5, "connection"),
        ({"ENDPOINT": "embedded:missing/state.db"}, 6, "engine"),
        ({"ENDPOINT": "embedded:."}, 6, "engine"),
    ],
    ids=str,
)
async def test_what_fails_first(run: Run, settings: dict[str, str], code: int, failed: str) -> None:
    """The check that fails names the place, and decides the exit code; versions are checked all the same."""
    found = await checked(run, **settings)

    assert (found[0], found[1][failed], found[1]["versions"]) == (code, ["failed"], ["ok"])


async def test_no_token_over_plain_http(run: Run) -> None:
    """An endpoint over plain http takes no identity, and that is what is said."""
    async with CosmosEmulator() as emulator:
        code, statuses, _ = await checked(run, ENDPOINT=emulator.endpoint, AUTH__MODE="azure_cli")

    assert (code, statuses["connection"], statuses["auth"]) == (2, ["ok"], ["failed"])


@pytest.mark.parametrize(("form", "word"), [("az", "az cosmosdb"), ("bicep", "resource"), ("arm", '"$schema"')])
async def test_plans(run: Run, form: str, word: str) -> None:
    """Printed from the settings in force, without asking anybody; the same as JSON."""
    settings = {"ENDPOINT": "https://contoso.documents.azure.com:443/", "DATABASE": "states"}
    code, output, _ = await run("provision", "--print", form, **settings)
    document = json.loads((await run("provision", "--print", form, "--json", **settings))[1])

    assert code == 0
    assert word in output
    assert "states" in output
    assert document == {"format": form, "plan": document["plan"]}
    assert document["plan"].rstrip() == output.rstrip()


def test_on_a_terminal(tmp_path: Path) -> None:
    """In a process, at 80 columns: asked, answered, created, checked."""
    environment = {
        f"{PREFIX}ENDPOINT": f"embedded:{tmp_path}/s.db",
        "PYTHONPATH": ":".join(path for path in sys.path if path),
    }
    no = on_terminal("provision", columns=80, environment=environment, typed="n\n")
    state_file_before_yes = (tmp_path / "s.db").exists()
    yes = on_terminal("provision", columns=80, environment=environment, typed="y\n")
    code, shown = on_terminal("doctor", columns=80, environment=environment)

    assert (no[0], yes[0], code) == (1, 0, 0)
    assert "nothing was created" in no[1]
    assert not state_file_before_yes
    assert "all is well" in shown
    assert all(len(line) <= 80 for line in without_escapes(shown).splitlines() if str(tmp_path) not in line)


async def test_settings_that_are_wrong(run: Run) -> None:
    """Provisioning says which, before anything is asked."""
    code, output, complaints = await run("provision")

    assert (code, output) == (2, "")
    assert "COSMOS_WORKFLOW_STATE_ENDPOINT is not set" in complaints
