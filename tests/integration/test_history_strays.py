"""Items that this package would not write, of a history or of none: every answer is a typed one, all can be deleted."""

from __future__ import annotations

from collections.abc import AsyncIterator, MutableMapping
from typing import Any

import pytest

from cosmos_workflow_state import errors
from cosmos_workflow_state._gateway import Gateway
from support.chat_wires import HEAD, SESSION, TENANT, Wire, open_wire
from support.chats import incompressible, said, texts, turn

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


def unreadable(events: list[MutableMapping[str, Any]]) -> int:
    """Return how many events of unreadable items there were."""
    return sum(event["event"] == "item.unreadable" and event["tenant_id"] == TENANT for event in events)


async def _plant(wire: Wire, item_id: str, **fields: Any) -> None:
    """Add an item that is like another one but for some fields; None leaves a field out."""
    item = next(item for item in await wire.items() if item["id"] == item_id)
    changed = {"id": "planted", **fields}
    await wire.container.upsert_item(
        {name: value for name, value in {**item, **changed}.items() if value is not None and name[0] != "_"}
    )


ODD: dict[str, dict[str, Any]] = {
    "a source that is an object": {"source_id": {}},
    "a source that is a list": {"source_id": []},
    "a source that is a number": {"source_id": 5},
    "no source": {"source_id": None},
    "a source that cannot be": {"source_id": "x\0"},
    "another source": {"source_id": "other"},
    "a place outside of its source": {"sort_key": "x"},
    "a place that is a number": {"sort_key": 5},
    "no place": {"sort_key": None},
    "a number that is too large": {"sequence": 10**15},
    "a number that is a text": {"sequence": "1"},
    "no identity": {"identity": None, "recent": None},
    "a payload that is none": {"payload": "x"},
    "parts that cannot be": {"payload": {"write_id": {}, "parts": 2}},
}


@pytest.mark.parametrize("like", ["a head", "a message"])
@pytest.mark.parametrize("fields", ODD.values(), ids=list(ODD))
async def test_a_session_with_odd_items(wire: Wire, fields: dict[str, Any], like: str) -> None:
    """Whatever a head or a message says of itself, a session is deleted with all of it."""
    await _plant(wire, HEAD if like == "a head" else wire.message(0), **fields)
    for operation in (wire.history.get_messages, wire.history.count, wire.history.clear):
        try:
            await operation(SESSION)
        except errors.StateCorruptError:
            assert operation != wire.history.clear
    await wire.history.save_messages(SESSION, turn(1))
    assert await wire.history.list_sessions() == [SESSION]
    assert await wire.history.delete_session(SESSION) is True
    assert await wire.items() == []


@pytest.mark.parametrize("fields", [{"source_id": {}}, {"source_id": "other"}, {"first": None}, {"recent": 7}], ids=str)
async def test_a_session_whose_head_is_odd(wire: Wire, fields: dict[str, Any]) -> None:
    """Also where it lies in the place of the one that should be there."""
    await wire.history.save_messages(SESSION, [said(LARGE)])
    await _plant(wire, HEAD, id=HEAD, **fields)
    with pytest.raises(errors.StateCorruptError):
        await wire.history.get_messages(SESSION)
    assert await wire.other.delete_session(SESSION) is True
    assert await wire.items() == []


async def test_a_message_that_the_head_does_not_count(wire: Wire) -> None:
    """Where the next one is to be, another one lies: it is not written over, and no writer is waited for."""
    await _plant(wire, wire.message(0), id=wire.message(2))
    with pytest.raises(errors.StateCorruptError, match="its head does not count"):
        await wire.history.save_messages(SESSION, turn(1), state=wire.state)
    assert len(await wire.items()) == 4


async def test_a_message_far_out_is_cleared(wire: Wire) -> None:
    """A number that no message has makes a history unreadable until it is cleared, and no head impossible."""
    await wire.change(wire.message(1), sequence=10**15)
    with pytest.raises(errors.StateCorruptError, match="number"):
        await wire.history.get_messages(SESSION)
    await wire.history.clear(SESSION)
    await wire.history.save_messages(SESSION, turn(1))
    assert texts(await wire.history.get_messages(SESSION)) == texts(turn(1))
    assert len(await wire.items()) == 3


UNLISTED: dict[str, dict[str, Any]] = {
    "no first number": {"first": None},
    "a first number that is a text": {"first": "1"},
    "a last number before the first": {"next": 0},
    "a session that is a number": {"session_id": 5},
    "a session that is true": {"session_id": True},
    "a session without a name": {"session_id": ""},
}


@pytest.mark.parametrize("fields", UNLISTED.values(), ids=list(UNLISTED))
async def test_sessions_that_are_left_out(
    wire: Wire, events: list[MutableMapping[str, Any]], fields: dict[str, Any]
) -> None:
    """A head that cannot be read is an event; the other sessions are named, each once."""
    await wire.history.save_messages("s-2", turn(0))
    await _plant(wire, HEAD, id="the same again")
    await _plant(wire, HEAD, **fields)
    assert await wire.history.list_sessions() == [SESSION, "s-2"]
    assert unreadable(events) == 1


async def test_a_session_with_items_of_another_kind(wire: Wire) -> None:
    """All that is known is deleted, and what is left is told."""
    item = next(item for item in await wire.items() if item["id"] == wire.message(0))
    await wire.container.upsert_item({**item, "id": "other", "type": "summary", "sort_key": "x"})
    with pytest.raises(errors.StateCorruptError, match="left"):
        await wire.history.delete_session(SESSION)
    assert [item["id"] for item in await wire.items()] == ["other"]


@pytest.mark.parametrize("odd", [{"type": {}}, {"type": []}, {"type": None}], ids=str)
async def test_a_session_with_items_of_no_kind(wire: Wire, odd: dict[str, Any]) -> None:
    """They are left, and told; all others are deleted."""
    await _plant(wire, HEAD, sort_key="x", **odd)
    with pytest.raises(errors.StateCorruptError, match="left"):
        await wire.history.delete_session(SESSION)
    assert [item["id"] for item in await wire.items()] == ["planted"]


@pytest.mark.parametrize(
    "odd", [{"write_id": {}}, {"write_id": "../x?y#z"}, {"write_id": None}, {"id": "a b;"}], ids=str
)
@pytest.mark.parametrize("kind", ["part", "upload_guard"])
async def test_parts_that_nothing_can_name(wire: Wire, odd: dict[str, Any], kind: str) -> None:
    """They are deleted as they were found."""
    await _plant(wire, HEAD, **{"type": kind, "write_id": "w", "sort_key": None, **odd})
    assert await wire.history.delete_session(SESSION) is True
    assert await wire.items() == []


async def test_uploads_of_an_account_that_does_not_order_reads(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    """What may be in use is not deleted: the error says what is needed; what has no such uploads is deleted."""

    async def never(_: Gateway) -> bool:
        return False

    monkeypatch.setattr(Gateway, "is_sequential", never)
    await wire.container.upsert_item(
        {"id": "pt:w:0000", "tenant_id": TENANT, "session_id": SESSION, "type": "part", "write_id": "w"}
    )
    with pytest.raises(errors.ProvisioningError, match="Session"):
        await wire.history.delete_session(SESSION)
    assert [item["id"] for item in await wire.items()] == ["pt:w:0000"]
    monkeypatch.undo()
    assert await wire.history.delete_session(SESSION) is True
    assert await wire.items() == []
