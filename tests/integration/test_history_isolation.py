"""Histories of two tenants, sessions or sources never meet, and what is damaged or somebody else's is not believed."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, MutableMapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from cosmos_workflow_state import CosmosStateFactory, CosmosStateSettings, TenantHistoryProvider, errors
from cosmos_workflow_state._gateway import Gateway
from support.chat_wires import HEAD, SESSION, TENANT, Wire, open_wire
from support.chats import incompressible, said, texts, turn
from support.targets import factory_of

LARGE = incompressible(400_000)
"""A message of two parts."""


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut waits short."""
    monkeypatch.setattr("cosmos_workflow_state._conversations._DELAYS", (0.0, 0.0))


@pytest.fixture
async def wire(events: list[MutableMapping[str, Any]]) -> AsyncIterator[Wire]:
    """Yield a history of one turn, whose events are kept."""
    assert events == []
    async with open_wire() as opened:
        yield opened


Pair = tuple[TenantHistoryProvider, str]


async def _assert_sees_nothing_of(mine: Pair, other: Pair) -> None:
    """Try all methods on what only another history holds."""
    (mine_history, mine_id), (other_history, other_id) = mine, other
    state: dict[str, Any] = {}
    await other_history.save_messages(other_id, turn(0), state=state)
    assert await mine_history.get_messages(mine_id) == []
    assert await mine_history.count(mine_id) == 0
    await mine_history.clear(mine_id)
    await mine_history.save_messages(mine_id, turn(1), state=state)
    assert texts(await mine_history.get_messages(mine_id, state=state)) == texts(turn(1))
    assert texts(await other_history.get_messages(other_id)) == texts(turn(0))
    await mine_history.clear(mine_id)
    assert texts(await other_history.get_messages(other_id)) == texts(turn(0))
    await other_history.clear(other_id)


NEIGHBOURS = ["t1", "t10", "T1", "t1."]


@pytest.mark.parametrize(("mine", "other"), list(itertools.permutations(NEIGHBOURS, 2)))
async def test_neighbouring_tenants(factory: CosmosStateFactory, mine: str, other: str) -> None:
    """Demands 9 and 25: tenants whose ids begin alike or differ in case, same session, same source."""
    pairs = [(factory.for_tenant(tenant).history(), SESSION) for tenant in (mine, other)]
    await _assert_sees_nothing_of(*pairs)
    await pairs[1][0].save_messages(SESSION, turn(0))
    assert await pairs[0][0].list_sessions() == []
    assert await pairs[0][0].delete_session(SESSION) is True
    assert await pairs[0][0].delete_session(SESSION) is False
    assert await pairs[1][0].count(SESSION) == 2


HOSTILE = [
    "a",
    "a:b",
    ":",
    "A",
    "~",
    "~~",
    "a/b",
    "\\",
    "?",
    "#",
    "..",
    " ",
    "a\n",
    "%2F",
    "ü",
    "\U0001f600" * 250,
    "x" * 201,
]


@pytest.mark.parametrize(("mine", "other"), list(itertools.pairwise([*HOSTILE, "a"])))
async def test_hostile_sessions_and_sources(factory: CosmosStateFactory, mine: str, other: str) -> None:
    """Demands 12 and 25: whatever the ids are made of, they name what they name, also as a source of one session."""
    tenant = factory.for_tenant(TENANT)
    await _assert_sees_nothing_of((tenant.history(), mine), (tenant.history(), other))
    await _assert_sees_nothing_of((tenant.history(mine), SESSION), (tenant.history(other), SESSION))
    await tenant.history(mine).save_messages(other, [said(LARGE)])
    assert await tenant.history(mine).list_sessions() == [other]
    assert await tenant.history(other).list_sessions() == []
    assert texts(await tenant.history(mine).get_messages(other)) == [LARGE]


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=60)


@given(pairs=st.lists(st.tuples(TEXTS, TEXTS), min_size=2, max_size=2, unique=True))
@hypothesis_settings(max_examples=20, deadline=None)
async def test_any_two_sessions_and_sources(pairs: list[tuple[str, str]]) -> None:
    """Demand 25: whatever the two (session, source) pairs are, as long as they differ."""
    async with factory_of(CosmosStateSettings(endpoint="embedded:", _env_file=None)) as factory:
        tenant = factory.for_tenant(TENANT)
        await _assert_sees_nothing_of(*[(tenant.history(source), session) for session, source in pairs])


