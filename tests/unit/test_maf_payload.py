"""Payload format ``maf/1``: what goes in comes out, as the framework's own file storage gives it back or better."""

from __future__ import annotations

import json
import math
import pickle
import threading
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import pytest
from agent_framework import (
    InMemoryCheckpointStorage,
    WorkflowCheckpoint,
    WorkflowEvent,
    WorkflowMessage,
    register_checkpoint_type,
)
from agent_framework._workflows import _checkpoint_encoding
from hypothesis import given

from cosmos_workflow_state import _maf
from cosmos_workflow_state._identity import Scope, TenantId
from cosmos_workflow_state._maf import RestorePolicy, deserialize, header_of, serialize
from cosmos_workflow_state._records import CheckpointKey, RefusedTypesError, UnreadableError
from support import expenses
from support.payloads import (
    KEY,
    Colour,
    Count,
    Items,
    Level,
    Line,
    Point,
    Ratio,
    Record,
    Text,
    Word,
    any_values,
    checkpoint_of,
    free_keys,
    named_values,
    policy,
    same,
    state_through_payload,
    through_file,
    through_payload,
)
from support.strategies import quick

SECRET = "4111-1111-1111-1111"


class Stranger:
    """A class that no allow-list names."""


class Registered:
    """A class that tests register; it holds something else."""

    def __init__(self, held: object = None) -> None:
        """Hold something."""
        self.held = held


class Other:
    """Another class that no allow-list names."""


class Recorder:
    """A class that tells when it is unpickled."""

    unpickled: ClassVar[list[str]] = []

    def __getstate__(self) -> dict[str, str]:
        """Have a state, so that `__setstate__` is called."""
        return {"name": "recorder"}

    def __setstate__(self, state: dict[str, str]) -> None:
        """Tell of it."""
        self.unpickled.append(state["name"])


class FailsToUnpickle:
    """A class that quotes its content when it cannot be restored."""

    def __init__(self, secret: str) -> None:
        """Keep the content."""
        self.secret = secret

    def __setstate__(self, state: dict[str, str]) -> NoReturn:
        """Quote the content."""
        raise ValueError(state["secret"])


class FailsToPickle:
    """A class that quotes its content when it cannot be pickled."""

    def __getstate__(self) -> NoReturn:
        """Quote the content."""
        raise ValueError(SECRET)


class UnpicklesAsAnother:
    """A class whose pickle brings back an object of another class."""

    def __reduce__(self) -> tuple[type[Any], tuple[int, int]]:
        """Become a point."""
        return (Point, (1, 2))


class StrangeText(str):
    """A subclass of str that no allow-list names."""

    __slots__ = ()


class KeyWithoutText:
    """A key that cannot become text."""

    def __str__(self) -> str:
        """Quote the content."""
        raise ValueError(SECRET)


class TextProxy:
    """What a lazy proxy of a text looks like: it claims the class of the text behind it."""

    @property
    def __class__(self) -> type[Any]:
        """Claim to be a str."""
        return str


@pytest.fixture
def registered() -> Iterator[str]:
    """Register `Registered` with the framework for one test and return its name."""
    register_checkpoint_type(Registered)
    name = name_of(Registered)
    yield name
    _checkpoint_encoding._REGISTERED_CHECKPOINT_TYPE_KEYS.discard(name)


def name_of(kind: type[Any]) -> str:
    """Return the name by which a type is allowed or refused."""
    return f"{kind.__module__}:{kind.__qualname__}"


def refusal_of(state: Any, **changes: Any) -> RefusedTypesError:
    """Return the error with which a state is refused."""
    with pytest.raises(RefusedTypesError) as raised:
        serialize(checkpoint_of(state, **changes), KEY, policy())
    return raised.value


def nested(levels: int, innermost: Any = 1) -> Any:
    """Return lists and dicts in one another."""
    value = innermost
    for level in range(levels):
        value = [value] if level % 2 else {"k": value}
    return value


