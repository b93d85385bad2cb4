"""The engine: a file or memory, and the threads that work on it.

Owns opening, closing and the way from a coroutine to a transaction. Must not know what a transaction does.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from cosmos_workflow_state.emulator._engine._expiry import remove_expired
from cosmos_workflow_state.emulator._engine._schema import FileIdentity, connect, prepare
from cosmos_workflow_state.emulator._engine._threads import Lane, Outcome, read_alone, write_together
from cosmos_workflow_state.emulator._engine._transaction import Transaction

__all__ = ["Clock", "Engine"]

Clock = Callable[[], float]
"""Gives the time in seconds since 1970."""

P = ParamSpec("P")
T = TypeVar("T")

_READERS: Final = 2
_WRITES_IN_A_GROUP: Final = 64


class Engine:
    """Databases, containers and items in one SQLite file or in memory.

    Several engines, in one process or in several, may use the same file at the same time. An engine may be used
    from several event loops.
    """

    def __init__(self, writer: Lane, reader: Lane, clock: Clock, file: FileIdentity | None) -> None:
        """Take over running lanes; use `Engine.open`."""
        self._file = file
        self._writer = writer
        self._reader = reader
        self._clock = clock

    @classmethod
    def open(cls, path: Path | None, *, clock: Clock = time.time) -> Engine:
        """Open a file, which is created with mode 0600 if there is none, or new memory.

        Blocks for the disk, and for up to 30 seconds when another process is creating the same file.

        Args:
            path: The file, None for memory.

        Keyword Args:
            clock: The time by which items expire and are stamped.

        Returns:
            The engine; close it.

        Raises:
            ForeignFileError: The file is something else; it is not changed.
            NewerSchemaError: The file comes from a newer version; it is not changed.
            StorageError: The file cannot be opened or written.
            OSError: The file cannot be created.
        """
        if path is None:
            # Memory belongs to one connection, so its reads stand in the queue of the writes.
            lane = Lane("embedded-memory", [connect(None)], write_together, _WRITES_IN_A_GROUP)
            return cls(lane, lane, clock, None)
        prepare(path)
        writer = Lane("embedded-writer", [connect(path)], write_together, _WRITES_IN_A_GROUP)
        readers = [connect(path) for _ in range(_READERS)]
        return cls(writer, Lane("embedded-reader", readers, read_alone, 1), clock, FileIdentity.of(path))

    async def read(self, work: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function that only reads, on a thread of the engine, on one state of the file.

        Args:
            work: Called with the transaction and the arguments.
            args: Passed on.
            kwargs: Passed on.

        Returns:
            What the function returns.

        Raises:
            EngineClosedError: The engine is closed.
            StorageError: SQLite failed.
        """

        def run(connection: sqlite3.Connection) -> T:
            return work(self._transaction(connection), *args, **kwargs)

        result: T = _raised_or_returned(await asyncio.wrap_future(self._reader.submit(run)))
        return result

    async def write(self, work: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function on the writing thread; what it wrote is on the disk when this returns.

        If the function raises, nothing of what it did remains.

        Args:
            work: Called with the transaction and the arguments.
            args: Passed on.
            kwargs: Passed on.

        Returns:
            What the function returns.

        Raises:
            EngineClosedError: The engine is closed.
            StorageError: SQLite failed; a write that was under way is undone.
        """

        def run(connection: sqlite3.Connection) -> T:
            transaction = self._transaction(connection)
            result = work(transaction, *args, **kwargs)
            remove_expired(transaction)
            return result

        result: T = _raised_or_returned(await asyncio.wrap_future(self._writer.submit(run)))
        return result

    def close(self) -> None:
        """Finish what is under way and close the file; a second call does nothing. Blocks."""
        self._reader.close()
        self._writer.close()

    def _transaction(self, connection: sqlite3.Connection) -> Transaction:
        if self._file is not None:
            self._file.check()
        return Transaction(connection, int(self._clock()))


def _raised_or_returned(outcome: Outcome) -> Any:
    result, problem = outcome
    try:
        if problem is not None:
            raise problem
    finally:
        # An error holds the frames it went through: one of these must not hold the error.
        del problem, outcome
    return result
