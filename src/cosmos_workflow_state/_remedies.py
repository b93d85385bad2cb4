"""What to do about a refusal of the service, in words and commands.

Pure. It is told what the service answered and who asked, never a key or a token, so its texts cannot hold one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final, Literal

from ._azure_commands import (
    ACCOUNT,
    PRINCIPAL_ID,
    Place,
    assign_role,
    create_container,
    create_database,
    create_role,
    creation_options,
    list_keys,
    update_container,
)
from ._definitions import CHECKPOINTS, DATA_ACTIONS, ContainerDefinition
from ._endpoints import account_name
from ._templates import bicep_value
from ._throughput import Throughput

_SERVERLESS: Final = Throughput("serverless")

MAX_CLOCK_SKEW: Final = 15 * 60
"""Seconds that the clock of who signs may differ from the service's:
https://learn.microsoft.com/rest/api/cosmos-db/access-control-on-cosmosdb-resources"""

_UNAUTHORIZED: Final = 401
_NOT_FOR_TOKENS: Final = 5300
_NO_PERMISSION: Final = 5301
_NOT_YET_ACTIVE: Final = 5302
_ROLE_REFUSALS: Final = frozenset({_NO_PERMISSION, _NOT_YET_ACTIVE})

ENDPOINT: Final = "COSMOS_WORKFLOW_STATE_ENDPOINT"
KEY: Final = "COSMOS_WORKFLOW_STATE_KEY"

# Both come from the service's own text, so only what is written like one is taken over.
_ACTION: Final = re.compile(r"Microsoft\.DocumentDB/databaseAccounts/[A-Za-z/*]{1,100}")
_PRINCIPAL: Final = re.compile(r"principal \[([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})\]")
_SKEWED: Final = "not valid at the current time"
_FIREWALL: Final = "firewall"


@dataclass(frozen=True, slots=True)
class Access:
    """Who asks for what, as far as it is known here.

    Attributes:
        endpoint: The account's endpoint.
        database: Name of the database.
        container: Name of the container.
        proof: What the requests are proved with; None with a client of the caller's own.
        throughput: What a container would be created with.
        definition: What the container must be.
        keys: The variables from which the keys come, as a sentence takes them.
        named_by: What names the endpoint, as a sentence takes it: a variable or an option.
    """

    endpoint: str
    database: str
    container: str
    proof: Literal["key", "token"] | None = None
    throughput: Throughput = _SERVERLESS
    definition: ContainerDefinition = CHECKPOINTS
    keys: str = KEY
    named_by: str = ENDPOINT


@dataclass(frozen=True, slots=True)
class Refusal:
    """A 401 or 403.

    Attributes:
        status: The HTTP status.
        sub_status: Cosmos DB's sub-status, or None.
        said: The service's own text.
        ahead: Seconds that the clock of this machine is ahead of the answer's ``Date``; None without one.
    """

    status: int
    sub_status: int | None
    said: str
    ahead: float | None


@dataclass(frozen=True, slots=True)
class Remedy:
    """What to do.

    Attributes:
        text: Words, and commands on lines of their own; empty where nothing is known that would help.
        missing_actions: The data actions that whoever asked has not been given.
    """

    text: str
    missing_actions: tuple[str, ...] = ()


def nothing_to_send(keys: str = KEY) -> str:
    """Return what to do when there was no token to send.

    Args:
        keys: The variables from which a key would come, as a sentence takes them.
    """
    return (
        f"Without {keys} an identity is asked for a token, the one that COSMOS_WORKFLOW_STATE_AUTH__MODE names or the "
        "first that azure-identity finds. Set the key, or the mode that fits this machine; on your own, `az login` is "
        "enough."
    )


def remedy_for(refusal: Refusal, access: Access) -> Remedy:
    """Return what to do about a refusal."""
    if refusal.sub_status in _ROLE_REFUSALS:
        return _missing_role(refusal, access)
    if refusal.sub_status == _NOT_FOR_TOKENS:
        return Remedy(_management(refusal, access))
    if _is_skewed(refusal):
        return Remedy(_clock(refusal.ahead))
    if refusal.status == _UNAUTHORIZED:
        return Remedy(_not_accepted(refusal, access))
    if _FIREWALL in refusal.said.lower():
        return Remedy("The account's firewall does not let this machine's network in: add it, or a private endpoint.")
    return Remedy("")