def nested_tuples(levels: int) -> tuple[Any, ...]:
    """Return tuples in one another."""
    value: tuple[Any, ...] = ()
    for _ in range(levels):
        value = (value,)
    return value


def split(raw: bytes) -> tuple[dict[str, Any], bytes]:
    """Return the head and the segments of a payload."""
    end = 8 + int.from_bytes(raw[:8], "big")
    return json.loads(raw[8:end]), raw[end:]


def join(head: Any, segments: bytes) -> bytes:
    """Return a payload of a head and segments."""
    text = json.dumps(head).encode()
    return len(text).to_bytes(8, "big") + text + segments


def with_head(raw: bytes, change: Callable[[dict[str, Any]], object]) -> bytes:
    """Return a payload whose head was changed in place."""
    head, segments = split(raw)
    change(head)
    return join(head, segments)


# --- fidelity -----------------------------------------------------------------------------------------------------


@quick
@given(named_values)
def test_comes_back_exactly_as_from_the_file_storage(tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
    """Where keys are texts, every value and its type is what the framework's file storage gives back."""
    expected = through_file(checkpoint_of(value), tmp_path_factory.getbasetemp())
    assert same(through_payload(checkpoint_of(value)), expected)


@quick
@given(any_values)
def test_is_never_less_than_the_file_storage(tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
    """Whatever the keys are: nothing that the file storage accepts is refused, and no more than it loses is lost."""
    folder = tmp_path_factory.getbasetemp()
    expected = through_file(checkpoint_of(value), folder)
    assert same(through_file(through_payload(checkpoint_of(value)), folder), expected)


@quick
@given(free_keys)
def test_keys_keep_their_type_where_that_is_free(value: dict[Any, Any]) -> None:
    """Keys that JSON would turn into text come back as they were."""
    assert same(list(state_through_payload(value)), list(value))


@pytest.mark.parametrize(
    "value",
    [
        2**70,
        -(2**70),
        int("9" * 4300),
        1.0,
        0.1 + 0.2,
        math.nan,
        math.inf,
        -math.inf,
        -0.0,
        "\0",
        'quotes " and \\ud83d',
        chr(0xD800),
        chr(0xD83D) + chr(0xDE00),  # a pair of lone surrogates, which is not the character
        chr(0xDE00) + chr(0xD83D),
        chr(0x1F600),
        {"\ud800": "\udfff"},
        {1: "a", "1": "b"},
        {True: "a", "True": "b", None: "c", "None": "d"},
        {1: {2: {3.5: [None]}}},
        {math.nan: math.nan, b"\0": -0.0},
        {"__pickled__": "gASVBQ==", "__type__": "builtins:int"},
        {"__pickled__": 3},
        {"__type__": [{"__pickled__": {"__type__": None}}]},
        [{"a": [{"__pickled__": "x", "b": {"__type__": "y"}}]}],
        {Word.MARKER: 1},
        [Items([1]), Record(a=1), Record(__pickled__=1)],
        (1, (2, [3, {4: 5}])),
        Line(Point(1, {"a": (Point(None, Colour.BLUE),)}), Line.Style()),
        [Colour.RED, (Level.LOW, Word.YES, Text("t"), Count(7), Ratio(0.5))],
        [],
        {},
        "",
        None,
    ],
    ids=repr,
)
def test_comes_back_as_it_was(value: Any) -> None:
    """Values at the edges of JSON, text and pickle come back equal in type and content."""
    assert same(state_through_payload(value), value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [(Level.HIGH, 2), (Word.YES, "yes"), (Text("t"), "t"), (Count(2**70), 2**70), (Ratio(math.inf), math.inf)],
    ids=repr,
)
def test_subclasses_of_json_types_become_those(value: Any, expected: Any) -> None:
    """A bare subclass of str, int or float comes back as the framework's file storage gives it: the plain value."""
    assert same(state_through_payload(value), expected)


@pytest.mark.parametrize("key", [(1, 2), Level.LOW, Word.YES, Text("t"), Colour.RED], ids=repr)
def test_keys_of_other_kinds_become_text_as_in_the_file_storage(key: Any, tmp_path: Path) -> None:
    """A key that is not surely restored becomes text as the framework does it; it is not refused."""
    found = state_through_payload({key: "a"})
    assert same(found, {str(key): "a"})
    assert same(found, through_file(checkpoint_of({key: "a"}), tmp_path).state["value"])


@pytest.mark.parametrize("value", [StrangeText("t"), type("Local", (str,), {})("t")], ids=["unlisted", "unpicklable"])
def test_dict_that_would_not_come_back_whole_is_stored_as_the_framework_does(value: str, tmp_path: Path) -> None:
    """A subclass of str is text in JSON but refused in a pickle: the dict around it is then not pickled."""
    assert same(state_through_payload({1: value}), {"1": "t"})
    assert same(through_file(checkpoint_of({1: value}), tmp_path).state["value"], {"1": "t"})


def test_every_field_comes_back(tmp_path: Path) -> None:
    """A checkpoint of real messages, request events and a sub-workflow's checkpoint inside its state."""
    request = WorkflowEvent.request_info("r-1", "approval", Point("pay?", 7), bool)
    checkpoint = checkpoint_of(
        {"_executor_state": {"child": {"checkpoint": WorkflowCheckpoint("child", "hash", state={"a": (1,)})}}},
        previous_checkpoint_id="cp-0",
        messages={"intake": [WorkflowMessage(Point(1, 2), "intake", "approval", original_request_info_event=request)]},
        pending_request_info_events={"r-1": request},
        iteration_count=4,
        metadata={"nan": math.nan, "big": 2**70},
        version="1.1",
    )
    found = through_payload(checkpoint)
    assert same(found, checkpoint)
    assert same(found, through_file(checkpoint, tmp_path))


async def test_checkpoints_of_a_real_workflow_come_back() -> None:
    """Each checkpoint that the framework makes on the way to a pause comes back as it was, the pending request too."""
    memory = InMemoryCheckpointStorage()
    await expenses.run_to_the_pause(memory)
    checkpoints = await memory.list_checkpoints(workflow_name=expenses.WORKFLOW)
    assert any(checkpoint.pending_request_info_events for checkpoint in checkpoints)
    for checkpoint in checkpoints:
        key = replace(KEY, workflow_name=expenses.WORKFLOW, checkpoint_id=checkpoint.checkpoint_id)
        allowed = RestorePolicy(expenses.ALLOWED)
        assert same(deserialize(serialize(checkpoint, key, allowed), key, RestorePolicy(expenses.ALLOWED)), checkpoint)


def test_payload_is_deterministic() -> None:
    """The same checkpoint gives the same bytes, so that saving it again can be told from saving another."""
    one, other = (serialize(checkpoint_of([{1: Point(1, 2)}, (3,)]), KEY, policy()) for _ in range(2))
    assert one == other


def test_what_comes_back_is_a_copy() -> None:
    """Changing the live state after a save changes nothing that was saved."""
    live: dict[str, Any] = {"items": [1], "point": Point(1, [2])}
    raw = serialize(checkpoint_of(live), KEY, policy())
    live["items"].append(2)
    live["point"].y.append(3)
    assert same(deserialize(raw, KEY, policy()).state["value"], {"items": [1], "point": Point(1, [2])})


# --- depth and size -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("innermost", [1, (1,), {1: 2}], ids=repr)
def test_200_levels_come_back(innermost: Any) -> None:
    """Deep state is ordinary."""
    assert state_through_payload(nested(200, innermost)) == nested(200, innermost)


@pytest.mark.parametrize("levels", [254, 255])
def test_limit_of_depth(levels: int) -> None:
    """256 levels, the checkpoint's own two among them, are the limit."""
    if levels == 254:
        assert state_through_payload(nested(levels)) == nested(levels)
    else:
        assert "256 levels" in str(refusal_of(nested(levels)))


@pytest.mark.parametrize("levels", [300, 100_000])
def test_too_deep_is_refused(levels: int) -> None:
    """Beyond it the save is refused, not the load; no RecursionError escapes."""
    refusal_of(nested(levels))


def test_state_that_contains_itself_is_refused() -> None:
    """A loop in plain lists and dicts has no end to write."""
    loop: list[Any] = []
    loop.append({"again": loop})
    assert "contains itself" in str(refusal_of(loop))


def test_loop_beside_something_unpicklable_is_refused() -> None:
    """The search for what cannot be pickled does not fall into the loop."""
    loop: list[Any] = []
    loop.append(loop)
    assert "contains itself" in str(refusal_of([threading.Lock(), loop]))


def test_objects_that_refer_to_themselves_come_back(registered: str) -> None:
    """A loop inside a pickled object is pickle's to keep."""
    assert registered
    loop = Registered()
    loop.held = loop
    found = state_through_payload(loop)
    assert found.held is found


def on_a_stack_of(frames: int, call: Callable[[], object]) -> object:
    """Call from deeper down the stack."""
    return call() if frames == 0 else on_a_stack_of(frames - 1, call)


def outcome_of(call: Callable[[], object]) -> tuple[str, str]:
    """Return the kind and message of the error that a call ends with; the stack may end before the call."""
    try:
        call()
    except (RefusedTypesError, UnreadableError) as error:
        return type(error).__name__, str(error)
    except RecursionError as error:
        return "RecursionError", traceback.extract_tb(error.__traceback__)[-1].name
    return "", ""


def test_caller_with_little_stack_left_gets_our_errors() -> None:
    """However deep the caller is, saving and loading work or say in our words that there is no room."""
    checkpoint = checkpoint_of([nested(60, (1,)), {1: Point(1, nested(10))}])
    raw = serialize(checkpoint, KEY, policy())
    calls = (lambda: serialize(checkpoint, KEY, policy()), lambda: deserialize(raw, KEY, policy()))
    outcomes = {
        outcome_of(lambda frames=frames, call=call: on_a_stack_of(frames, call))
        for frames in range(500, 930)
        for call in calls
    }
    ours = {outcome for outcome in outcomes if outcome[0] != "RecursionError"}
    assert ours == {
        ("", ""),
        ("RefusedTypesError", "the state contains itself or nests too deep"),
        ("UnreadableError", "the payload nests deeper than the caller's stack leaves room for"),
    }
    assert {name for _, name in outcomes - ours} <= {"on_a_stack_of", "<lambda>", "policy"}


def test_integer_of_5000_digits_is_refused_where_json_writes_it() -> None:
    """Python would neither write nor read it; inside a tuple, which is pickled, it comes back."""
    huge = 10**5000
    assert "digits" in str(refusal_of({"n": huge}))
    assert state_through_payload((huge,)) == (huge,)


# --- refusals -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "refused"),
    [
        pytest.param([threading.Lock(), nested_tuples(100_000)], "_thread:lock", id="lock and too deep"),
        pytest.param(lambda: 1, "builtins:function", id="lambda"),
        pytest.param(threading.Lock(), "_thread:lock", id="lock"),
        pytest.param((threading.Lock(),), "builtins:tuple", id="lock in a tuple"),
        pytest.param({"__type__": {"a": threading.Lock()}}, "_thread:lock", id="lock in a pickled dict"),
        pytest.param(FailsToPickle(), f"{__name__}:FailsToPickle", id="raises"),
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
    mine.restorable(pickle.dumps(1), "builtins:int")
    assert unpicklings() == 0
    mine.restorable(pickle.dumps(2), "builtins:int")
    mine.restorable(pickle.dumps(3), "builtins:int")
    assert unpicklings() == 1
    assert not mine.restorable(pickle.dumps(Recorder()), name + "x")


# --- the header ---------------------------------------------------------------------------------------------------


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
    assert header.graph_signature_hash == checkpoint.graph_signature_hash
    assert header.version == checkpoint.version
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


# --- reading ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "other",
    [
        CheckpointKey(TenantId("fabrikam"), KEY.scope, KEY.workflow_name, KEY.checkpoint_id),
        CheckpointKey(KEY.tenant, Scope(""), KEY.workflow_name, KEY.checkpoint_id),
        CheckpointKey(KEY.tenant, KEY.scope, "other", KEY.checkpoint_id),
        CheckpointKey(KEY.tenant, KEY.scope, KEY.workflow_name, "cp-2"),
    ],
    ids=["tenant", "scope", "workflow", "id"],
)
def test_anothers_payload_is_refused_before_anything_is_unpickled(other: CheckpointKey) -> None:
    """A payload that was moved to another tenant, scope, workflow or id is refused, and none of its code has run."""
    allowed = policy(name_of(Recorder))
    raw = serialize(checkpoint_of(Recorder()), KEY, allowed)
    Recorder.unpickled.clear()
    with pytest.raises(UnreadableError, match="disagree on tenant, scope, workflow or id"):
        deserialize(raw, other, allowed)
    assert not Recorder.unpickled
    deserialize(raw, KEY, allowed)
    assert Recorder.unpickled == ["recorder"]


def test_unlisted_class_is_refused_at_load_without_running_it() -> None:
    """A process that does not allow a class names it, and does not unpickle it."""
    raw = serialize(checkpoint_of([Recorder(), (1,)]), KEY, policy(name_of(Recorder)))
    Recorder.unpickled.clear()
    with pytest.raises(RefusedTypesError) as raised:
        deserialize(raw, KEY, policy())
    assert raised.value.types == (name_of(Recorder),)
    assert not Recorder.unpickled


def test_allow_list_is_never_empty_of_meaning() -> None:
    """Without any listed type the framework's own list still holds: there is no way to unpickle everything."""
    raw = serialize(checkpoint_of(Stranger()), KEY, policy(name_of(Stranger)))
    with pytest.raises(RefusedTypesError):
        deserialize(raw, KEY, RestorePolicy(frozenset()))


def test_fields_of_a_later_framework_are_left_out() -> None:
    """A later version's fields do not break reading, even when they hold classes that this process has not got."""
    head, segments = split(serialize(checkpoint_of((1, 2)), KEY, policy()))
    unknown = b"\x80\x04\x8c\x0fno_such_package\x8c\x05Thing\x93."
    head["skeleton"]["lease"] = {"held_by": {"__pickled__": len(unknown), "__type__": "no_such_package:Thing"}, "n": 1}
    head["later"] = {"anything": 1}
    assert same(deserialize(join(head, segments + unknown), KEY, policy()), checkpoint_of((1, 2)))


def test_fields_that_an_earlier_framework_lacked_get_their_defaults() -> None:
    """A field with a default may be missing; one without may not."""
    raw = serialize(checkpoint_of(1), KEY, policy())
    assert deserialize(with_head(raw, lambda head: head["skeleton"].pop("metadata")), KEY, policy()).metadata == {}
    with pytest.raises(UnreadableError, match="lacks a field"):
        deserialize(with_head(raw, lambda head: head["skeleton"].pop("graph_signature_hash")), KEY, policy())


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda head: head.pop("tenant"), "disagree"),
        (lambda head: head.pop("scope"), "disagree"),
        (lambda head: head.pop("skeleton"), "no skeleton"),
        (lambda head: head.update(skeleton=[]), "no skeleton"),
        (lambda head: head["skeleton"].pop("checkpoint_id"), "disagree"),
        (lambda head: head["skeleton"].update(__pickled__=0, __type__="builtins:dict"), "nothing refers to"),
        (lambda head: head["skeleton"]["state"].update(value=1), "nothing refers to"),
        (lambda head: head["skeleton"]["state"]["value"].update(__pickled__=10**9), "not where its head says"),
        (lambda head: head["skeleton"]["state"]["value"].update(__pickled__=-1), "not where its head says"),
        (lambda head: head["skeleton"]["state"]["value"].update(__pickled__="gASVBQ=="), "not where its head says"),
        (lambda head: head["skeleton"]["state"]["value"].update(__pickled__=None), "not where its head says"),
    ],
)
def test_heads_that_do_not_fit_are_unreadable(change: Callable[[dict[str, Any]], object], reason: str) -> None:
    """A head that lacks something or does not account for every segment is an error that says so."""
    raw = serialize(checkpoint_of((1, 2)), KEY, policy())
    with pytest.raises(UnreadableError, match=reason):
        deserialize(with_head(raw, change), KEY, policy())


