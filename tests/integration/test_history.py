"""The chat history of a tenant: order, the newest messages, time to live, counting, clearing, deleting."""

from __future__ import annotations

import asyncio
import json
from collections.abc import MutableMapping
from typing import Any

import pytest
from agent_framework import Agent, AgentSession, Message

from cosmos_workflow_state import CosmosStateFactory, CosmosStateSettings, TenantHistoryProvider, errors
from cosmos_workflow_state._definitions import HISTORY
from cosmos_workflow_state.testing._workflows import Echo
from support.chats import incompressible, said, texts, turn, written
from support.engines import MovedAccount, moved_account
from support.targets import factory_of

LARGE = incompressible(700_000)
"""A message of three parts."""


@pytest.fixture
def history(factory: CosmosStateFactory) -> TenantHistoryProvider:
    """Return a provider."""
    return factory.for_tenant("contoso").history()


async def items(account: MovedAccount) -> list[dict[str, Any]]:
    """Return all items of all histories."""
    return await account.items(definition=HISTORY)


async def test_messages_come_back_in_the_order_they_were_saved(history: TenantHistoryProvider) -> None:
    """Turn by turn, with and without a state, and unaffected by what is done to the messages afterwards."""
    state: dict[str, Any] = {}
    said_before = turn(0)
    await history.save_messages("s-1", said_before, state=state)
    expected = written(said_before)
    said_before[0].contents[0].text = "changed"
    assert written(await history.get_messages("s-1")) == expected
    await history.save_messages("s-1", turn(1))
    await history.save_messages("s-1", turn(2), state=state)
    assert texts(await history.get_messages("s-1", state=state)) == texts([*turn(0), *turn(1), *turn(2)])
    assert await history.get_messages("another") == []


async def test_the_newest_messages(history: TenantHistoryProvider, factory: CosmosStateFactory) -> None:
    """``max_messages`` loads the newest, oldest first, and changes nothing about what is stored and what is new."""
    few = factory.for_tenant("contoso").history(max_messages=3)
    messages = [said(str(number), "assistant") for number in range(5)]
    for number in range(5):
        await few.save_messages("s-1", messages[: number + 1])
        assert texts(await few.get_messages("s-1")) == texts(messages[: number + 1])[-3:]
    assert texts(await history.get_messages("s-1")) == texts(messages)
    assert few.max_messages == 3
    many = factory.for_tenant("contoso").history(max_messages=2_000)
    assert texts(await many.get_messages("s-1")) == texts(messages)


async def test_more_than_a_page(history: TenantHistoryProvider, factory: CosmosStateFactory) -> None:
    """A history of more than a page comes back whole, and a replay of all of it adds nothing."""
    messages = [said(str(number), "assistant") for number in range(1_200)]
    await history.save_messages("s-1", messages)
    await history.save_messages("s-1", [*messages, said("end")])
    assert texts(await history.get_messages("s-1")) == [*texts(messages), "end"]
    newest = factory.for_tenant("contoso").history(max_messages=1_100)
    assert len(await newest.get_messages("s-1")) == 1_100
    assert await history.count("s-1") == 1_201
    await history.clear("s-1")
    assert await history.get_messages("s-1") == []


async def test_large_messages_lie_in_parts() -> None:
    """Messages over the limit of an item between small ones; cleared, their parts go with them."""
    async with moved_account() as account, account.factory() as factory:
        history = factory.for_tenant("contoso").history()
        messages = [said("a"), said(LARGE, "assistant"), said("b"), said(LARGE + "x", "assistant")]
        await history.save_messages("s-1", messages)
        await history.save_messages("s-1", messages)
        assert texts(await history.get_messages("s-1")) == texts(messages)
        types = [item["type"] for item in await items(account)]
        assert sorted(set(types)) == ["history_head", "message", "part"]
        assert types.count("part") == 6
        await history.clear("s-1")
        assert [item["type"] for item in await items(account)] == ["history_head"]


