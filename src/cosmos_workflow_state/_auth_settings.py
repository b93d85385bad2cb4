"""The ways to authenticate, as settings: one frozen model for each, told apart by ``mode``.

It makes no credential and reads no variable. No error made here holds a value.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from typing import Annotated, Final, Literal, Self, TypeAlias, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from ._endpoints import is_account_url
from ._settings_values import Frozen, fold_case, refuse_key, split_names

AUTO: Final = "auto"
SEVERAL_IDENTITIES: Final = "several_identities"
"""Kind of the error of a managed identity that is named in more than one way."""

ExcludedCredential: TypeAlias = Literal[
    "environment",
    "workload_identity",
    "managed_identity",
    "shared_token_cache",
    "visual_studio_code",
    "azure_cli",
    "azure_powershell",
    "azure_developer_cli",
]


def _check_key(secret: SecretStr) -> SecretStr:
    text = secret.get_secret_value()
    if not text.isascii() or not text.isprintable() or not text or " " in text:
        raise ValueError("not an account key")
    return secret


def _check_connection_string(secret: SecretStr) -> SecretStr:
    parts = _parts(secret)
    if set(parts) != {"accountendpoint", "accountkey"} or not is_account_url(parts["accountendpoint"]):
        raise ValueError("not a connection string")
    b64decode(_check_key(SecretStr(parts["accountkey"])).get_secret_value(), validate=True)
    return secret


def _parts(secret: SecretStr) -> dict[str, str]:
    # A key ends in "=", so only the first one of a part divides it.
    parts = (part.strip().partition("=") for part in secret.get_secret_value().split(";"))
    return {name.lower(): value for name, _, value in parts if name}


AccountKey: TypeAlias = Annotated[SecretStr, AfterValidator(_check_key)]
_ConnectionString: TypeAlias = Annotated[SecretStr, AfterValidator(_check_connection_string)]
_Identifier: TypeAlias = Annotated[
    str, Field(min_length=1, max_length=1024, pattern=r"^[\x21-\x7e]+$"), BeforeValidator(refuse_key)
]
_Excluded: TypeAlias = Annotated[
    tuple[Annotated[ExcludedCredential, BeforeValidator(fold_case)], ...], BeforeValidator(split_names)
]
_MODE: Final = "the way to authenticate: `{}`"
_CLIENT_ID: Final = "the client id of the user-assigned identity or, for a workload identity, of the application"
_RESOURCE_ID_EXAMPLE: Final = (
    "/subscriptions/<id>/resourceGroups/<group>/providers/Microsoft.ManagedIdentity/userAssignedIdentities/<name>"
)
_CLIENT_ID_EXAMPLE: Final = "8b7c5a52-0000-4000-8000-000000000000"


class _Auth(Frozen, BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class KeyAuth(_Auth):
    """Authentication with the account key."""

    mode: Literal["key"] = Field(default="key", description=_MODE.format("key"), examples=["key"])
    key: AccountKey = Field(
        description="the account key, base64 text as `az cosmosdb keys list` prints it",
        examples=["<primary key of the account>"],
    )
    secondary_key: AccountKey | None = Field(
        default=None,
        description="the account's other key, tried once when the service refuses the first",
        examples=["<secondary key of the account>"],
    )


class ConnectionStringAuth(_Auth):
    """Authentication with the account key of a connection string, which names the account as well."""

    mode: Literal["connection_string"] = Field(
        default="connection_string", description=_MODE.format("connection_string"), examples=["connection_string"]
    )
    connection_string: _ConnectionString = Field(
        description="the connection string, `AccountEndpoint=https://...;AccountKey=...;` and nothing else",
        examples=["AccountEndpoint=https://contoso.documents.azure.com:443/;AccountKey=<key>;"],
    )

    @property
    def endpoint(self) -> str:
        """The account's endpoint."""
        return _parts(self.connection_string)["accountendpoint"]

    @property
    def key(self) -> SecretStr:
        """The account key."""
        return SecretStr(_parts(self.connection_string)["accountkey"])


