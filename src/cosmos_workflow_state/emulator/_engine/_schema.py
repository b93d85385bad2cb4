"""The SQLite file: its tables, its marks, how it is opened.

Owns the schema and the rules by which a file is ours. Must not know what the rows mean to clients.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import sqlite3
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cosmos_workflow_state.emulator._engine._errors import (
    BusyError,
    ForeignFileError,
    NewerSchemaError,
    StorageError,
)

__all__ = ["BUSY_TIMEOUT", "FileIdentity", "connect", "prepare"]

BUSY_TIMEOUT: Final = 30.0
"""Seconds to wait for another process that holds the file."""

_APPLICATION_ID: Final = 0x63776673
_SCHEMA_VERSION: Final = 2
_RETRY_PAUSE = 0.02

# An item's terms live in two orders: by key first for one partition key, by term first across them.
_TABLES: Final = """
CREATE TABLE counters (lsn INTEGER NOT NULL, serial INTEGER NOT NULL, origin TEXT NOT NULL);
CREATE TABLE databases (
    number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, etag TEXT NOT NULL, ts INTEGER NOT NULL
);
CREATE TABLE containers (
    number INTEGER PRIMARY KEY, database INTEGER NOT NULL, name TEXT NOT NULL, etag TEXT NOT NULL,
    ts INTEGER NOT NULL, definition TEXT NOT NULL, UNIQUE (database, name)
);
CREATE TABLE items (
    number INTEGER PRIMARY KEY, container INTEGER NOT NULL, epk BLOB NOT NULL, key BLOB NOT NULL,
    id BLOB NOT NULL, etag TEXT NOT NULL, ts INTEGER NOT NULL, lsn INTEGER NOT NULL, ttl INTEGER,
    expires INTEGER, body BLOB NOT NULL, UNIQUE (container, epk, key, id)
);
CREATE INDEX items_by_expiry ON items (expires) WHERE expires IS NOT NULL;
CREATE TABLE terms (
    container INTEGER NOT NULL, path INTEGER NOT NULL, epk BLOB NOT NULL, term BLOB NOT NULL,
    item INTEGER NOT NULL, PRIMARY KEY (container, path, epk, term, item)
) WITHOUT ROWID;
CREATE INDEX terms_across_keys ON terms (container, path, term, epk, item);
"""

# What a schema has beyond the one before it.
_UPGRADES: Final = {
    2: """
