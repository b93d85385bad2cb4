"""The key that signs the requests."""

from __future__ import annotations

import pytest
from pydantic import SecretStr

from cosmos_workflow_state._credentials import account_key
from cosmos_workflow_state.errors import SettingsError
from cosmos_workflow_state.settings import CosmosStateSettings, KeyAuth


def settings_with(auth: KeyAuth | None) -> CosmosStateSettings:
    """Return settings of an account, from these arguments only."""
    return CosmosStateSettings(endpoint="https://contoso.documents.azure.com", auth=auth, _env_file=None)


def test_key_is_returned_as_text() -> None:
    """The key comes out of its mask, for the client only."""
    assert account_key(settings_with(KeyAuth(key=SecretStr("c2VjcmV0")))) == "c2VjcmV0"


def test_missing_key_is_an_error_by_name() -> None:
    """Without a key the variable is named."""
    with pytest.raises(SettingsError, match="COSMOS_WORKFLOW_STATE_KEY is not set: it takes the account key"):
        account_key(settings_with(None))


@pytest.mark.parametrize("key", ["not-base64!", "YWJ"], ids=["alphabet", "padding"])
def test_key_that_is_not_base64_is_an_error_by_name(key: str) -> None:
    """A key that cannot sign is refused before the first request, and is not shown."""
    with pytest.raises(SettingsError, match="COSMOS_WORKFLOW_STATE_KEY is wrong: it takes the account key") as caught:
        account_key(settings_with(KeyAuth(key=SecretStr(key))))
    assert key not in str(caught.value)
    assert caught.value.__context__ is None
