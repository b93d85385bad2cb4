"""Names of the events, which logger is used, and the one event of an operation.

It never configures structlog: that is the application's, and the command line's. No event holds a key, a
token, an item's content or the text of an error; an error is told by its type and the service's status.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Final, NoReturn, TypeAlias, cast

import structlog
from structlog.typing import EventDict, FilteringBoundLogger, WrappedLogger

Scalar: TypeAlias = str | int | float | bool | None

LOGGER_NAME: Final = "cosmos_workflow_state"
REDACTED: Final = "[redacted]"


@dataclass(frozen=True, slots=True)
class Operation:
    """The two events an operation can end with, exactly one of which is emitted."""

    done: str
    failed: str


CHECKPOINT_SAVE: Final = Operation("checkpoint.saved", "checkpoint.save_failed")
CHECKPOINT_LOAD: Final = Operation("checkpoint.loaded", "checkpoint.load_failed")
CHECKPOINT_LIST: Final = Operation("checkpoint.listed", "checkpoint.list_failed")
CHECKPOINT_DELETE: Final = Operation("checkpoint.deleted", "checkpoint.delete_failed")
CHECKPOINT_READ_LATEST: Final = Operation("checkpoint.latest_read", "checkpoint.latest_read_failed")
CHECKPOINT_LIST_IDS: Final = Operation("checkpoint.ids_listed", "checkpoint.ids_list_failed")
FACTORY_OPEN: Final = Operation("factory.opened", "factory.open_failed")
FACTORY_CLOSE: Final = Operation("factory.closed", "factory.close_failed")

CREDENTIAL_KEY_ROTATED: Final = "credential.key_rotated"
CHECKPOINT_UNDECODABLE: Final = "checkpoint.undecodable"
ISOLATION_VIOLATED: Final = "isolation.violated"
WORKFLOW_UNSTABLE_NAME: Final = "workflow.unstable_name"

_SECRET_WORDS: Final = frozenset(
    {"authorization", "credential", "data", "key", "password", "payload", "secret", "state", "token"}
)


class OperationFields:
    """Fields that an operation learns while it runs, such as its request charge (RU) and sizes (bytes)."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, Scalar]) -> None:
        """Start with what is known before."""
        self._values: dict[str, Scalar] = dict(values)

    def add(self, **fields: Scalar) -> None:
        """Add fields to the event; a later value replaces an earlier one."""
        self._values.update(fields)

    def redacted(self) -> dict[str, Scalar]:
        """Return the fields as they may be logged."""
        return redacted(self._values)


def get_logger() -> FilteringBoundLogger:
    """Return the application's logger, or one that prints nothing when it has not configured structlog.

    An unconfigured structlog prints everything, DEBUG too, to standard output. To be asked when a factory
    is built, not at import: applications configure logging after their imports.
    """
    if structlog.is_configured():
        return cast("FilteringBoundLogger", structlog.get_logger(LOGGER_NAME))
    silent = structlog.wrap_logger(
        structlog.ReturnLogger(),
        processors=[_drop],
        wrapper_class=structlog.make_filtering_bound_logger("critical"),
        context_class=dict,
        cache_logger_on_first_use=True,
    )
    return cast("FilteringBoundLogger", silent)


def redacted(fields: Mapping[str, object]) -> dict[str, Scalar]:
    """Return the fields with only what may be logged.

    Numbers, booleans and None pass: they hold no secret. Text passes unless its field's name has a word like
    ``key``, ``token`` or ``payload``. Everything else (bytes, containers, secrets, objects) is replaced.
    """
    return {name: _loggable(name, value) for name, value in fields.items()}


def emit(log: Callable[..., object], event: str, **fields: Scalar) -> None:
    """Emit an event; a processor of the application's that raises must not turn what was done into a failure."""
    with contextlib.suppress(Exception):
        log(event, **fields)


@contextlib.contextmanager
def operation(logger: FilteringBoundLogger, names: Operation, **fields: Scalar) -> Generator[OperationFields]:
    """Emit one event when the block ends, with ``duration_ms`` and the fields added in it; it may await.

    A failing block emits the operation's failure event with ``error_type`` and, where the error has them,
    ``status_code`` and ``sub_status``, at level error (warning when the task was cancelled). The block's
    exception always leaves unchanged, even when logging it fails.
    """
    collected = OperationFields(fields)
    started = time.perf_counter()
    try:
        yield collected
    except BaseException as error:
        _log_failure(logger, names, collected, started, error)
        raise
    emit(logger.info, names.done, duration_ms=_milliseconds_since(started), **collected.redacted())


def _log_failure(
    logger: FilteringBoundLogger,
    names: Operation,
    collected: OperationFields,
    started: float,
    error: BaseException,
) -> None:
    log = logger.warning if isinstance(error, asyncio.CancelledError) else logger.error
    collected.add(error_type=type(error).__name__, duration_ms=_milliseconds_since(started), **_status(error))
    emit(log, names.failed, **collected.redacted())


def _status(error: BaseException) -> dict[str, int]:
    found = {name: getattr(error, name, None) for name in ("status_code", "sub_status")}
    return {name: value for name, value in found.items() if isinstance(value, int)}


def _loggable(name: str, value: object) -> Scalar:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str) and _SECRET_WORDS.isdisjoint(name.lower().split("_")):
        return value
    return REDACTED


def _milliseconds_since(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 3)


def _drop(_logger: WrappedLogger, _method: str, _event: EventDict) -> NoReturn:
    raise structlog.DropEvent
