"""Where settings are read from, which place wins, and what is said about names nobody knows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import SecretStr

from cosmos_workflow_state._auth_settings import AUTH_FIELDS
from cosmos_workflow_state.errors import SettingsError
from cosmos_workflow_state.settings import (
    AzureCliAuth,
    ConnectionStringAuth,
    CosmosStateSettings,
    DefaultAuth,
    KeyAuth,
    ManagedIdentityAuth,
    WorkloadIdentityAuth,
)

PREFIX = "COSMOS_WORKFLOW_STATE_"
ALIASES = ("AZURE_COSMOS_ENDPOINT", "AZURE_COSMOS_KEY", "AZURE_COSMOS_DATABASE_NAME")
PLACES = ("argument", "environment", "dotenv", "secrets")


class Places:
    """The three places settings are read from, empty at first."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Keep where they are."""
        self.dotenv = folder / ".env"
        self.secrets = folder / "secrets"
        self.secrets.mkdir()
        self._monkeypatch = monkeypatch

    def put(self, place: str, name: str, value: str) -> None:
        """Set one variable in one place."""
        if place == "environment":
            self._monkeypatch.setenv(name, value)
        elif place == "dotenv":
            with self.dotenv.open("a") as lines:
                lines.write(f"{name}={value}\n")
        else:
            (self.secrets / name).write_text(f"{value}\n")

    def read(self, **arguments: str) -> CosmosStateSettings:
        """Read the settings from all places."""
        return CosmosStateSettings(_secrets_dir=self.secrets, **arguments)  # type: ignore[arg-type]  # texts only

    def refused(self) -> list[str]:
        """Return the sentences of the error that reading raises."""
        with pytest.raises(SettingsError) as caught:
            self.read(endpoint="embedded:")
        return [line.strip() for line in str(caught.value).splitlines()[1:]]


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    """Return the places, with nothing of the surrounding environment in them."""
    monkeypatch.chdir(tmp_path)
    for name in ("ENDPOINT", "DATABASE", "KEY", "SECRETS_DIR", *(f"AUTH__{field.upper()}" for field in AUTH_FIELDS)):
        monkeypatch.delenv(f"{PREFIX}{name}", raising=False)
    for name in ALIASES:
        monkeypatch.delenv(name, raising=False)
    return Places(tmp_path, monkeypatch)


@pytest.mark.parametrize("place", PLACES[1:])
def test_every_field_is_read_from_every_place(places: Places, place: str) -> None:
    """Each field has its variable, and each place is read."""
    values = {
        "ENDPOINT": "embedded:state.db",
        "DATABASE": "d",
        "CHECKPOINT_CONTAINER": "c",
        "HISTORY_CONTAINER": "h",
        "SESSION_CONTAINER": "s",
        "AUTH__MODE": "key",
        "AUTH__KEY": "a2V5",
        "AUTH__SECONDARY_KEY": "b3RoZXI=",
        "THROUGHPUT": "manual:400",
        "PROVISIONING": "create",
        "TENANT_ID_PATTERN": "[a-z]+",
        "TENANT_ID_MAX_LENGTH": "9",
        "ALLOWED_CHECKPOINT_TYPES": "a:B,c:D",
        "MAX_PAYLOAD_BYTES": "1000",
        "WARN_BYTES": "900",
        "CHECKPOINT_TTL": "86400",
        "HISTORY_TTL": "86401",
        "SESSION_TTL": "86402",
        "OPERATION_TIMEOUT": "2.5",
        "ON_UNDECODABLE": "raise",
        "LOG_LEVEL": "DEBUG",
        "LOG_FORMAT": "json",
    }
    for name, value in values.items():
        places.put(place, f"{PREFIX}{name}", value)
    settings = places.read()
    assert settings.require_key().get_secret_value() == "a2V5"
    assert settings.model_dump(exclude={"auth"}) == {
        "endpoint": "embedded:state.db",
        "database": "d",
        "checkpoint_container": "c",
        "history_container": "h",
        "session_container": "s",
        "provisioning": "create",
        "throughput": "manual:400",
        "tenant_id_pattern": re.compile("[a-z]+"),
        "tenant_id_max_length": 9,
        "allowed_checkpoint_types": ("a:B", "c:D"),
        "max_payload_bytes": 1000,
        "warn_bytes": 900,
        "checkpoint_ttl": 86400,
        "history_ttl": 86401,
        "session_ttl": 86402,
        "operation_timeout": 2.5,
        "on_undecodable": "raise",
        "log_level": "debug",
        "log_format": "json",
    }


