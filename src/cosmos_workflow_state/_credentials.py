"""From settings to what the client authenticates with, and who closes it.

A key is text: nothing is opened, so nobody closes anything. It stays wrapped until the client is given it, so that no
local variable of a frame has it: error trackers record those. A token credential made here is closed by who asked for
it. It opens no connection and logs nothing.
"""

from __future__ import annotations

import binascii
import os
from base64 import b64decode
from typing import TYPE_CHECKING, Final

from pydantic import SecretStr

from ._auth_settings import AzureCliAuth, DefaultAuth, ManagedIdentityAuth, WorkloadIdentityAuth
from ._endpoints import is_plain_http
from ._remedies import Access
from ._settings_sources import KEY_VARIABLE, PREFIX
from .errors import SettingsError
from .settings import ConnectionStringAuth, CosmosStateSettings, KeyAuth, auth_error

if TYPE_CHECKING:
    from azure.identity.aio import (
        AzureCliCredential,
        DefaultAzureCredential,
        ManagedIdentityCredential,
        WorkloadIdentityCredential,
    )

    OwnCredential = AzureCliCredential | DefaultAzureCredential | ManagedIdentityCredential | WorkloadIdentityCredential

_KEY: Final = f"{KEY_VARIABLE} (AZURE_COSMOS_KEY)"
_SECONDARY_KEY: Final = f"{PREFIX}AUTH__SECONDARY_KEY"
_CONNECTION_STRING: Final = f"{PREFIX}AUTH__CONNECTION_STRING"
_OF_APP_SERVICE: Final = "IDENTITY_HEADER"
# The names that azure-identity has for some credentials of its chain differ from those of the credentials.
_CHAIN_NAMES: Final = {
    "azure_cli": "cli",
    "azure_powershell": "powershell",
    "azure_developer_cli": "developer_cli",
}


def account_keys(settings: CosmosStateSettings) -> tuple[SecretStr, ...]:
    """Return the account keys that may sign the requests, in the order to try them; none for a way without keys.

    Raises:
        SettingsError: A key is not base64. The client would fail at its first request, without naming the variable.
    """
    auth = settings.auth
    if isinstance(auth, ConnectionStringAuth):
        return (auth.key,)
    if not isinstance(auth, KeyAuth):
        return ()
    named = (("key", _KEY, auth.key), ("secondary_key", _SECONDARY_KEY, auth.secondary_key))
    given = [(field, where, secret) for field, where, secret in named if secret is not None]
    for field, where, secret in given:
        if not _is_base64(secret):
            raise auth_error(field, f"{where} is wrong")
    return tuple(dict.fromkeys(secret for _, _, secret in given))


def where_keys_are(settings: CosmosStateSettings) -> str:
    """Return the variables from which the keys come that may sign the requests, as a sentence takes them."""
    if isinstance(settings.auth, ConnectionStringAuth):
        return f"the key in {_CONNECTION_STRING}"
    second = isinstance(settings.auth, KeyAuth) and settings.auth.secondary_key is not None
    return f"{_KEY} or {_SECONDARY_KEY}" if second else _KEY


def make_credential(settings: CosmosStateSettings) -> OwnCredential:
    """Return the token credential that the settings ask for; nothing is sent before it is used. Close it.

    azure-identity is loaded here and not before: nobody waits for it who uses a key or the embedded engine.

    Raises:
        SettingsError: The environment lacks what the credential needs.
    """
    match settings.auth:
        case ManagedIdentityAuth() as auth:
            return _managed_identity(auth)
        case WorkloadIdentityAuth() as auth:
            return _workload_identity(auth)
        case AzureCliAuth():
            from azure.identity.aio import AzureCliCredential  # noqa: PLC0415 - see above

            return AzureCliCredential()
        case DefaultAuth() as auth:
            return _default(auth)
        case _:
            raise TypeError("a key makes no token credential")


def refuse_plain_http(access: Access) -> None:
    """Check that a token could be sent to the endpoint.

    Raises:
        SettingsError: Others could read it on its way: the endpoint is plain http.
    """
    if is_plain_http(access.endpoint):
        raise SettingsError(
            "1 setting is wrong:\n"
            f"  {access.named_by} is plain http, over which no token is sent: it takes an https:// endpoint for an "
            f"identity; or set {access.keys}, with which requests are signed and which is not sent itself"
        )


def _managed_identity(auth: ManagedIdentityAuth) -> ManagedIdentityCredential:
    from azure.identity.aio import ManagedIdentityCredential  # noqa: PLC0415 - see make_credential

    if auth.object_id is not None:
        return ManagedIdentityCredential(identity_config={"object_id": auth.object_id})
    if auth.resource_id is not None:
        # The asynchronous credential sends the name as it is, and each endpoint has its own: one that it does not know
        # is passed over, and the token is of the system-assigned identity instead.
        # https://learn.microsoft.com/azure/app-service/overview-managed-identity#rest-endpoint-reference
        # https://learn.microsoft.com/entra/identity/managed-identities-azure-resources/how-to-use-vm-token
        name = "mi_res_id" if os.environ.get(_OF_APP_SERVICE) else "msi_res_id"
        return ManagedIdentityCredential(identity_config={name: auth.resource_id})
    return ManagedIdentityCredential(client_id=auth.client_id)


def _workload_identity(auth: WorkloadIdentityAuth) -> WorkloadIdentityCredential:
    from azure.identity.aio import WorkloadIdentityCredential  # noqa: PLC0415 - see make_credential

    try:
        return WorkloadIdentityCredential(client_id=auth.client_id)
    except ValueError:
        problem = SettingsError(
            "1 setting is wrong:\n"
            f"  {PREFIX}AUTH__MODE is workload_identity, and this process has none: AZURE_TENANT_ID, "
            f"AZURE_FEDERATED_TOKEN_FILE and AZURE_CLIENT_ID (or {PREFIX}AUTH__CLIENT_ID) must be set, as the webhook "
            "of AKS does for pods with the label azure.workload.identity/use"
        )
    raise problem


def _default(auth: DefaultAuth) -> DefaultAzureCredential:
    from azure.identity.aio import DefaultAzureCredential  # noqa: PLC0415 - see make_credential

    names = (_CHAIN_NAMES.get(name, name) for name in auth.exclude)
    return DefaultAzureCredential(**{f"exclude_{name}_credential": True for name in names})


def _is_base64(secret: SecretStr) -> bool:
    try:
        b64decode(secret.get_secret_value(), validate=True)
    except binascii.Error:
        return False
    return True
