"""Commands of the Azure CLI that make an account ready, as text.

Pure. What nobody here can know stands in angle brackets. Every text that is not of this module is quoted for a shell,
and so are the brackets: a shell would take them for redirections.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from ._definitions import DATA_ACTIONS, ContainerDefinition
from ._throughput import Throughput

API_VERSION: Final = "2024-11-15"
_ACCOUNT_TYPE: Final = "Microsoft.DocumentDB/databaseAccounts"
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
        f"{_option('principal-id', place.principal_id)} {_option('scope', place.scope)}"
    )


def create_database(place: Place) -> str:
    """Return the command that creates the database."""
    return f"az cosmosdb sql database create {_account(place)} {_option('name', place.database)}"


def create_container(place: Place, name: str, wanted: ContainerDefinition, throughput: Throughput) -> str:
    """Return the command that creates a container.

    ``az cosmosdb sql container create`` is documented for one path of a partition key only, so it is a request.
    """
    url = (
        "https://management.azure.com/subscriptions/{subscriptionId}/resourceGroups/"
        f"{RESOURCE_GROUP}/providers/Microsoft.DocumentDB/databaseAccounts/{place.account}/sqlDatabases/"
        f"{quote(place.database, safe='')}/containers/{quote(name, safe='')}?api-version={API_VERSION}"
    )
    properties = {"resource": wanted.properties(name), "options": creation_options(throughput)}
    return f"az rest --method put {_option('url', url)} --body {_json({'properties': properties})}"


def update_container(place: Place, name: str, wanted: ContainerDefinition) -> str:
    """Return the command that gives an existing container the right indexing policy and default TTL."""
    return (
        f"az cosmosdb sql container update {_account(place)} {_option('database-name', place.database)} "
        f"{_option('name', name)} --ttl {wanted.properties(name)['defaultTtl']} --idx {_json(wanted.indexing_policy)}"
    )


def create_account(account: str, throughput: Throughput) -> str:
    """Return the command that creates an account for a throughput."""
    capabilities = " --capabilities EnableServerless" if throughput.kind == "serverless" else ""
    name = f"{_option('name', account)} {_option('resource-group', RESOURCE_GROUP)}"
    return f"az cosmosdb create {name}{capabilities}"


def disable_keys(account: str) -> str:
    """Return the command that makes an account refuse its keys, so that only identities get in."""
    name = f"{_option('name', account)} {_option('resource-group', RESOURCE_GROUP)}"
    return f"az resource update {name} --resource-type {_ACCOUNT_TYPE} --set properties.disableLocalAuth=true"


def list_keys(account: str) -> str:
    """Return the command that shows the account's keys."""
    return f"az cosmosdb keys list {_option('name', account)} {_option('resource-group', RESOURCE_GROUP)}"


def creation_options(throughput: Throughput) -> dict[str, Any]:
    """Return a throughput as ARM takes it."""
    if throughput.kind == "serverless":
        return {}
    if throughput.kind == "manual":
        return {"throughput": throughput.request_units}
    return {"autoscaleSettings": {"maxThroughput": throughput.request_units}}


def _account(place: Place) -> str:
    return f"{_option('account-name', place.account)} {_option('resource-group', RESOURCE_GROUP)}"


def _option(name: str, value: str) -> str:
    # Behind a space, a value that begins with a dash would be taken for another option.
    return f"--{name}{'=' if value.startswith('-') else ' '}{shlex.quote(value)}"


def _json(value: Mapping[str, Any]) -> str:
    return shlex.quote(json.dumps(value))
