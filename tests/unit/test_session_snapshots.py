"""Sessions to bytes and back: what survives, what is refused and what is said of it. No I/O."""

from __future__ import annotations

import json
import math
import warnings
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from agent_framework import AgentSession, Content, FileSessionStore, Message
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from pydantic import BaseModel

from cosmos_workflow_state._records import RefusedTypesError, UnreadableError
from cosmos_workflow_state._session_snapshots import MAX_DEPTH, deserialize, serialize
from support.sessions import Booking, Fragile, Loose, Ticket, content, session
from support.strangers import KeyWithoutText

SECRET = "4111-1111-1111-1111"
NOT_JSON = "it is neither JSON nor of a type that register_state_type knows"
RICH = {
    "text": "Zürich \ud83d\ude00 \x00",
    "numbers": [0, -1, 2**70, 1.5, -0.0, True, None],
    "nested": {"a": [{"b": []}, {}]},
    "ticket": Ticket(7, "leak"),
    "booking": Booking(place="Bern", guests=["Ann"]),
    "inside": [{"ticket": Ticket(8, "again")}],
}


def _keyed(text: str) -> str:
    """Leave alone the one key that means something to the framework."""
    return f"{text}_" if text == "type" else text


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters()),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters()).map(_keyed), inner, max_size=4)
    ),
    max_leaves=20,
)


def restored(one: AgentSession) -> AgentSession:
    """Return a session by way of its bytes."""
    return deserialize(serialize(one))


def refusal(state: Any, **ids: Any) -> str:
    """Return what is said of a session that is refused."""
    one = session(**ids)
    one.state = state
    with pytest.raises(RefusedTypesError) as caught:
        serialize(one)
    return str(caught.value)


@given(state=st.dictionaries(st.text(st.characters()).map(_keyed), JSON, max_size=5), service=st.none() | st.text())
@hypothesis_settings(max_examples=60, deadline=None)
def test_json_survives(state: dict[str, Any], service: str | None) -> None:
    """Whatever JSON can say comes back equal, lone surrogates and large integers included."""
    one = session(state, service_session_id=service)
    assert content(restored(one)) == content(one)


def test_registered_types_survive() -> None:
    """What is registered comes back as what it was, at any depth."""
    one = session(RICH, service_session_id={"conversation": "c-1", "nested": [1, {"a": None}]})
    assert content(restored(one)) == content(one)


def test_messages_survive() -> None:
    """The framework's own registered type: what its in-memory history keeps in a session."""
    call = Content.from_function_call("c-1", "lookup", arguments={"n": 1})
    one = session({"messages": [Message("user", ["hello"]), Message("assistant", [call])]})
    assert [message.to_dict() for message in restored(one).state["messages"]] == [
        message.to_dict() for message in one.state["messages"]
    ]


def test_numbers_that_are_not_finite_survive() -> None:
    """The file store refuses them in the state, and makes null of them in ``service_session_id``."""
    one = restored(session({"a": [math.inf, -math.inf, math.nan]}, service_session_id={"n": math.nan}))
    assert one.state["a"][:2] == [math.inf, -math.inf]
    assert math.isnan(one.state["a"][2])
    assert isinstance(one.service_session_id, dict)
    assert math.isnan(one.service_session_id["n"])


@pytest.mark.parametrize(
    ("state", "comes_back"),
    [
        pytest.param({"a": (1, (2,))}, {"a": [1, [2]]}, id="tuple"),
        pytest.param({"a": OrderedDict(b=1)}, {"a": {"b": 1}}, id="ordered dict"),
        pytest.param({"a": MappingProxyType({"b": 1})}, {"a": {"b": 1}}, id="mapping"),
        pytest.param({"a": Loose()}, {"a": {"loose": [1, 2]}}, id="to_dict"),
        pytest.param({1: {2: 3, None: 4}}, {"1": {"2": 3, "None": 4}}, id="keys"),
    ],
)
def test_what_comes_back_as_json(state: dict[Any, Any], comes_back: dict[str, Any]) -> None:
    """As with the framework's file store: containers become lists and dicts, keys become text."""
    assert restored(session(state)).state == comes_back


async def test_the_file_store_of_the_framework_reads_what_is_written(tmp_path: Path) -> None:
    """The bytes are a file of its, so what it changes about them is noticed here."""
    one = session(RICH | {"text": "x"}, service_session_id={"conversation": "c-1"})
    (tmp_path / "k.json").write_bytes(serialize(one))
    assert content(await FileSessionStore(tmp_path).get("k")) == content(one)


