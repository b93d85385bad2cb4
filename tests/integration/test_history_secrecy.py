"""What is said is in no error of a history: not in its text, not in what led to it, not in what it came through."""

from __future__ import annotations

import base64
import traceback
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from agent_framework import Message

import cosmos_workflow_state
from cosmos_workflow_state import errors
from cosmos_workflow_state._codec import encode_whole
from cosmos_workflow_state._messages import FORMAT
from support.chat_wires import SESSION, Wire, open_wire
from support.chats import incompressible, said
from support.faults import drop_before, let_pass, status

SECRET = "sealed-lips"
PACKAGE = str(Path(cosmos_workflow_state.__file__).parent)
TRIES = 6


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut waits short."""
    monkeypatch.setattr("cosmos_workflow_state._gateway._FIRST_DELAY", 0.0)


@pytest.fixture
async def wire() -> AsyncIterator[Wire]:
    """Yield a history of one turn."""
    async with open_wire() as opened:
        yield opened


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and all that led to it, also what is not shown."""
    if error is not None:
        yield error
        yield from _chain(error.__cause__)
        yield from _chain(error.__context__)


def _assert_keeps_it(error: BaseException) -> None:
    """Check the texts, the fields, and the variables of this package's functions that an error came through."""
    for one in _chain(error):
        assert SECRET not in f"{one} {one.args} {vars(one)}"
        for frame, _ in traceback.walk_tb(one.__traceback__):
            if frame.f_code.co_filename.startswith(PACKAGE):
                assert SECRET not in repr(frame.f_locals), frame.f_code.co_name


def _raising(error: Exception) -> Callable[..., Any]:
    def to_dict(*_arguments: Any, **_options: Any) -> dict[str, Any]:
        raise error

    return to_dict


WRITTEN: dict[str, Callable[..., Any]] = {
    "an error of its own": _raising(RuntimeError(SECRET)),
    "a key": _raising(KeyError(SECRET)),
    "a value": _raising(ValueError(SECRET)),
    "an attribute": _raising(AttributeError(SECRET)),
    "an object": lambda *_, **__: {"type": "message", SECRET: object()},
    "another key": lambda *_, **__: {"type": "message", "role": "user", SECRET: SECRET},
    "something else": lambda *_, **__: [SECRET],
}


@pytest.mark.parametrize("written", WRITTEN.values(), ids=list(WRITTEN))
async def test_messages_that_are_refused(wire: Wire, monkeypatch: pytest.MonkeyPatch, written: Any) -> None:
    """Whatever a message raises when it is written, or is written as, the error is ours and says nothing of it."""
    message = said(SECRET)
    with monkeypatch.context() as patch:
        patch.setattr(Message, "to_dict", written)
        with pytest.raises(errors.StateNotRestorableError, match="message 1") as caught:
            await wire.history.save_messages(SESSION, [_Plain("user", ["a"]), message])
    _assert_keeps_it(caught.value)
    assert await wire.history.count(SESSION) == 2


class _Plain(Message):
    def to_dict(self, **_options: Any) -> dict[str, Any]:
        return {"type": "message", "role": "user", "contents": []}


STORED: dict[str, bytes] = {
    "no JSON": b'{"%s',
    "another's": b'{"tenant":"%s","session":"s-1","source":"chat","message":{}}',
    "other fields": b'{"%s":1}',
    "no message": b'{"tenant":"contoso","session":"s-1","source":"chat","message":{"%s":1,"contents":5}}',
    "no content": b'{"tenant":"contoso","session":"s-1","source":"chat","message":'
    b'{"type":"message","role":"user","contents":[{"%s":1}]}}',
}


@pytest.mark.parametrize("raw", STORED.values(), ids=list(STORED))
async def test_messages_that_cannot_be_read(wire: Wire, raw: bytes) -> None:
    """What is wrong with them is said without them, and without those beside them."""
    await wire.history.save_messages(SESSION, [said(SECRET), said("end")])
    payload = encode_whole(raw % SECRET.encode() if b"%" in raw else raw, payload_format=FORMAT)
    data = base64.b64encode(payload.data).decode()
    stored = {"format": FORMAT, "codecs": ["zstd"], "digest": payload.digest, "size": payload.size, "data": data}
    await wire.change(wire.message(3), payload=stored)
    with pytest.raises(errors.StateCorruptError) as caught:
        await wire.history.get_messages(SESSION)
    _assert_keeps_it(caught.value)


@pytest.mark.parametrize("at", [0, 1])
@pytest.mark.parametrize("faults", [[status(400)], [status(413)], [drop_before] * TRIES], ids=["400", "413", "lost"])
async def test_saves_that_fail(wire: Wire, faults: list[Any], at: int) -> None:
    """What was under way is not shown by who records the variables of a failure."""
    wire.transport.faults = [*[let_pass] * at, *faults, *[drop_before] * TRIES]
    with pytest.raises(errors.ServiceError) as caught:
        await wire.history.save_messages(SESSION, [said(SECRET), said(f"{SECRET} {incompressible(400_000)}")])
    _assert_keeps_it(caught.value)
