"""What sessions are as items: parts, time to live, whose they are, what they cost, and damage done to them."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, MutableMapping
from typing import Any

import pytest
from azure.core.pipeline.transport import HttpRequest

from cosmos_workflow_state import errors
from cosmos_workflow_state._embedded import EmbeddedResponse
from cosmos_workflow_state._gateway import Gateway
from cosmos_workflow_state.emulator._values import Response
from support.faults import Fault, Send, let_pass
from support.sessions import Account, Process, content, noise, session

LARGE = 700_000
"""Bytes of a state in two parts."""


@pytest.fixture
async def process(account: Account) -> AsyncIterator[Process]:
    """Yield a process that keeps sessions on it."""
    async with account.process() as started:
        yield started


async def test_five_megabytes_lie_in_parts(account: Account, process: Process) -> None:
    """And are replaced and deleted with all of them: what is left is what is there."""
    states = [noise(5_000_000, seed) for seed in (1, 2)]
    for state in states:
        await process.store.set("k", session(state))
        assert content(await process.store.get("k")) == content(session(state))
        (stored,) = await account.items("session")
        parts = await account.items("part")
        assert {part["write_id"] for part in parts} == {stored["payload"]["write_id"]}
        assert len(parts) == stored["payload"]["parts"] > 8
        assert "data" not in stored["payload"]
    assert all(len(json.dumps(item)) < 400_000 for item in await account.items())
    await process.store.set("k", session({"small": 1}))
    assert [item["type"] for item in await account.items()] == ["session"]
    await process.store.set("k", session(states[0]))
    await process.store.delete("k")
    assert await account.items() == []


async def test_a_process_that_has_not_seen_it_removes_replaced_parts(account: Account, process: Process) -> None:
    """It learns of them when it is told that there is a session already."""
    await process.store.set("k", session(noise(LARGE)))
    async with account.process() as other:
        await other.store.set("k", session({"small": 1}))
    assert [item["type"] for item in await account.items()] == ["session"]


async def test_two_processes_take_turns(account: Account) -> None:
    """Each goes on from what the other has left, small and large in turn, guarded or not."""
    async with account.process() as first, account.process() as second:
        for turn in range(12):
            at_work = (first, second)[turn % 2]
            stored = await at_work.store.get_stored("k")
            assert (0 if stored is None else stored.session.state["turn"]) == turn
            state = {"turn": turn + 1} | (noise(LARGE, turn) if turn % 3 == 0 else {})
            guard = None if turn % 4 < 2 else ("" if stored is None else stored.etag)
            await at_work.store.set("k", session(state), if_match=guard)
        assert content(await first.store.get("k")) == content(await second.store.get("k"))
    named = {item["payload"].get("write_id") for item in await account.items("session")}
    assert {part["write_id"] for part in await account.items("part")} <= named


async def test_two_processes_count(account: Account) -> None:
    """Read, add one, set guarded, again where it was changed in between: nothing is lost."""
    async with account.process() as first, account.process() as second:

        async def add(process: Process) -> None:
            done = 0
            while done < 10:
                stored = await process.store.get_stored("k")
                n, etag = (0, "") if stored is None else (stored.session.state["n"], stored.etag)
                with contextlib.suppress(errors.StateChangedError):
                    await process.store.set("k", session({"n": n + 1}), if_match=etag)
                    done += 1

        await asyncio.gather(add(first), add(second))
        found = await first.store.get("k")
    assert found is not None
    assert found.state == {"n": 20}


async def test_what_each_operation_costs(account: Account, process: Process) -> None:
    """In requests: one for each get and set, also of what is new; two for a delete, one where there is nothing."""
    store = process.store

    async def cost(call: Any) -> int:
        await call
        return len(process.sent())

    assert await cost(store.get("k")) == 1
    assert await cost(store.set("k", session({"n": 0}))) == 1
    for turn in range(5):
        assert await cost(store.get("k")) == 1
        assert await cost(store.set("k", session({"n": turn}))) == 1
        stored = await store.get_stored("k")
        assert stored is not None
        assert process.sent() == ["GET"]
        assert await cost(store.set("k", session({"n": turn}), if_match=stored.etag)) == 1
    async with account.process() as other:
        await other.store.set("k", session({"n": 7}))
        assert other.sent() == ["POST", "GET", "POST"], "it had not seen the session"
    assert await cost(store.delete("k")) == 2
    assert await cost(store.delete("k")) == 1


async def test_a_version_from_another_process_is_asked_for_once(account: Account, process: Process) -> None:
    """An ``if_match`` that came by another way than this process's own reading: one request more."""
    await process.store.set("k", session({"n": 0}))
    stored = await process.store.get_stored("k")
    assert stored is not None
    async with account.process() as other:
        await other.store.set("k", session({"n": 1}), if_match=stored.etag)
        assert other.sent() == ["GET", "POST"]


