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
    """The two events an operation can end with, exactly one of which is emitted.

    Attributes:
        done: The event of one that ended well.
        failed: The event of one that did not.
        writes: Whether one that is given up may have changed what is stored.
    """

    done: str
    failed: str
    writes: bool = False


CHECKPOINT_SAVE: Final = Operation("checkpoint.saved", "checkpoint.save_failed", writes=True)
CHECKPOINT_LOAD: Final = Operation("checkpoint.loaded", "checkpoint.load_failed")
CHECKPOINT_LIST: Final = Operation("checkpoint.listed", "checkpoint.list_failed")
CHECKPOINT_DELETE: Final = Operation("checkpoint.deleted", "checkpoint.delete_failed", writes=True)
CHECKPOINT_READ_LATEST: Final = Operation("checkpoint.latest_read", "checkpoint.latest_read_failed")
CHECKPOINT_LIST_IDS: Final = Operation("checkpoint.ids_listed", "checkpoint.ids_list_failed")
CHECKPOINT_ITERATE: Final = Operation("checkpoint.iterated", "checkpoint.iterate_failed")
CHECKPOINT_LIST_HEADERS: Final = Operation("checkpoint.headers_listed", "checkpoint.headers_list_failed")
CHECKPOINT_FIND: Final = Operation("checkpoint.ids_found", "checkpoint.ids_find_failed")
CHECKPOINT_INSPECT: Final = Operation("checkpoint.inspected", "checkpoint.inspect_failed")
CHECKPOINT_LIST_CHILDREN: Final = Operation("checkpoint.children_listed", "checkpoint.children_list_failed")
CHECKPOINT_READ_LINEAGE: Final = Operation("checkpoint.lineage_read", "checkpoint.lineage_read_failed")
WORKFLOW_LIST: Final = Operation("workflow.listed", "workflow.list_failed")
SWEEP: Final = Operation("partition.swept", "partition.sweep_failed", writes=True)
ERASE: Final = Operation("scope.erased", "scope.erase_failed", writes=True)
HISTORY_READ: Final = Operation("history.read", "history.read_failed")
HISTORY_SAVE: Final = Operation("history.saved", "history.save_failed", writes=True)
HISTORY_COUNT: Final = Operation("history.counted", "history.count_failed")
HISTORY_CLEAR: Final = Operation("history.cleared", "history.clear_failed", writes=True)
HISTORY_LIST_SESSIONS: Final = Operation("history.sessions_listed", "history.sessions_list_failed")
HISTORY_DELETE_SESSION: Final = Operation("history.session_deleted", "history.session_delete_failed", writes=True)
SESSION_GET: Final = Operation("session.read", "session.read_failed")
SESSION_SET: Final = Operation("session.saved", "session.save_failed", writes=True)
SESSION_DELETE: Final = Operation("session.deleted", "session.delete_failed", writes=True)
FACTORY_OPEN: Final = Operation("factory.opened", "factory.open_failed")
FACTORY_CLOSE: Final = Operation("factory.closed", "factory.close_failed")

CHECKPOINT_LARGE: Final = "checkpoint.large"
CHECKPOINT_UNDECODABLE: Final = "checkpoint.undecodable"
CREDENTIAL_KEY_ROTATED: Final = "credential.key_rotated"
HISTORY_VALUES_LEFT_OUT: Final = "history.values_left_out"
HOOK_FAILED: Final = "hook.failed"
ITEM_UNREADABLE: Final = "item.unreadable"
ISOLATION_VIOLATED: Final = "isolation.violated"
WORKFLOW_UNSTABLE_NAME: Final = "workflow.unstable_name"

_SECRET_WORDS: Final = frozenset(
    {"authorization", "credential", "data", "key", "password", "payload", "secret", "state", "token"}
)


class OperationFields:
    """Fields that an operation learns while it runs, such as its request charge (RU) and sizes (bytes)."""

    __slots__ = ("_elsewhere", "_paused_since", "_started", "_values")

    def __init__(self, values: Mapping[str, Scalar]) -> None:
        """Start with what is known before."""
        self._values: dict[str, Scalar] = dict(values)
        self._started = time.perf_counter()
        self._elsewhere = 0.0
        self._paused_since: float | None = None

    def add(self, **fields: Scalar) -> None:
        """Add fields to the event; a later value replaces an earlier one."""
        self._values.update(fields)

    @contextlib.contextmanager
    def paused(self) -> Generator[None]:
        """Leave what the caller does between two steps of an iteration out of the duration.

        An iteration that is closed there has done what was asked of it, so that is no failure.
        """
        self._paused_since = time.perf_counter()
        yield
        self._elsewhere += time.perf_counter() - self._paused_since
        self._paused_since = None

    def is_over(self, error: BaseException) -> bool:
        """Return whether an error only says that nobody wants the rest of an iteration."""
        return isinstance(error, GeneratorExit) and self._paused_since is not None

    def finished(self) -> dict[str, Scalar]:
        """Return the fields as they may be logged, with ``duration_ms``."""
        seconds = (self._paused_since or time.perf_counter()) - self._started - self._elsewhere
        return {"duration_ms": round(seconds * 1000, 3), **redacted(self._values)}


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
    try:
        yield collected
    except BaseException as error:
        if collected.is_over(error):
            emit(logger.info, names.done, **collected.finished())
        else:
            _log_failure(logger, names, collected, error)
        raise
    emit(logger.info, names.done, **collected.finished())


def _log_failure(
    logger: FilteringBoundLogger, names: Operation, collected: OperationFields, error: BaseException
) -> None:
    log = logger.warning if isinstance(error, asyncio.CancelledError) else logger.error
    collected.add(error_type=type(error).__name__, **_status(error))
    emit(log, names.failed, **collected.finished())


def _status(error: BaseException) -> dict[str, int]:
    found = {name: getattr(error, name, None) for name in ("status_code", "sub_status")}
    return {name: value for name, value in found.items() if isinstance(value, int)}


def _loggable(name: str, value: object) -> Scalar:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str) and _SECRET_WORDS.isdisjoint(name.lower().split("_")):
        return value
    return REDACTED


def _drop(_logger: WrappedLogger, _method: str, _event: EventDict) -> NoReturn:
    raise structlog.DropEvent
