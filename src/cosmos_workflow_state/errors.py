"""The errors a user of this package can meet. Prose first for people, attributes for programs.

::

    CosmosStateError                        everything below
    ├── SettingsError                       (also ValueError) a setting is wrong or missing
    ├── InvalidArgumentError                (also ValueError) a limit, a time or a time to live is refused
    ├── InvalidIdentifierError              (also ValueError) a tenant id, scope, workflow name or id is refused
    ├── FactoryClosedError                  the factory was closed, or belongs to another event loop
    ├── ProvisioningError                   the container is missing or not shaped as it must be
    ├── CheckpointError
    │   ├── CheckpointNotFoundError         no such checkpoint in this tenant and scope
    │   ├── AmbiguousCheckpointError        the id exists in several workflows
    │   ├── CheckpointCorruptError          stored, but what is stored cannot be trusted or read
    │   ├── CheckpointNotRestorableError    load would refuse it: the types are named
    │   ├── CheckpointTooLargeError         over the limit for one item, or over ``max_payload_bytes``
    │   └── CheckpointConflictError         other writers kept replacing the same checkpoint
    ├── StateError                          about a session or its messages
    │   ├── StateCorruptError               stored, but what is stored cannot be trusted or read
    │   ├── StateTooLargeError              over ``max_payload_bytes``
    │   ├── StateNotRestorableError         (also TypeError and ValueError) a session that ``get`` would refuse
    │   ├── StateChangedError               it is no longer the version that was to be replaced
    │   └── StateConflictError              other writers kept coming first
    └── ServiceError                        the service refused, throttled or could not be reached
        ├── AccessDeniedError               401 or 403
        ├── ThrottledError                  429, after the retries
        ├── ServiceUnavailableError         5xx, dropped connection, no answer: the outcome may be unknown
        └── OperationTimeoutError           ``operation_timeout`` has passed: the outcome may be unknown

Every error is a ``WorkflowCheckpointException`` of Microsoft Agent Framework: its runner passes that class through and
wraps all others, which would hide ``retryable``. No message and no attribute holds a key, a token or checkpoint state.
"""

from __future__ import annotations

from typing import TypedDict, Unpack

from agent_framework.exceptions import WorkflowCheckpointException

__all__ = [
    "AccessDeniedError",
    "AmbiguousCheckpointError",
    "CheckpointConflictError",
    "CheckpointCorruptError",
    "CheckpointError",
    "CheckpointNotFoundError",
    "CheckpointNotRestorableError",
    "CheckpointTooLargeError",
    "CosmosStateError",
    "FactoryClosedError",
    "InvalidArgumentError",
    "InvalidIdentifierError",
    "OperationTimeoutError",
    "ProvisioningError",
    "ServiceError",
    "ServiceUnavailableError",
    "SettingsError",
    "StateChangedError",
    "StateConflictError",
    "StateCorruptError",
    "StateError",
    "StateNotRestorableError",
    "StateTooLargeError",
    "ThrottledError",
]


class CosmosStateError(WorkflowCheckpointException):
    """Base of every error of this package.

    Attributes:
        retryable: True when the same call, repeated later and unchanged, may succeed.
    """

    retryable: bool = False

    def __init__(self, message: str) -> None:
        """Keep the message; the framework's own debug log of it is left off, ours logs once, where it is handled."""
        super().__init__(message, log_level=None)


class SettingsError(CosmosStateError, ValueError):
    """A setting is wrong or missing. The message names the variable, what it takes and an example, never its value."""


class InvalidArgumentError(CosmosStateError, ValueError):
    """A limit, a time or a time to live is refused before anything is sent; the message names it and what it takes."""


class InvalidIdentifierError(CosmosStateError, ValueError):
    """A tenant id, scope, workflow name or checkpoint id is refused before anything is sent."""


class FactoryClosedError(CosmosStateError):
    """The factory behind this storage was closed, or is used on another event loop than the one it lives on."""


class ProvisioningError(CosmosStateError):
    """The database or container is missing, or the container is not shaped as this package needs it.

    Attributes:
        problems: One sentence for each difference found, remedy included.
    """

    def __init__(self, message: str, *, problems: tuple[str, ...] = ()) -> None:
        """Keep the problems beside the message."""
        super().__init__(message)
        self.problems = problems


class CheckpointFields(TypedDict, total=False):
    """Which checkpoint an error is about."""

    tenant_id: str | None
    scope: str | None
    workflow_name: str | None
    checkpoint_id: str | None


class CheckpointError(CosmosStateError):
    """Base of the errors about one checkpoint.

    Attributes:
        tenant_id: The tenant that was asked.
        scope: The scope inside the tenant, ``""`` for none.
        workflow_name: The workflow, where it is known.
        checkpoint_id: The checkpoint, where it is known.
    """

    def __init__(
        self,
        message: str,
        *,
        tenant_id: str | None = None,
        scope: str | None = None,
        workflow_name: str | None = None,
        checkpoint_id: str | None = None,
    ) -> None:
        """Keep which checkpoint it was as fields."""
        super().__init__(message)
        self.tenant_id = tenant_id
        self.scope = scope
        self.workflow_name = workflow_name
        self.checkpoint_id = checkpoint_id


class CheckpointNotFoundError(CheckpointError):
    """No checkpoint with this id in this tenant and scope; another tenant's checkpoint reads the same."""