class ManagedIdentityAuth(_Auth):
    """Authentication as a managed identity of the machine: the system-assigned one, or the one that is named."""

    mode: Literal["managed_identity"] = Field(
        default="managed_identity", description=_MODE.format("managed_identity"), examples=["managed_identity"]
    )
    client_id: _Identifier | None = Field(
        default=None,
        description=_CLIENT_ID,
        examples=[_CLIENT_ID_EXAMPLE],
    )
    object_id: _Identifier | None = Field(
        default=None, description="the object id of a user-assigned identity", examples=[_CLIENT_ID_EXAMPLE]
    )
    resource_id: _Identifier | None = Field(
        default=None,
        description="the resource id of a user-assigned identity",
        examples=[_RESOURCE_ID_EXAMPLE],
    )

    @model_validator(mode="after")
    def _check_one(self) -> Self:
        if sum(name is not None for name in (self.client_id, self.object_id, self.resource_id)) > 1:
            raise PydanticCustomError(SEVERAL_IDENTITIES, "several identities")
        return self


class WorkloadIdentityAuth(_Auth):
    """Authentication with the token file of a pod; what is not set here, its webhook has put into the environment."""

    mode: Literal["workload_identity"] = Field(
        default="workload_identity", description=_MODE.format("workload_identity"), examples=["workload_identity"]
    )
    client_id: _Identifier | None = Field(
        default=None,
        description=_CLIENT_ID,
        examples=[_CLIENT_ID_EXAMPLE],
    )


class DefaultAuth(_Auth):
    """Authentication with the first of azure-identity's default credentials that gives a token."""

    mode: Literal["default"] = Field(default="default", description=_MODE.format("default"), examples=["default"])
    exclude: _Excluded = Field(
        default=(),
        description=(
            "the credentials of the chain to pass over, separated by commas or as a JSON list: `environment`, "
            "`workload_identity`, `managed_identity`, `shared_token_cache`, `visual_studio_code`, `azure_cli`, "
            "`azure_powershell`, `azure_developer_cli`"
        ),
        examples=["azure_cli,azure_powershell"],
    )


class AzureCliAuth(_Auth):
    """Authentication as whoever is logged in to the Azure CLI."""

    mode: Literal["azure_cli"] = Field(
        default="azure_cli", description=_MODE.format("azure_cli"), examples=["azure_cli"]
    )


Auth: TypeAlias = (
    KeyAuth | ConnectionStringAuth | ManagedIdentityAuth | WorkloadIdentityAuth | DefaultAuth | AzureCliAuth
)
"""The ways to authenticate, discriminated by ``mode``."""

AUTH_MODELS: Final[tuple[type[Auth], ...]] = (
    KeyAuth,
    ConnectionStringAuth,
    ManagedIdentityAuth,
    WorkloadIdentityAuth,
    DefaultAuth,
    AzureCliAuth,
)
_ANY_MODE: Final = FieldInfo(
    annotation=str,
    default=AUTO,
    description=(
        "the way to authenticate: `auto` (`key` where a key is set, otherwise `default`), "
        + ", ".join(f"`{model.model_fields['mode'].default}`" for model in AUTH_MODELS[:-1])
        + f" or `{AUTH_MODELS[-1].model_fields['mode'].default}`"
    ),
    examples=["managed_identity"],
)
AUTH_FIELDS: Final[Mapping[str, FieldInfo]] = {
    **{name: field for model in reversed(AUTH_MODELS) for name, field in model.model_fields.items()},
    "mode": _ANY_MODE,
}
"""Every field of every mode once, by name; of ``mode`` what it takes as a whole."""


def complete_auth(value: object) -> object:
    """Return what was given with its mode decided: ``auto`` is ``key`` where a key is set, otherwise ``default``."""
    if value is None:
        return DefaultAuth()
    if not isinstance(value, Mapping):
        return value
    fields = cast("Mapping[object, object]", value)
    mode = fold_case(fields.get("mode", AUTO))
    if mode == AUTO:
        mode = "key" if fields.get("key") is not None else "default"
    return {**fields, "mode": mode}


def endpoint_of(auth: object) -> Mapping[str, str]:
    """Return the setting ``endpoint`` if what was given for ``auth`` is a connection string; else nothing."""
    try:
        found = _WITH_MODE.validate_python(auth)
    except ValidationError:
        return {}
    return {"endpoint": found.endpoint} if isinstance(found, ConnectionStringAuth) else {}


def modes_with(field: str) -> tuple[str, ...]:
    """Return the modes that have a field of this name."""
    return tuple(model.model_fields["mode"].default for model in AUTH_MODELS if field in model.model_fields)


_WITH_MODE: Final[TypeAdapter[Auth]] = TypeAdapter(
    Annotated[Auth, Field(discriminator="mode"), BeforeValidator(complete_auth)]
)
