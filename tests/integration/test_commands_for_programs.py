"""What the commands give to programs: with ``--json`` a result, a failure and the log are JSON, each in its place."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from cosmos_workflow_state import CosmosStateSettings
from cosmos_workflow_state._cli import main
from cosmos_workflow_state._cli._output import ExitCode
from support.commands import RunHere as Run

ENDPOINT = "COSMOS_WORKFLOW_STATE_ENDPOINT"
CONTOSO = ("--tenant", "contoso")
KEYWORDS = {
    *("$schema", "$defs", "$ref", "title", "description", "type", "default", "examples", "const", "enum"),
    *("properties", "required", "additionalProperties", "items", "anyOf", "oneOf", "discriminator"),
    *("pattern", "format", "writeOnly", "minimum", "maximum", "exclusiveMinimum", "minLength", "maxLength"),
}
"""Of JSON schema 2020-12, and `discriminator` of OpenAPI, which readers of JSON schema pass over."""

FAILING = [
    (["checkpoints", "show", "nothing", *CONTOSO], 3),
    (["checkpoints", "show", "cp", *CONTOSO], 2),
    (["checkpoints", "tree", *CONTOSO, "--workflow", "nothing"], 3),
    (["checkpoints", "diff", "cp-001", "nothing", *CONTOSO], 3),
    (["checkpoints", "delete", "cp-001", *CONTOSO], 2),
    (["checkpoints", "delete", "--all", *CONTOSO], 2),
    (["checkpoints", "show", "cp-011", *CONTOSO, "--decode"], 1),
    (["checkpoints", "list", "--tenant", "a b"], 2),
    (["workflows", "list", "--tenant", "a b"], 2),
]


@pytest.mark.parametrize(("arguments", "code"), FAILING, ids=[" ".join(arguments) for arguments, _ in FAILING])
def test_failures_are_json_for_programs(run: Run, arguments: list[str], code: int) -> None:
    """With --json a failure is one line of JSON on standard error, with the code and what a person would be told."""
    for_people = run(*arguments)
    for_programs = run(*arguments, "--json")
    error = json.loads(for_programs[2])["error"]

    assert (for_people[:2], for_programs[:2]) == ((code, ""), (code, ""))
    assert (error["code"], error["kind"]) == (code, ExitCode(code).name.lower())
    assert for_people[2] == f"cosmos-workflow-state: {error['message']}\n"
    assert for_programs[2].count("\n") == 1


@pytest.mark.parametrize("arguments", [["config", "show"], ["provision"], ["provision", "--print", "az"]], ids=" ".join)
def test_missing_settings_are_json_for_programs(
    run: Run, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Settings that cannot be read are a failure like any other."""
    monkeypatch.delenv(ENDPOINT)
    code, output, complaints = run(*arguments, "--json")

    assert (code, output, json.loads(complaints)["error"]["kind"]) == (2, "", "usage")


def test_the_log_is_json_for_programs(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever reads standard error after --json reads nothing else, whatever the format that is set for people."""
    monkeypatch.setenv("COSMOS_WORKFLOW_STATE_LOG_LEVEL", "info")
    monkeypatch.setenv("COSMOS_WORKFLOW_STATE_LOG_FORMAT", "console")
    *events, failure = map(json.loads, run("checkpoints", "show", "nothing", *CONTOSO, "--json")[2].splitlines())

    assert [event["level"] for event in events] == ["info"] * len(events)
    assert (len(events) > 0, failure["error"]["kind"]) == (True, "not_found")


def schemas(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a schema and all that it is made of."""
    yield schema
    named = (*schema.get("$defs", {}).values(), *schema.get("properties", {}).values())
    for part in (*named, *schema.get("anyOf", ()), *schema.get("oneOf", ()), *filter(None, [schema.get("items")])):
        yield from schemas(part)


def kind_of(value: object) -> str:
    """Return the type that JSON schema gives a value."""
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return kinds.get(type(value), "null")


def test_the_schema_of_the_settings_is_json_schema(run: Run) -> None:
    """It has every setting, and says which text is secret."""
    schema = json.loads(run("config", "schema")[1])

    parts = list(schemas(schema))
    assert "endpoint" in schema["required"]
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["$defs"]["KeyAuth"]["properties"]["key"]["writeOnly"] is True
    assert set(CosmosStateSettings.model_fields) == set(schema["properties"])
    for part in parts:
        assert part.keys() <= KEYWORDS
        assert part.get("type", "object") in {"array", "boolean", "integer", "null", "number", "object", "string"}
        assert set(part.get("required", ())) <= set(part.get("properties", ()))
        assert part.get("$ref", "#/$defs/KeyAuth").removeprefix("#/$defs/") in schema["$defs"]
        re.compile(part.get("pattern", ""))
        if "default" in part:
            assert kind_of(part["default"]) in {one.get("type") for one in (part, *part.get("anyOf", ()))} | {"object"}
    assert json.loads(run("config", "schema", "--json")[1]) == schema


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["dem0", "--json"], "No such command 'dem0'"),
        (["demo", "--json", "x"], "unexpected extra argument"),
        (["checkpoints", "--json"], "No such option: --json"),
        (["checkpoints", "list", "--json"], "Missing option '--tenant'"),
        (["checkpoints", "list", "--json", "--tenant", "contoso", "--limit", "0"], "Invalid value for '--limit'"),
        (["checkpoints", "delete", "--json", "--tenant", "contoso"], "give either checkpoints or --all"),
        (["emulator", "--json"], "so give one that you know in COSMOS_EMULATOR_KEY"),
    ],
    ids=" ".join,
)
def test_wrong_arguments_are_json_for_programs(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """What asks for JSON gets it for a mistake in what it asks, too."""
    assert main(arguments) == 2
    printed = capsys.readouterr()
    error = json.loads(printed.err)["error"]
    assert (printed.out, error["kind"], error["code"]) == ("", "usage", 2)
    assert said in error["message"]


def test_what_follows_two_dashes_is_no_option(capsys: pytest.CaptureFixture[str]) -> None:
    """A checkpoint may be called --json; who names it so is a person."""
    assert main(["checkpoints", "show", "--", "--json"]) == 2
    assert capsys.readouterr().err.startswith("Usage: ")