ALTER TABLE containers ADD COLUMN partitions INTEGER NOT NULL DEFAULT 1;
CREATE TABLE offers (
    number INTEGER PRIMARY KEY, resource INTEGER NOT NULL UNIQUE, etag TEXT NOT NULL, ts INTEGER NOT NULL,
    throughput INTEGER NOT NULL, maximum INTEGER, increment INTEGER
);
CREATE TABLE uniques (
    container INTEGER NOT NULL, key BLOB NOT NULL, value BLOB NOT NULL, item INTEGER NOT NULL,
    PRIMARY KEY (container, key, value)
) WITHOUT ROWID;
CREATE INDEX uniques_by_item ON uniques (item);
""",
}

# Within one process, nobody may open and close a file while another thread is between creating and locking it:
# closing any descriptor of a file gives up all of the process's locks on it.
_OPENING: Final = threading.Lock()


def prepare(path: Path) -> None:
    """Create the file if there is none, and make sure that it is ours and of a schema we know.

    Safe when several processes do it at the same time, and after one died in the middle of it.

    Args:
        path: The file; its directory has to exist.

    Raises:
        ForeignFileError: The file is something else; it is not changed.
        NewerSchemaError: The file comes from a newer version; it is not changed.
        BusyError: Another process held the file for more than `BUSY_TIMEOUT` seconds.
        StorageError: The file cannot be opened or written.
    """
    with _OPENING:
        _create_private(path)
        connection = _open(path)
        try:
            _claim(connection, path)
            _use_write_ahead_log(connection)
        except sqlite3.Error as error:
            raise _translated(error, path) from error
        finally:
            connection.close()


@dataclass(frozen=True, slots=True)
class FileIdentity:
    """Which file a path named when it was opened.

    Attributes:
        path: The path.
        device: The file system's number.
        inode: The file's number in it.
    """

    path: Path
    device: int
    inode: int

    @classmethod
    def of(cls, path: Path) -> FileIdentity:
        """Look at the file that a path names now."""
        found = path.stat()
        return cls(path, found.st_dev, found.st_ino)

    def check(self) -> None:
        """Check that the path still names this file: what is written into a deleted one is acknowledged and lost.

        Raises:
            StorageError: It does not.
        """
        try:
            same = self == FileIdentity.of(self.path)
        except OSError:
            same = False
        if not same:
            raise StorageError(f"The state file {self.path} was deleted or replaced while it was open.")


def connect(path: Path | None) -> sqlite3.Connection:
    """Open a connection to a prepared file, or to new memory.

    Args:
        path: The file, None for memory.

    Returns:
        A connection in autocommit mode, which may change threads but serves one at a time.

    Raises:
        StorageError: The file cannot be opened.
    """
    connection = _open(path)
    if path is None:
        _bring_up_to_date(connection, 0)
    # The default of 2 MB makes a commit wait for pages to be read back; state files are small.
    connection.execute("PRAGMA cache_size = -16384")
    connection.execute("PRAGMA synchronous = FULL")
    return connection


def _create_private(path: Path) -> None:
    with contextlib.suppress(FileExistsError):
        # What a link points at is created, too, and must be as private.
        os.close(os.open(path.resolve(), os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


def _open(path: Path | None) -> sqlite3.Connection:
    try:
        return sqlite3.connect(path or ":memory:", timeout=BUSY_TIMEOUT, isolation_level=None, check_same_thread=False)
    except sqlite3.Error as error:
        raise StorageError(f"The state file {path} cannot be opened: {error}") from error


def _claim(connection: sqlite3.Connection, path: Path) -> None:
    if _schema_of(connection, path) == _SCHEMA_VERSION:
        return
    connection.execute("BEGIN IMMEDIATE")
    # Another process may have been first while this one waited for the lock.
    _bring_up_to_date(connection, _schema_of(connection, path))
    connection.execute("COMMIT")


def _schema_of(connection: sqlite3.Connection, path: Path) -> int:
    """Read the schema of our file, 0 for an empty one."""
    mark, version, tables = connection.execute(
        "SELECT (SELECT application_id FROM pragma_application_id), (SELECT user_version FROM pragma_user_version),"
        " (SELECT count(*) FROM sqlite_schema)"
    ).fetchall()[0]
    if mark != _APPLICATION_ID:
        if mark or version or tables:
            raise ForeignFileError(f"{path} is a SQLite file of another application.")
        return 0
    if version > _SCHEMA_VERSION:
        raise NewerSchemaError(f"{path} has schema {version}; this version knows up to {_SCHEMA_VERSION}.")
    return int(version)


def _bring_up_to_date(connection: sqlite3.Connection, version: int) -> None:
    if version == 0:
        _run(connection, _TABLES)
        connection.execute("INSERT INTO counters VALUES (0, 0, ?)", (secrets.token_hex(4),))
        connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
    for newer, statements in _UPGRADES.items():
        if newer > version:
            _run(connection, statements)
    connection.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")


def _run(connection: sqlite3.Connection, statements: str) -> None:
    """Run statements one by one: SQLite's own way to run several would commit the transaction."""
    for statement in statements.split(";\n"):
        connection.execute(statement)


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Switch to WAL; SQLite does not wait for others here, so this does."""
    deadline = time.monotonic() + BUSY_TIMEOUT
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline:
                raise
            time.sleep(_RETRY_PAUSE)
        else:
            return


def _translated(error: sqlite3.Error, path: Path) -> StorageError | ForeignFileError:
    code = getattr(error, "sqlite_errorcode", None)
    if code == sqlite3.SQLITE_NOTADB:
        return ForeignFileError(f"{path} is no SQLite file.")
    if code == sqlite3.SQLITE_BUSY:
        return BusyError(f"The state file {path} was held by another process for {BUSY_TIMEOUT:.0f} s.")
    return StorageError(f"The state file {path} cannot be used: {error}")
