"""What can be configured: one frozen model from arguments, environment, ``.env`` and a secrets directory.

Every failure is one `SettingsError` that lists each wrong variable with what it takes and an example. No
input value is ever part of an error, of its chain, or of the local variables of the frames it leaves
through here: a key pasted into the wrong variable must not reach a log.

Precedence, strongest first: arguments by field name, then variables of ours from the environment, ``.env``
and the secrets directory, then the ``AZURE_COSMOS_*`` aliases from the same three places. An alias counts
only where no variable of ours is set. An empty value counts as not set.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, TypeAlias, TypedDict, Unpack

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from ._auth_settings import (
    Auth,
    AzureCliAuth,
    ConnectionStringAuth,
    DefaultAuth,
    KeyAuth,
    ManagedIdentityAuth,
    WorkloadIdentityAuth,
    complete_auth,
    endpoint_of,
)
from ._definitions import CONTAINERS, ContainerDefinition
from ._endpoints import EMBEDDED, check_endpoint, is_same_account, refuse_path
from ._settings_problems import ONE_CONTAINER, TWO_ACCOUNTS, Wording, error_of
from ._settings_sources import KEY_VARIABLE, PathText, read
from ._settings_values import Frozen, fold_case, refuse_key, split_names
from ._throughput import check_throughput
from .errors import SettingsError

__all__ = [
    "MAX_OPERATION_TIMEOUT",
    "MAX_PAYLOAD_BYTES",
    "MAX_TTL",
    "AzureCliAuth",
    "ConnectionStringAuth",
    "CosmosStateSettings",
    "DefaultAuth",
    "KeyAuth",
    "ManagedIdentityAuth",
    "SettingOrigin",
    "WorkloadIdentityAuth",
    "read_origins",
]

MAX_PAYLOAD_BYTES: Final = 64 * 1024 * 1024
"""Bytes of one checkpoint before compression, at most: a bound on the memory one load may take."""

MAX_TTL: Final = 2**31 - 1
"""Seconds after which an item may expire, at most (https://learn.microsoft.com/azure/cosmos-db/time-to-live)."""

MAX_OPERATION_TIMEOUT: Final = 3600.0
"""Seconds that one operation may take, at most: what a save uploads first is not swept away before that has passed."""

_NAME: Final = r"[^\W\d]\w*(?:\.[^\W\d]\w*)*"
_TypeName: TypeAlias = Annotated[str, Field(pattern=f"^{_NAME}:{_NAME}$")]

Endpoint: TypeAlias = Annotated[str, BeforeValidator(refuse_path), AfterValidator(check_endpoint)]
# Names of databases and containers: https://learn.microsoft.com/azure/cosmos-db/concepts-limits
# What turns a line or breaks it (controls, separators, bidirectional marks) is no name to be printed anywhere either.
_NOT_IN_NAMES: Final = r"/\\?#\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069"
ResourceName: TypeAlias = Annotated[
    str,
    Field(max_length=255, pattern=rf"^[^{_NOT_IN_NAMES}]*[^{_NOT_IN_NAMES} ]$"),
    BeforeValidator(refuse_key),
]
TypeNames: TypeAlias = Annotated[tuple[_TypeName, ...], BeforeValidator(split_names)]
Provisioning: TypeAlias = Annotated[Literal["verify", "create", "skip"], BeforeValidator(fold_case)]
ThroughputText: TypeAlias = Annotated[str, AfterValidator(check_throughput)]
OnUndecodable: TypeAlias = Annotated[Literal["skip", "raise"], BeforeValidator(fold_case)]
TtlSeconds: TypeAlias = Annotated[int, Field(ge=1, le=MAX_TTL)]
LogLevel: TypeAlias = Annotated[Literal["debug", "info", "warning", "error", "critical"], BeforeValidator(fold_case)]
LogFormat: TypeAlias = Annotated[Literal["console", "json"], BeforeValidator(fold_case)]


class _Arguments(TypedDict, total=False):
    endpoint: str
    database: str
    checkpoint_container: str
    history_container: str
    session_container: str
    auth: Auth | Mapping[str, object] | None
    provisioning: Provisioning
    throughput: str
    tenant_id_pattern: str | re.Pattern[str]
    tenant_id_max_length: int
    allowed_checkpoint_types: Iterable[str]
    max_payload_bytes: int
    warn_bytes: int
    checkpoint_ttl: int | None
    history_ttl: int | None
    session_ttl: int | None
    operation_timeout: float
    on_undecodable: Literal["skip", "raise"]
    log_level: str
    log_format: Literal["console", "json"]


class CosmosStateSettings(Frozen, BaseSettings):
    """Everything `CosmosStateFactory` needs to know. Frozen; its repr shows no key.

    Every field is read from ``COSMOS_WORKFLOW_STATE_`` and its name, nested ones joined by ``__``
    (``COSMOS_WORKFLOW_STATE_AUTH__KEY``); the account key also from ``COSMOS_WORKFLOW_STATE_KEY``. The
    names of Microsoft Agent Framework's own package are accepted: ``AZURE_COSMOS_ENDPOINT``,
    ``AZURE_COSMOS_KEY``, ``AZURE_COSMOS_DATABASE_NAME``.
    """

    model_config = SettingsConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    endpoint: Endpoint = Field(
        description=(
            "an https:// account endpoint without user, path or query, http:// for this machine only, "
            "`embedded:` (in memory) or `embedded:PATH` (a state file)"
        ),
        examples=["https://contoso.documents.azure.com:443/", "embedded:state.db"],
    )
    database: ResourceName = Field(
        default="workflow-state",
        description="a database name, 1 to 255 characters without / \\ ? # and controls, and no blank at its end",
        examples=["workflow-state"],
    )
    checkpoint_container: ResourceName = Field(
        default="checkpoints",
        description="a container name, 1 to 255 characters without / \\ ? # and controls, and no blank at its end",
        examples=["checkpoints"],
    )
    history_container: ResourceName = Field(
        default="history",
        description="a container name, 1 to 255 characters without / \\ ? # and controls, and no blank at its end",
        examples=["history"],
    )
    session_container: ResourceName = Field(
        default="sessions",
        description="a container name, 1 to 255 characters without / \\ ? # and controls, and no blank at its end",
        examples=["sessions"],
    )
    auth: Annotated[Auth, Field(discriminator="mode"), BeforeValidator(complete_auth)] = Field(
        default=DefaultAuth(),
        description="a `KeyAuth` or another of the models for `auth`, or a mapping with the fields of one",
        examples=["KeyAuth(key=...)"],
    )
    provisioning: Provisioning = Field(
        default="verify",
        description="what to do about the container: `verify`, `create` or `skip`",
        examples=["verify"],
    )
    throughput: ThroughputText = Field(
        default="serverless",
        description=(
            "what a container is created with, in request units a second: `serverless` for nothing, `manual:` and "
            "hundreds from 400 up, or `autoscale:` and thousands from 1000 up"
        ),
        examples=["autoscale:1000"],
    )
    tenant_id_pattern: Annotated[re.Pattern[str], BeforeValidator(refuse_key)] = Field(
        default=re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,127}"),
        description="a regular expression that must match tenant ids as a whole",
        examples=["[a-z0-9-]+"],
    )
    tenant_id_max_length: int = Field(
        default=128,
        ge=1,
        le=1024,
        description="how many characters a tenant id may have, 1 to 1024",
        examples=["128"],
    )
    allowed_checkpoint_types: TypeNames = Field(
        default=(),
        description="the types a checkpoint may hold, `module:qualname`, separated by commas or as a JSON list",
        examples=["billing.models:Invoice,billing.models:Approval"],
    )
    max_payload_bytes: int = Field(
        default=MAX_PAYLOAD_BYTES,
        ge=1,
        le=MAX_PAYLOAD_BYTES,
        description=f"how many bytes a checkpoint may have before compression, 1 to {MAX_PAYLOAD_BYTES}",
        examples=["8388608"],
    )
    warn_bytes: int = Field(
        default=MAX_PAYLOAD_BYTES // 4,
        ge=1,
        le=MAX_PAYLOAD_BYTES,
        description=f"how many bytes before compression make a save warn, 1 to {MAX_PAYLOAD_BYTES}",
        examples=["4194304"],
    )
    checkpoint_ttl: TtlSeconds | None = Field(
        default=None,
        description=f"how many seconds after its save a checkpoint expires, 1 to {MAX_TTL}; never when it is not set",
        examples=["2592000"],
    )
    history_ttl: TtlSeconds | None = Field(
        default=None,
        description=f"how many seconds after its save a message expires, 1 to {MAX_TTL}; never when it is not set",
        examples=["2592000"],
    )
    session_ttl: TtlSeconds | None = Field(
        default=None,
        description=f"how many seconds after its last save a session expires, 1 to {MAX_TTL}; never when it is not set",
        examples=["2592000"],
    )
    operation_timeout: float = Field(
        default=60.0,
        gt=0,
        le=MAX_OPERATION_TIMEOUT,
        description=f"how many seconds one operation may take, retries included, above 0, to {MAX_OPERATION_TIMEOUT:g}",
        examples=["20"],
    )
    on_undecodable: OnUndecodable = Field(
        default="skip",
        description="what lists and iterators do about a checkpoint they cannot read: `skip` or `raise`",
        examples=["skip"],
    )
    log_level: LogLevel = Field(
        default="warning",
        description="the level of the command line's log: `debug`, `info`, `warning`, `error` or `critical`",
        examples=["info"],
    )
    log_format: LogFormat = Field(
        default="console",
        description="the format of the command line's log: `console` or `json`",
        examples=["console"],
    )

    @field_validator(
        "tenant_id_max_length",
        "max_payload_bytes",
        "warn_bytes",
        "checkpoint_ttl",
        "history_ttl",
        "session_ttl",
        "operation_timeout",
        mode="before",
    )
    @classmethod
    def _refuse_bool(cls, value: object) -> object:
        if isinstance(value, bool):
            raise ValueError("not a number")  # noqa: TRY004 - pydantic takes no TypeError; the message is not shown
        return value

    def __init__(
        self,
        *,
        _env_file: PathText | None = ".env",
        _secrets_dir: PathText | None = None,
        **arguments: Unpack[_Arguments],
    ) -> None:
        """Read the settings.

        Args:
            _env_file: The ``.env`` file; None reads none, one that does not exist is passed over.
            _secrets_dir: A directory of files named like the variables; None for the one that
                ``COSMOS_WORKFLOW_STATE_SECRETS_DIR`` names, if any.
            **arguments: Values by field name, stronger than every other source.

        Raises:
            SettingsError: Something is wrong, missing or unknown; the message lists all of it.
        """
        sources = read(type(self), _env_file, _secrets_dir)
        values: dict[str, Any] = {**sources.values, **arguments}
        values = {**endpoint_of(values.get("auth")), **values}
        problems = list(sources.problems)
        try:
            super().__init__(**values)
        except ValidationError as error:
            problems += _WORDING.problems(error, sources.origins, arguments)
        # Error trackers record the local variables of frames: the values must not reach them either.
        del sources, values, arguments
        # Raised out here, where pydantic's error is no longer being handled and cannot become the context.
        if problems:
            raise error_of(problems)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Keep the arguments as the only source: ``__init__`` has put what it read among them."""
        del settings_cls, env_settings, dotenv_settings, file_secret_settings
        return (init_settings,)

    @model_validator(mode="after")
    def _check_one_account(self) -> Self:
        auth = self.auth
        if isinstance(auth, ConnectionStringAuth) and not (
            self.is_embedded or is_same_account(self.endpoint, auth.endpoint)
        ):
            raise PydanticCustomError(TWO_ACCOUNTS, "two accounts")
        return self

    @model_validator(mode="after")
    def _check_containers(self) -> Self:
        if len({self.name_of(definition) for definition in CONTAINERS}) < len(CONTAINERS):
            raise PydanticCustomError(ONE_CONTAINER, "one container")
        return self

    @property
    def is_embedded(self) -> bool:
        """True when the endpoint is the embedded engine."""
        return self.endpoint.startswith(EMBEDDED)

    @property
    def embedded_path(self) -> Path | None:
        """The state file of the embedded engine, ``~`` expanded; None in memory and for an account."""
        target = self.endpoint.removeprefix(EMBEDDED) if self.is_embedded else ""
        return Path(target).expanduser() if target else None

    @property
    def effective_provisioning(self) -> Provisioning:
        """What is done about the container: the embedded engine always creates it, nobody else could."""
        return "create" if self.is_embedded else self.provisioning

    def name_of(self, definition: ContainerDefinition) -> str:
        """Return the name of the container of a kind."""
        return str(getattr(self, definition.setting))

    def require_key(self) -> SecretStr:
        """Return the account key, for what an identity may not do.

        Raises:
            SettingsError: No key is set.
        """
        if isinstance(self.auth, KeyAuth | ConnectionStringAuth):
            return self.auth.key
        raise auth_error("key", f"{KEY_VARIABLE} is not set")


@dataclass(frozen=True, slots=True)
class SettingOrigin:
    """Where the value of a setting was read.

    Attributes:
        variable: The variable, as ours or one of the aliases.
        place: ``the environment``, ``.env`` or ``the secrets directory``.
    """

    variable: str
    place: str


def read_origins(
    *, _env_file: PathText | None = ".env", _secrets_dir: PathText | None = None
) -> Mapping[str, SettingOrigin]:
    """Return where `CosmosStateSettings` built with the same two arguments reads each setting.

    By its name, ``auth.key`` for a nested one; what is not there has its default, or was an argument.

    Args:
        _env_file: The ``.env`` file; None for none.
        _secrets_dir: The secrets directory; None for the one that ``COSMOS_WORKFLOW_STATE_SECRETS_DIR`` names, if any.
    """
    origins = read(CosmosStateSettings, _env_file, _secrets_dir).origins
    parts = {".".join(path): origin.partition(" in ") for path, origin in origins.items()}
    return {name: SettingOrigin(variable, place) for name, (variable, _, place) in parts.items()}


def auth_error(field: str, fault: str) -> SettingsError:
    """Return the error about a field of ``auth``; ``fault`` is the first part of its sentence."""
    return error_of([_WORDING.sentence(("auth", field), fault)])


_WORDING: Final = Wording(CosmosStateSettings.model_fields)