def _missing_role(refusal: Refusal, access: Access) -> Remedy:
    place = _place(refusal, access)
    named = _ACTION.findall(refusal.said)
    missing = tuple(dict.fromkeys(named)) or tuple(DATA_ACTIONS)
    lines = [
        f"Missing data actions: {', '.join(missing)}.",
        *([_WAIT] if refusal.sub_status == _NOT_YET_ACTIVE else []),
        "Whoever owns the account gives this identity the role once; it takes some minutes to come into force:",
        f"  {create_role(place)}",
        f"  {assign_role(place)}",
        _bicep(place, access),
    ]
    return Remedy("\n".join(lines), missing)


_WAIT: Final = (
    "After a container or an assignment has been created, the service refuses for some minutes: try again first."
)


def _management(refusal: Refusal, access: Access) -> str:
    place = _place(refusal, access)
    return "\n".join(
        (
            _NO_ROLE_FOR_THAT,
            f"  {create_database(place)}",
            f"  {create_container(place, access.container, access.definition, access.throughput)}",
            f"  {update_container(place, access.container, access.definition)}",
            "And the right to use it:",
            f"  {create_role(place)}",
            f"  {assign_role(place)}",
            _bicep(place, access),
        )
    )


_NO_ROLE_FOR_THAT: Final = (
    "No role lets a token create or change databases and containers. Do it once with Azure's own tools, then set "
    "COSMOS_WORKFLOW_STATE_PROVISIONING=verify:"
)


def _bicep(place: Place, access: Access) -> str:
    parameters: dict[str, Any] = {
        "accountName": place.account,
        "databaseName": place.database,
        access.definition.parameter: access.container,
        "containerOptions": creation_options(access.throughput),
        "principalIds": [place.principal_id],
    }
    given = [f"  param {name} = {bicep_value(value, 1)}" for name, value in parameters.items() if value]
    return "\n".join(("Or deploy infra/main.bicep with these parameters:", *given))


def _not_accepted(refusal: Refusal, access: Access) -> str:
    advice = {"key": (_wrong_key(access),), "token": (_wrong_token(access),)}
    both = (_wrong_key(access), _wrong_token(access))
    return "\n".join((*advice.get(access.proof or "", both), _clock_agrees(refusal.ahead)))


def _wrong_key(access: Access) -> str:
    account = account_name(access.endpoint)
    which = f"the account {account}" if account else f"the account that {access.named_by} names"
    return (
        f"Is {access.keys} a key of {which}, and not regenerated since? Compare it with:\n"
        f"  {list_keys(account or ACCOUNT)}"
    )


def _wrong_token(access: Access) -> str:
    audience = access.endpoint.removesuffix("/").removesuffix(":443")
    return (
        "The token may have expired, be of another Entra tenant than the account's subscription, or be for another "
        f"audience than {audience}. Compare:\n"
        f"  az account get-access-token --resource {audience}\n"
        "  az account show --query tenantId"
    )


def _is_skewed(refusal: Refusal) -> bool:
    return _SKEWED in refusal.said or abs(refusal.ahead or 0.0) > MAX_CLOCK_SKEW


def _clock(ahead: float | None) -> str:
    limit = MAX_CLOCK_SKEW // 60
    if ahead is None or abs(ahead) <= MAX_CLOCK_SKEW:
        return f"The clock of this machine differs from the service's by more than {limit} minutes: set it right."
    where = "ahead of" if ahead > 0 else "behind"
    return (
        f"The clock of this machine is {abs(ahead) / 60:.0f} minutes {where} the service's, and {limit} are allowed: "
        "set it right."
    )


def _clock_agrees(ahead: float | None) -> str:
    limit = MAX_CLOCK_SKEW // 60
    if ahead is None:
        return f"The clock of this machine must not differ from the service's by more than {limit} minutes."
    return f"It is not the clock: that differs by {abs(ahead):.0f} s, and {limit} minutes are allowed."


def _place(refusal: Refusal, access: Access) -> Place:
    principal = _PRINCIPAL.search(refusal.said)
    return Place(account_name(access.endpoint) or ACCOUNT, access.database, principal[1] if principal else PRINCIPAL_ID)
