"""Failed saves as the application sees them: values without frames, and a hook that can do no harm."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any, NoReturn

import pytest
import structlog
from structlog.testing import LogCapture

from cosmos_workflow_state import CosmosStateFactory, CosmosStateSettings, errors
from cosmos_workflow_state._failures import SaveFailureCounter
from cosmos_workflow_state.typing import SaveFailedHook, SaveFailure, SaveFailures

EVERY_ERROR = [
    kind
    for name in errors.__all__
    if inspect.isclass(kind := getattr(errors, name)) and issubclass(kind, errors.CosmosStateError)
]


@pytest.fixture
def log() -> Iterator[LogCapture]:
    """Configure structlog as an application does, and yield what is logged."""
    capture = LogCapture()
    structlog.configure(processors=[capture])
    yield capture
    structlog.reset_defaults()


def counter(hook: SaveFailedHook | None = None) -> SaveFailureCounter:
    """Return a counter of one storage."""
    settings = CosmosStateSettings(endpoint="embedded:", _env_file=None)
    factory = CosmosStateFactory(settings, on_save_failed=hook)
    return SaveFailureCounter(factory.for_tenant("contoso").checkpoints.scoped("s-1")._view)


def raised(error: Exception) -> Exception:
    """Return an error as it arrives: with a traceback and a cause."""
    with pytest.raises(type(error)) as caught:
        raise error from ValueError("cause")
    return caught.value


@pytest.mark.parametrize("kind", EVERY_ERROR, ids=lambda kind: kind.__name__)
def test_the_last_error_is_kept_without_frames(kind: type[errors.CosmosStateError]) -> None:
    """Whatever failed is kept with all it says, and without what would keep the state in memory."""
    failures = counter()
    error = raised(kind("what it says"))
    failures.note("invoices", "cp-1", error)

    kept = failures.seen.last_error
    assert type(kept) is kind
    assert kept is not error
    assert (str(kept), vars(kept)) == (str(error), vars(error))
    assert kept.__traceback__ is kept.__cause__ is kept.__context__ is None
    assert error.__traceback__ is not None


def test_an_error_that_is_not_ours_is_kept_by_name() -> None:
    """A fault of this package counts too; what the text of a foreign error quotes is not kept."""
    failures = counter()
    failures.note(None, None, raised(RuntimeError("hunter2")))
    assert str(failures.seen.last_error) == "the save failed with RuntimeError"


def test_failures_are_counted() -> None:
    """The value is a snapshot: it does not change when another save fails."""
    failures = counter()
    before = failures.seen
    for number in range(3):
        failures.note("invoices", f"cp-{number}", errors.CheckpointConflictError(f"raced {number}"))
    assert before == SaveFailures(0, None)
    assert (failures.seen.count, str(failures.seen.last_error)) == (3, "raced 2")


def test_the_hook_is_told_once_for_each(log: LogCapture) -> None:
    """It gets the very error that is raised, and which checkpoint it was about; it returns what it likes."""
    told: list[SaveFailure] = []
    failures = counter(lambda failure: told.append(failure) or "ignored")
    error = raised(errors.CheckpointConflictError("raced"))
    failures.note("invoices", "cp-1", error)
    assert told == [SaveFailure("contoso", "s-1", "invoices", "cp-1", error)]
    assert told[0].error is error
    assert log.entries == []


def test_a_hook_that_raises_is_an_event(log: LogCapture) -> None:
    """Its own error is told by type, not by text, and goes nowhere else."""

    def hook(_failure: SaveFailure, /) -> NoReturn:
        raise KeyError("hunter2")

    failures = counter(hook)
    failures.note("invoices", "cp-1", errors.CheckpointConflictError("raced"))
    assert failures.seen.count == 1
    assert log.entries == [
        {
            "event": "hook.failed",
            "log_level": "error",
            "tenant_id": "contoso",
            "scope": "s-1",
            "workflow_name": "invoices",
            "checkpoint_id": "cp-1",
            "error_type": "KeyError",
        }
    ]


async def _coroutine(_failure: SaveFailure, /) -> None:
    """Be a hook that would never be awaited."""


class _Awaited:
    async def __call__(self, _failure: SaveFailure, /) -> None:
        """Be the same as an object."""


@pytest.mark.parametrize("hook", ["print", _coroutine, _Awaited()], ids=["text", "coroutine", "object"])
def test_what_cannot_be_a_hook_is_refused(hook: Any) -> None:
    """A hook that could not be called, or that would never run, is refused when the factory is built."""
    with pytest.raises(TypeError, match=r"on_save_failed must be an? (ordinary )?function, not "):
        counter(hook)
