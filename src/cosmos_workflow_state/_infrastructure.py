"""What an account needs before this package can use it, as text for Azure's own tools.

Pure. The same resources in every language: Azure CLI commands, Bicep, ARM's JSON, and the modules in ``infra/``, which
`infrastructure_files` writes out. The definitions of containers and rights come from `_definitions`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from ._azure_commands import (
    ACCOUNT,
    API_VERSION,
    ROLE_NAME,
    Place,
    assign_role,
    create_account,
    create_container,
    create_database,
    create_role,
    creation_options,
    disable_keys,
)
from ._definitions import CONTAINERS, DATA_ACTIONS, ContainerDefinition
from ._endpoints import account_name
from ._templates import Expression, Parameter, Resource, Template, bicep_parameters, to_arm, to_bicep
from ._throughput import Throughput
from .settings import ConnectionStringAuth, CosmosStateSettings, KeyAuth

PlanFormat = Literal["az", "bicep", "arm"]

_TYPE: Final = "Microsoft.DocumentDB/databaseAccounts"
_DATABASE_TYPE: Final = f"{_TYPE}/sqlDatabases"
_CONTAINER_TYPE: Final = f"{_DATABASE_TYPE}/containers"
_ROLE_TYPE: Final = f"{_TYPE}/sqlRoleDefinitions"
_ASSIGNMENT_TYPE: Final = f"{_TYPE}/sqlRoleAssignments"

_ACCOUNT_NAME: Final = Parameter("accountName", "string", "Name of the Cosmos DB account.")
_LOCATION: Final = Parameter(
    "location", "string", "Region of a new account.", Expression("resourceGroup().location", "resourceGroup().location")
)
_CREATE_ACCOUNT: Final = Parameter(
    "createAccount", "bool", "Whether to create the account; an existing one is left as it is.", default=False
)
_SERVERLESS: Final = Parameter("serverless", "bool", "Whether a new account is serverless.", default=True)
_DISABLE_LOCAL_AUTH: Final = Parameter(
    "disableLocalAuth", "bool", "Whether a new account refuses its keys, so that only identities get in.", default=True
)
_DATABASE_NAME: Final = Parameter("databaseName", "string", "Name of the database.")
_OPTIONS: Final = Parameter(
    "containerOptions",
    "object",
    "Throughput of new containers: {} on a serverless account or in a database that shares its own, "
    "{ throughput: 400 } or { autoscaleSettings: { maxThroughput: 1000 } }.",
    {},
)
_PRINCIPAL_IDS: Final = Parameter(
    "principalIds", "array", "Object ids of the identities that may use the database.", []
)

_EXISTING_ACCOUNT: Final = {"account": (_TYPE, API_VERSION, _ACCOUNT_NAME.value)}


@dataclass(frozen=True, slots=True)
class _Container:
    """A container of the plan: what it holds, and the parameter that names it."""

    definition: ContainerDefinition
    name: Parameter

    @classmethod
    def of(cls, definition: ContainerDefinition) -> _Container:
        """Return the container of a kind."""
        about = f"Name of the container for {definition.kind}."
        return cls(definition, Parameter(definition.parameter, "string", about))


_CONTAINERS: Final = tuple(map(_Container.of, CONTAINERS))


def provisioning_plan(settings: CosmosStateSettings, output: PlanFormat) -> str:
    """Return what makes an account ready for these settings.

    Args:
        settings: The names and the throughput come from here. Keys are not looked at.
        output: ``az`` for commands, ``bicep`` or ``arm`` for a template in one file.
    """
    if output == "az":
        return _commands(settings)
    template = _whole(settings)
    return to_bicep(template) if output == "bicep" else to_arm(template)


def infrastructure_files() -> Mapping[str, str]:
    """Return the files of ``infra/`` by path: the template's parts as modules, and one that puts them together."""
    return {
        "main.bicep": _main(),
        "modules/account.bicep": to_bicep(
            Template(
                (_ACCOUNT_NAME, _LOCATION, _SERVERLESS, _DISABLE_LOCAL_AUTH),
                (_account("account", None),),
                {"endpoint": Expression("account.properties.documentEndpoint", "")},
            )
        ),
        "modules/database.bicep": to_bicep(
            Template(
                (_ACCOUNT_NAME, _DATABASE_NAME, *(container.name for container in _CONTAINERS), _OPTIONS),
                _data(()),
                {"databaseId": _DATABASE.id},
                _EXISTING_ACCOUNT,
            )
        ),
        "modules/access.bicep": to_bicep(
            Template(
                (_ACCOUNT_NAME, _DATABASE_NAME, _PRINCIPAL_IDS),
                _access((), ()),
                {"roleDefinitionId": _ROLE_ID},
                _EXISTING_ACCOUNT,
            )
        ),
    }


