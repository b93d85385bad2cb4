"""What is advised about each refusal: the right thing, with commands that can be pasted, and no secret."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from cosmos_workflow_state._definitions import DATA_ACTIONS
from cosmos_workflow_state._remedies import Access, Refusal, Remedy, nothing_to_send, remedy_for

PRINCIPAL = "8b7c5a52-aaaa-4000-8000-0123456789ab"
QUERY = "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/executeQuery"
BLOCKED = (
    "Request is blocked because principal [{}] does not have required RBAC permissions to perform action [{}] on "
    "resource [dbs/workflow-state]."
)
ASSIGN = (
    "az cosmosdb sql role assignment create --account-name contoso --resource-group '<resource-group>' "
    "--role-definition-name cosmos-workflow-state --principal-id {} --scope /dbs/workflow-state"
)
BICEP = """
Or deploy infra/main.bicep with these parameters:
  param accountName = 'contoso'
  param databaseName = 'workflow-state'
  param checkpointContainerName = 'checkpoints'
  param principalIds = [
    '{}'
  ]"""
ACCOUNT = "https://contoso.documents.azure.com:443/"


def advice(
    status: int, sub_status: int | None = None, said: str = "", *, ahead: float | None = None, **access: Any
) -> Remedy:
    """Return the remedy for a refusal, of an account by token unless it is said otherwise."""
    known = {"endpoint": ACCOUNT, "database": "workflow-state", "container": "checkpoints", "proof": "token", **access}
    return remedy_for(Refusal(status, sub_status, said, ahead), Access(**known))


@pytest.mark.parametrize("sub_status", [5301, 5302])
@pytest.mark.parametrize("action", [QUERY, "Microsoft.DocumentDB/databaseAccounts/readMetadata"])
def test_a_missing_right_is_named_with_the_commands(sub_status: int, action: str) -> None:
    """The action and the principal come from the service's words, account and database from the settings."""
    remedy = advice(403, sub_status, BLOCKED.format(PRINCIPAL, action))
    assert remedy.missing_actions == (action,)
    assert f"Missing data actions: {action}." in remedy.text
    assert f"\n  {ASSIGN.format(PRINCIPAL)}\n" in remedy.text
    assert remedy.text.endswith(BICEP.format(PRINCIPAL))
    (create,) = [line for line in remedy.text.splitlines() if "role definition create" in line]
    assert all(action in shlex.split(create)[-1] for action in DATA_ACTIONS)
    assert ("try again first" in remedy.text) is (sub_status == 5302)


@pytest.mark.parametrize(
    "said", ["", "principal [someone else] action [rm -rf /]", BLOCKED.format("$(rm -rf /)", "; rm -rf /")]
)
def test_words_that_are_not_the_services_are_not_taken_over(said: str) -> None:
    """Where nothing is named in the service's way, all actions are, and the principal is a placeholder."""
    remedy = advice(403, 5301, said)
    assert remedy.missing_actions == tuple(DATA_ACTIONS)
    assert ASSIGN.format("'<principal-id>'") in remedy.text
    assert "rm -rf" not in remedy.text


def test_managing_by_token() -> None:
    """No role helps: the commands that create, and the setting that stops asking."""
    remedy = advice(403, 5300, "The given request [POST /dbs] cannot be authorized by AAD token in data plane.")
    assert remedy.missing_actions == ()
    assert "COSMOS_WORKFLOW_STATE_PROVISIONING=verify" in remedy.text
    assert '"options": {}' in remedy.text
    assert "containerOptions" not in remedy.text
    for command in ("sql database create", "rest --method put", "sql container update", "sql role assignment create"):
        assert f"\n  az {command}" in remedy.text.replace("az cosmosdb ", "az ")


@pytest.mark.parametrize(
    ("status", "said", "ahead", "text"),
    [
        (403, "", 3600.0, "is 60 minutes ahead of the service's, and 15 are allowed"),
        (401, "", -3600.0, "is 60 minutes behind the service's, and 15 are allowed"),
        (403, "The authorization token is not valid at the current time.", None, "differs from the service's by more"),
        (403, "The authorization token is not valid at the current time.", 3.0, "differs from the service's by more"),
    ],
)
def test_clocks(status: int, said: str, ahead: float | None, text: str) -> None:
    """A clock that is wrong by more than the service allows is the cause, whatever the status."""
    assert text in advice(status, None, said, ahead=ahead, proof="key").text


@pytest.mark.parametrize(
    ("proof", "keys", "tokens"), [("key", True, False), ("token", False, True), (None, True, True)]
)
def test_who_is_not_known(proof: str | None, *, keys: bool, tokens: bool) -> None:
    """A 401 says what to look at: key or token, or both where the client is the caller's, and the clock."""
    text = advice(401, proof=proof, ahead=2.0).text
    assert ("az cosmosdb keys list --name contoso --resource-group '<resource-group>'" in text) is keys
    assert ("az account get-access-token --resource https://contoso.documents.azure.com\n" in text) is tokens
    assert "It is not the clock: that differs by 2 s," in text
    assert "must not differ" in advice(401, proof=proof).text


def test_who_asks_for_another_account() -> None:
    """What names the endpoint, and where the keys come from, is said as whoever asks calls it; so with no token."""
    other = {"endpoint": "https://localhost:8081", "keys": "OTHER_KEY", "named_by": "--other"}
    assert "Is OTHER_KEY a key of the account that --other names, " in advice(401, proof="key", **other).text
    assert "Is COSMOS_WORKFLOW_STATE_KEY a key of the account contoso, " in advice(401, proof="key").text
    assert nothing_to_send("OTHER_KEY").startswith("Without OTHER_KEY an identity is asked for a token, ")


def test_other_refusals() -> None:
    """A firewall is called one; about the rest nothing is made up."""
    assert "firewall" in advice(403, None, "This is blocked by your Cosmos DB account firewall settings.").text
    assert advice(403, 3, "write forbidden") == Remedy("")


def test_an_account_whose_name_is_not_known() -> None:
    """An endpoint that is not Azure's leaves a placeholder."""
    assert "--account-name '<account>' " in advice(403, 5301, endpoint="https://cosmos.contoso.example").text
    assert "--account-name '<account>' " in advice(403, 5301, endpoint="https://localhost:8081").text
