"""What is printed for Azure's own tools under names that nobody should choose: a shell and a compiler read them right.

The commands are run, with a stand-in for the Azure CLI that writes down its arguments.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from pycep import BicepParser

from cosmos_workflow_state._infrastructure import PlanFormat, provisioning_plan
from cosmos_workflow_state._remedies import Access, Refusal, remedy_for
from cosmos_workflow_state._throughput import Throughput
from cosmos_workflow_state.errors import SettingsError
from cosmos_workflow_state.settings import CosmosStateSettings
from support.azure_cli import AzureCli, azure_cli

ACCOUNT = "https://contoso-state.documents.azure.com:443/"
HOSTILE = (
    "two  words",
    "it's",
    '"quoted"',
    "'\"'\"'",
    "$(touch owned)",
    "`touch owned`",
    "${HOME}",
    "a; touch owned",
    "a && touch owned",
    "a | tee owned",
    "> owned",
    "<resource-group>",
    "*",
    "~",
    "!!",
    "--body",
    "-n",
    "@owned",
    "%41",
    "{subscriptionId}",
    "[concat('x')]",
    "[concat('x'",
    "[[x]",
    "größe",
)
hostile = pytest.mark.parametrize("name", HOSTILE, ids=ascii)


def named(name: str) -> tuple[str, str, str]:
    """Return the names of the containers."""
    return name, f"history {name}", f"sessions {name}"


def plan(output: PlanFormat, name: str, **arguments: Any) -> str:
    """Return the plan for an account whose database and containers have this name in theirs."""
    containers = dict(zip(("checkpoint_container", "history_container", "session_container"), named(name), strict=True))
    values: dict[str, Any] = {"endpoint": ACCOUNT, "database": name, **containers, **arguments}
    return provisioning_plan(CosmosStateSettings(_env_file=None, **values), output)


@pytest.fixture
def az(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AzureCli]:
    """Put a stand-in for the Azure CLI in front of all programs."""
    with azure_cli(tmp_path / "bin", monkeypatch) as program:
        yield program


def run(script: str, az: AzureCli, directory: Path) -> list[dict[str, str]]:
    """Run a script with the shell, which must neither complain nor leave anything; return the options of its calls."""
    directory.mkdir()
    bash = shutil.which("bash")
    assert bash is not None
    for arguments in (["-n"], []):
        ran = subprocess.run([bash, *arguments], input=script.encode(), cwd=directory, capture_output=True, check=False)
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")
    assert list(directory.iterdir()) == []
    return [_options(call) for call in az.calls()]


def _options(call: list[str]) -> dict[str, str]:
    """Return the command and its options as the Azure CLI understands them: what begins with a dash is no value."""
    command = list(takewhile(lambda word: not word.startswith("-"), call))
    options = {"command": " ".join(command)}
    words = iter(call[len(command) :])
    for word in words:
        name, equals, value = word.partition("=")
        assert name.startswith("--")
        options[name] = value if equals else next(words)
        assert equals or not options[name].startswith("-") or name == "--ttl"
    return options


@hostile
def test_the_commands(name: str, az: AzureCli, tmp_path: Path) -> None:
    """A shell takes every name for one word and does nothing else; what is not known stays, in angle brackets."""
    account, keys, database, *containers, role, assignment = run(plan("az", name), az, tmp_path / "here")
    everywhere = {"--resource-group": "<resource-group>"}
    known = {"--account-name": "contoso-state", **everywhere}
    assert account == {
        "command": "cosmosdb create",
        "--name": "contoso-state",
        "--capabilities": "EnableServerless",
        **everywhere,
    }
    assert keys == {
        "command": "resource update",
        "--name": "contoso-state",
        "--resource-type": "Microsoft.DocumentDB/databaseAccounts",
        "--set": "properties.disableLocalAuth=true",
        **everywhere,
    }
    assert database == {"command": "cosmosdb sql database create", "--name": name, **known}
    for container, its_name in zip(containers, named(name), strict=True):
        _check_request(container, its_name, {}, database=name)
    assert role.items() >= {"command": "cosmosdb sql role definition create", **known}.items()
    assert assignment == {
        "command": "cosmosdb sql role assignment create",
        "--role-definition-name": "cosmos-workflow-state",
        "--principal-id": "<principal-id>",
        "--scope": f"/dbs/{name}",
        **known,
    }


def _check_request(call: dict[str, str], name: str, options: dict[str, Any], *, database: str) -> None:
    """Check the request that creates the container: its address names it, and so does its body."""
    assert (call["command"], call["--method"]) == ("rest", "put")
    address = urlsplit(call["--url"])
    segments = address.path.split("/")
    assert segments[2] == "{subscriptionId}"
    assert [unquote(segment) for segment in segments[-3:]] == [database, "containers", name]
    assert (address.query, address.fragment) == ("api-version=2024-11-15", "")
    assert call["--url"].count("{") == 1
    properties = json.loads(call["--body"])["properties"]
    assert (properties["resource"]["id"], properties["options"]) == (name, options)


@pytest.mark.parametrize(
    ("name", "sub_status"), [*((name, 5300) for name in HOSTILE), ("$(touch owned)", 5301)], ids=ascii
)
def test_the_commands_of_a_remedy(name: str, sub_status: int, az: AzureCli, tmp_path: Path) -> None:
    """So do those that a refusal comes with; its parameters for Bicep are read as they were meant."""
    access = Access(ACCOUNT, name, name, "token", Throughput("autoscale", 2000))
    lines = remedy_for(Refusal(403, sub_status, "", None), access).text.split("\n")
    calls = run("\n".join(line for line in lines if line.startswith("  az ")), az, tmp_path / "here")
    named = {call["command"]: call for call in calls}
    assert named["cosmosdb sql role assignment create"]["--scope"] == f"/dbs/{name}"
    if sub_status == 5300:
        assert named["cosmosdb sql database create"]["--name"] == name
        _check_request(named["rest"], name, {"autoscaleSettings": {"maxThroughput": 2000}}, database=name)
        update = named["cosmosdb sql container update"]
        assert (update["--database-name"], update["--name"], update["--ttl"]) == (name, name, "-1")
    first = lines.index("Or deploy infra/main.bicep with these parameters:")
    assert "\n".join(line.removeprefix("  ") for line in lines[first + 1 :]) == "\n".join(
        (
            "param accountName = 'contoso-state'",
            f"param databaseName = {_in_bicep(name)}",
            f"param checkpointContainerName = {_in_bicep(name)}",
            "param containerOptions = {\n  autoscaleSettings: {\n    maxThroughput: 2000\n  }\n}",
            "param principalIds = [\n  '<principal-id>'\n]",
        )
    )


def _in_bicep(name: str) -> str:
    """Write a text as Bicep does: https://learn.microsoft.com/azure/azure-resource-manager/bicep/data-types#strings."""
    return "'" + name.replace("'", "\\'").replace("${", "\\${") + "'"


