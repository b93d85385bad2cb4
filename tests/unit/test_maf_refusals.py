"""What a save refuses: values that would not come back, each named by type and never quoted."""

from __future__ import annotations

import pickle
import threading
import traceback
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from agent_framework import (
    WorkflowEvent,
    register_checkpoint_type,
)
from agent_framework._workflows import _checkpoint_encoding

from cosmos_workflow_state import _maf
from cosmos_workflow_state._maf import deserialize, header_of, serialize
from cosmos_workflow_state._records import RefusedTypesError
from support.payloads import (
    KEY,
    Point,
    checkpoint_of,
    policy,
    refusal_of,
    state_through_payload,
)
from support.strangers import (
    SECRET,
    FailsToPickle,
    FailsToUnpickle,
    KeyWithoutText,
    Other,
    Recorder,
    Registered,
    Stranger,
    TextProxy,
    UnpicklesAsAnother,
    name_of,
)


@pytest.fixture
def registered() -> Iterator[str]:
    """Register `Registered` with the framework for one test and return its name."""
    register_checkpoint_type(Registered)
    name = name_of(Registered)
    yield name
    _checkpoint_encoding._REGISTERED_CHECKPOINT_TYPE_KEYS.discard(name)


def nested_tuples(levels: int) -> tuple[Any, ...]:
    """Return tuples in one another."""
    value: tuple[Any, ...] = ()
    for _ in range(levels):
        value = (value,)
    return value


@pytest.mark.parametrize(
    ("value", "refused"),
    [
        pytest.param([threading.Lock(), nested_tuples(100_000)], "_thread:lock", id="lock and too deep"),
        pytest.param(lambda: 1, "builtins:function", id="lambda"),
        pytest.param(threading.Lock(), "_thread:lock", id="lock"),
        pytest.param((threading.Lock(),), "builtins:tuple", id="lock in a tuple"),
        pytest.param({"__type__": {"a": threading.Lock()}}, "_thread:lock", id="lock in a pickled dict"),
        pytest.param(FailsToPickle(), name_of(FailsToPickle), id="raises"),
    ],
)
def test_unpicklable_values_are_refused_by_type(value: Any, refused: str) -> None:
    """What cannot be pickled is named by type, and the state beside it is not quoted."""
    error = refusal_of({"card": SECRET, "deep": [{"bad": value}]})
    assert error.types[0] == refused
    assert set(error.types) <= {refused, "builtins:tuple"}
    assert_no_secret(error)


def test_key_that_cannot_become_text_is_refused() -> None:
    """A key whose text raises cannot be written; what it says is not passed on."""
    error = refusal_of({KeyWithoutText(): 1})
    assert not error.types
    assert_no_secret(error)


def test_unpicklable_checkpoint_field_is_refused() -> None:
    """Messages, events and metadata are looked through as the state is."""
    assert refusal_of(1, metadata={"a": threading.Lock()}).types == ("_thread:lock",)


@pytest.mark.parametrize(
    "value", [Stranger(), [{"a": Stranger()}], (Stranger(),), Point(1, Stranger()), {1: Stranger()}]
)
def test_unlisted_class_is_refused_by_name(value: Any) -> None:
    """Wherever it hides, the class that loading would refuse is named so that it can be copied into the settings."""
    assert refusal_of(value).types == (name_of(Stranger),)
    raw = serialize(checkpoint_of(value), KEY, policy(name_of(Stranger)))
    assert deserialize(raw, KEY, policy(name_of(Stranger)))


def test_every_refused_class_is_named_once() -> None:
    """One error names all the classes found in different places, in order."""
    assert refusal_of([Stranger(), Other(), Stranger(), Point(1, 2)]).types == (name_of(Stranger), name_of(Other))


def test_registered_class_is_accepted_at_once(registered: str) -> None:
    """Registering with the framework is enough, also for a policy made before; the list of ours is not needed."""
    assert registered
    assert isinstance(state_through_payload(Registered()), Registered)


def test_registered_class_is_not_blamed_for_what_it_holds(registered: str) -> None:
    """Inside a registered object it is the unlisted class that is named."""
    assert registered
    assert refusal_of(Registered(Stranger())).types == (name_of(Stranger),)


def test_class_is_refused_until_it_is_registered() -> None:
    """A refusal is not remembered: the same policy accepts the class once it is registered."""
    mine = policy()
    checkpoint = checkpoint_of(Registered())
    with pytest.raises(RefusedTypesError):
        serialize(checkpoint, KEY, mine)
    register_checkpoint_type(Registered)
    try:
        assert serialize(checkpoint, KEY, mine)
    finally:
        _checkpoint_encoding._REGISTERED_CHECKPOINT_TYPE_KEYS.discard(name_of(Registered))


def test_object_that_comes_back_as_another_is_refused() -> None:
    """A pickle that would bring back an object of another class is refused under the class that was saved."""
    assert refusal_of(UnpicklesAsAnother()).types == (name_of(UnpicklesAsAnother),)


def test_content_quoted_while_unpickling_stays_inside() -> None:
    """A class that quotes its content when it fails to be restored is refused at save; its content stays."""
    allowed = policy(name_of(FailsToUnpickle))
    with pytest.raises(RefusedTypesError) as raised:
        serialize(checkpoint_of(FailsToUnpickle(SECRET)), KEY, allowed)
    assert raised.value.types == (name_of(FailsToUnpickle),)
    assert_no_secret(raised.value)