async def test_counting_and_listing(history: TenantHistoryProvider, factory: CosmosStateFactory) -> None:
    """Sessions that have messages, sorted, of this source and tenant only; cleared ones have none."""
    for session in ("s-2", "s-10", "ü/?#", "s-1"):
        await history.save_messages(session, turn(0))
    other = factory.for_tenant("contoso").history("audit")
    await other.save_messages("s-3", [said("a")])
    assert await history.list_sessions() == ["s-1", "s-10", "s-2", "ü/?#"]
    assert await other.list_sessions() == ["s-3"]
    assert [await history.count(session) for session in ("s-1", "s-3", "none")] == [2, 0, 0]
    await history.clear("s-10")
    await history.clear("none")
    assert await history.list_sessions() == ["s-1", "s-2", "ü/?#"]
    assert await factory.for_tenant("fabrikam").history().list_sessions() == []


async def test_a_cleared_history_begins_again(history: TenantHistoryProvider) -> None:
    """A state from before, and what was saved before: neither brings anything back or keeps anything out."""
    state: dict[str, Any] = {}
    await history.save_messages("s-1", turn(0), state=state)
    await history.clear("s-1")
    assert await history.count("s-1") == 0
    await history.save_messages("s-1", turn(0), state=state)
    assert texts(await history.get_messages("s-1", state=state)) == texts(turn(0))
    await history.clear("s-1")
    await history.clear("s-1")
    await history.save_messages("s-1", turn(1))
    assert texts(await history.get_messages("s-1")) == texts(turn(1))


async def test_a_deleted_session_is_gone() -> None:
    """Every source of it, heads and parts included, and nothing of another session; an old state does no harm."""
    async with moved_account() as account, account.factory() as factory:
        history, audit = (factory.for_tenant("contoso").history(source) for source in ("chat", "audit"))
        state: dict[str, Any] = {}
        for provider in (history, audit):
            await provider.save_messages("s-1", [said("a"), said(LARGE)], state=state)
        await history.save_messages("s-2", turn(0))
        assert await audit.delete_session("s-1") is True
        assert {item["session_id"] for item in await items(account)} == {"s-2"}
        assert await audit.delete_session("s-1") is False
        await audit.save_messages("s-1", turn(1), state=state)
        assert texts(await audit.get_messages("s-1", state=state)) == texts(turn(1))


async def test_messages_expire() -> None:
    """With a time to live from the settings or of its own, and the head never before the last message."""
    async with moved_account() as account, account.factory(history_ttl=100) as factory:
        tenant = factory.for_tenant("contoso")
        by_settings, short, lasting = tenant.history(), tenant.history(ttl=10), tenant.history(ttl=None)
        await by_settings.save_messages("s-1", [said("a", "assistant"), said(LARGE)])
        account.clock.advance(50)
        await short.save_messages("s-1", [said("b", "assistant")])
        assert await short.count("s-1") == 3
        account.clock.advance(11)
        assert texts(await short.get_messages("s-1")) == ["a", LARGE]
        assert await short.count("s-1") == 2
        account.clock.advance(40)
        assert await short.get_messages("s-1") == []
        await short.save_messages("s-1", [said("c")])
        assert texts(await short.get_messages("s-1")) == ["c"]
        await lasting.save_messages("s-1", [said("d")])
        account.clock.advance(10_000_000)
        assert texts(await short.get_messages("s-1")) == ["d"]
        await short.clear("s-1")
        account.clock.advance(11)
        assert await items(account) == []
        await lasting.save_messages("s-1", [said("e")])
        assert texts(await short.get_messages("s-1")) == ["e"]


