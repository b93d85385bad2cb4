"""The threads on which SQLite is used: one that writes, a few that read.

Owns queues, transactions and group commit. Must not know what is done in a transaction.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, TypeAlias

from cosmos_workflow_state.emulator._engine._errors import BusyError, EngineClosedError, StorageError
from cosmos_workflow_state.emulator._engine._schema import BUSY_TIMEOUT

__all__ = ["Lane", "Outcome", "as_engine_error", "read_alone", "write_together"]

Outcome: TypeAlias = tuple[Any, BaseException | None]
"""What a job returned, or what it raised. Errors are results here and are raised by the coroutine that waits: thrown
into it, they would leave the frames above it untraced on Python 3.11, for debuggers as for coverage."""


@dataclass(frozen=True, slots=True)
class _Job:
    run: Callable[[sqlite3.Connection], Any]
    future: Future[Outcome]


_Serve = Callable[[sqlite3.Connection, list[_Job]], None]


class Lane:
    """Threads with a connection each, that serve the jobs of one queue."""

    def __init__(self, name: str, connections: list[sqlite3.Connection], serve: _Serve, group: int) -> None:
        """Start the threads.

        Args:
            name: For the threads' names.
            connections: One for each thread; closed by the lane.
            serve: Does one group of jobs.
            group: How many waiting jobs are done together at most.
        """
        self._queue: SimpleQueue[_Job | None] = SimpleQueue()
        self._closing = threading.Lock()
        self._closed = False
        self._serve = serve
        self._group = group
        self._threads = [
            # A program that forgets to close the engine shall still end.
            threading.Thread(target=self._run, args=(connection,), name=name, daemon=True)
            for connection in connections
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, run: Callable[[sqlite3.Connection], Any]) -> Future[Outcome]:
        """Queue a job.

        Args:
            run: Called with a connection in a transaction.

        Returns:
            Its outcome; cancelling works until the job is taken up.

        Raises:
            EngineClosedError: The lane is closed.
        """
        future: Future[Outcome] = Future()
        with self._closing:
            if self._closed:
                raise EngineClosedError("The embedded engine is closed.")
            self._queue.put(_Job(run, future))
        return future

    def close(self) -> None:
        """Finish the queued jobs and end the threads; a second call does nothing."""
        with self._closing:
            if not self._closed:
                self._closed = True
                for _ in self._threads:
                    self._queue.put(None)
        for thread in self._threads:
            thread.join()

    def _run(self, connection: sqlite3.Connection) -> None:
        try:
            while jobs := self._next_group():
                wanted = [job for job in jobs if job.future.set_running_or_notify_cancel()]
                if wanted:
                    self._serve(connection, wanted)
        finally:
            connection.close()

    def _next_group(self) -> list[_Job]:
        """Wait for a job and take what else is waiting; nothing when the thread shall end."""
        jobs: list[_Job] = []
        job = self._queue.get()
        while job is not None:
            jobs.append(job)
            if len(jobs) == self._group:
                return jobs
            try:
                job = self._queue.get_nowait()
            except Empty:
                return jobs
        if jobs:
            # The mark to end came behind jobs: do these first.
            self._queue.put(None)
        return jobs


def read_alone(connection: sqlite3.Connection, jobs: list[_Job]) -> None:
    """Run each job in a read transaction of its own."""
    for job in jobs:
        try:
            connection.execute("BEGIN")
            try:
                result = job.run(connection)
            finally:
                connection.execute("ROLLBACK")
        except BaseException as error:  # noqa: BLE001 - whatever it is belongs to the caller who waits
            job.future.set_result((None, as_engine_error(error)))
        else:
            job.future.set_result((result, None))


def write_together(connection: sqlite3.Connection, jobs: list[_Job]) -> None:
    """Run jobs in one write transaction and commit once; one that fails is undone alone."""
    try:
        connection.execute("BEGIN IMMEDIATE")
        outcomes = [_attempt(connection, job) for job in jobs]
        connection.execute("COMMIT")
    except BaseException as error:  # noqa: BLE001 - whatever it is belongs to the callers who wait
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        outcomes = [(None, as_engine_error(error)) for _ in jobs]
    for job, outcome in zip(jobs, outcomes, strict=True):
        job.future.set_result(outcome)


def as_engine_error(error: BaseException) -> BaseException:
    """Turn SQLite's errors into the engine's; others stay as they are."""
    if not isinstance(error, sqlite3.Error):
        return error
    if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY:
        translated: StorageError = BusyError(f"Another process held the state file for {BUSY_TIMEOUT:.0f} s.")
    else:
        translated = StorageError(f"The state file cannot be used: {error}")
    translated.__cause__ = error
    return translated


def _attempt(connection: sqlite3.Connection, job: _Job) -> Outcome:
    connection.execute("SAVEPOINT job")
    try:
        result = job.run(connection)
    except BaseException as error:
        # A full disk may have ended the whole transaction: then there is nothing to go on with.
        if not connection.in_transaction:
            raise
        connection.execute("ROLLBACK TO job")
        connection.execute("RELEASE job")
        return None, as_engine_error(error)
    connection.execute("RELEASE job")
    return result, None