def test_content_quoted_while_loading_stays_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same when the class began to fail only after the save."""
    allowed = name_of(FailsToUnpickle)
    with monkeypatch.context() as patch:
        patch.delattr(FailsToUnpickle, "__setstate__")
        raw = serialize(checkpoint_of(FailsToUnpickle(SECRET)), KEY, policy(allowed))
    with pytest.raises(RefusedTypesError) as raised:
        deserialize(raw, KEY, policy(allowed))
    assert raised.value.types == (allowed,)
    assert_no_secret(raised.value)


def test_proxy_of_a_text_is_refused_by_type() -> None:
    """An object that only claims to be a str is no str to JSON: a typed refusal that names it."""
    assert refusal_of([{"a": TextProxy()}, 1, TextProxy()]).types == (name_of(TextProxy),)


def assert_no_secret(error: RefusedTypesError) -> None:
    """Check that nothing an application would show or log of an error holds the secret."""
    shown = [str(error), repr(error), repr(error.args), repr(error.types), *traceback.format_exception(error)]
    assert not [text for text in shown if SECRET in text]
    assert error.__cause__ is None


def test_checked_segments_are_remembered_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pickle that was checked is not unpickled again, until others have pushed it out."""
    monkeypatch.setattr(_maf, "_REMEMBERED_SEGMENTS", 2)
    mine, name = policy(name_of(Recorder)), name_of(Recorder)

    def unpicklings() -> int:
        Recorder.unpickled.clear()
        serialize(checkpoint_of(Recorder()), KEY, mine)
        return len(Recorder.unpickled)

    assert [unpicklings(), unpicklings()] == [1, 0]
    mine.check(pickle.dumps(1), "builtins:int")
    assert unpicklings() == 0
    mine.check(pickle.dumps(2), "builtins:int")
    mine.check(pickle.dumps(3), "builtins:int")
    assert unpicklings() == 1
    with pytest.raises(RefusedTypesError):
        mine.check(pickle.dumps(Recorder()), name + "x")


class Shrinking:
    """Takes something out of the dict it is in while it is pickled."""

    def __init__(self, home: dict[str, object]) -> None:
        self.home = home

    def __reduce__(self) -> tuple[type[int], tuple[()]]:
        """Shrink."""
        self.home.pop("other", None)
        return int, ()


def test_state_that_changes_while_it_is_copied_is_refused() -> None:
    """Pickling runs the state's own code; when that changes the state, there is no copy to speak of."""
    home: dict[str, object] = {"other": 1}
    home["shrinking"] = Shrinking(home)
    with pytest.raises(RefusedTypesError, match="changes while"):
        serialize(checkpoint_of(home), KEY, policy())


class Bottomless:
    """Asks for itself without end when it comes back."""

    def __getstate__(self) -> dict[str, int]:
        """Give something to restore."""
        return {"x": 1}

    def __setstate__(self, state: dict[str, int]) -> None:
        """Never end."""
        self.__setstate__(state)


def test_value_that_comes_back_without_end_is_refused() -> None:
    """A full stack while restoring is told as such, not as a type that is not allowed."""
    with pytest.raises(RefusedTypesError, match="nests too deep"):
        serialize(checkpoint_of(Bottomless()), KEY, policy(name_of(Bottomless)))


def test_checkpoint_that_is_not_the_one_it_was_called_is_refused() -> None:
    """The identity inside the payload is the one in the header, also for a checkpoint that is renamed meanwhile."""
    with pytest.raises(RefusedTypesError, match="changes while"):
        serialize(checkpoint_of(1), replace(KEY, checkpoint_id="another"), policy())


def test_restoring_logs_nothing_of_the_content(caplog: pytest.LogCaptureFixture) -> None:
    """What a class says of its content when it refuses to come back reaches no log, not even the debug log."""
    caplog.set_level("DEBUG")
    with pytest.raises(RefusedTypesError):
        serialize(checkpoint_of(FailsToUnpickle(SECRET)), KEY, policy(name_of(FailsToUnpickle)))
    assert SECRET not in caplog.text


def test_header_of_a_checkpoint() -> None:
    """The header says what can be asked for without the payload."""
    request = WorkflowEvent.request_info("r-1", "approval", "pay?", bool)
    checkpoint = checkpoint_of(
        1, previous_checkpoint_id="cp-0", iteration_count=3, pending_request_info_events={"r-1": request, 7: request}
    )
    header = header_of(checkpoint, KEY)
    assert header.key == KEY
    assert header.previous_checkpoint_id == "cp-0"
    assert header.iteration_count == 3
    assert header.timestamp == checkpoint.timestamp
    assert header.pending_request_ids == ("r-1", "7")


def test_header_without_parent_and_requests() -> None:
    """The first checkpoint has no parent and nothing pending; a bool as a count becomes a number."""
    header = header_of(checkpoint_of(1, iteration_count=True), KEY)
    assert header.previous_checkpoint_id is None
    assert header.pending_request_ids == ()
    assert type(header.iteration_count) is int


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("timestamp", None, "timestamp must be str, not NoneType"),
        ("iteration_count", "4", "iteration_count must be int, not str"),
        ("graph_signature_hash", 7, "graph_signature_hash must be str, not int"),
        ("version", 1.0, "version must be str, not float"),
        ("previous_checkpoint_id", 7, "previous_checkpoint_id must be str, not int"),
        ("pending_request_info_events", None, "pending_request_info_events must be dict, not NoneType"),
        ("version", "\ud800", "version must not contain a lone surrogate"),
        ("previous_checkpoint_id", "\udfff", "previous_checkpoint_id must not contain a lone surrogate"),
        ("pending_request_info_events", {"\ud800": None}, "a request id must not contain a lone surrogate"),
    ],
)
def test_header_fields_of_another_kind_are_refused(field: str, value: Any, reason: str) -> None:
    """What the framework never sets is refused by field, before it can become an item that cannot be sent."""
    with pytest.raises(RefusedTypesError) as raised:
        header_of(checkpoint_of(1, **{field: value}), KEY)
    assert str(raised.value) == reason