@pytest.fixture(scope="module")
def parser() -> BicepParser:
    """Return a parser of Bicep that is not ours; making one takes long."""
    return BicepParser(cache=False)


@hostile
def test_bicep(name: str, parser: BicepParser) -> None:
    """No name ends a text of Bicep or begins an expression in it."""
    text = plan("bicep", name)
    assert f"param databaseName string = {_in_bicep(name)}\n" in text
    parameters = parser.parse(text=text).get("parameters", {})
    assert set(parameters) >= {"accountName", "databaseName", "checkpointContainerName", "principalIds"}


@hostile
def test_arm(name: str) -> None:
    """A text is an expression from a bracket to a bracket, unless there are two at its beginning."""
    template = json.loads(plan("arm", name))
    for parameter in ("databaseName", "checkpointContainerName"):
        given = template["parameters"][parameter]["defaultValue"]
        in_brackets = given.startswith("[") and given.endswith("]")
        assert in_brackets is (name.startswith("[") and name.endswith("]"))
        # https://learn.microsoft.com/azure/azure-resource-manager/templates/template-expressions#escape-characters
        assert (given.removeprefix("[") if in_brackets else given) == name
        assert not in_brackets or given.startswith("[[")


@pytest.mark.parametrize(
    "name",
    [
        *("a\nb", "a\rb", "a\0b", "a\x1b[0m", "a\tb", "a\x7fb", "a\N{NEXT LINE}b", "a\N{LINE SEPARATOR}b"),
        *("a\N{RIGHT-TO-LEFT OVERRIDE}b", "a\N{POP DIRECTIONAL ISOLATE}b", "a/b", "a\\b", "a?b", "a#b", "a ", ""),
    ],
    ids=ascii,
)
@pytest.mark.parametrize("setting", ["database", "checkpoint_container"])
def test_names_that_are_refused(setting: str, name: str) -> None:
    """What would end a line, or what the service has no name like, gets into no command."""
    with pytest.raises(SettingsError, match=setting.upper()):
        plan("az", "x", **{setting: name})


def test_what_is_not_known_is_no_redirection(az: AzureCli, tmp_path: Path) -> None:
    """An account whose name the endpoint does not tell: pasted unfilled, the commands reach nobody's files."""
    calls = run(plan("az", "states", endpoint="https://localhost:8081"), az, tmp_path / "here")
    assert [call.get("--account-name", call.get("--name")) for call in calls if call["command"] != "rest"] == [
        "<account>"
    ] * 5