@pytest.mark.parametrize("service", [None, "r-1", {"conversation": "c-1"}], ids=str)
async def test_what_the_file_store_of_the_framework_writes_is_read(tmp_path: Path, service: Any) -> None:
    """And the other way round: fields, version and registered types are the same."""
    one = session(RICH | {"text": "x"}, service_session_id=service)
    await FileSessionStore(tmp_path).set("k", one)
    assert content(deserialize((tmp_path / "k.json").read_bytes())) == content(one)


def test_a_copy_is_made_each_time() -> None:
    """What is done to one copy, or to the original afterwards, is in no other."""
    one = session({"a": [1], "ticket": Ticket(1, "a")}, service_session_id={"b": [2]})
    raw = serialize(one)
    one.state["a"].append(2)
    first, second = deserialize(raw), deserialize(raw)
    first.state["a"].append(3)
    first.state["ticket"].title = "b"
    assert (second.state["a"], second.state["ticket"]) == ([1], Ticket(1, "a"))


class Subclass(AgentSession):
    """A session with more to it."""


class Settings(dict[str, Any]):
    """A mapping whose own code leaves something out."""

    def to_dict(self) -> dict[str, Any]:
        """Return what is to be kept."""
        return {"kept": 1}


def test_a_mapping_may_leave_something_out() -> None:
    """Only of a plain dict it is known that nothing may get lost."""
    assert restored(session({"a": Settings(kept=1, left=2)})).state == {"a": {"kept": 1}}


@pytest.mark.parametrize("given", [Subclass(), "s-1", None], ids=["subclass", "text", "None"])
def test_only_plain_sessions_are_taken(given: Any) -> None:
    """What a subclass adds would be lost, so it is refused as by the file store."""
    with pytest.raises(RefusedTypesError, match=r"session must be an AgentSession itself, not (Subclass|str|NoneType)"):
        serialize(given)


@pytest.mark.parametrize(
    ("ids", "name"),
    [
        pytest.param({"session_id": 5}, "session_id", id="session id"),
        pytest.param({"service_session_id": 5}, "service_session_id", id="service session id"),
        pytest.param({"service_session_id": [SECRET]}, "service_session_id", id="service session ids"),
    ],
)
def test_ids_of_another_kind(ids: dict[str, Any], name: str) -> None:
    """The file store takes them, and refuses to read them back."""
    said = refusal({}, **ids)
    assert said.startswith(f"{name} of the session must not be a ")
    assert SECRET not in said


def test_a_state_of_another_kind() -> None:
    """An attribute that anybody may replace."""
    assert refusal([SECRET]) == "state of the session must not be a list"


@pytest.mark.filterwarnings("default::RuntimeWarning")
@pytest.mark.parametrize("warns", [True, False], ids=["warnings shown", "warnings are errors"])
@pytest.mark.parametrize(
    ("state", "where"),
    [
        pytest.param({"a": {SECRET}}, "state.a (set)", id="set"),
        pytest.param({"a": [0, {"b": SECRET.encode()}]}, "state.a[1].b (bytes)", id="nested"),
        pytest.param({"a": ({"b": (0, object())},)}, "state.a[0].b[1] (object)", id="tuples"),
        pytest.param({"ok": Ticket(1, "a"), "x" * 100: {1j}}, f"state.{'x' * 60}… (set)", id="long key"),
    ],
)
def test_what_cannot_be_stored_is_named_by_its_place(
    recwarn: pytest.WarningsRecorder, state: dict[str, Any], where: str, *, warns: bool
) -> None:
    """Where and of which type, never what; whether or not the framework's own warning is an error."""
    if not warns:
        warnings.simplefilter("error")
    said = refusal(state)
    assert said == f"{where} cannot be stored: {NOT_JSON}"
    assert len(recwarn) <= 1, "the framework warns once, of the value itself"


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_refused_value_in_the_service_session_id() -> None:
    """The file store stores bytes and sets there, and gives them back as something else."""
    assert (
        refusal({}, service_session_id={"a": [b"x"]}) == f"service_session_id.a[0] (bytes) cannot be stored: {NOT_JSON}"
    )


class Unregistered(BaseModel):
    """A model that the framework registers by itself, for the time being, with a warning."""

    name: str


def test_a_model_that_nobody_registered() -> None:
    """Where warnings are errors it is refused by its place; the framework's own warning says what to do."""
    assert refusal({"a": [Unregistered(name=SECRET)]}) == f"state.a[0] (Unregistered) cannot be stored: {NOT_JSON}"


