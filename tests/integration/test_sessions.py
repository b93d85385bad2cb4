"""Sessions kept by the framework's stores and by ours, in the same scenarios; and what ours can do beside them."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, MutableMapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from agent_framework import Agent, AgentSession, BaseChatClient, ChatResponse, FileSessionStore, Message, SessionStore

from cosmos_workflow_state import CosmosStateFactory, TenantSessionStore, errors
from support.sessions import (
    Account,
    Booking,
    Fragile,
    Process,
    Ticket,
    account_of_sessions,
    content,
    noise,
    session,
)

SECRET = "4111-1111-1111-1111"
HOSTILE = ["a/b", "../x", "a\\b?c#d", "CON", "x" * 128, "Zürich", " ", ".", "~", "ss", '["u","s"]', "'; --", "%2F"]


@asynccontextmanager
async def in_memory(_: Path) -> AsyncIterator[SessionStore]:
    """Yield the framework's store in memory."""
    yield SessionStore()


@asynccontextmanager
async def on_files(path: Path) -> AsyncIterator[SessionStore]:
    """Yield the framework's store on files."""
    yield FileSessionStore(path)


@asynccontextmanager
async def ours(_: Path) -> AsyncIterator[SessionStore]:
    """Yield our store."""
    async with account_of_sessions() as account, account.process() as process:
        yield process.store


OPENS: dict[str, Callable[[Path], AbstractAsyncContextManager[SessionStore]]] = {
    "memory": in_memory,
    "files": on_files,
    "ours": ours,
}


@pytest.fixture(params=OPENS)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[SessionStore]:
    """Yield each of the three stores."""
    async with OPENS[request.param](tmp_path) as opened:
        yield opened


