"""Sessions in parts, where something happens between the parts and the commit, or between the item and its parts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from cosmos_workflow_state import TenantSessionStore, errors
from support.faults import let_pass, refused, status, then
from support.sessions import Account, Process, content, noise, session

LARGE = 700_000
"""Bytes of a state in two parts."""

Pair = tuple[Process, Process]


pytestmark = pytest.mark.usefixtures("quick_sessions")


def setting(store: TenantSessionStore, n: int, session_id: str = "k") -> Callable[[], Awaitable[None]]:
    """Return what sets the session to a number."""
    return lambda: store.set(session_id, session({"n": n}))


async def number(process: Process, session_id: str = "k") -> Any:
    """Return the number that is there."""
    found = await process.store.get(session_id)
    return None if found is None else found.state["n"]


async def test_a_large_session_that_always_comes_too_late_leaves_nothing(account: Account, pair: Pair) -> None:
    """Its parts are written before anybody can know, and deleted when it is given up."""
    process, other = pair
    stored = await process.store.get_stored("k")
    assert stored is not None
    # The guard, two parts, and then the batch.
    process.transport.faults = [let_pass, let_pass, let_pass, then(setting(other.store, 1))]
    with pytest.raises(errors.StateChangedError):
        await process.store.set("k", session(noise(LARGE)), if_match=stored.etag)
    assert await account.items("part") == []
    assert await account.items("upload_guard") == []
    raced = [fault for n in range(2, 10) for fault in (then(setting(other.store, n)), let_pass)]
    process.transport.faults = [let_pass, let_pass, let_pass, *raced]
    with pytest.raises(errors.StateConflictError):
        await process.store.set("k", session(noise(LARGE)))
    assert process.transport.faults == []
    assert await account.items("part") == []


async def test_parts_that_were_collected_are_written_anew(account: Account, process: Process) -> None:
    """The guard is gone when it comes to the commit: nothing is named that may be deleted at any time."""

    async def collect() -> None:
        (guard,) = await account.items("upload_guard")
        async with account.container() as container:
            await container.delete_item(guard["id"], partition_key=["contoso", "k"])

    process.transport.faults = [let_pass, let_pass, let_pass, then(collect)]
    await process.store.set("k", session(noise(LARGE)))
    assert content(await process.store.get("k")) == content(session(noise(LARGE)))
    assert await account.items("upload_guard") == []
    # Without a guard nobody but a delete of the session may take them for abandoned.
    assert len({part["write_id"] for part in await account.items("part")}) == 2
    await process.store.delete("k")
    assert [item["session_id"] for item in await account.items()] == []


async def test_a_refused_commit_of_a_large_session(process: Process) -> None:
    """Refused for the item, not for its guard: the parts that are written already are used."""
    process.transport.faults = [let_pass, let_pass, let_pass, refused(412)]
    await process.store.set("k", session(noise(LARGE)))
    assert process.sent() == ["POST"] * 4 + ["GET", "POST"]


async def test_parts_that_cannot_be_deleted_now(account: Account, process: Process) -> None:
    """What is replaced is replaced; its parts stay until the session is deleted."""
    await process.store.set("k", session(noise(LARGE)))
    process.transport.faults = [let_pass, *[status(403)] * 4]
    await process.store.set("k", session({"n": 1}))
    process.transport.faults = []
    assert await number(process) == 1
    assert await account.items("part")
    await process.store.delete("k")
    assert await account.items() == []


async def test_a_large_session_is_replaced_while_it_is_read(pair: Pair) -> None:
    """Its parts are gone, and so is its version: the newer one is what is read."""
    process, other = pair
    await process.store.set("k", session(noise(LARGE)))
    other.transport.faults = [let_pass, then(setting(process.store, 1))]
    assert await number(other) == 1
    await process.store.set("k", session(noise(LARGE)))
    other.transport.faults = [let_pass, then(lambda: process.store.delete("k"))]
    assert await other.store.get("k") is None


async def test_a_large_session_that_is_replaced_again_and_again(pair: Pair) -> None:
    """A version that stays may not lack its parts; one that is replaced may, however often."""
    process, other = pair
    versions = iter(range(10))
    await process.store.set("k", session(noise(LARGE, next(versions))))

    async def replace() -> None:
        await process.store.set("k", session(noise(LARGE, next(versions))))

    # The item, and its two parts at once.
    other.transport.faults = [let_pass, then(replace), let_pass] * 5
    assert content(await other.store.get("k")) == content(session(noise(LARGE, 5)))


async def test_a_large_session_that_lacks_a_part(account: Account, process: Process) -> None:
    """Looked for again, and then damage, never "not there"."""
    await process.store.set("k", session(noise(LARGE)))
    part = (await account.items("part"))[0]
    async with account.container() as container:
        await container.delete_item(part["id"], partition_key=["contoso", "k"])
    process.sent()
    with pytest.raises(errors.StateCorruptError, match="part that is not there"):
        await process.store.get("k")
    assert len(process.sent()) >= 3 * 2
    await process.store.delete("k")
    assert await account.items() == []