@pytest.mark.parametrize("strongest", range(4), ids=PLACES)
def test_places_have_an_order(places: Places, strongest: int) -> None:
    """An argument beats the environment, that beats ``.env``, and that beats the secrets directory."""
    for place in PLACES[max(strongest, 1) :]:
        places.put(place, f"{PREFIX}ENDPOINT", f"embedded:{place}")
    arguments = {"endpoint": "embedded:argument"} if strongest == 0 else {}
    assert places.read(**arguments).endpoint == f"embedded:{PLACES[strongest]}"


def test_aliases_are_accepted(places: Places) -> None:
    """The names of Microsoft Agent Framework's own package give endpoint, key and database."""
    places.put("environment", "AZURE_COSMOS_ENDPOINT", "https://contoso.documents.azure.com")
    places.put("dotenv", "AZURE_COSMOS_KEY", "a2V5")
    places.put("secrets", "AZURE_COSMOS_DATABASE_NAME", "theirs")
    settings = places.read()
    assert settings.endpoint == "https://contoso.documents.azure.com"
    assert settings.require_key().get_secret_value() == "a2V5"
    assert settings.database == "theirs"


def test_alias_of_their_container_is_not_accepted(places: Places) -> None:
    """Their container is keyed differently: its name is not taken over."""
    places.put("environment", "AZURE_COSMOS_CONTAINER_NAME", "theirs")
    assert places.read(endpoint="embedded:").checkpoint_container == "checkpoints"


@pytest.mark.parametrize("ours", PLACES[1:])
@pytest.mark.parametrize("theirs", PLACES[1:])
def test_our_name_beats_an_alias_wherever_each_is(places: Places, ours: str, theirs: str) -> None:
    """A variable of ours wins over an alias, in the same place and in any other."""
    places.put(ours, f"{PREFIX}ENDPOINT", "embedded:ours")
    places.put(ours, f"{PREFIX}KEY", "b3Vycw==")
    places.put(theirs, "AZURE_COSMOS_ENDPOINT", "embedded:theirs")
    places.put(theirs, "AZURE_COSMOS_KEY", "dGhlaXJz")
    settings = places.read()
    assert (settings.endpoint, settings.require_key().get_secret_value()) == ("embedded:ours", "b3Vycw==")


def test_nested_key_beats_the_plain_one(places: Places) -> None:
    """``AUTH__KEY`` says more than ``KEY`` and wins in the same place."""
    places.put("environment", f"{PREFIX}KEY", "cGxhaW4=")
    places.put("environment", f"{PREFIX}AUTH__KEY", "bmVzdGVk")
    assert places.read(endpoint="embedded:").require_key().get_secret_value() == "bmVzdGVk"


def test_mode_key_needs_a_key(places: Places) -> None:
    """Whoever chose the key by name is not given another way to authenticate because it is missing."""
    places.put("environment", f"{PREFIX}AUTH__MODE", "key")
    (problem,) = places.refused()
    assert problem.startswith(f"{PREFIX}KEY is not set: it takes the account key")


CONNECTION_STRING = "AccountEndpoint=https://contoso.documents.azure.com:443/;AccountKey=a2V5Cg==;"


