"""The errors that a user meets: one tree, attributes for programs, nothing lost on the way to another process."""

from __future__ import annotations

import copy
import inspect
import logging
import pickle
from typing import Any

import pytest
from agent_framework.exceptions import WorkflowCheckpointException

from cosmos_workflow_state import errors

WHICH: dict[str, Any] = {
    "tenant_id": "contoso",
    "scope": "session-42",
    "workflow_name": "invoice-approval",
    "checkpoint_id": "cp-1",
}
SESSION: dict[str, Any] = {"tenant_id": "contoso", "session_id": "session-42"}
SERVICE: dict[str, Any] = {
    "status_code": 429,
    "sub_status": 3200,
    "activity_id": "a-1",
    "retry_after": 0.5,
    "outcome_unknown": True,
}
BASES = {
    "CosmosStateError": (WorkflowCheckpointException,),
    "SettingsError": (errors.CosmosStateError, ValueError),
    "InvalidArgumentError": (errors.CosmosStateError, ValueError),
    "InvalidIdentifierError": (errors.CosmosStateError, ValueError),
    "FactoryClosedError": (errors.CosmosStateError,),
    "ProvisioningError": (errors.CosmosStateError,),
    "CheckpointError": (errors.CosmosStateError,),
    "CheckpointNotFoundError": (errors.CheckpointError,),
    "AmbiguousCheckpointError": (errors.CheckpointError,),
    "CheckpointCorruptError": (errors.CheckpointError,),
    "CheckpointNotRestorableError": (errors.CheckpointError,),
    "CheckpointTooLargeError": (errors.CheckpointError,),
    "CheckpointConflictError": (errors.CheckpointError,),
    "StateError": (errors.CosmosStateError,),
    "StateCorruptError": (errors.StateError,),
    "StateTooLargeError": (errors.StateError,),
    "StateNotRestorableError": (errors.StateError, TypeError, ValueError),
    "StateChangedError": (errors.StateError,),
    "StateConflictError": (errors.StateError,),
    "ServiceError": (errors.CosmosStateError,),
    "AccessDeniedError": (errors.ServiceError,),
    "ThrottledError": (errors.ServiceError,),
    "ServiceUnavailableError": (errors.ServiceError,),
    "OperationTimeoutError": (errors.ServiceError,),
}
EXAMPLES = [
    errors.SettingsError("wrong"),
    errors.InvalidArgumentError("refused"),
    errors.InvalidIdentifierError("refused"),
    errors.FactoryClosedError("closed"),
    errors.ProvisioningError("missing", problems=("one", "two")),
    errors.CheckpointNotFoundError("not there", **WHICH),
    errors.AmbiguousCheckpointError("several", **WHICH),
    errors.CheckpointCorruptError("damaged", **WHICH),
    errors.CheckpointNotRestorableError("refused", types=("a:B", "c:D"), **WHICH),
    errors.CheckpointTooLargeError("too large", size=3, limit=2, **WHICH),
    errors.CheckpointConflictError("raced", **WHICH),
    errors.StateCorruptError("damaged", **SESSION),
    errors.StateTooLargeError("too large", size=3, limit=2, **SESSION),
    errors.StateNotRestorableError("refused", **SESSION),
    errors.StateChangedError("changed", **SESSION),
    errors.StateConflictError("raced", **SESSION),
    errors.ServiceError("refused", **SERVICE),
    errors.AccessDeniedError("denied", remedy="do this", missing_actions=("a", "b"), **SERVICE),
    errors.ThrottledError("throttled", **SERVICE),
    errors.ServiceUnavailableError("away", **SERVICE),
    errors.OperationTimeoutError("late", timeout=1.5, outcome_unknown=True),
]


def test_tree() -> None:
    """Every public error is where the documentation puts it, and there are no others."""
    assert {name: getattr(errors, name).__bases__ for name in errors.__all__} == BASES


