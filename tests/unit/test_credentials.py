"""From settings to keys and token credentials, before anything is sent."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from azure.identity.aio import (
    AzureCliCredential,
    DefaultAzureCredential,
    ManagedIdentityCredential,
    WorkloadIdentityCredential,
)
from pydantic import SecretStr

from cosmos_workflow_state._credentials import account_keys, make_credential, refuse_plain_http, where_keys_are
from cosmos_workflow_state._remedies import Access
from cosmos_workflow_state.errors import SettingsError
from cosmos_workflow_state.settings import CosmosStateSettings, KeyAuth
from support.servers import loaded_by

CONNECTION_STRING = "AccountEndpoint=https://contoso.documents.azure.com;AccountKey=c2VjcmV0;"


def settings_with(auth: Any, endpoint: str = "https://contoso.documents.azure.com") -> CosmosStateSettings:
    """Return settings of an account, from these arguments only."""
    return CosmosStateSettings(endpoint=endpoint, auth=auth, _env_file=None)


@pytest.mark.parametrize(
    ("auth", "keys"),
    [
        (KeyAuth(key=SecretStr("c2VjcmV0")), ("c2VjcmV0",)),
        ({"key": "c2VjcmV0", "secondary_key": "b3RoZXI="}, ("c2VjcmV0", "b3RoZXI=")),
        ({"key": "c2VjcmV0", "secondary_key": "c2VjcmV0"}, ("c2VjcmV0",)),
        ({"mode": "connection_string", "connection_string": CONNECTION_STRING}, ("c2VjcmV0",)),
        (None, ()),
        ({"mode": "managed_identity"}, ()),
    ],
    ids=["key", "two keys", "the same twice", "connection string", "default", "identity"],
)
def test_the_keys_to_try(auth: Any, keys: tuple[str, ...]) -> None:
    """The keys to try, in order, each once and masked; none for an identity."""
    found = account_keys(settings_with(auth))
    assert tuple(key.get_secret_value() for key in found) == keys
    assert not any(key in str(found) for key in keys)


@pytest.mark.parametrize(
    ("auth", "where"),
    [
        ({"key": "c2VjcmV0"}, "COSMOS_WORKFLOW_STATE_KEY (AZURE_COSMOS_KEY)"),
        (
            {"key": "c2VjcmV0", "secondary_key": "b3RoZXI="},
            "COSMOS_WORKFLOW_STATE_KEY (AZURE_COSMOS_KEY) or COSMOS_WORKFLOW_STATE_AUTH__SECONDARY_KEY",
        ),
        (
            {"mode": "connection_string", "connection_string": CONNECTION_STRING},
            "the key in COSMOS_WORKFLOW_STATE_AUTH__CONNECTION_STRING",
        ),
    ],
    ids=["key", "two keys", "connection string"],
)
def test_where_keys_are(auth: Any, where: str) -> None:
    """Who is told that a key is not accepted is told which variables it may be in."""
    assert where_keys_are(settings_with(auth)) == where


@pytest.mark.parametrize("key", ["not-base64!", "YWJ"], ids=["alphabet", "padding"])
@pytest.mark.parametrize(
    ("field", "variable", "takes"),
    [
        ("key", r"KEY \(AZURE_COSMOS_KEY\)", "the account key"),
        ("secondary_key", "AUTH__SECONDARY_KEY", "the account's other key"),
    ],
)
def test_a_key_that_is_not_base64_is_an_error_by_name(field: str, variable: str, takes: str, key: str) -> None:
    """A key that cannot sign is refused before the first request, and is not shown."""
    settings = settings_with({"key": "c2VjcmV0", field: key})
    with pytest.raises(SettingsError, match=rf"COSMOS_WORKFLOW_STATE_{variable} is wrong: it takes {takes}") as caught:
        account_keys(settings)
    assert key not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.fixture
def _pod(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_FEDERATED_TOKEN_FILE"):
        monkeypatch.setenv(name, "set")


@pytest.mark.parametrize(
    ("auth", "kind"),
    [
        ({"mode": "managed_identity"}, ManagedIdentityCredential),
        ({"mode": "managed_identity", "client_id": "c"}, ManagedIdentityCredential),
        ({"mode": "managed_identity", "object_id": "o"}, ManagedIdentityCredential),
        ({"mode": "managed_identity", "resource_id": "r"}, ManagedIdentityCredential),
        ({"mode": "workload_identity"}, WorkloadIdentityCredential),
        ({"mode": "azure_cli"}, AzureCliCredential),
        (None, DefaultAzureCredential),
    ],
)
@pytest.mark.usefixtures("_pod")
async def test_credentials_are_those_of_azure_identity(auth: Any, kind: type) -> None:
    """Each mode is the asynchronous credential of its name; closing it leaves nothing open."""
    async with make_credential(settings_with(auth)) as credential:
        assert type(credential) is kind


async def test_what_is_excluded_is_not_asked() -> None:
    """The names of the settings are those of the chain's credentials."""
    left = {"exclude": "workload_identity,managed_identity,shared_token_cache,visual_studio_code"}
    async with make_credential(settings_with(left)) as credential:
        kinds = [type(one).__name__ for one in credential.credentials]  # type: ignore[union-attr]
    assert kinds == [
        "EnvironmentCredential",
        "AzureCliCredential",
        "AzurePowerShellCredential",
        "AzureDeveloperCliCredential",
    ]
    most = {
        "exclude": "environment,workload_identity,managed_identity,shared_token_cache,visual_studio_code,azure_cli,"
    }
    most["exclude"] += "azure_powershell"
    async with make_credential(settings_with(most)) as credential:
        kinds = [type(one).__name__ for one in credential.credentials]  # type: ignore[union-attr]
    assert kinds == ["AzureDeveloperCliCredential"]


def test_a_pod_without_its_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is in no pod with a workload identity is told what is missing, by variable."""
    for name in ("AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_FEDERATED_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(SettingsError, match=r"AZURE_FEDERATED_TOKEN_FILE.*COSMOS_WORKFLOW_STATE_AUTH__CLIENT_ID"):
        make_credential(settings_with({"mode": "workload_identity"}))


def test_a_key_is_no_credential() -> None:
    """Who asks for a token credential where a key is set has mixed something up."""
    with pytest.raises(TypeError):
        make_credential(settings_with({"key": "a2V5"}))


def test_plain_http_is_refused_in_words() -> None:
    """No token over a line that others can read; TLS passes."""
    refuse_plain_http(Access("https://localhost:8081", "state", "checkpoints"))
    own = Access("http://localhost:8081", "state", "checkpoints")
    with pytest.raises(SettingsError, match=r"_STATE_ENDPOINT is plain http.* set COSMOS_WORKFLOW_STATE_KEY,"):
        refuse_plain_http(own)
    with pytest.raises(SettingsError, match=r" --other is plain http.* set OTHER_KEY,"):
        refuse_plain_http(replace(own, keys="OTHER_KEY", named_by="--other"))


def test_identities_are_not_loaded_for_a_key() -> None:
    """Whoever uses a key or the embedded engine does not wait for azure-identity."""
    program = "from cosmos_workflow_state import CosmosStateFactory, CosmosStateSettings; import asyncio\n"
    program += "asyncio.run(CosmosStateFactory(CosmosStateSettings(endpoint='embedded:', _env_file=None)).close())"
    assert loaded_by(program, "azure.identity") == []