class AmbiguousCheckpointError(CheckpointError):
    """Several workflows of the tenant have a checkpoint with this id; narrow with ``for_workflow(name)``."""


class CheckpointCorruptError(CheckpointError):
    """The checkpoint is there, but what is stored is damaged, foreign or of an unknown version."""


class CheckpointNotRestorableError(CheckpointError):
    """The state holds values that ``load`` would refuse or cannot rebuild.

    Attributes:
        types: ``module:qualname`` of each type that is the reason, where it could be found.
    """

    def __init__(self, message: str, *, types: tuple[str, ...] = (), **which: Unpack[CheckpointFields]) -> None:
        """Keep the types beside the message, and name them in it."""
        super().__init__(f"{message}: {', '.join(types)}" if types else message, **which)
        self.types = types


class CheckpointTooLargeError(CheckpointError):
    """The checkpoint is over a size limit.

    Attributes:
        size: Bytes found.
        limit: Bytes allowed.
    """

    def __init__(self, message: str, *, size: int = 0, limit: int = 0, **which: Unpack[CheckpointFields]) -> None:
        """Keep the two sizes as fields."""
        super().__init__(message, **which)
        self.size = size
        self.limit = limit


class CheckpointConflictError(CheckpointError):
    """Other writers replaced or deleted this checkpoint at every try of this save, delete or read of the latest."""

    retryable = True


class StateFields(TypedDict, total=False):
    """Which session an error is about."""

    tenant_id: str | None
    session_id: str | None


class StateError(CosmosStateError):
    """Base of the errors about one session or its messages.

    Attributes:
        tenant_id: The tenant that was asked.
        session_id: The session, where it is known.
    """

    def __init__(self, message: str, *, tenant_id: str | None = None, session_id: str | None = None) -> None:
        """Keep which session it was as fields."""
        super().__init__(message)
        self.tenant_id = tenant_id
        self.session_id = session_id


class StateCorruptError(StateError):
    """It is there, but what is stored is damaged or of an unknown version."""


class StateTooLargeError(StateError):
    """A session or a message is over a size limit.

    Attributes:
        size: Bytes found.
        limit: Bytes allowed.
    """

    def __init__(self, message: str, *, size: int = 0, limit: int = 0, **which: Unpack[StateFields]) -> None:
        """Keep the two sizes as fields."""
        super().__init__(message, **which)
        self.size = size
        self.limit = limit


class StateChangedError(StateError):
    """Another writer has replaced or deleted the version that was to be replaced: read again, and decide anew."""


class StateConflictError(StateError):
    """Other writers came first at every try of this save."""

    retryable = True


class StateNotRestorableError(StateError, TypeError, ValueError):
    """The session or a message holds a value that could not be restored, or is none that can be; the text says where.

    Also a TypeError and a ValueError, which are what the framework's own stores raise.
    """


class ServiceFields(TypedDict, total=False):
    """What the service said."""

    status_code: int | None
    sub_status: int | None
    activity_id: str | None
    retry_after: float | None
    outcome_unknown: bool


class ServiceError(CosmosStateError):
    """The service answered with an error, or did not answer.

    Attributes:
        status_code: HTTP status, or None when there was no answer.
        sub_status: Cosmos DB's sub-status, or None.
        activity_id: What Microsoft's support asks for, or None.
        retry_after: Seconds the service asks to wait, or None.
        outcome_unknown: True when a write may have been applied although this error is raised.
    """

    def __init__(  # noqa: PLR0913 - each is a field of the service's answer, by keyword
        self,
        message: str,
        *,
        status_code: int | None = None,
        sub_status: int | None = None,
        activity_id: str | None = None,
        retry_after: float | None = None,
        outcome_unknown: bool = False,
    ) -> None:
        """Keep what the service said as fields."""
        super().__init__(message)
        self.status_code = status_code
        self.sub_status = sub_status
        self.activity_id = activity_id
        self.retry_after = retry_after
        self.outcome_unknown = outcome_unknown


class AccessDeniedError(ServiceError):
    """401 or 403: the key or identity is not accepted, or lacks the right.

    Attributes:
        remedy: What to do, with commands on lines of their own; the message ends with it. Empty where nothing is known.
        missing_actions: The data actions of a role that whoever asked has not been given.
    """

    def __init__(
        self,
        message: str,
        *,
        remedy: str = "",
        missing_actions: tuple[str, ...] = (),
        **answer: Unpack[ServiceFields],
    ) -> None:
        """Keep the remedy beside the message, and end the message with it."""
        super().__init__(f"{message}\n{remedy}" if remedy else message, **answer)
        self.remedy = remedy
        self.missing_actions = missing_actions


class ThrottledError(ServiceError):
    """429: more request units a second were asked for than are provisioned, also after the retries."""

    retryable = True


class ServiceUnavailableError(ServiceError):
    """The service could not be reached, dropped the connection or answered 408, 410, 449 or 5xx, also after retries."""

    retryable = True


class OperationTimeoutError(ServiceError):
    """An operation took longer than ``operation_timeout`` and was given up.

    Attributes:
        timeout: Seconds it had.
    """

    retryable = True

    def __init__(self, message: str, *, timeout: float = 0.0, outcome_unknown: bool = False) -> None:
        """Keep the seconds beside the message; no answer of the service belongs to it."""
        super().__init__(message, outcome_unknown=outcome_unknown)
        self.timeout = timeout