@pytest.mark.parametrize(
    ("state", "where"),
    [
        pytest.param({"a": {1: SECRET, "1": SECRET}}, "state.a", id="nested"),
        pytest.param({1: SECRET, "1": SECRET}, "state", id="outermost"),
        pytest.param({"l": [{"a": {None: 1, "None": 2}}]}, "state.l[0].a", id="in a list"),
    ],
)
def test_keys_that_have_the_same_text(state: dict[Any, Any], where: str) -> None:
    """The framework's file store keeps the last of them, and says nothing."""
    assert refusal(state) == f"{where} (dict) cannot be stored: two of its keys have the same text"


@pytest.mark.parametrize(
    ("state", "where"),
    [
        pytest.param({"a": 1, "b": {"c": [Fragile(SECRET)]}}, "state.b.c[0] (Fragile)", id="encoder"),
        pytest.param({"a": Loose, "b": 1}, "state.a (type)", id="class"),
        pytest.param({"a": [{"b": 10**5000}]}, "state.a[0].b (int)", id="too many digits"),
    ],
)
def test_what_the_code_of_a_type_raises_is_not_repeated(state: dict[str, Any], where: str) -> None:
    """An exception of an encoder may quote the state; its class is enough, with the place."""
    said = refusal(state)
    assert said.startswith(f"{where} cannot be stored: ")
    assert said.endswith("Error was raised")
    assert SECRET not in said


class Moody:
    """A value whose encoder raises only the first time."""

    raised = False

    def to_dict(self) -> Mapping[str, Any]:
        """Raise, once."""
        if self.raised:
            return {}
        self.raised = True
        raise LookupError


@pytest.mark.parametrize("state", [{"a": Moody()}, {"a": {KeyWithoutText(): 1}}], ids=["once", "key"])
def test_a_refusal_that_cannot_be_found_again(state: dict[str, Any]) -> None:
    """What does not raise twice, or raises when it is named, has no place to be named by."""
    assert refusal(state) == "the session cannot be stored: the code of a value in it raised something"


def test_the_depth_is_limited() -> None:
    """What could be stored but not read back, deeper in the stack, is refused; so is what contains itself."""

    def deep(levels: int) -> dict[str, Any]:
        state: dict[str, Any] = {}
        for _ in range(levels - 1):
            state = {"a": state}
        return state

    assert restored(session(deep(MAX_DEPTH))).state == deep(MAX_DEPTH)
    circle: list[Any] = []
    circle.append(circle)
    for state in (deep(MAX_DEPTH + 1), deep(5000), {"a": circle}):
        assert refusal(state) == "the session's state is nested more than 256 levels deep"


def test_a_value_that_raises_beside_what_is_too_deep() -> None:
    """What is too deep is not what raises, when that is looked for."""
    deep: dict[str, Any] = {}
    for _ in range(MAX_DEPTH):
        deep = {"a": deep}
    assert refusal({"a": deep, "b": Fragile(SECRET)}).startswith("state.b (Fragile)")


def test_what_a_decoder_refuses() -> None:
    """The type and the place, not what the decoder says."""
    raw = serialize(session({"a": [Fragile(SECRET, breaks_out=True)]}))
    with pytest.raises(RefusedTypesError) as caught:
        deserialize(raw)
    assert str(caught.value).endswith("registered state type 'support.sessions.fragile' at state.a[0].")
    assert SECRET not in str(caught.value)


SNAPSHOT = json.loads(serialize(session({"a": 1})))


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\xff", id="no text"),
        pytest.param(b"[1]", id="no object"),
        pytest.param(b"[" * 100_000, id="too deep for a parser"),
        *[
            pytest.param(json.dumps(SNAPSHOT | changes).encode(), id=str(changes))
            for changes in (
                {"type": "thread"},
                {"version": "2.0"},
                {"session_id": ""},
                {"session_id": 5},
                {"service_session_id": 5},
                {"state": []},
                {"state": None},
            )
        ],
        pytest.param(
            json.dumps(SNAPSHOT | {"state": {"a": 0}}).replace("0}", "[" * 900 + "]" * 900 + "}").encode(), id="deep"
        ),
    ],
)
def test_what_nobody_has_written_is_unreadable(raw: bytes) -> None:
    """No default for what is not as it was written."""
    with pytest.raises(UnreadableError) as caught:
        deserialize(raw)
    assert caught.value.__cause__ is None