def test_checkpoint_that_is_one_pickle_is_unreadable() -> None:
    """An envelope in place of the whole checkpoint, which the framework never writes, is not unpickled."""
    segment = pickle.dumps({"workflow_name": "another", "graph_signature_hash": "0"})
    raw = with_head(
        serialize(checkpoint_of(1), KEY, policy()),
        lambda head: head["skeleton"].update(__pickled__=len(segment), __type__="builtins:dict"),
    )
    with pytest.raises(UnreadableError, match="lacks a field"):
        deserialize(raw + segment, KEY, policy())


@pytest.mark.parametrize("part", ["__type__", "__pickled__"])
def test_envelope_of_another_type_is_refused(part: str) -> None:
    """A pickle under the wrong type, or an envelope without one, does not come back."""

    def change(head: dict[str, Any]) -> None:
        envelope = head["skeleton"]["state"]["value"]
        envelope["__type__"] = "builtins:list"
        if part == "__type__":
            del envelope["__type__"]

    raw = with_head(serialize(checkpoint_of((1, 2)), KEY, policy()), change)
    with pytest.raises(RefusedTypesError, match="cannot be restored"):
        deserialize(raw, KEY, policy())


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\0" * 7,
        b"\0" * 8,
        b"\xff" * 8,
        b"\0" * 7 + b"\x02{",
        b"\0" * 7 + b"\x02[]",
        b"\0" * 7 + b"\x041234",
        b"\0" * 7 + b"\x01\xff",
        (200_000).to_bytes(8, "big") + b"[" * 100_000 + b"]" * 100_000,
    ],
    ids=["nothing", "7 bytes", "no head", "huge head", "cut", "list", "number", "not utf-8", "deep"],
)
def test_bytes_that_are_no_payload_are_unreadable(raw: bytes) -> None:
    """Whatever is there instead of a payload is an error of ours."""
    with pytest.raises(UnreadableError):
        deserialize(raw, KEY, policy())