def _whole(settings: CosmosStateSettings) -> Template:
    """Return everything in one template, with the settings in force as what its parameters are unless chosen."""
    throughput = Throughput.parse(settings.throughput)
    account = _account("newAccount", _CREATE_ACCOUNT)
    data = _data((account,))
    return Template(
        (
            replace(_ACCOUNT_NAME, default=account_name(settings.endpoint)),
            _LOCATION,
            _CREATE_ACCOUNT,
            replace(_SERVERLESS, default=throughput.kind == "serverless"),
            replace(_DISABLE_LOCAL_AUTH, default=not _takes_keys(settings)),
            replace(_DATABASE_NAME, default=settings.database),
            *(replace(one.name, default=settings.name_of(one.definition)) for one in _CONTAINERS),
            replace(_OPTIONS, default=creation_options(throughput)),
            _PRINCIPAL_IDS,
        ),
        (account, *data, *_access((account,), data[:1])),
        {"roleDefinitionId": _ROLE_ID},
        _EXISTING_ACCOUNT,
    )


def _takes_keys(settings: CosmosStateSettings) -> bool:
    return isinstance(settings.auth, KeyAuth | ConnectionStringAuth)


def _account(symbol: str, condition: Parameter | None) -> Resource:
    serverless = Expression(
        "serverless ? [{ name: 'EnableServerless' }] : []",
        f"if({_SERVERLESS.value.arm}, createArray(createObject('name', 'EnableServerless')), createArray())",
    )
    body: dict[str, Any] = {
        "location": _LOCATION.value,
        "kind": "GlobalDocumentDB",
        "properties": {
            "databaseAccountOfferType": "Standard",
            "locations": [{"locationName": _LOCATION.value, "failoverPriority": 0}],
            "consistencyPolicy": {"defaultConsistencyLevel": "Session"},
            "capabilities": serverless,
            "disableLocalAuth": _DISABLE_LOCAL_AUTH.value,
            "minimalTlsVersion": "Tls12",
        },
    }
    return Resource(symbol, _TYPE, API_VERSION, (_ACCOUNT_NAME.value,), body, condition=condition)


_DATABASE: Final = Resource(
    "database",
    _DATABASE_TYPE,
    API_VERSION,
    (_ACCOUNT_NAME.value, _DATABASE_NAME.value),
    {"properties": {"resource": {"id": _DATABASE_NAME.value}}},
    parent="account",
)


def _data(after: tuple[Resource, ...]) -> tuple[Resource, ...]:
    database = replace(_DATABASE, after=after)
    return (database, *(_container(container, database) for container in _CONTAINERS))


def _container(container: _Container, database: Resource) -> Resource:
    name = container.name.value
    properties = {**container.definition.properties(""), "id": name}
    return Resource(
        container.definition.kind,
        _CONTAINER_TYPE,
        API_VERSION,
        (*database.names, name),
        {"properties": {"resource": properties, "options": _OPTIONS.value}},
        parent=database.symbol,
        after=(database,),
    )