@pytest.mark.parametrize(
    ("variables", "auth"),
    [
        pytest.param({}, DefaultAuth(), id="nothing"),
        pytest.param({"KEY": "a2V5"}, KeyAuth(key=SecretStr("a2V5")), id="key alone"),
        pytest.param({"AUTH__MODE": "auto", "KEY": "a2V5"}, KeyAuth(key=SecretStr("a2V5")), id="auto with key"),
        pytest.param({"AUTH__MODE": "AUTO"}, DefaultAuth(), id="auto without key, in capitals"),
        pytest.param(
            {"KEY": "a2V5", "AUTH__SECONDARY_KEY": "b3RoZXI="},
            KeyAuth(key=SecretStr("a2V5"), secondary_key=SecretStr("b3RoZXI=")),
            id="two keys",
        ),
        pytest.param(
            {"AUTH__MODE": "connection_string", "AUTH__CONNECTION_STRING": CONNECTION_STRING},
            ConnectionStringAuth(connection_string=SecretStr(CONNECTION_STRING)),
            id="connection string",
        ),
        pytest.param({"AUTH__MODE": "managed_identity"}, ManagedIdentityAuth(), id="system-assigned"),
        pytest.param(
            {"AUTH__MODE": "managed_identity", "AUTH__CLIENT_ID": "c"}, ManagedIdentityAuth(client_id="c"), id="client"
        ),
        pytest.param(
            {"AUTH__MODE": "managed_identity", "AUTH__OBJECT_ID": "o"}, ManagedIdentityAuth(object_id="o"), id="object"
        ),
        pytest.param(
            {"AUTH__MODE": "Managed_Identity", "AUTH__RESOURCE_ID": "/r"},
            ManagedIdentityAuth(resource_id="/r"),
            id="resource",
        ),
        pytest.param({"AUTH__MODE": "workload_identity"}, WorkloadIdentityAuth(), id="workload identity"),
        pytest.param(
            {"AUTH__MODE": "workload_identity", "AUTH__CLIENT_ID": "c"}, WorkloadIdentityAuth(client_id="c"), id="pod"
        ),
        pytest.param(
            {"AUTH__EXCLUDE": "azure_cli, Environment"}, DefaultAuth(exclude=("azure_cli", "environment")), id="exclude"
        ),
        pytest.param({"AUTH__MODE": "azure_cli"}, AzureCliAuth(), id="azure cli"),
        pytest.param(
            {"AUTH__MODE": "azure_cli", "!AZURE_COSMOS_KEY": "a2V5"}, AzureCliAuth(), id="somebody else's key"
        ),
        pytest.param({"!AZURE_COSMOS_KEY": "a2V5"}, KeyAuth(key=SecretStr("a2V5")), id="alias of the key"),
    ],
)
def test_ways_to_authenticate(places: Places, variables: dict[str, str], auth: object) -> None:
    """The mode is what is said, and without a word the key where there is one, otherwise the default credential."""
    for name, value in variables.items():
        places.put("environment", name[1:] if name.startswith("!") else f"{PREFIX}{name}", value)
    assert places.read(endpoint="https://contoso.documents.azure.com").auth == auth


def test_a_connection_string_names_the_account(places: Places) -> None:
    """It is enough by itself; the same endpoint written otherwise, or the embedded engine, may stand beside it."""
    places.put("environment", f"{PREFIX}AUTH__MODE", "connection_string")
    places.put("environment", f"{PREFIX}AUTH__CONNECTION_STRING", CONNECTION_STRING)
    settings = places.read()
    assert settings.endpoint == "https://contoso.documents.azure.com:443/"
    assert settings.require_key().get_secret_value() == "a2V5Cg=="
    assert "a2V5" not in repr(settings)
    for endpoint in ("https://Contoso.documents.azure.com", "embedded:"):
        assert places.read(endpoint=endpoint).endpoint == endpoint


def test_two_accounts_are_refused(places: Places) -> None:
    """An endpoint beside a connection string of another account is no question of precedence."""
    places.put("environment", f"{PREFIX}AUTH__MODE", "connection_string")
    places.put("environment", f"{PREFIX}AUTH__CONNECTION_STRING", CONNECTION_STRING)
    with pytest.raises(SettingsError, match="ENDPOINT is another account than COSMOS_WORKFLOW_STATE_AUTH__CONNECTION"):
        places.read(endpoint="https://fabrikam.documents.azure.com")


