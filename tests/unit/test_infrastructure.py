"""What is printed for Azure's own tools: the same in every language, and what this package needs."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from pycep import BicepParser

from cosmos_workflow_state._definitions import CONTAINERS, DATA_ACTIONS
from cosmos_workflow_state._drift import differences
from cosmos_workflow_state._infrastructure import PlanFormat, infrastructure_files, provisioning_plan
from cosmos_workflow_state._templates import bicep_value
from cosmos_workflow_state.settings import CosmosStateSettings

INFRA = Path(__file__).parents[2] / "infra"
NAMES = ("checkpointContainerName", "historyContainerName", "sessionContainerName")
ACCOUNT = "https://contoso-state.documents.azure.com:443/"
VERSION = "2024-11-15"
TYPES = {
    "Microsoft.DocumentDB/databaseAccounts",
    "Microsoft.DocumentDB/databaseAccounts/sqlDatabases",
    "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers",
    "Microsoft.DocumentDB/databaseAccounts/sqlRoleDefinitions",
    "Microsoft.DocumentDB/databaseAccounts/sqlRoleAssignments",
}


def plan(output: PlanFormat, **arguments: Any) -> str:
    """Return the plan for an account, from these arguments only."""
    values: dict[str, Any] = {"endpoint": ACCOUNT, **arguments}
    return provisioning_plan(CosmosStateSettings(_env_file=None, **values), output)


def parsed(bicep: str) -> Any:
    """Return what a parser of Bicep that is not ours makes of a text."""
    return BicepParser(cache=False).parse(text=bicep)


def resources(template: Any) -> dict[str, Any]:
    """Return the resources of an ARM template by type; there is one of each."""
    return {resource["type"]: resource for resource in template["resources"]}


def _config(module: Any) -> Any:
    """Return what a module is given; the parser puts a condition around it."""
    config = module["config"]
    return config.get("config", config)


def test_infra_is_what_the_code_writes() -> None:
    """The modules in the repository have the definitions and rights that the code has."""
    found = {path.relative_to(INFRA).as_posix(): path.read_text("utf-8") for path in INFRA.rglob("*.bicep")}
    assert found == infrastructure_files()


@pytest.mark.parametrize("name", infrastructure_files())
def test_the_modules_are_bicep(name: str) -> None:
    """A parser of Bicep reads each; the main file gives every module exactly the parameters it declares."""
    file = parsed(infrastructure_files()[name])
    assert file["parameters"]
    assert all(parameter["decorators"] for parameter in file["parameters"].values())
    for module in file.get("modules", {}).values():
        declared = parsed(infrastructure_files()[module["detail"]["path"]])["parameters"]
        assert set(_config(module)["params"]) == set(declared)


def test_the_printed_bicep_is_bicep() -> None:
    """So is the plan in one file: every resource once, of the right type and version, with the settings in force."""
    file = parsed(plan("bicep", database="it's ${mine}", throughput="autoscale:4000"))
    made = {name: found for name, found in file["resources"].items() if not found["existing"]}
    assert {found["type"] for found in made.values()} == TYPES
    assert {found["api_version"] for found in made.values()} == {VERSION}
    assert file["parameters"]["accountName"]["default"] == "contoso-state"
    assert file["parameters"]["containerOptions"]["default"] == {"autoscaleSettings": {"maxThroughput": 4000}}
    assert "param databaseName string = 'it\\'s \\${mine}'" in plan("bicep", database="it's ${mine}")


@pytest.mark.parametrize("output", ["arm", "bicep"])
def test_rights_and_shape_are_those_of_the_code(output: PlanFormat) -> None:
    """Each language has the data actions, no others, and containers that verification finds nothing wrong with."""
    text = plan(output)
    quoted = {action for action in re.findall(r"['\"](Microsoft[^'\"@]+)['\"]", text) if action not in TYPES}
    assert quoted == set(DATA_ACTIONS)
    kind = "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers"
    made = [one["properties"]["resource"] for one in json.loads(plan("arm"))["resources"] if one["type"] == kind]
    assert [differences(*pair) for pair in zip(made, CONTAINERS, strict=True)] == [()] * len(CONTAINERS)
    assert [one["id"] for one in made] == [f"[parameters('{name}')]" for name in NAMES]
    for definition in CONTAINERS:
        for name in ("partitionKey", "indexingPolicy"):
            rendered = bicep_value(definition.properties("x")[name], 3)
            assert f"      {name}: {rendered}\n" in plan("bicep")
            assert f"      {name}: {rendered}\n" in infrastructure_files()["modules/database.bicep"]


def test_the_arm_template_is_one() -> None:
    """Schema, types, versions; what an expression names is declared; what a resource waits for is in the template."""
    template = json.loads(plan("arm"))
    assert template["$schema"].endswith("/2019-04-01/deploymentTemplate.json#")
    assert set(template) == {"$schema", "contentVersion", "parameters", "resources", "outputs"}
    assert set(resources(template)) == TYPES
    assert {resource["apiVersion"] for resource in template["resources"]} == {VERSION}
    named = set(re.findall(r"parameters\('(\w+)'\)", json.dumps(template)))
    assert named == set(template["parameters"])
    waited = {
        kind
        for one in template["resources"]
        for kind in re.findall(r"'(Micro[^']+)'", "".join(one.get("dependsOn", [])))
    }
    assert waited <= TYPES
    for resource in template["resources"]:
        expressions = [text for text in _texts(resource) if text.startswith("[")]
        assert all(text.endswith("]") and text.count("(") == text.count(")") for text in expressions)


BODIES: dict[str, dict[str, Any]] = {
    "": {
        **dict.fromkeys(("location", "kind"), None),
        "properties": {
            **dict.fromkeys(
                ("databaseAccountOfferType", "capabilities", "disableLocalAuth", "minimalTlsVersion"), None
            ),
            "locations": {"locationName": None, "failoverPriority": None},
            "consistencyPolicy": {"defaultConsistencyLevel": None},
        },
    },
    "/sqlDatabases": {"properties": {"resource": {"id": None}}},
    "/sqlDatabases/containers": {
        "properties": {
            "resource": {
                **dict.fromkeys(("id", "defaultTtl"), None),
                "partitionKey": {"paths": None, "kind": None, "version": None},
                "indexingPolicy": {
                    **dict.fromkeys(("automatic", "indexingMode"), None),
                    "includedPaths": {"path": None},
                    "excludedPaths": {"path": None},
                },
            },
            "options": None,
        }
    },
    "/sqlRoleDefinitions": {
        "properties": {
            **dict.fromkeys(("roleName", "type", "assignableScopes"), None),
            "permissions": {"dataActions": None},
        }
    },
    "/sqlRoleAssignments": {"properties": dict.fromkeys(("roleDefinitionId", "principalId", "scope"))},
}
"""By type, the properties as the API has them: https://learn.microsoft.com/azure/templates/microsoft.documentdb."""