async def test_sessions_expire(account: Account) -> None:
    """``session_ttl`` seconds after they were last set, with their parts; then the next set finds nothing there."""
    async with account.process(session_ttl=60) as process:
        await process.store.set("small", session({"n": 1}))
        await process.store.set("large", session(noise(LARGE)))
        assert {item["ttl"] for item in await account.items("session")} == {60}
        account.clock.advance(50)
        await process.store.set("small", session({"n": 2}))
        account.clock.advance(50)
        assert content(await process.store.get("small")) == content(session({"n": 2}))
        assert await process.store.get("large") is None
        account.clock.advance(50)
        await process.store.set("small", session({"n": 3}))
        assert content(await process.store.get("small")) == content(session({"n": 3}))
        account.clock.advance(10_000)
        assert await account.items() == []


async def test_sessions_do_not_expire(account: Account, process: Process) -> None:
    """Without the setting."""
    await process.store.set("k", session(noise(LARGE)))
    account.clock.advance(2**31)
    assert content(await process.store.get("k")) == content(session(noise(LARGE)))


async def test_neighbouring_tenants(process: Process) -> None:
    """Tenants whose ids begin alike or differ in case: nobody sees, replaces or deletes another's session."""
    stores = {name: process.factory.for_tenant(name).sessions for name in ("t1", "t10", "T1", "t1.")}
    for name, store in stores.items():
        assert await store.get("k") is None
        await store.set("k", session({"of": name}), if_match="")
    for name, store in stores.items():
        assert content(await store.get("k")) == content(session({"of": name}))
        await store.delete("k")
        assert await store.get("k") is None
    assert await stores["t1"].get("k") is None


async def test_the_version_of_another_tenant(process: Process) -> None:
    """It matches nothing."""
    mine, other = (process.factory.for_tenant(name).sessions for name in ("t1", "t10"))
    await other.set("k", session({"of": "t10"}))
    stored = await other.get_stored("k")
    assert stored is not None
    with pytest.raises(errors.StateChangedError):
        await mine.set("k", session({"of": "t1"}), if_match=stored.etag)
    assert await mine.get("k") is None


def as_of_another(field: str) -> Fault:
    """Let what comes back be another's."""

    async def fault(request: HttpRequest, send: Send) -> EmbeddedResponse:
        answer = await send()
        body = json.loads(answer.body())
        for item in body.get("Documents", [body]):
            item[field] = "another"
        return EmbeddedResponse(request, Response(answer.status_code, dict(answer.headers), json.dumps(body).encode()))

    return fault


@pytest.mark.parametrize("field", ["tenant_id", "session_id"])
async def test_a_foreign_item_reads_as_absent(
    account: Account, events: list[MutableMapping[str, Any]], field: str
) -> None:
    """What the service gives for ours although it is another's: an event, not there, neither replaced nor deleted."""
    async with account.process() as process:
        store, transport = process.store, process.transport
        await store.set("k", session({"of": "contoso"}))
        transport.faults = [as_of_another(field)]
        assert await store.get("k") is None
        # Not known by now, so it is created, which is refused; and then read.
        transport.faults = [let_pass, as_of_another(field)]
        with pytest.raises(errors.StateCorruptError, match="another's"):
            await store.set("k", session({"of": "another"}))
        transport.faults = [as_of_another(field)]
        await store.delete("k")
        told = [event for event in events if event["event"] == "isolation.violated"]
        assert len(told) == 3
        assert {(event["tenant_id"], event["session_id"]) for event in told} == {("contoso", "k")}
        assert content(await store.get("k")) == content(session({"of": "contoso"}))