@pytest.mark.parametrize(
    "text",
    [
        "AccountEndpoint=https://contoso.documents.azure.com",
        "AccountKey=a2V5",
        "AccountEndpoint=http://contoso.documents.azure.com;AccountKey=a2V5",
        "AccountEndpoint=embedded:;AccountKey=a2V5",
        "AccountEndpoint=https://contoso.documents.azure.com;AccountKey=YWJ",
        "AccountEndpoint=https://contoso.documents.azure.com;AccountKey=",
        "AccountEndpoint=https://contoso.documents.azure.com;AccountKey=a2V5;DisableServerCertificateValidation=True",
    ],
)
def test_what_is_no_connection_string(places: Places, text: str) -> None:
    """A part that is missing, wrong or would switch a protection off is refused by the variable, without the key."""
    places.put("environment", f"{PREFIX}AUTH__MODE", "connection_string")
    places.put("environment", f"{PREFIX}AUTH__CONNECTION_STRING", text)
    (problem,) = places.refused()
    assert problem.startswith(f"{PREFIX}AUTH__CONNECTION_STRING in the environment is wrong: it takes the connection")
    assert "a2V5" not in problem


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        pytest.param(
            {"AUTH__MODE": "managed_identity", "KEY": "a2V5"},
            f"{PREFIX}KEY in the environment has no meaning for auth.mode=managed_identity: remove it, or set "
            f"{PREFIX}AUTH__MODE=key",
            id="key beside another mode",
        ),
        pytest.param(
            {"AUTH__CLIENT_ID": "c"},
            f"{PREFIX}AUTH__CLIENT_ID in the environment has no meaning for auth.mode=default: remove it, or set "
            f"{PREFIX}AUTH__MODE=managed_identity or workload_identity",
            id="identity without a mode",
        ),
        pytest.param(
            {"AUTH__MODE": "managed_identity", "AUTH__CLIENT_ID": "c", "AUTH__RESOURCE_ID": "r"},
            f"{PREFIX}AUTH__CLIENT_ID, {PREFIX}AUTH__OBJECT_ID, {PREFIX}AUTH__RESOURCE_ID are three names for one "
            "identity: set one of them, or none for the system-assigned identity",
            id="two identities",
        ),
        pytest.param(
            {"AUTH__MODE": "default", "AUTH__EXCLUDE": "azure_cli,cli"},
            f"{PREFIX}AUTH__EXCLUDE in the environment is wrong: it takes the credentials of the chain to pass over",
            id="no credential of the chain",
        ),
        pytest.param(
            {"AUTH__MODE": "connection_string"},
            f"{PREFIX}AUTH__CONNECTION_STRING is not set: it takes",
            id="no connection string",
        ),
        pytest.param(
            {"AUTH__MODE": "magic"},
            f"{PREFIX}AUTH__MODE in the environment is wrong: it takes the way to authenticate: `auto`",
            id="no mode",
        ),
    ],
)
def test_contradictions_are_refused(places: Places, variables: dict[str, str], said: str) -> None:
    """What does not fit the mode is an error that says what would."""
    for name, value in variables.items():
        places.put("environment", f"{PREFIX}{name}", value)
    (problem,) = places.refused()
    assert problem.startswith(said)


@pytest.mark.parametrize("place", PLACES[1:])
def test_empty_is_not_set(places: Places, place: str) -> None:
    """An empty value counts as not set: a weaker place, an alias or the default is used, unknown or not."""
    for name in ("ENDPOINT", "KEY", "LOG_LEVEL", "NO_SUCH_NAME"):
        places.put(place, f"{PREFIX}{name}", "")
    places.put("secrets", "AZURE_COSMOS_ENDPOINT", "embedded:theirs")
    settings = places.read()
    assert (settings.endpoint, settings.auth, settings.log_level) == ("embedded:theirs", DefaultAuth(), "warning")


@pytest.mark.parametrize("place", PLACES[1:])
def test_names_are_case_insensitive(places: Places, place: str) -> None:
    """Another spelling of a name is the same name, and the upper-case one wins over it."""
    places.put(place, "cosmos_workflow_state_endpoint", "embedded:lower")
    assert places.read().endpoint == "embedded:lower"
    places.put(place, f"{PREFIX}ENDPOINT", "embedded:upper")
    places.put(place, "Cosmos_Workflow_State_Endpoint", "embedded:mixed")
    assert places.read().endpoint == "embedded:upper"


def test_foreign_names_are_nobodys_business(places: Places) -> None:
    """Other names in any place are passed over, even malformed, undecodable or without a value."""
    places.dotenv.write_text(f"DJANGO_KEY=1\nnot a line at all\nexport {PREFIX}DATABASE='d'\n{PREFIX}KEY\n")
    (places.secrets / "..data").mkdir()
    (places.secrets / "certificate.pfx").write_bytes(b"\xff\xfe\x00")
    places.put("environment", "COSMOS_WORKFLOW", "x")
    settings = places.read(endpoint="embedded:")
    assert (settings.database, settings.auth) == ("d", DefaultAuth())


@pytest.mark.parametrize(
    ("place", "where"),
    [("environment", "the environment"), ("dotenv", ".env"), ("secrets", "the secrets directory")],
    ids=PLACES[1:],
)
def test_unknown_names_with_our_prefix_are_errors(places: Places, place: str, where: str) -> None:
    """A name with our prefix that nobody reads is an error by name, with the nearest name there is."""
    places.put(place, f"{PREFIX}DATABSE", "x")
    places.put(place, f"{PREFIX}AUTH", "x")
    assert sorted(places.refused()) == [
        f"{PREFIX}AUTH in {where} is unknown: did you mean {PREFIX}AUTH__KEY?",
        f"{PREFIX}DATABSE in {where} is unknown: did you mean {PREFIX}DATABASE?",
    ]


