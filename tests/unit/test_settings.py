"""What settings accept, what they refuse, and that a refusal never repeats what was put in."""

from __future__ import annotations

import base64
import copy
import pickle
import re
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr, ValidationError

from cosmos_workflow_state._auth_settings import AUTH_FIELDS
from cosmos_workflow_state.errors import SettingsError
from cosmos_workflow_state.settings import MAX_PAYLOAD_BYTES, CosmosStateSettings, KeyAuth

ACCOUNT = "https://contoso.documents.azure.com:443/"
PREFIX = "COSMOS_WORKFLOW_STATE_"


@pytest.fixture(autouse=True)
def _no_settings_around(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("ENDPOINT", "KEY", "SECRETS_DIR"):
        monkeypatch.delenv(f"{PREFIX}{name}", raising=False)


KEY = base64.b64encode(bytes(range(64))).decode()
"""What the service makes as a key, pasted into the wrong place."""


def accepted(**arguments: Any) -> CosmosStateSettings:
    """Return the settings that these arguments make, on the embedded engine unless they say otherwise."""
    values: dict[str, Any] = {"endpoint": "embedded:", **arguments}
    return CosmosStateSettings(**values)


def refused(**arguments: Any) -> SettingsError:
    """Return the error that these arguments raise, on the embedded engine unless they say otherwise."""
    with pytest.raises(SettingsError) as caught:
        accepted(**arguments)
    return caught.value


def test_defaults_are_the_documented_ones() -> None:
    """With an endpoint alone, everything else has its documented default and no key is needed."""
    settings = CosmosStateSettings(endpoint=ACCOUNT)
    assert settings.model_dump(exclude={"tenant_id_pattern"}) == {
        "endpoint": ACCOUNT,
        "database": "workflow-state",
        "checkpoint_container": "checkpoints",
        "history_container": "history",
        "session_container": "sessions",
        "auth": {"mode": "default", "exclude": ()},
        "provisioning": "verify",
        "throughput": "serverless",
        "tenant_id_max_length": 128,
        "allowed_checkpoint_types": (),
        "max_payload_bytes": 64 * 1024 * 1024,
        "warn_bytes": 16 * 1024 * 1024,
        "checkpoint_ttl": None,
        "history_ttl": None,
        "session_ttl": None,
        "operation_timeout": 60.0,
        "on_undecodable": "skip",
        "log_level": "warning",
        "log_format": "console",
    }
    assert settings.tenant_id_pattern.pattern == "[A-Za-z0-9][A-Za-z0-9._@-]{0,127}"


@pytest.mark.parametrize(
    "endpoint",
    [
        "https://contoso.documents.azure.com:443/",
        "https://contoso.documents.azure.com",
        "HTTPS://Contoso.documents.azure.com",
        "https://cosmos_emulator:8081",
        "https://[2001:db8::1]:8081/",
        "http://localhost:8081/",
        "http://LOCALHOST",
        "http://127.0.0.1:8081",
        "http://127.255.0.9",
        "http://[::1]:8081",
        "embedded:",
        "embedded:state.db",
        "embedded:/var/lib/my state/state.db",
    ],
)
def test_endpoint_is_accepted(endpoint: str) -> None:
    """TLS anywhere, plain http to this machine, and both forms of the embedded engine are accepted unchanged."""
    assert CosmosStateSettings(endpoint=endpoint).endpoint == endpoint


@pytest.mark.parametrize(
    "endpoint",
    [
        "",
        "contoso.documents.azure.com",
        "https:",
        "https://",
        "https:///path",
        "https://:443",
        "https:/contoso.documents.azure.com",
        "ftp://contoso.documents.azure.com",
        "http://contoso.documents.azure.com",
        "http://localhost@evil.example",
        "http://localhost:8081@evil.example",
        "http://localhost.evil.example",
        "http://evil.example/localhost",
        "http://localhost\\@evil.example",
        "http://localhost\\.evil.example",
        "http://localhost\t.evil.example",
        "http://local\nhost",
        "http://127.0.0.1.evil.example",
        "http://127.1",
        "http://0177.0.0.1",
        "http://2130706433",
        "http://128.0.0.1",
        "http://0.0.0.0",
        "http://[::2]",
        "http://[::ffff:127.0.0.1]",
        "http://[::1",
        "http://ⓛocalhost",
        "https://user:password@contoso.documents.azure.com",
        "https://@contoso.documents.azure.com",
        "https://contoso.documents.azure.com/?a=b",
        "https://contoso.documents.azure.com?",
        "https://contoso.documents.azure.com/#a",
        "https://contoso.documents.azure.com#",
        "https://contoso.documents.azure.com/dbs",
        "https://contoso.documents.azure.com/;AccountKey=abc",
        "https://contoso.documents.azure.com;AccountKey=abc",
        "https://contoso.documents.azure.com:443;AccountKey=abc",
        "https://contoso.documents.azure.com:99999",
        "AccountEndpoint=https://contoso.documents.azure.com:443/;AccountKey=abc==;",
        " https://contoso.documents.azure.com",
        "EMBEDDED:",
        "embedded",
        "embedded: ",
        "embedded:state.db\n",
        "embedded:sta\0te.db",
        "embedded:///var/lib/state.db",
        "embedded:~no-such-user-anywhere/state.db",
    ],
)
def test_endpoint_is_refused(endpoint: str) -> None:
    """What is no endpoint, would send keys in clear to another host, or hides a part, is refused by name."""
    assert str(refused(endpoint=endpoint)) == (
        "1 setting is wrong:\n  COSMOS_WORKFLOW_STATE_ENDPOINT, here the argument endpoint, is wrong: it takes an "
        "https:// account endpoint without user, path or query, http:// for this machine only, `embedded:` (in "
        "memory) or `embedded:PATH` (a state file); for example "
        "COSMOS_WORKFLOW_STATE_ENDPOINT=https://contoso.documents.azure.com:443/ or "
        "COSMOS_WORKFLOW_STATE_ENDPOINT=embedded:state.db"
    )


def test_a_path_is_told_how_it_is_written() -> None:
    """A path object in place of the endpoint is called one, and how a path is written is said."""
    assert str(refused(endpoint=Path("my-state.db"))).startswith(
        "1 setting is wrong:\n  COSMOS_WORKFLOW_STATE_ENDPOINT, here the argument endpoint, is a path, which is "
        "written `embedded:PATH`: it takes an https:// account"
    )


@pytest.mark.parametrize(
    ("endpoint", "is_embedded", "path"),
    [
        pytest.param(ACCOUNT, False, None, id="account"),
        pytest.param("embedded:", True, None, id="in memory"),
        pytest.param("embedded:data/state.db", True, Path("data/state.db"), id="relative"),
        pytest.param("embedded:/data/state.db", True, Path("/data/state.db"), id="absolute"),
    ],
)
def test_endpoint_is_parsed(endpoint: str, *, is_embedded: bool, path: Path | None) -> None:
    """The parsed endpoint says whether it is the embedded engine and which file that uses."""
    settings = CosmosStateSettings(endpoint=endpoint)
    assert (settings.is_embedded, settings.embedded_path) == (is_embedded, path)


def test_embedded_path_expands_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """``~`` in the path of a state file is the home directory."""
    monkeypatch.setenv("HOME", "/home/someone")
    assert CosmosStateSettings(endpoint="embedded:~/state.db").embedded_path == Path("/home/someone/state.db")


def test_embedded_engine_always_creates() -> None:
    """The embedded engine creates its container whatever ``provisioning`` says; an account does what it says."""
    assert CosmosStateSettings(endpoint="embedded:", provisioning="skip").effective_provisioning == "create"
    assert CosmosStateSettings(endpoint=ACCOUNT, provisioning="skip").effective_provisioning == "skip"


@pytest.mark.parametrize(
    "auth",
    [KeyAuth(key=SecretStr("a2V5")), {"mode": "key", "key": "a2V5"}, {"mode": "KEY", "key": "a2V5"}, {"key": "a2V5"}],
    ids=["model", "dict", "mode in capitals", "no mode"],
)
def test_key_is_returned_when_it_is_required(auth: Any) -> None:
    """``require_key`` returns the key that was given as a model or as a mapping, whose mode is ``key`` by default."""
    assert CosmosStateSettings(endpoint=ACCOUNT, auth=auth).require_key().get_secret_value() == "a2V5"


def test_missing_key_is_named_when_it_is_required() -> None:
    """Settings need no key; ``require_key`` names the variable, what it takes and an example."""
    with pytest.raises(SettingsError) as caught:
        CosmosStateSettings(endpoint=ACCOUNT).require_key()
    assert str(caught.value) == (
        "1 setting is wrong:\n  COSMOS_WORKFLOW_STATE_KEY is not set: it takes the account key, base64 text as "
        "`az cosmosdb keys list` prints it; for example COSMOS_WORKFLOW_STATE_KEY=<primary key of the account>"
    )


@pytest.mark.parametrize(
    ("field", "value", "kept"),
    [
        pytest.param("database", "d" * 255, "d" * 255, id="longest name"),
        pytest.param("tenant_id_pattern", "[a-z]+", re.compile("[a-z]+"), id="pattern as text"),
        pytest.param("tenant_id_pattern", re.compile("x"), re.compile("x"), id="pattern compiled"),
        pytest.param("tenant_id_max_length", 1024, 1024, id="longest tenant id"),
        pytest.param("max_payload_bytes", "1", 1, id="smallest payload, as text"),
        pytest.param("max_payload_bytes", MAX_PAYLOAD_BYTES, MAX_PAYLOAD_BYTES, id="largest payload"),
        pytest.param("warn_bytes", 1, 1, id="smallest size that warns"),
        pytest.param("warn_bytes", MAX_PAYLOAD_BYTES, MAX_PAYLOAD_BYTES, id="no size that warns"),
        pytest.param("checkpoint_ttl", None, None, id="no time to live"),
        pytest.param("checkpoint_ttl", 1, 1, id="shortest time to live"),
        pytest.param("checkpoint_ttl", "2147483647", 2**31 - 1, id="longest time to live, as text"),
        pytest.param("operation_timeout", "0.5", 0.5, id="time of an operation, as text"),
        pytest.param("operation_timeout", 3600, 3600.0, id="longest time of an operation"),
        pytest.param("on_undecodable", "raise", "raise", id="on_undecodable"),
        pytest.param("log_level", "WARNING", "warning", id="level in capitals"),
        pytest.param("log_format", "json", "json", id="log_format"),
        pytest.param("log_format", "JSON", "json", id="log_format in capitals"),
        pytest.param("on_undecodable", "Raise", "raise", id="on_undecodable in capitals"),
        pytest.param("provisioning", "Create", "create", id="provisioning in capitals"),
        pytest.param("throughput", "Serverless", "serverless", id="throughput in capitals"),
        pytest.param("throughput", "manual:400", "manual:400", id="least manual throughput"),
        pytest.param("throughput", "autoscale:1000000", "autoscale:1000000", id="most throughput"),
        pytest.param("allowed_checkpoint_types", ["a.b:C.D"], ("a.b:C.D",), id="list of types"),
        pytest.param("allowed_checkpoint_types", " a:B , c:D ,", ("a:B", "c:D"), id="types with commas"),
        pytest.param("allowed_checkpoint_types", ' ["a:B", "c:D"]', ("a:B", "c:D"), id="types as JSON"),
        pytest.param("allowed_checkpoint_types", "", (), id="no types"),
    ],
)
def test_value_is_accepted(field: str, value: object, kept: object) -> None:
    """A value in any of its written forms is kept as the field's type."""
    assert getattr(accepted(**{field: value}), field) == kept


@pytest.mark.parametrize(
    ("field", "value"),
    [
        pytest.param("database", "", id="empty name"),
        pytest.param("database", "d" * 256, id="name too long"),
        pytest.param("database", "a/b", id="name with slash"),
        pytest.param("database", "ab ", id="name that ends in a blank"),
        pytest.param("checkpoint_container", "a#b", id="name with hash"),
        pytest.param("database", KEY, id="key in place of a database"),
        pytest.param("history_container", f"x{KEY}", id="key after a name"),
        pytest.param("tenant_id_pattern", KEY, id="key in place of a pattern"),
        pytest.param("checkpoint_container", "a\nb", id="name with line break"),
        pytest.param("provisioning", "destroy", id="provisioning"),
        pytest.param("throughput", "", id="empty throughput"),
        pytest.param("throughput", "400", id="throughput without a kind"),
        pytest.param("throughput", "manual", id="throughput without a number"),
        pytest.param("throughput", "manual:300", id="throughput too low"),
        pytest.param("throughput", "manual:450", id="manual throughput between steps"),
        pytest.param("throughput", "manual:٤00", id="throughput in other digits"),
        pytest.param("throughput", "autoscale:400", id="autoscale too low"),
        pytest.param("throughput", "autoscale:1500", id="autoscale between steps"),
        pytest.param("throughput", "autoscale:1001000", id="throughput too high"),
        pytest.param("throughput", "autoscale:1000 ", id="throughput with blank"),
        pytest.param("throughput", 400, id="throughput as number"),
        pytest.param("tenant_id_pattern", "[", id="pattern that does not compile"),
        pytest.param("tenant_id_max_length", 0, id="no tenant id at all"),
        pytest.param("tenant_id_max_length", 1025, id="tenant id too long"),
        pytest.param("max_payload_bytes", 0, id="no payload at all"),
        pytest.param("max_payload_bytes", MAX_PAYLOAD_BYTES + 1, id="payload too large"),
        pytest.param("max_payload_bytes", "64 MiB", id="payload with a unit"),
        pytest.param("warn_bytes", 0, id="every size warns"),
        pytest.param("warn_bytes", MAX_PAYLOAD_BYTES + 1, id="a size that cannot be"),
        pytest.param("checkpoint_ttl", 0, id="no time to live at all"),
        pytest.param("checkpoint_ttl", -1, id="time to live of the service for never"),
        pytest.param("checkpoint_ttl", 2**31, id="time to live too long"),
        pytest.param("checkpoint_ttl", 1.5, id="time to live with a fraction"),
        pytest.param("operation_timeout", 0, id="no time for an operation"),
        pytest.param("operation_timeout", 3600.1, id="too much time for an operation"),
        pytest.param("operation_timeout", float("inf"), id="all the time for an operation"),
        pytest.param("operation_timeout", float("nan"), id="a time that is no number"),
        pytest.param("on_undecodable", "ignore", id="on_undecodable"),
        pytest.param("log_level", "loud", id="log_level"),
        pytest.param("log_level", 10, id="log_level as number"),
        pytest.param("log_format", "xml", id="log_format"),
        pytest.param("allowed_checkpoint_types", "Invoice", id="type without module"),
        pytest.param("allowed_checkpoint_types", "a.b:", id="type without name"),
        pytest.param("allowed_checkpoint_types", "a:b:c", id="type with two colons"),
        pytest.param("allowed_checkpoint_types", "a-b:C", id="module that is no name"),
        pytest.param("allowed_checkpoint_types", ["a:B\n"], id="type with line break"),
        pytest.param("allowed_checkpoint_types", '["a:B"', id="JSON cut off"),
        pytest.param("allowed_checkpoint_types", "[1]", id="JSON of numbers"),
        pytest.param("allowed_checkpoint_types", "[" * 100_000, id="JSON without end"),
        pytest.param("allowed_checkpoint_types", 5, id="no types at all"),
    ],
)
def test_value_is_refused_by_name(field: str, value: object) -> None:
    """A wrong value is refused with the variable, what it takes and an example that is accepted itself."""
    variable = f"{PREFIX}{field.upper()}"
    error = str(refused(**{field: value}))
    assert error.startswith(f"1 setting is wrong:\n  {variable}, here the argument {field}, is wrong: it takes ")
    example = error.rpartition(f"; for example {variable}=")[2]
    assert accepted(**{field: example}).is_embedded


@pytest.mark.parametrize(
    ("auth", "variable"),
    [
        pytest.param({"mode": "key", "key": ""}, "KEY", id="empty key"),
        pytest.param({"mode": "key", "key": "two words"}, "KEY", id="key with blank"),
        pytest.param({"mode": "key", "key": "line\nbreak"}, "KEY", id="key with line break"),
        pytest.param({"mode": "key", "key": "Schlüssel"}, "KEY", id="key that is not ASCII"),
        pytest.param({"mode": "key", "key": 5}, "KEY", id="key that is a number"),
        pytest.param({"mode": "magic", "key": "a2V5"}, "AUTH__MODE", id="unknown mode"),
        pytest.param({"mode": 5, "key": "a2V5"}, "AUTH__MODE", id="mode that is a number"),
    ],
)
def test_auth_is_refused_by_name(auth: object, variable: str) -> None:
    """A wrong part of ``auth`` is refused by the variable of that part."""
    assert f"\n  {PREFIX}{variable}, here the argument auth." in str(refused(auth=auth))


@pytest.mark.parametrize("auth", ["a2V5", 5, object(), SecretStr("a2V5")], ids=lambda auth: type(auth).__name__)
def test_auth_that_has_no_parts_is_refused_as_a_whole(auth: object) -> None:
    """What is neither a model nor a mapping is no question of the mode; the error shows how it is written."""
    assert str(refused(auth=auth)) == (
        "1 setting is wrong:\n  argument auth is wrong: it takes a `KeyAuth` or another of the models for "
        "`auth`, or a mapping with the fields of one; for example auth=KeyAuth(key=...)"
    )


def test_arguments_that_belong_to_auth_are_sent_there() -> None:
    """A key given beside the endpoint is told where it goes."""
    assert str(refused(key="a2V5")) == (
        "1 setting is wrong:\n  argument key is unknown: did you mean auth=KeyAuth(key=...)?"
    )


@pytest.mark.parametrize("field", [*CosmosStateSettings.model_fields, *AUTH_FIELDS])
def test_descriptions_can_follow_it_takes(field: str) -> None:
    """What an error says a field takes begins with an article or another word that can stand there."""
    fields = {**CosmosStateSettings.model_fields, **AUTH_FIELDS}
    words = ("a ", "an ", "the ", "what ", "how ")
    assert (fields[field].description or "").startswith(words)


def test_missing_parts_are_named() -> None:
    """A missing endpoint and a missing key inside ``auth`` are each said to be not set."""
    with pytest.raises(SettingsError) as caught:
        CosmosStateSettings(auth={"mode": "key"}, _env_file=None)
    assert str(caught.value).startswith("2 settings are wrong:\n  COSMOS_WORKFLOW_STATE_ENDPOINT is not set: it takes")
    assert "\n  COSMOS_WORKFLOW_STATE_KEY is not set: it takes" in str(caught.value)


def test_unknown_arguments_are_named() -> None:
    """Arguments that do not exist are named, with the nearest that does; one not written like a name is not."""
    error = str(refused(databse="x", zzz=1, auth={"mode": "key", "key": "a2V5", "kee": "x"}, **{"Ab+/c=": 1}))
    assert error.splitlines()[1:] == [
        "  argument auth.kee is unknown: did you mean auth.key?",
        "  argument databse is unknown: did you mean database?",
        "  argument zzz is unknown",
        "  argument a name of 6 characters (not shown) is unknown",
    ]


def test_settings_are_frozen_and_show_no_key() -> None:
    """Neither settings nor key can be changed, and no repr, str or dump to JSON shows the key."""
    settings = CosmosStateSettings(endpoint=ACCOUNT, auth=KeyAuth(key=SecretStr("c2VjcmV0")))
    with pytest.raises(SettingsError, match=r"^CosmosStateSettings is frozen: database cannot be changed"):
        settings.database = "other"
    assert isinstance(settings.auth, KeyAuth)
    with pytest.raises(SettingsError, match=r"^KeyAuth is frozen: key cannot be changed"):
        settings.auth.key = SecretStr("b3RoZXI=")
    texts = (repr(settings), str(settings), settings.model_dump_json(), repr(settings.auth), str(settings.auth))
    assert all("c2VjcmV0" not in text for text in texts)


@pytest.mark.parametrize("change", ["set", "delete"])
@pytest.mark.parametrize("name", ["endpoint", "auth", "no_such_field", "_private", "auth.key", "Ab+/c="])
def test_a_change_that_is_refused_shows_no_value(name: str, change: str) -> None:
    """Assigning to and deleting from either model names the field only, in the error, its chain and our variables."""
    settings = CosmosStateSettings(endpoint=ACCOUNT, auth=KeyAuth(key=SecretStr("a2V5")))
    owner, _, field = name.rpartition(".")
    model = settings.auth if owner else settings
    with pytest.raises(SettingsError) as caught:
        setattr(model, field, "TOPSECRETKEY") if change == "set" else delattr(model, field)
    printed = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    ours = [frame for frame in printed.stack if "cosmos_workflow_state" in frame.filename]
    assert ours
    assert caught.value.__cause__ is caught.value.__context__ is None
    shown = [str(caught.value), *(value for frame in ours for value in (frame.locals or {}).values())]
    assert not any("TOPSECRETKEY" in text for text in shown)
    assert "Ab+/c=" not in str(caught.value)


def test_frozen_settings_can_be_copied_hashed_and_sent() -> None:
    """Refusing changes leaves alone what does not change anything."""
    settings = CosmosStateSettings(endpoint=ACCOUNT, auth=KeyAuth(key=SecretStr("a2V5")))
    copies = [copy.deepcopy(settings), settings.model_copy(), pickle.loads(pickle.dumps(settings))]  # noqa: S301 - own
    assert {*copies, settings} == {settings}


def test_key_given_wrongly_to_the_model_is_not_shown() -> None:
    """`KeyAuth` used by itself does not show a wrong key either."""
    with pytest.raises(ValidationError) as caught:
        KeyAuth(key=SecretStr("c2Vj cmV0"))
    assert "cmV0" not in str(caught.value)


WRONG: dict[str, Callable[[str], dict[str, Any]]] = {
    "endpoint": lambda text: {"endpoint": f"http://{text}"},
    "key": lambda text: {"auth": {"mode": "key", "key": f"{text} "}},
    "key as number": lambda text: {"auth": {"mode": "key", "key": [text]}},
    "mode": lambda text: {"auth": {"mode": text, "key": text}},
    "auth": lambda text: {"auth": text},
    "foreign auth field": lambda text: {"auth": {"mode": "key", "key": "a2V5", "extra": text}},
    "secondary key": lambda text: {"auth": {"key": "a2V5", "secondary_key": f"{text} "}},
    "connection string": lambda text: {"auth": {"mode": "connection_string", "connection_string": text}},
    "key of a connection string": lambda text: {
        "auth": {
            "mode": "connection_string",
            "connection_string": f"AccountEndpoint=https://contoso.documents.azure.com;AccountKey={text}!",
        }
    },
    "client id": lambda text: {"auth": {"mode": "managed_identity", "client_id": f"{text} x"}},
    "two identities": lambda text: {"auth": {"mode": "managed_identity", "client_id": "zqzq", "object_id": f"{text}!"}},
    "field of another mode": lambda text: {"auth": {"mode": "azure_cli", "client_id": text}},
    "exclude": lambda text: {"auth": {"exclude": [text]}},
    "throughput": lambda text: {"throughput": f"manual:{text}"},
    "database": lambda text: {"database": f"{text}/"},
    "provisioning": lambda text: {"provisioning": text},
    "pattern": lambda text: {"tenant_id_pattern": f"*{text}"},
    "number": lambda text: {"max_payload_bytes": f"{text}!"},
    "types": lambda text: {"allowed_checkpoint_types": f"{text}!"},
    "types as JSON": lambda text: {"allowed_checkpoint_types": f"[{text}"},
    "unknown argument": lambda text: {"no_such_setting": text},
}


@pytest.mark.parametrize(
    "names",
    [
        {"history_container": "both", "session_container": "both"},
        {"checkpoint_container": "history"},
        {"session_container": "checkpoints"},
    ],
)
def test_containers_are_not_shared(names: dict[str, str]) -> None:
    """Deleting a session's history would take parts of the session with it, whose key is the same."""
    error = str(refused(**names))
    assert all(f"COSMOS_WORKFLOW_STATE_{kind}_CONTAINER" in error for kind in ("CHECKPOINT", "HISTORY", "SESSION"))
    assert "name the same container twice" in error


def test_a_key_in_place_of_a_client_id() -> None:
    """It is not kept: it would be shown as an identifier."""
    assert "COSMOS_WORKFLOW_STATE_AUTH__CLIENT_ID" in str(refused(auth={"mode": "managed_identity", "client_id": KEY}))


def test_every_error_is_the_same_for_every_value() -> None:
    """An error is a constant of what is wrong where: it cannot depend on the value, so it cannot hold it."""
    for arguments in WRONG.values():
        assert str(refused(**arguments("first-secret"))) == str(refused(**arguments("another-secret-value")))


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
@given(secret=st.text(max_size=60).map(lambda text: f"zq{text}qz"))
def test_no_input_value_in_any_error(wrong: Callable[[str], dict[str, Any]], secret: str) -> None:
    """Text given wrongly occurs nowhere in the error: not in its text, chain, traceback or our frames' variables."""
    error = refused(**wrong(secret))
    printed = traceback.TracebackException.from_exception(error, capture_locals=True)
    ours = [frame for frame in printed.stack if "cosmos_workflow_state" in frame.filename]
    assert ours
    assert error.__cause__ is None
    assert error.__context__ is None
    shown = [str(error), repr(error), *traceback.format_exception(error)]
    shown += [value for frame in ours for value in (frame.locals or {}).values()]
    assert all(secret not in text and repr(secret)[1:-1] not in text for text in shown)


@pytest.mark.parametrize(
    "name",
    [
        "tenant_id_max_length",
        "max_payload_bytes",
        "warn_bytes",
        "checkpoint_ttl",
        "history_ttl",
        "session_ttl",
        "operation_timeout",
    ],
)
def test_a_boolean_is_no_number(name: str) -> None:
    """True would be one byte, or one second."""
    arguments: dict[str, Any] = {name: True}
    with pytest.raises(SettingsError, match=name.upper()):
        CosmosStateSettings(_env_file=None, endpoint="embedded:", **arguments)