@pytest.mark.parametrize("refused", ["", None, "a\0", "\ud800", "x" * 1_025, 7, b"s"], ids=repr)
async def test_refused_sessions(factory: CosmosStateFactory, refused: Any) -> None:
    """Before anything is sent, in every method, also where there is nothing to save."""
    history = factory.for_tenant(TENANT).history()
    for operation in (
        lambda: history.get_messages(refused),
        lambda: history.save_messages(refused, []),
        lambda: history.save_messages(refused, turn(0)),
        lambda: history.count(refused),
        lambda: history.clear(refused),
        lambda: history.delete_session(refused),
    ):
        with pytest.raises(errors.InvalidIdentifierError, match="session_id"):
            await operation()


def violations(events: list[MutableMapping[str, Any]]) -> int:
    """Return how many isolation events there were; each names the tenant that asked."""
    found = [event for event in events if event["event"] == "isolation.violated"]
    assert all(event["log_level"] == "error" and event["tenant_id"] == TENANT for event in found)
    return len(found)


async def test_an_item_of_another_source_in_the_range(wire: Wire, events: list[MutableMapping[str, Any]]) -> None:
    """Demand 9: what lies where this history's messages lie, but says it is another's, is an event and not there."""
    item = next(item for item in await wire.items() if item["id"] == wire.message(0))
    planted = {**item, "id": "planted", "source_id": "another", "sort_key": item["sort_key"] + "5"}
    await wire.container.upsert_item(planted)
    assert texts(await wire.history.get_messages(SESSION)) == texts(turn(0))
    assert violations(events) == 1
    await wire.history.clear(SESSION)
    assert {item["id"] for item in await wire.items()} == {HEAD, "planted"}


async def test_a_head_of_another_source(wire: Wire, events: list[MutableMapping[str, Any]]) -> None:
    """Demand 9: it is not replaced, not deleted and not believed."""
    await wire.change(HEAD, source_id="another")
    for operation in (
        lambda: wire.history.get_messages(SESSION),
        lambda: wire.history.save_messages(SESSION, turn(1)),
        lambda: wire.history.count(SESSION),
        lambda: wire.history.clear(SESSION),
    ):
        before = violations(events)
        with pytest.raises(errors.StateCorruptError) as caught:
            await operation()
        assert (caught.value.tenant_id, caught.value.session_id) == (TENANT, SESSION)
        assert violations(events) > before


async def test_a_message_moved_to_another_session(wire: Wire) -> None:
    """Demand 9: bytes copied under another session's header are recognised."""
    await wire.history.save_messages("s-2", turn(1))
    other = next(item for item in await wire.items() if item["session_id"] == "s-2" and item["type"] == "message")
    await wire.change(wire.message(0), payload=other["payload"])
    with pytest.raises(errors.StateCorruptError, match="disagree"):
        await wire.history.get_messages(SESSION)