def test_every_truncation_is_unreadable() -> None:
    """A payload cut short anywhere, or followed by anything, never becomes a checkpoint."""
    raw = serialize(checkpoint_of([(1, 2), {1: Point(3, 4)}]), KEY, policy())
    for length in range(len(raw)):
        with pytest.raises(UnreadableError):
            deserialize(raw[:length], KEY, policy())
    with pytest.raises(UnreadableError):
        deserialize(raw + b"\0", KEY, policy())


def test_no_flipped_byte_of_the_head_makes_another_checkpoint() -> None:
    """Every bit of the head flipped: an error of ours or the same checkpoint's identity, never another's."""
    raw = serialize(checkpoint_of([(1, 2), "text", {"a": 1.5}]), KEY, policy())
    head_end = 8 + int.from_bytes(raw[:8], "big")
    survived = 0
    for position in range(head_end):
        for bit in range(8):
            flipped = bytearray(raw)
            flipped[position] ^= 1 << bit
            try:
                found = deserialize(bytes(flipped), KEY, policy())
            except (UnreadableError, RefusedTypesError):
                continue
            survived += 1
            assert (found.workflow_name, found.checkpoint_id) == (KEY.workflow_name, KEY.checkpoint_id)
    assert survived < head_end * 8  # what survives is a changed value, which the codec's digest catches