def test_bodies_are_those_of_the_api() -> None:
    """Each resource has exactly the properties that its type takes and this package needs, nested as there."""
    found = resources(json.loads(plan("arm")))
    around = {"type", "apiVersion", "name", "dependsOn", "condition", "copy"}
    for kind, body in BODIES.items():
        resource = found[f"Microsoft.DocumentDB/databaseAccounts{kind}"]
        assert _names({name: value for name, value in resource.items() if name not in around}, body) == body


def _names(value: Any, wanted: Any) -> Any:
    """Return the names in a value as deep as they are wanted; of a list, those of its one or its first element."""
    if wanted is None:
        return None
    element: Any = value[0] if isinstance(value, list) else value
    return {name: _names(entry, wanted.get(name)) for name, entry in element.items()}


def _texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for entry in value.values() for text in _texts(entry)]
    if isinstance(value, list):
        return [text for entry in value for text in _texts(entry)]
    return [value] if isinstance(value, str) else []


@pytest.mark.parametrize(
    ("throughput", "options", "serverless"),
    [
        ("serverless", {}, True),
        ("manual:400", {"throughput": 400}, False),
        ("autoscale:1000", {"autoscaleSettings": {"maxThroughput": 1000}}, False),
    ],
)
def test_throughput(throughput: str, options: dict[str, Any], *, serverless: bool) -> None:
    """A throughput is given to the container, and an account for it is not serverless."""
    parameters = json.loads(plan("arm", throughput=throughput))["parameters"]
    assert parameters["containerOptions"]["defaultValue"] == options
    assert parameters["serverless"]["defaultValue"] is serverless
    assert ("EnableServerless" in plan("az", throughput=throughput)) is serverless
    assert f'"options": {json.dumps(options)}' in plan("az", throughput=throughput)