_ACCOUNT_ID: Final = Expression("account.id", f"resourceId('{_TYPE}', {_ACCOUNT_NAME.value.arm})")
_ROLE_GUID: Final = Expression(f"guid(account.id, '{ROLE_NAME}')", f"guid({_ACCOUNT_ID.arm}, '{ROLE_NAME}')")
_ROLE_ID: Final = Expression(
    "roleDefinition.id", f"resourceId('{_ROLE_TYPE}', {_ACCOUNT_NAME.value.arm}, {_ROLE_GUID.arm})"
)
_SCOPE: Final = Expression(
    "'${account.id}/dbs/${databaseName}'", f"format('{{0}}/dbs/{{1}}', {_ACCOUNT_ID.arm}, {_DATABASE_NAME.value.arm})"
)
_PRINCIPAL: Final = Expression("principalId", f"{_PRINCIPAL_IDS.value.arm}[copyIndex()]")


def _access(account: tuple[Resource, ...], database: tuple[Resource, ...]) -> tuple[Resource, ...]:
    role = Resource(
        "roleDefinition",
        _ROLE_TYPE,
        API_VERSION,
        (_ACCOUNT_NAME.value, _ROLE_GUID),
        {
            "properties": {
                "roleName": ROLE_NAME,
                "type": "CustomRole",
                "assignableScopes": [_ACCOUNT_ID],
                "permissions": [{"dataActions": list(DATA_ACTIONS)}],
            }
        },
        parent="account",
        after=account,
    )
    assigned = (_ACCOUNT_ID, _PRINCIPAL, _SCOPE)
    name = Expression(
        f"guid({', '.join(part.bicep for part in assigned)})", f"guid({', '.join(part.arm for part in assigned)})"
    )
    assignments = Resource(
        "roleAssignments",
        _ASSIGNMENT_TYPE,
        API_VERSION,
        (_ACCOUNT_NAME.value, name),
        {"properties": {"roleDefinitionId": _ROLE_ID, "principalId": _PRINCIPAL, "scope": _SCOPE}},
        parent="account",
        each=(_PRINCIPAL_IDS, _PRINCIPAL.bicep),
        after=(role, *database),
    )
    return role, assignments


def _commands(settings: CosmosStateSettings) -> str:
    place = Place(account_name(settings.endpoint) or ACCOUNT, settings.database)
    throughput = Throughput.parse(settings.throughput)
    containers = (create_container(place, settings.name_of(one), one, throughput) for one in CONTAINERS)
    keys = "." if _takes_keys(settings) else "; the second command makes it refuse its keys."
    return "\n".join(
        (
            f"# The account, if there is none yet{keys}",
            create_account(place.account, throughput),
            *([] if _takes_keys(settings) else [disable_keys(place.account)]),
            "# The database and its containers.",
            create_database(place),
            *containers,
            "# The role of least privilege, and who has it. It takes some minutes to come into force.",
            create_role(place),
            assign_role(place),
            "",
        )
    )


_MODULES: Final = """\
module account 'modules/account.bicep' = if (createAccount) {
  name: 'cosmos-workflow-state-account'
  params: {
    accountName: accountName
    location: location
    serverless: serverless
    disableLocalAuth: disableLocalAuth
  }
}

module database 'modules/database.bicep' = {
  name: 'cosmos-workflow-state-database'
  params: {
    accountName: accountName
    databaseName: databaseName
    checkpointContainerName: checkpointContainerName
    historyContainerName: historyContainerName
    sessionContainerName: sessionContainerName
    containerOptions: containerOptions
  }
  dependsOn: [
    account
  ]
}

module access 'modules/access.bicep' = {
  name: 'cosmos-workflow-state-access'
  params: {
    accountName: accountName
    databaseName: databaseName
    principalIds: principalIds
  }
  dependsOn: [
    database
  ]
}

output databaseId string = database.outputs.databaseId

output roleDefinitionId string = access.outputs.roleDefinitionId
"""


def _main() -> str:
    fields = CosmosStateSettings.model_fields
    parameters = (
        _ACCOUNT_NAME,
        _LOCATION,
        _CREATE_ACCOUNT,
        _SERVERLESS,
        _DISABLE_LOCAL_AUTH,
        replace(_DATABASE_NAME, default=fields["database"].default),
        *(replace(one.name, default=fields[one.definition.setting].default) for one in _CONTAINERS),
        _OPTIONS,
        _PRINCIPAL_IDS,
    )
    return f"targetScope = 'resourceGroup'\n\n{bicep_parameters(parameters)}\n\n{_MODULES}"