async def test_a_foreign_part_is_damage(process: Process) -> None:
    """Nothing of it is shown."""
    await process.store.set("k", session(noise(LARGE)))
    process.transport.faults = [let_pass, as_of_another("tenant_id")]
    with pytest.raises(errors.StateCorruptError, match="a part is another's"):
        await process.store.get("k")


async def test_sessions_of_one_tenant_do_not_meet(process: Process) -> None:
    """Also those whose parts have the same names as another's item, or whose ids are what a query is made of."""
    ids = ["k", "k ", "K", "ss", "k' OR 1=1", "@session", "contoso"]
    for session_id in ids:
        await process.store.set(session_id, session({"of": session_id}))
    await process.store.delete("k' OR 1=1")
    await process.store.delete("@session")
    left = [session_id for session_id in ids if await process.store.get(session_id) is not None]
    assert left == ["k", "k ", "K", "ss", "contoso"]


PAYLOAD: dict[str, Any] = {"payload": None}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        pytest.param({"schema": 2}, "schema", id="schema"),
        pytest.param({"type": "part"}, "not a session", id="type"),
        pytest.param({"writes": None}, "writes", id="writes"),
        pytest.param(PAYLOAD, "payload", id="payload"),
    ],
)
async def test_a_damaged_item(account: Account, process: Process, fields: dict[str, Any], said: str) -> None:
    """Neither read nor replaced, and never taken for absent; but it can be deleted."""
    async with account.process() as other:
        await process.store.set("k", session({"n": 1}))
        (item,) = await account.items()
        await account.overwrite(item, **fields)
        with pytest.raises(errors.StateCorruptError, match=said) as caught:
            await process.store.get("k")
        assert (caught.value.tenant_id, caught.value.session_id) == ("contoso", "k")
        with pytest.raises(errors.StateCorruptError, match=said):
            await other.store.set("k", session({"n": 2}))
        await other.store.delete("k")
        assert await account.items() == []
        await other.store.set("k", session({"n": 3}))
        assert content(await process.store.get("k")) == content(session({"n": 3}))


@pytest.mark.parametrize(
    "changes",
    [
        {"format": "maf-session/2"},
        {"format": "maf/1"},
        {"keyframe": "kf-1", "spent": 0},
        {"codecs": []},
        {"digest": "sha256:0"},
        {"size": 1},
        {"data": "AAAA"},
    ],
    ids=str,
)
async def test_a_damaged_payload(account: Account, process: Process, changes: dict[str, Any]) -> None:
    """Never a default, never "not there"; whoever replaces it all the same knows which version it is."""
    await process.store.set("k", session({"n": 1}))
    (item,) = await account.items()
    await account.overwrite(item, payload=item["payload"] | changes)
    with pytest.raises(errors.StateCorruptError):
        await process.store.get("k")
    await process.store.set("k", session({"n": 2}))
    assert content(await process.store.get("k")) == content(session({"n": 2}))


async def test_parts_that_were_abandoned_go_with_the_session(account: Account, process: Process) -> None:
    """A process died between the parts and the commit: whoever deletes the session deletes them, there or not."""
    await process.store.set("k", session(noise(LARGE)))
    parts = await account.items("part")
    for part in parts:
        await account.overwrite(part, id=part["id"].replace(part["write_id"], "abandoned"), write_id="abandoned")
    await process.store.delete("k")
    assert await account.items() == []
    for part in parts:
        await account.overwrite(part)
    await process.store.delete("k")
    assert await account.items() == []


async def test_parts_that_are_not_ours_to_delete(
    account: Account, events: list[MutableMapping[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of something else in the container, those with strange names, and any where reads may be stale."""
    async with account.process() as process:
        await process.store.set("k", session(noise(LARGE)))
        part = (await account.items("part"))[0]
        await account.overwrite(part, id="pt:other:0000", owner="ms:1")
        await account.overwrite(part, id="pt:strange:0000", write_id="../x")
        await process.store.delete("k")
        assert {item["id"] for item in await account.items()} == {"pt:other:0000", "pt:strange:0000"}
        assert [event["event"] for event in events].count("item.unreadable") == 1

        await account.overwrite(part)
        monkeypatch.setattr(Gateway, "is_sequential", _is_not)
        await process.store.delete("k")
        assert len(await account.items()) == 3


async def _is_not(_: Gateway) -> bool:
    return False