def test_who_uses_a_key_keeps_keys() -> None:
    """A new account refuses keys in every plan, unless the settings have one; and the key is not printed."""
    assert json.loads(plan("arm"))["parameters"]["disableLocalAuth"]["defaultValue"] is True
    assert "param disableLocalAuth bool = true" in plan("bicep")
    assert "properties.disableLocalAuth=true" in plan("az")
    by_key = [plan(output, auth={"key": "c2VjcmV0"}) for output in ("az", "bicep", "arm")]
    assert json.loads(by_key[2])["parameters"]["disableLocalAuth"]["defaultValue"] is False
    assert "disableLocalAuth" not in by_key[0]
    assert not any("c2VjcmV0" in text for text in by_key)


def test_the_commands_can_be_pasted() -> None:
    """Every line is words for a shell; JSON is JSON; names are quoted; what is not known is in angle brackets."""
    lines = [line for line in plan("az", database="my db").splitlines() if not line.startswith("#")]
    words = [shlex.split(line) for line in lines]
    assert [found[1:5] for found in words] == [
        ["cosmosdb", "create", "--name", "contoso-state"],
        ["resource", "update", "--name", "contoso-state"],
        ["cosmosdb", "sql", "database", "create"],
        *[["rest", "--method", "put", "--url"]] * len(CONTAINERS),
        ["cosmosdb", "sql", "role", "definition"],
        ["cosmosdb", "sql", "role", "assignment"],
    ]
    bodies = [json.loads(found[found.index("--body") + 1]) for found in words if "--body" in found]
    made = [body["properties"]["resource"] for body in bodies[:-1]]
    assert [differences(*pair) for pair in zip(made, CONTAINERS, strict=True)] == [()] * len(CONTAINERS)
    assert [one["id"] for one in made] == ["checkpoints", "history", "sessions"]
    assert bodies[-1]["Permissions"] == [{"DataActions": list(DATA_ACTIONS)}]
    assert words[-1][words[-1].index("--scope") + 1] == "/dbs/my db"
    assert "<principal-id>" in words[-1]


@pytest.mark.parametrize("endpoint", ["embedded:", "http://localhost:8081"])
def test_an_endpoint_that_names_no_account(endpoint: str) -> None:
    """The name is left open: a placeholder in commands, a parameter without a default in templates."""
    assert "--name '<account>' " in plan("az", endpoint=endpoint)
    assert "\nparam accountName string\n" in plan("bicep", endpoint=endpoint)
    assert "defaultValue" not in json.loads(plan("arm", endpoint=endpoint))["parameters"]["accountName"]


def test_texts_that_look_like_expressions() -> None:
    """A text in brackets, as a name may have, stays a text in ARM; one bracket alone begins no expression."""
    for text, written in (("[concat('x')]", "[[concat('x')]"), ("[x", "[x"), ("x]", "x]")):
        template = json.loads(plan("arm", database=text))
        assert template["parameters"]["databaseName"]["defaultValue"] == written