async def test_a_replay_of_a_history_that_began_to_expire() -> None:
    """The newest messages are still there: what is said again is not stored again, of more than a head remembers."""
    async with moved_account() as account, account.factory() as factory:
        history = factory.for_tenant("contoso").history(ttl=100)
        messages = [said(str(number), "assistant") for number in range(80)]
        await history.save_messages("s-1", messages[:40])
        account.clock.advance(60)
        await history.save_messages("s-1", messages)
        account.clock.advance(60)
        await history.save_messages("s-1", [*messages, said("end")])
        assert texts(await history.get_messages("s-1")) == [*texts(messages[40:]), "end"]


async def test_the_clock_goes_back() -> None:
    """The order is of the saves, whatever the time says."""
    async with moved_account() as account, account.factory() as factory:
        history = factory.for_tenant("contoso").history()
        for number in range(5):
            await history.save_messages("s-1", turn(number))
            account.clock.advance(-86_400)
        assert texts(await history.get_messages("s-1")) == texts([one for number in range(5) for one in turn(number)])


async def test_a_state_of_something_else_is_not_used(factory: CosmosStateFactory) -> None:
    """A state of another session, source or tenant, of another shape, or edited: the truth is read."""
    history, other = factory.for_tenant("contoso").history(), factory.for_tenant("t2").history()
    states: dict[str, dict[str, Any]] = {name: {} for name in ("session", "source", "tenant")}
    await history.save_messages("s-2", turn(0), state=states["session"])
    await factory.for_tenant("contoso").history("audit").save_messages("s-1", turn(0), state=states["source"])
    await other.save_messages("s-1", turn(0), state=states["tenant"])
    known: dict[str, Any] = {}
    await history.get_messages("s-1", state=known)
    (key,) = known
    damaged = [{**known[key], "next": -1}, {**known[key], "recent": ["?"]}, {"etag": None}, [], "x", None]
    for state in [*states.values(), *({key: one} for one in damaged)]:
        before = await history.count("s-1")
        await history.save_messages("s-1", [said(str(before))], state=state)
        assert await history.count("s-1") == before + 1
    assert texts(await history.get_messages("s-1")) == [str(number) for number in range(9)]


async def test_the_state_is_json(history: TenantHistoryProvider) -> None:
    """What lies in a session's state survives a session that is stored and loaded again, and is as good as new."""
    session = AgentSession(session_id="s-1")
    agent = Agent(Echo(), context_providers=[history])
    await agent.run("one", session=session)
    restored = AgentSession.from_dict(json.loads(json.dumps(session.to_dict())))
    await agent.run("two", session=restored)
    expected = ["one", "turn 1: one", "two", "turn 2: two"]
    assert texts(await history.get_messages("s-1")) == expected


async def test_an_agent_goes_on_in_another_process(file_settings: CosmosStateSettings) -> None:
    """A conversation over several factories, each with a session that knows no more than its id."""
    for number in range(3):
        async with factory_of(file_settings) as factory:
            agent = Agent(Echo(), context_providers=[factory.for_tenant("contoso").history()])
            answer = await agent.run(f"say {number}", session=AgentSession(session_id="s-1"))
            assert answer.text == f"turn {number + 1}: say {number}"
    async with factory_of(file_settings) as factory:
        assert await factory.for_tenant("contoso").history().count("s-1") == 6


async def test_many_tasks_save_at_once(history: TenantHistoryProvider) -> None:
    """Eight tasks, one session, some with a state they share: each turn is there once and together."""
    state: dict[str, Any] = {}
    await asyncio.gather(
        *(history.save_messages("s-1", turn(number), state=state if number % 2 else None) for number in range(8))
    )
    found = texts(await history.get_messages("s-1"))
    pairs = {(found[at], found[at + 1]) for at in range(0, len(found), 2)}
    assert len(found) == 16
    assert pairs == {tuple(texts(turn(number))) for number in range(8)}


REFUSED = {
    "a key that is no text": {(1, 2): "x"},
    "a set as a key": {frozenset(): 1},
}


