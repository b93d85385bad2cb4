"""The engine's file: whose it is, how it is opened, group commit, failures of SQLite, closing."""

from __future__ import annotations

import asyncio
import sqlite3
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from cosmos_workflow_state.emulator._engine import _schema
from cosmos_workflow_state.emulator._engine._databases import create_database, list_databases
from cosmos_workflow_state.emulator._engine._engine import Engine
from cosmos_workflow_state.emulator._engine._errors import (
    BusyError,
    EngineClosedError,
    ExistsError,
    ForeignFileError,
    NewerSchemaError,
    StorageError,
)
from cosmos_workflow_state.emulator._engine._threads import Lane, write_together
from cosmos_workflow_state.emulator._engine._transaction import Transaction, resource_id, resource_number


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a path at which there is nothing yet."""
    return tmp_path / "state.db"


@pytest.fixture
def engine(path: Path) -> Iterator[Engine]:
    """Yield an engine on a file."""
    opened = Engine.open(path)
    yield opened
    opened.close()


def names(transaction: Transaction) -> list[str]:
    """List the databases by name."""
    return [database.name for database in list_databases(transaction)]


async def test_file_and_its_companions_are_private(path: Path, engine: Engine) -> None:
    """The file, its log and its shared memory can be read by their owner only."""
    await engine.write(create_database, "db")
    modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in path.parent.iterdir()}
    assert modes == {"state.db": 0o600, "state.db-wal": 0o600, "state.db-shm": 0o600}


async def test_what_was_written_is_there_after_reopening(path: Path) -> None:
    """A file keeps what was written, and closing it leaves one file."""
    first = Engine.open(path)
    await first.write(create_database, "db")
    first.close()
    assert [each.name for each in path.parent.iterdir()] == ["state.db"]
    second = Engine.open(path)
    assert await second.read(names) == ["db"]
    second.close()


async def test_engines_on_one_file_see_each_other(path: Path, engine: Engine) -> None:
    """A second engine in the same process sees writes at once, and closing it does not disturb the first."""
    other = Engine.open(path)
    await other.write(create_database, "db")
    assert await engine.read(names) == ["db"]
    other.close()
    await engine.write(create_database, "db2")
    assert await engine.read(names) == ["db", "db2"]


async def test_commits_survive_without_closing(path: Path, engine: Engine) -> None:
    """A write is in the files when it returns: a copy of them, as a crash leaves it, has it."""
    await engine.write(create_database, "db")
    copy = path.parent / "copy"
    copy.mkdir()
    for name in ("state.db", "state.db-wal"):
        (copy / name).write_bytes((path.parent / name).read_bytes())
    crashed = Engine.open(copy / "state.db")
    assert await crashed.read(names) == ["db"]
    crashed.close()


def test_empty_file_is_taken(path: Path) -> None:
    """An empty file, as a creation that was killed leaves it, becomes a state file."""
    path.touch()
    Engine.open(path).close()
    assert path.stat().st_size > 0


def test_text_file_is_left_alone(path: Path) -> None:
    """A file that is no SQLite file is refused and not changed."""
    path.write_text("important " * 200)
    with pytest.raises(ForeignFileError, match="no SQLite file"):
        Engine.open(path)
    assert path.read_text() == "important " * 200


def test_foreign_database_is_left_alone(path: Path) -> None:
    """Another application's SQLite file is refused and not changed."""
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE theirs (a)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(ForeignFileError, match="another application"):
        Engine.open(path)
    assert path.read_bytes() == before