def test_every_problem_is_in_one_error(places: Places) -> None:
    """Unknown names and wrong values of all places, aliases among them, come in one error that says where."""
    places.put("environment", f"{PREFIX}MAX_PAYLOAD_BYTES", "lots")
    places.put("dotenv", f"{PREFIX}PROVISONING", "skip")
    places.put("dotenv", "AZURE_COSMOS_KEY", "not a key")
    places.put("secrets", f"{PREFIX}AUTH__MODE", "magic")
    places.put("secrets", "AZURE_COSMOS_DATABASE_NAME", "a/b")
    problems = places.refused()
    assert [problem.partition(":")[0] for problem in problems] == [
        f"{PREFIX}PROVISONING in .env is unknown",
        "AZURE_COSMOS_DATABASE_NAME in the secrets directory is wrong",
        f"{PREFIX}AUTH__MODE in the secrets directory is wrong",
        f"{PREFIX}MAX_PAYLOAD_BYTES in the environment is wrong",
    ]


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("{prefix}KEY:Ab1+/c==", id="colon instead of equals"),
        pytest.param("{prefix}KEYAb1+/c==", id="equals forgotten"),
        pytest.param("{prefix}KEYAb1c==", id="equals forgotten, letters only"),
    ],
)
def test_key_that_reads_as_a_name_is_not_shown(places: Places, line: str) -> None:
    """A slip in ``.env`` that turns the key into a part of the name is refused without showing it."""
    places.dotenv.write_text(line.format(prefix=PREFIX) + "\n")
    (problem,) = places.refused()
    assert "Ab1" not in problem
    assert "a name of " in problem


def test_secrets_directory_is_named_by_a_variable(places: Places, tmp_path: Path) -> None:
    """``COSMOS_WORKFLOW_STATE_SECRETS_DIR`` is taken from the environment and ``.env``; an argument beats it."""
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / f"{PREFIX}DATABASE").write_text("other")
    places.put("secrets", f"{PREFIX}DATABASE", "argument")
    places.put("dotenv", f"{PREFIX}SECRETS_DIR", str(tmp_path / "other"))
    assert CosmosStateSettings(endpoint="embedded:").database == "other"
    assert places.read(endpoint="embedded:").database == "argument"


def test_secrets_directory_cannot_name_itself(places: Places) -> None:
    """A file called like the directory's variable is out of place, not silently without effect."""
    places.put("secrets", f"{PREFIX}SECRETS_DIR", "/elsewhere")
    (problem,) = places.refused()
    assert problem.startswith(f"{PREFIX}SECRETS_DIR in the secrets directory is out of place")


def test_missing_secrets_directory_is_an_error(places: Places) -> None:
    """A secrets directory that is not there is an error that names the variable and not the path."""
    places.secrets.rmdir()
    (problem,) = places.refused()
    assert problem == (
        f"{PREFIX}SECRETS_DIR is wrong: it takes a directory that can be read; "
        f"for example {PREFIX}SECRETS_DIR=/run/secrets"
    )


def test_unreadable_files_are_errors(places: Places) -> None:
    """Files that are no text are named, and nothing of what they hold is shown or chained."""
    places.dotenv.write_bytes(b"A=\xff\xfe")
    (places.secrets / f"{PREFIX}DATABASE").write_bytes(b"\xff\xfe")
    (places.secrets / f"{PREFIX}KEY").mkdir()
    with pytest.raises(SettingsError) as caught:
        places.read(endpoint="embedded:")
    problems = [line.strip() for line in str(caught.value).splitlines()[1:]]
    assert problems[0] == f".env cannot be read: it takes UTF-8 text; for example {PREFIX}ENDPOINT=embedded:"
    assert sorted(problems[1:]) == [
        f"{PREFIX}{name} in the secrets directory cannot be read: it takes a file of UTF-8 text"
        for name in ("DATABASE", "KEY")
    ]
    assert caught.value.__context__ is None


def test_dotenv_can_be_elsewhere_or_nowhere(places: Places, tmp_path: Path) -> None:
    """``_env_file`` names another file, a byte order mark at its start does no harm, and None reads none."""
    places.put("dotenv", f"{PREFIX}DATABASE", "usual")
    (tmp_path / "other.env").write_text(f"\ufeff{PREFIX}DATABASE=other\n", "utf-8")
    databases = [CosmosStateSettings(endpoint="embedded:", _env_file=file).database for file in ("other.env", None)]
    assert databases == ["other", "workflow-state"]
