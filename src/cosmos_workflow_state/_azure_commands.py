"""Commands of the Azure CLI that make an account ready, as text.

Pure. What nobody here can know stands in angle brackets. Every text that comes from settings is quoted for a shell.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ._definitions import DATA_ACTIONS, ContainerDefinition
from ._throughput import Throughput

API_VERSION: Final = "2024-11-15"
ROLE_NAME: Final = "cosmos-workflow-state"

RESOURCE_GROUP: Final = "<resource-group>"
PRINCIPAL_ID: Final = "<principal-id>"
ACCOUNT: Final = "<account>"


@dataclass(frozen=True, slots=True)
class Place:
    """Where commands act.

    Attributes:
        account: Name of the account, or its placeholder.
        database: Name of the database.
        principal_id: Object id of who gets the role, or its placeholder.
    """

    account: str
    database: str
    principal_id: str = PRINCIPAL_ID

    @property
    def scope(self) -> str:
        """What the role is assigned for: the one database, not the account."""
        return f"/dbs/{self.database}"


def role_body() -> dict[str, Any]:
    """Return the role of least privilege as the Azure CLI takes it."""
    return {
        "RoleName": ROLE_NAME,
        "Type": "CustomRole",
        "AssignableScopes": ["/"],
        "Permissions": [{"DataActions": list(DATA_ACTIONS)}],
    }


def create_role(place: Place) -> str:
    """Return the command that defines the role."""
    return f"az cosmosdb sql role definition create {_account(place)} --body {_json(role_body())}"


def assign_role(place: Place) -> str:
    """Return the command that assigns the role."""
    return (
        f"az cosmosdb sql role assignment create {_account(place)} --role-definition-name {ROLE_NAME} "
        f"--principal-id {_quoted(place.principal_id)} --scope {_quoted(place.scope)}"
    )


def create_database(place: Place) -> str:
    """Return the command that creates the database."""
    return f"az cosmosdb sql database create {_account(place)} --name {_quoted(place.database)}"


def create_container(place: Place, name: str, wanted: ContainerDefinition, throughput: Throughput) -> str:
    """Return the command that creates a container.

    ``az cosmosdb sql container create`` is documented for one path of a partition key only, so it is a request.
    """
    url = (
        "https://management.azure.com/subscriptions/{subscriptionId}/resourceGroups/"
        f"{RESOURCE_GROUP}/providers/Microsoft.DocumentDB/databaseAccounts/{place.account}/sqlDatabases/"
        f"{place.database}/containers/{name}?api-version={API_VERSION}"
    )
    properties = {"resource": wanted.properties(name), "options": creation_options(throughput)}
    return f"az rest --method put --url {shlex.quote(url)} --body {_json({'properties': properties})}"


def update_container(place: Place, name: str, wanted: ContainerDefinition) -> str:
    """Return the command that gives an existing container the right indexing policy and default TTL."""
    return (
        f"az cosmosdb sql container update {_account(place)} --database-name {_quoted(place.database)} "
        f"--name {_quoted(name)} --ttl {wanted.properties(name)['defaultTtl']} --idx {_json(wanted.indexing_policy)}"
    )


def list_keys(account: str) -> str:
    """Return the command that shows the account's keys."""
    return f"az cosmosdb keys list --name {_quoted(account)} --resource-group {RESOURCE_GROUP}"


def creation_options(throughput: Throughput) -> dict[str, Any]:
    """Return a throughput as ARM takes it."""
    if throughput.kind == "serverless":
        return {}
    if throughput.kind == "manual":
        return {"throughput": throughput.request_units}
    return {"autoscaleSettings": {"maxThroughput": throughput.request_units}}


def _account(place: Place) -> str:
    return f"--account-name {_quoted(place.account)} --resource-group {RESOURCE_GROUP}"


def _quoted(text: str) -> str:
    return text if text in {RESOURCE_GROUP, PRINCIPAL_ID, ACCOUNT} else shlex.quote(text)


def _json(value: Mapping[str, Any]) -> str:
    return shlex.quote(json.dumps(value))