def test_all_is_every_error_and_is_drawn() -> None:
    """`__all__` holds every error of the module, sorted, and the drawing in its docstring names each once."""
    defined = [
        name
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, Exception) and value.__module__ == errors.__name__
    ]
    assert errors.__all__ == sorted(defined)
    drawing = (errors.__doc__ or "").split()
    assert {name: drawing.count(name) for name in errors.__all__} == dict.fromkeys(errors.__all__, 1)


def test_only_what_may_pass_by_itself_is_retryable() -> None:
    """`retryable` is true where the same call may succeed later, and nowhere else."""
    retryable = {name for name in errors.__all__ if getattr(errors, name).retryable}
    assert retryable == {
        "CheckpointConflictError",
        "OperationTimeoutError",
        "ServiceUnavailableError",
        "StateConflictError",
        "ThrottledError",
    }


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_attributes_survive_copying_and_pickling(error: errors.CosmosStateError) -> None:
    """An error that crosses to another process, as those of workers do, keeps its message and its attributes."""
    for other in (copy.copy(error), pickle.loads(pickle.dumps(error))):  # noqa: S301 - made right here
        assert type(other) is type(error)
        assert str(other) == str(error)
        assert vars(other) == vars(error)


@pytest.mark.parametrize(
    "error",
    [one for one in EXAMPLES if isinstance(one, errors.CheckpointError)],
    ids=lambda error: type(error).__name__,
)
def test_checkpoint_errors_say_which(error: errors.CheckpointError) -> None:
    """Tenant, scope, workflow and id are fields, not prose."""
    assert {name: getattr(error, name) for name in WHICH} == WHICH


def test_checkpoint_error_may_not_know_which() -> None:
    """What is not known is None."""
    assert vars(errors.CheckpointNotFoundError("not there")) == dict.fromkeys(WHICH)


def test_refused_types_are_named_in_the_message() -> None:
    """Whoever only sees the message can still act on it; without types the message stands alone."""
    assert str(errors.CheckpointNotRestorableError("refused", types=("a:B", "c:D"))) == "refused: a:B, c:D"
    assert str(errors.CheckpointNotRestorableError("refused")) == "refused"
    assert errors.CheckpointNotRestorableError("refused", types=("a:B",)).types == ("a:B",)


def test_sizes_and_problems_are_fields() -> None:
    """Numbers and remedies can be used without parsing prose."""
    too_large = errors.CheckpointTooLargeError("too large", size=3, limit=2)
    assert (too_large.size, too_large.limit) == (3, 2)
    assert errors.ProvisioningError("missing").problems == ()
    assert errors.ProvisioningError("missing", problems=("one",)).problems == ("one",)


def test_service_errors_keep_what_the_service_said() -> None:
    """Status, sub-status, activity id and pause are fields; unknown ones are None, a known outcome is the default."""
    assert vars(errors.ThrottledError("throttled", **SERVICE)) == SERVICE
    silent = dict.fromkeys(SERVICE) | {"outcome_unknown": False}
    assert vars(errors.ServiceUnavailableError("no answer")) == silent
    late = errors.OperationTimeoutError("late", timeout=1.5, outcome_unknown=True)
    assert vars(late) == silent | {"timeout": 1.5, "outcome_unknown": True}


def test_framework_does_not_log_our_errors(caplog: pytest.LogCaptureFixture) -> None:
    """The framework logs its exceptions when they are made; ours are logged once, where they are handled."""
    with caplog.at_level(logging.DEBUG):
        errors.CheckpointCorruptError("damaged", **WHICH)
    assert not caplog.records


@pytest.mark.parametrize(
    "error",
    [one for one in EXAMPLES if isinstance(one, errors.StateError)],
    ids=lambda error: type(error).__name__,
)
def test_session_errors_say_which(error: errors.StateError) -> None:
    """Tenant and session are fields, not prose."""
    assert {name: getattr(error, name) for name in SESSION} == SESSION