async def test_emulators_that_ignore_the_key(
    wire: Wire, events: list[MutableMapping[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Demand 20: items of other tenants and sessions in an answer are events, and are not there."""
    await wire.history.save_messages("s-2", turn(1))
    foreign = [{**item, "tenant_id": "fabrikam"} for item in await wire.items()]
    query = Gateway.query

    async def with_strangers(self: Gateway, *arguments: Any, **options: Any) -> AsyncIterator[dict[str, Any]]:
        for item in foreign:
            yield item
        async for item in query(self, *arguments, **options):
            yield item

    monkeypatch.setattr(Gateway, "query", with_strangers)
    assert texts(await wire.history.get_messages(SESSION)) == texts(turn(0))
    assert await wire.history.list_sessions() == [SESSION, "s-2"]
    assert violations(events) == 2 * len(foreign)
    await wire.history.delete_session(SESSION)
    monkeypatch.undo()
    assert await wire.history.list_sessions() == ["s-2"]


HEADS: dict[str, dict[str, Any]] = {
    "of another type": {"type": "message"},
    "of a newer schema": {"schema": 2},
    "that counts backwards": {"next": 0, "first": 1},
    "that began later": {"began": 10**14 * 9},
    "without a beginning": {"began": None},
    "that counts too far": {"next": 10**15 + 1, "recent": ["u" + "a" * 22] * 32},
    "without identities": {"recent": []},
    "with others' identities": {"recent": ["u" + "a" * 22, "?"]},
}

COUNTS: dict[str, dict[str, Any]] = {
    "more": {"next": 3},
    "far more": {"next": 10**14},
    "less": {"next": 1},
    "less, of messages that expire": {"next": 1, "shortest_ttl": 1_000},
    "later ones, of messages that expire": {"began": 1, "first": 1, "shortest_ttl": 1_000},
}

MESSAGES: dict[str, dict[str, Any]] = {
    "of another type": {"type": "session"},
    "of a newer schema": {"schema": 2},
    "under another number": {"sequence": 1},
    "without an identity": {"identity": "?"},
    "without a payload": {"payload": None},
}


async def _assert_corrupt_until_it_is_cleared(wire: Wire) -> None:
    """Check that what cannot be read is never taken for nothing, and that what is cleared is usable again."""
    with pytest.raises(errors.StateCorruptError):
        await wire.history.get_messages(SESSION)
    await wire.history.clear(SESSION)
    await wire.history.save_messages(SESSION, turn(1))
    assert texts(await wire.history.get_messages(SESSION)) == texts(turn(1))


@pytest.mark.parametrize("fields", HEADS.values(), ids=list(HEADS))
async def test_heads_that_are_damaged(wire: Wire, fields: dict[str, Any]) -> None:
    """Demand 30: what they count cannot be known, and is not guessed."""
    await wire.change(HEAD, **fields)
    await _assert_corrupt_until_it_is_cleared(wire)


@pytest.mark.parametrize("counted", COUNTS.values(), ids=list(COUNTS))
async def test_heads_that_count_what_is_not_there(wire: Wire, counted: dict[str, Any]) -> None:
    """Demand 30: messages that are missing and messages that are too many are told, however many are counted."""
    numbers = {name: wire.began + counted[name] for name in ("began", "first", "next") if name in counted}
    recent = ["u" + "a" * 22] * min(32, numbers.get("next", wire.began + 2) - numbers.get("first", wire.began))
    await wire.change(HEAD, **{**counted, **numbers, "recent": recent})
    await _assert_corrupt_until_it_is_cleared(wire)


@pytest.mark.parametrize("fields", MESSAGES.values(), ids=list(MESSAGES))
async def test_messages_that_are_damaged(wire: Wire, fields: dict[str, Any]) -> None:
    """Demand 30: a message that cannot be read is never left out."""
    await wire.change(wire.message(0), **fields)
    await _assert_corrupt_until_it_is_cleared(wire)


@pytest.mark.parametrize("lost", [None, 0, 1], ids=["the head", "the first", "the last"])
async def test_loss_is_told(wire: Wire, lost: int | None) -> None:
    """Demand 30: a message that is gone is missed, and so is a head; what is cleared is usable again."""
    await wire.delete(HEAD if lost is None else wire.message(lost))
    with pytest.raises(errors.StateCorruptError, match="does not count what is there"):
        await wire.history.get_messages(SESSION)
    await wire.history.clear(SESSION)
    assert await wire.history.get_messages(SESSION) == []
    await wire.history.save_messages(SESSION, turn(1))
    assert texts(await wire.history.get_messages(SESSION)) == texts(turn(1))


async def test_a_save_without_the_head_that_was_there(wire: Wire) -> None:
    """Messages that no head counts are not begun anew beside, with or without a state that knows of them."""
    await wire.delete(HEAD)
    for state in (None, wire.state):
        with pytest.raises(errors.StateCorruptError, match="does not count"):
            await wire.history.save_messages(SESSION, turn(1), state=state)
    assert {item["id"] for item in await wire.items()} == {wire.message(0), wire.message(1)}


async def test_a_part_that_is_lost(wire: Wire) -> None:
    """Demand 30: a message without its parts is corrupt, never shorter and never left out."""
    await wire.history.save_messages(SESSION, [said(LARGE)])
    part = next(item for item in await wire.items() if item["type"] == "part")
    await wire.delete(part["id"])
    with pytest.raises(errors.StateCorruptError, match="does not count what is there"):
        await wire.history.get_messages(SESSION)


async def test_identities_that_are_lost(wire: Wire) -> None:
    """What decides about a long replay is not guessed."""
    messages = [said(str(number), "assistant") for number in range(100)]
    await wire.history.save_messages(SESSION, messages, state=wire.state)
    item = next(item for item in await wire.items() if item["id"] == wire.message(50))
    del item["identity"]
    await wire.container.upsert_item(item)
    with pytest.raises(errors.StateCorruptError, match="told by"):
        await wire.history.save_messages(SESSION, messages, state=wire.state)


async def test_payloads_that_are_damaged(wire: Wire) -> None:
    """Another format, another digest, parts that are impossible: an error, and it can be deleted all the same."""
    item = next(item for item in await wire.items() if item["id"] == wire.message(0))
    payload = item["payload"]
    for changed in ({"format": "maf-message/9"}, {"digest": "sha256:0"}, {"data": "?"}, {"write_id": "w", "parts": 0}):
        await wire.change(wire.message(0), payload={**payload, **changed})
        with pytest.raises(errors.StateCorruptError):
            await wire.history.get_messages(SESSION)
    assert await wire.history.delete_session(SESSION) is True
    assert await wire.items() == []