@pytest.fixture(params=["files", "ours"])
async def durable(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[SessionStore]:
    """Yield each of the two stores that outlive their process."""
    async with OPENS[request.param](tmp_path) as opened:
        yield opened


@pytest.fixture
async def process(account: Account) -> AsyncIterator[Process]:
    """Yield a process that keeps sessions on it."""
    async with account.process() as started:
        yield started


async def test_what_was_set_is_read(store: SessionStore) -> None:
    """All there is of a session, under an id that need not be its own."""
    one = session({"a": [1, {"b": None}], "ticket": Ticket(1, "a"), "booking": Booking(place="Bern", guests=["Ann"])})
    await store.set("another-id", one)
    assert content(await store.get("another-id")) == content(one)
    assert await store.get("s-1") is None


@pytest.mark.parametrize("service", [None, "resp_1", {"conversation": "c-1", "n": [1, None]}], ids=str)
async def test_the_service_session_id(store: SessionStore, service: Any) -> None:
    """Text, a mapping, or none."""
    await store.set("k", session(service_session_id=service))
    found = await store.get("k")
    assert found is not None
    assert found.service_session_id == service


async def test_copies_are_independent(store: SessionStore) -> None:
    """What happens to what was given, or to what was read, happens to no other copy."""
    one = session({"a": [1]}, service_session_id={"b": [1]})
    await store.set("k", one)
    one.state["a"].append(2)
    first, second = await store.get("k"), await store.get("k")
    assert first is not None
    assert second is not None
    first.state["a"].append(3)
    assert second.state == {"a": [1]}
    assert content(await store.get("k")) == ("s-1", {"b": [1]}, {"a": [1]})


async def test_a_later_set_replaces(store: SessionStore) -> None:
    """The whole session, nothing of the one before."""
    await store.set("k", session({"a": 1}, session_id="s-1"))
    await store.set("k", session({"b": 2}, session_id="s-2"))
    assert content(await store.get("k")) == ("s-2", None, {"b": 2})


async def test_what_is_absent(store: SessionStore) -> None:
    """None, and nothing to delete; also after it was there."""
    assert await store.get("k") is None
    await store.delete("k")
    await store.set("k", session())
    await store.delete("k")
    assert await store.get("k") is None
    await store.delete("k")


@pytest.mark.parametrize("session_id", ["", None, 5], ids=repr)
async def test_ids_that_no_store_takes(store: SessionStore, session_id: Any) -> None:
    """Empty, or no text."""
    for call in (store.get, store.delete, lambda given: store.set(given, session())):
        with pytest.raises(ValueError, match="session_id must"):
            await call(session_id)
    with pytest.raises(ValueError, match="session_id must"):
        store.validate_session_id(session_id)


async def test_hostile_ids(store: SessionStore) -> None:
    """Each is a session of its own."""
    for number, session_id in enumerate(HOSTILE):
        store.validate_session_id(session_id)
        await store.set(session_id, session({"n": number}))
    for number, session_id in enumerate(HOSTILE):
        found = await store.get(session_id)
        assert found is not None
        assert found.state == {"n": number}
    for session_id in HOSTILE[::2]:
        await store.delete(session_id)
    left = [await store.get(session_id) is not None for session_id in HOSTILE]
    assert left == [bool(number % 2) for number in range(len(HOSTILE))]


class Subclass(AgentSession):
    """A session with more to it."""


async def test_a_subclass_is_refused(durable: SessionStore) -> None:
    """It would come back as what it is derived from."""
    with pytest.raises(TypeError, match="AgentSession"):
        await durable.set("k", Subclass())
    assert await durable.get("k") is None


@pytest.mark.filterwarnings("ignore:AgentSession state value:RuntimeWarning")
@pytest.mark.parametrize("value", [{SECRET}, SECRET.encode(), object()], ids=lambda value: type(value).__name__)
async def test_what_cannot_be_stored(durable: SessionStore, value: object) -> None:
    """A TypeError that names the place and the type, not the content; what was stored before stays."""
    await durable.set("k", session({"a": 1}))
    with pytest.raises(TypeError, match=r"state\.b\[1\]\.c") as caught:
        await durable.set("k", session({"b": [0, {"c": value}]}))
    assert type(value).__name__ in str(caught.value)
    assert SECRET not in str(caught.value)
    assert content(await durable.get("k")) == content(session({"a": 1}))


def assert_keeps_the_secret(error: BaseException | None) -> None:
    """Check an error and all that it was raised from or after: a log of it shows them."""
    while error is not None:
        assert SECRET not in repr(error)
        assert_keeps_the_secret(error.__cause__)
        error = error.__context__


async def test_what_a_decoder_refuses_is_a_value_error(tmp_path: Path, process: Process) -> None:
    """The file store stores what it cannot read back; ours says so when it is set, and stores nothing."""
    broken = session({"a": Fragile(SECRET, breaks_out=True)})
    files = FileSessionStore(tmp_path)
    await files.set("k", broken)
    with pytest.raises(ValueError, match="restore"):
        await files.get("k")
    with pytest.raises(ValueError, match=r"'support\.sessions\.fragile' at state\.a\.$") as caught:
        await process.store.set("k", broken)
    assert await process.store.get("k") is None
    assert_keeps_the_secret(caught.value)
    with pytest.raises(TypeError, match=r"^state\.a \(Fragile\)") as refused:
        await process.store.set("k", session({"a": Fragile(SECRET)}))
    assert_keeps_the_secret(refused.value)


async def test_numbers_that_are_not_finite(tmp_path: Path, process: Process) -> None:
    """The store in memory keeps them, the one on files refuses them; ours keeps them."""
    one = session({"a": math.inf})
    with pytest.raises(ValueError, match="finite"):
        await FileSessionStore(tmp_path).set("k", one)
    for store in (SessionStore(), process.store):
        await store.set("k", one)
        assert content(await store.get("k")) == content(one)


async def test_a_session_that_changes_while_it_is_set(process: Process) -> None:
    """Copied before the first suspension."""
    one = session({"a": [1]} | noise(400_000))
    setting = asyncio.create_task(process.store.set("k", one))
    await asyncio.sleep(0)
    one.state["a"].append(2)
    await setting
    found = await process.store.get("k")
    assert found is not None
    assert found.state["a"] == [1]


@pytest.mark.parametrize(
    "session_id", ["a\0b", "\ud800", "x" * 1025, "ü" * 513], ids=["NUL", "surrogate", "long", "long in UTF-8"]
)
async def test_ids_that_ours_does_not_take(process: Process, session_id: str) -> None:
    """Refused by name, before anything is sent."""
    with pytest.raises(errors.InvalidIdentifierError, match="session_id"):
        TenantSessionStore.validate_session_id(session_id)
    for call in (process.store.get, process.store.delete, lambda given: process.store.set(given, session())):
        with pytest.raises(errors.InvalidIdentifierError, match="session_id"):
            await call(session_id)
    assert process.sent() == []


async def test_a_version_that_is_still_there_is_replaced(process: Process) -> None:
    """Read, changed, and stored as it was read."""
    store = process.store
    await store.set("k", session({"n": 1}))
    for number in (2, 3):
        stored = await store.get_stored("k")
        assert stored is not None
        stored.session.state["n"] = number
        await store.set("k", stored.session, if_match=stored.etag)
    assert content(await store.get("k")) == content(session({"n": 3}))
    assert await store.get_stored("absent") is None


async def test_a_version_that_is_no_longer_there(process: Process) -> None:
    """Neither replaced nor brought back, and no repeat would help."""
    store = process.store
    await store.set("k", session({"n": 1}))
    stored = await store.get_stored("k")
    assert stored is not None
    await store.set("k", session({"n": 2}))
    for etag in (stored.etag, "", '"00000000-0000-0000-0000-000000000000"', "*"):
        with pytest.raises(errors.StateChangedError, match="another version is there") as caught:
            await store.set("k", session({"n": 3}), if_match=etag)
        assert not caught.value.retryable
        assert (caught.value.tenant_id, caught.value.session_id) == ("contoso", "k")
    assert content(await store.get("k")) == content(session({"n": 2}))

    await store.delete("k")
    with pytest.raises(errors.StateChangedError, match="there is none"):
        await store.set("k", session({"n": 3}), if_match=stored.etag)
    assert await store.get("k") is None


async def test_the_first_version_is_guarded_as_well(process: Process) -> None:
    """With an empty ``if_match`` a session is stored only where there is none."""
    await process.store.set("k", session({"n": 1}), if_match="")
    with pytest.raises(errors.StateChangedError):
        await process.store.set("k", session({"n": 2}), if_match="")
    assert content(await process.store.get("k")) == content(session({"n": 1}))


async def test_the_version_that_a_set_has_made(process: Process) -> None:
    """One after another without reading in between, as long as nobody else was there."""
    store = process.store
    etag = ""
    for number in range(3):
        etag = await store.set_stored("k", session({"n": number}), if_match=etag)
    stored = await store.get_stored("k")
    assert stored is not None
    assert stored.etag == etag
    await store.set("k", session({"n": 7}))
    with pytest.raises(errors.StateChangedError):
        await store.set_stored("k", session({"n": 8}), if_match=etag)


async def test_a_version_is_text(process: Process) -> None:
    """Refused before anything is sent."""
    wrong: Any = 5
    with pytest.raises(errors.InvalidArgumentError, match="if_match"):
        await process.store.set("k", session(), if_match=wrong)
    assert process.sent() == []


async def test_a_session_over_the_limit(account: Account) -> None:
    """Refused on the way in, and on the way out where another process has a higher limit."""
    async with account.process() as large, account.process(max_payload_bytes=1_000) as small:
        await large.store.set("k", session({"a": "x" * 2_000}))
        with pytest.raises(errors.StateTooLargeError, match="max_payload_bytes") as caught:
            await small.store.set("k", session({"a": "x" * 2_000}))
        assert caught.value.limit == 1_000 < caught.value.size
        with pytest.raises(errors.StateTooLargeError):
            await small.store.get("k")


async def test_what_is_told_of_each_operation(
    account: Account, events: list[MutableMapping[str, Any]], process: Process
) -> None:
    """One event each, with cost and size and nothing of the content."""
    del process
    async with account.process() as observed:
        events.clear()
        await observed.store.set("k", session({"a": SECRET}))
        await observed.store.get("k")
        await observed.store.get("absent")
        await observed.store.delete("k")
    told = [event for event in events if str(event["event"]).startswith("session.")]
    assert [event["event"] for event in told] == ["session.saved", "session.read", "session.read", "session.deleted"]
    assert [event.get("found") for event in told] == [None, True, False, None]
    assert told[-1]["deleted"] is True
    for event in told:
        assert (event["tenant_id"], event["session_id"]) == ("contoso", "absent" if event is told[2] else "k")
        assert event["requests"] >= 1
        assert event["request_charge"] > 0
        assert SECRET not in repr(event)
    assert told[0]["raw_bytes"] == told[1]["raw_bytes"] > 0


async def test_a_store_of_ours(process: Process) -> None:
    """One of the framework's; it is true, and says whose it is."""
    store: SessionStore = process.store
    assert isinstance(store, SessionStore)
    assert store
    assert repr(store) == "TenantSessionStore(tenant_id='contoso')"
    assert process.store.tenant_id == "contoso"


async def test_a_store_of_a_closed_factory(account: Account) -> None:
    """Said, and not tried."""
    async with account.process() as process:
        pass
    with pytest.raises(errors.FactoryClosedError):
        await process.store.get("k")


class Echo(BaseChatClient[Any]):
    """A model that says how many messages it was sent."""

    async def _inner_get_response(self, *, messages: Any, **_: Any) -> ChatResponse[Any]:  # type: ignore[override]
        return ChatResponse(messages=[Message("assistant", [f"{len(messages)} messages"])])


async def test_a_conversation_goes_on_in_another_process(account: Account) -> None:
    """An agent's session, with the history that the framework keeps in it, read by the process that goes on."""
    for turn in range(3):
        async with account.process() as process:
            stored = await process.store.get("conversation-1")
            conversation = stored or AgentSession()
            answer = await Agent(Echo()).run("hello", session=conversation)
            assert answer.text == f"{2 * turn + 1} messages"
            await process.store.set("conversation-1", conversation)


async def test_against_whatever_is_tested(factory: CosmosStateFactory) -> None:
    """The round of a session, on the account or emulator of this run."""
    store = factory.for_tenant("contoso").sessions
    assert await store.get("k") is None
    await store.set("k", session({"ticket": Ticket(1, "a")}))
    stored = await store.get_stored("k")
    assert stored is not None
    await store.set("k", session(noise(1_000_000)), if_match=stored.etag)
    with pytest.raises(errors.StateChangedError):
        await store.set("k", session(), if_match=stored.etag)
    assert content(await store.get("k")) == content(session(noise(1_000_000)))
    await store.delete("k")
    assert await store.get("k") is None