@pytest.mark.parametrize("properties", REFUSED.values(), ids=list(REFUSED))
async def test_what_json_cannot_hold_is_refused(history: TenantHistoryProvider, properties: dict[Any, Any]) -> None:
    """Nothing of a save is stored whose messages could not all be read back; the error says which one it is."""
    bad = Message("user", ["b"], additional_properties={"x": properties})
    with pytest.raises(errors.StateNotRestorableError, match="message 1") as caught:
        await history.save_messages("s-1", [said("a"), bad])
    assert (caught.value.tenant_id, caught.value.session_id) == ("contoso", "s-1")
    assert await history.get_messages("s-1") == []


async def test_what_the_framework_leaves_out_is_told(
    events: list[MutableMapping[str, Any]], history: TenantHistoryProvider
) -> None:
    """One warning a save, by types: the values vanish in every store of the framework, and are in no event."""
    message = Message("user", ["a"], additional_properties={"x": b"secret", "y": (1, 2), "z": 1})
    await history.save_messages("s-1", [said("before"), message])
    (read,) = (await history.get_messages("s-1"))[1:]
    assert read.additional_properties == {"z": 1}
    (event,) = [one for one in events if one["event"] == "history.values_left_out"]
    assert (event["log_level"], event["types"]) == ("warning", "builtins:bytes, builtins:tuple")
    assert (event["tenant_id"], event["session_id"], event["source_id"]) == ("contoso", "s-1", history.source_id)
    assert "secret" not in str(events)


class Odd(Message):
    """A message that is written as something that is none."""

    def to_dict(self, **_options: Any) -> dict[str, Any]:
        """Write it."""
        return {"type": "something else"}


async def test_what_would_not_be_accepted_back_is_refused(history: TenantHistoryProvider) -> None:
    """Demand 3: what is read back is what was checked before it was written."""
    with pytest.raises(errors.StateNotRestorableError, match="accepted back"):
        await history.save_messages("s-1", [Odd("user", ["a"])])


async def test_a_message_over_the_limit_is_refused(file_settings: CosmosStateSettings) -> None:
    """Before anything is stored, with the sizes; and so is one that another process was allowed to store."""
    small = file_settings.model_copy(update={"max_payload_bytes": 2_000})
    async with factory_of(small) as factory, factory_of(file_settings) as larger:
        history = factory.for_tenant("contoso").history()
        with pytest.raises(errors.StateTooLargeError) as caught:
            await history.save_messages("s-1", [said("a"), said("x" * 3_000)])
        assert caught.value.size > caught.value.limit == 2_000
        assert await history.get_messages("s-1") == []
        await larger.for_tenant("contoso").history().save_messages("s-1", [said("x" * 3_000)])
        with pytest.raises(errors.StateTooLargeError):
            await history.get_messages("s-1")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"max_messages": 0}, errors.InvalidArgumentError),
        ({"max_messages": True}, errors.InvalidArgumentError),
        ({"ttl": 0}, errors.InvalidArgumentError),
        ({"ttl": 2**31}, errors.InvalidArgumentError),
        ({"skip_everything": True}, TypeError),
        ({"source_id": ""}, errors.InvalidIdentifierError),
        ({"source_id": "\ud800"}, errors.InvalidIdentifierError),
    ],
    ids=str,
)
def test_options_that_are_refused(
    factory: CosmosStateFactory, options: dict[str, Any], expected: type[Exception]
) -> None:
    """Before anything is sent."""
    with pytest.raises(expected):
        factory.for_tenant("contoso").history(**options)


def test_what_a_provider_says_of_itself(factory: CosmosStateFactory) -> None:
    """Whose it is, and the framework's switches as they were given; the source is the framework's own by default."""
    history = factory.for_tenant("contoso").history(load_messages=False, store_context_from={"a"})
    assert repr(history) == "TenantHistoryProvider(tenant_id='contoso', source_id='azure_cosmos_history')"
    assert (history.tenant_id, history.load_messages, history.store_context_from) == ("contoso", False, {"a"})
    assert history.max_messages is None