def test_newer_schema_is_left_alone(path: Path) -> None:
    """A file of a newer version is refused and not changed."""
    Engine.open(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 999")
    connection.close()
    with pytest.raises(NewerSchemaError, match="999"):
        Engine.open(path)


def test_older_schema_is_brought_up_to_date(path: Path) -> None:
    """A file of the first schema gets what it lacks, and its containers have one physical partition."""
    with sqlite3.connect(path, isolation_level=None) as connection:
        _schema._run(connection, _schema._TABLES)
        connection.execute("INSERT INTO counters VALUES (2, 2, 'origin')")
        connection.execute("INSERT INTO databases VALUES (1, 'db', 'e', 1)")
        connection.execute(
            "INSERT INTO containers VALUES (2, 1, 'c', 'e', 1, ?)", ('{"id":"c","partitionKey":{"paths":["/a"]}}',)
        )
        connection.execute(f"PRAGMA application_id = {_schema._APPLICATION_ID}")
        connection.execute("PRAGMA user_version = 1")
    connection.close()
    for _ in range(2):
        Engine.open(path).close()
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT partitions FROM containers").fetchall() == [(1,)]
        assert connection.execute("SELECT * FROM offers").fetchall() == []
        assert connection.execute("PRAGMA user_version").fetchall() == [(2,)]
    connection.close()


def test_directory_cannot_be_opened(tmp_path: Path) -> None:
    """What is no file at all is a storage error, not a crash of SQLite."""
    with pytest.raises(StorageError, match="cannot be opened"):
        Engine.open(tmp_path)


def test_missing_directory_is_the_systems_error(tmp_path: Path) -> None:
    """A directory that is not there is reported as the system does."""
    with pytest.raises(FileNotFoundError):
        Engine.open(tmp_path / "nowhere" / "state.db")


def test_read_only_file_system_is_reported(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that cannot be written is a storage error at opening."""
    real = _schema._open

    def read_only(opened: Path | None) -> sqlite3.Connection:
        connection = real(opened)
        connection.execute("PRAGMA query_only = ON")
        return connection

    monkeypatch.setattr(_schema, "_open", read_only)
    with pytest.raises(StorageError, match="cannot be used"):
        Engine.open(path)


def test_opening_waits_for_others(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While another connection holds the file, opening waits; when that is too long it says who is to blame."""
    monkeypatch.setattr(_schema, "BUSY_TIMEOUT", 0.05)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    with pytest.raises(BusyError, match="another process"):
        Engine.open(path)
    holder.execute("COMMIT")
    holder.close()
    Engine.open(path).close()


def test_another_process_may_be_first(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who found an empty file, and got the lock after another process had filled it, leaves it as it is."""
    real = _schema._schema_of
    connection = sqlite3.connect(path, isolation_level=None)
    answers: list[int] = []

    def overtaken(asking: sqlite3.Connection, asked: Path) -> int:
        answers.append(real(asking, asked))
        if len(answers) == 1:
            connection.execute("BEGIN")
            _schema._bring_up_to_date(connection, 0)
            connection.execute("COMMIT")
        return answers[-1]

    monkeypatch.setattr(_schema, "_schema_of", overtaken)
    _schema.prepare(path)
    assert answers == [0, 2]
    assert connection.execute("SELECT count(*) FROM counters").fetchall() == [(1,)]
    connection.close()


@pytest.fixture
def reader(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[sqlite3.Connection]:
    """Yield a connection that reads a file which is not in its log's mode yet; SQLite itself waits for nobody."""
    Engine.open(path).close()
    real = _schema._open

    def impatient(opened: Path | None) -> sqlite3.Connection:
        connection = real(opened)
        connection.execute("PRAGMA busy_timeout = 0")
        return connection

    monkeypatch.setattr(_schema, "_open", impatient)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.execute("BEGIN")
    connection.execute("SELECT * FROM counters").fetchall()
    yield connection
    connection.close()


def test_file_behind_a_link_is_private(tmp_path: Path) -> None:
    """What a dangling link points at is created with mode 0600, as a plain path would be."""
    link, target = tmp_path / "link.db", tmp_path / "target.db"
    link.symlink_to(target)
    Engine.open(link).close()
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


def test_switch_to_the_log_waits(path: Path, reader: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that is in the way when the file switches to its log is waited for."""
    monkeypatch.setattr(_schema.time, "sleep", lambda _: reader.execute("COMMIT"))
    Engine.open(path).close()
    assert not reader.in_transaction


def test_switch_to_the_log_gives_up(path: Path, reader: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that stays in the way for too long is reported."""
    monkeypatch.setattr(_schema, "BUSY_TIMEOUT", 0)
    with pytest.raises(BusyError, match="another process"):
        Engine.open(path)
    assert reader.in_transaction


async def test_waiting_writers_are_reported(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When another process holds the file for too long a write fails with a busy error; reads go on."""
    monkeypatch.setattr(_schema, "BUSY_TIMEOUT", 0.05)
    engine = Engine.open(path)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(BusyError):
        await engine.write(create_database, "db")
    assert await engine.read(names) == []
    holder.execute("COMMIT")
    holder.close()
    await engine.write(create_database, "db")
    engine.close()


@pytest.mark.parametrize("in_memory", [True, False])
async def test_one_failure_does_not_undo_its_neighbours(path: Path, *, in_memory: bool) -> None:
    """Writes that wait together are committed together; one that fails is undone alone."""
    engine = Engine.open(None if in_memory else path)

    def fails(transaction: Transaction) -> None:
        create_database(transaction, "undone")
        create_database(transaction, "db0")

    works = [engine.write(create_database, f"db{number}") for number in range(100)]
    results = await asyncio.gather(*works[:50], engine.write(fails), *works[50:], return_exceptions=True)
    assert [type(result) for result in results].count(ExistsError) == 1
    assert sorted(await engine.read(names)) == sorted(f"db{number}" for number in range(100))
    engine.close()


async def test_a_broken_transaction_fails_all_of_its_group(engine: Engine) -> None:
    """When SQLite ends the transaction under a write, every write of the group is told, and the next one works."""

    def breaks(transaction: Transaction) -> None:
        create_database(transaction, "lost")
        transaction.connection.execute("ROLLBACK")
        raise sqlite3.OperationalError("disk full")

    with pytest.raises(StorageError, match="disk full"):
        await engine.write(breaks)
    await engine.write(create_database, "db")
    assert await engine.read(names) == ["db"]


def test_failing_commit_fails_the_writes() -> None:
    """When the commit itself fails, the write fails and nothing of it remains."""
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("CREATE TABLE parent (a PRIMARY KEY)")
    connection.execute("CREATE TABLE child (a REFERENCES parent DEFERRABLE INITIALLY DEFERRED)")
    lane = Lane("test", [connection], write_together, 8)
    _, problem = lane.submit(lambda each: each.execute("INSERT INTO child VALUES (1)").rowcount).result()
    assert isinstance(problem, StorageError)
    assert "FOREIGN KEY" in str(problem)
    assert lane.submit(lambda each: each.execute("SELECT * FROM child").fetchall()).result() == ([], None)
    lane.close()


async def test_errors_of_reads_reach_the_caller(engine: Engine) -> None:
    """SQLite's errors in a read are the engine's, others stay what they are; reads write nothing."""
    with pytest.raises(StorageError, match="nowhere"):
        await engine.read(lambda transaction: transaction.connection.execute("SELECT * FROM nowhere"))
    with pytest.raises(ZeroDivisionError):
        await engine.read(lambda _: 1 // 0)


async def test_event_loop_is_not_blocked(engine: Engine) -> None:
    """While a write takes its time on the engine's thread, the loop and reads go on."""
    release = threading.Event()
    slow = asyncio.create_task(engine.write(lambda _: release.wait(10)))
    assert await engine.read(names) == []
    assert not slow.done()
    release.set()
    assert await slow


async def test_cancelled_work_that_waits_is_not_done(engine: Engine) -> None:
    """A write that is cancelled while it waits is not done; one that runs is finished."""
    release = threading.Event()
    running = threading.Event()

    def slow(_: Transaction) -> None:
        running.set()
        release.wait(10)

    blocker = asyncio.create_task(engine.write(slow))
    await asyncio.to_thread(running.wait, 10)
    cancelled = asyncio.create_task(engine.write(create_database, "db"))
    await asyncio.sleep(0)
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    release.set()
    await blocker
    await engine.write(lambda _: None)
    assert await engine.read(names) == []


async def test_closing_finishes_what_waits(path: Path) -> None:
    """Closing does what is queued, a second closing does nothing, and use after it is an error of its own."""
    engine = Engine.open(path)
    writes = [asyncio.create_task(engine.write(create_database, f"db{number}")) for number in range(10)]
    await asyncio.sleep(0)
    await asyncio.to_thread(engine.close)
    engine.close()
    assert len(await asyncio.gather(*writes)) == 10
    with pytest.raises(EngineClosedError):
        await engine.read(names)
    with pytest.raises(EngineClosedError):
        await engine.write(create_database, "late")


def test_jobs_before_the_end_are_done() -> None:
    """A lane whose end is queued behind jobs does these first, then ends."""
    lane = Lane("test", [sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)], write_together, 8)
    release = threading.Event()
    lane.submit(lambda _: release.wait(10))
    late = lane.submit(lambda _: "done")
    lane._queue.put(None)
    release.set()
    assert late.result(10) == ("done", None)
    lane.close()


async def test_several_loops_may_use_one_engine(engine: Engine) -> None:
    """An engine belongs to no event loop."""
    await engine.write(create_database, "db")
    assert await asyncio.to_thread(lambda: asyncio.run(engine.read(names))) == ["db"]


async def test_stamps_are_unique_and_in_order(engine: Engine) -> None:
    """A write has one log sequence number for all of its operations, and each of them a serial and ETag of its own."""
    first = await engine.write(lambda transaction: transaction.stamps(3))
    (second,) = await engine.write(lambda transaction: transaction.stamps())
    assert [stamp.lsn for stamp in (*first, second)] == [1, 1, 1, 2]
    assert [stamp.serial for stamp in (*first, second)] == [1, 2, 3, 4]
    assert len({stamp.etag for stamp in (*first, second)}) == 4
    assert await engine.read(lambda transaction: transaction.lsn()) == 2


@pytest.mark.parametrize("numbers", [(1,), (1, 2), (1, 2, 3), (2**31, 2**32 - 1, 2**63)])
def test_resource_ids_can_be_read_back(numbers: tuple[int, ...]) -> None:
    """A resource id gives its innermost number back, and has no slash in it."""
    assert resource_number(resource_id(*numbers)) == numbers[-1]
    assert "/" not in resource_id(*numbers)


@pytest.mark.parametrize("text", ["", "checkpoints", "é", "AAAA", "===="])
def test_other_texts_are_no_resource_ids(text: str) -> None:
    """A name that is no resource id has no number."""
    assert resource_number(text) is None
