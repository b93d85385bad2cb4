"""What is relied on of the framework's private parts: the first test to fail when a new version changes them."""

from __future__ import annotations

import ast
import base64
import inspect
import pickle
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from agent_framework import CheckpointStorage, FileCheckpointStorage, WorkflowCheckpoint, register_checkpoint_type
from agent_framework._workflows import _checkpoint_encoding as encoding
from agent_framework.exceptions import WorkflowCheckpointException

import cosmos_workflow_state
from cosmos_workflow_state import TenantCheckpointStorage
from support.payloads import Count, Level, Point, Record, Text

SOURCE = Path(cosmos_workflow_state.__file__).parent
PROTOCOL = ["delete", "get_latest", "list_checkpoint_ids", "list_checkpoints", "load", "save"]


class Unlisted:
    """A class on no list."""


def envelope(value: Any) -> dict[str, Any]:
    """Return the framework's encoding of a value that it pickles."""
    encoded = encoding.encode_checkpoint_value(value)
    assert set(encoded) == {"__pickled__", "__type__"}
    return dict(encoded)


def private_imports(path: Path) -> set[str]:
    """Return what a module takes from private modules of the framework."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    imports = [node for node in nodes if isinstance(node, ast.ImportFrom) and "._" in (node.module or "")]
    return {name.name for node in imports if str(node.module).startswith("agent_framework") for name in node.names}


def test_private_names_are_exactly_these() -> None:
    """These private names of the framework are taken, by these modules; each is pinned below or in their own tests."""
    taken = {path.name: names for path in SOURCE.rglob("*.py") if (names := private_imports(path))}
    assert taken == {
        "_maf.py": {
            "_PICKLE_MARKER",
            "_REGISTERED_CHECKPOINT_TYPE_KEYS",
            "_RestrictedUnpickler",
            "_TYPE_MARKER",
            "_encode_pickle",
            "encode_checkpoint_value",
        },
        "_messages.py": {"get_message_identity"},
    }


def test_markers() -> None:
    """The two keys of an envelope, which payloads hold for ever."""
    assert encoding._PICKLE_MARKER == "__pickled__"
    assert encoding._TYPE_MARKER == "__type__"


@pytest.mark.parametrize("value", [(1, 2), {1}, b"x", Point(1, 2), Record(a=1)], ids=repr)
def test_envelope_is_base64_of_a_pickle_and_the_type(value: Any) -> None:
    """What is not JSON is one envelope: two keys, strict base64, ``module:qualname``."""
    encoded = envelope(value)
    assert pickle.loads(base64.b64decode(encoded["__pickled__"], validate=True)) == value  # noqa: S301 - made right here
    assert encoded["__type__"] == f"{type(value).__module__}:{type(value).__qualname__}"
    assert encoding._encode_pickle(value) == encoded


@pytest.mark.parametrize("key", ["__pickled__", "__type__"])
def test_dict_with_a_marker_is_pickled(key: str) -> None:
    """State cannot forge an envelope: a dict with one of the keys is pickled whole, at any depth."""
    for value in ({key: 1}, {key: 1, "a": 2}):
        assert encoding.decode_checkpoint_value(envelope(value)) == value
        assert encoding.encode_checkpoint_value([{"a": value}]) == [{"a": envelope(value)}]


def test_key_whose_text_is_a_marker_is_pickled() -> None:
    """The text of a key counts, not its type."""

    class Key:
        def __str__(self) -> str:
            """Be a marker."""
            return "__pickled__"

    with pytest.raises((pickle.PicklingError, AttributeError)):  # the class is local: it was tried
        encoding.encode_checkpoint_value({Key(): 1})


@pytest.mark.parametrize("value", [None, True, 1, 1.5, "a", Text("a"), Count(1), Level.LOW], ids=repr)
def test_json_types_and_their_subclasses_are_left_alone(value: Any) -> None:
    """What JSON has is not copied or changed."""
    assert encoding.encode_checkpoint_value(value) is value


def test_plain_dicts_and_lists_keep_their_order_and_length() -> None:
    """The encoding of a plain dict or list can be walked beside the live one, entry by entry."""
    live = {"b": [1, (2,), 3], 7: {"x": 1}, "a": []}
    encoded = encoding.encode_checkpoint_value(live)
    assert list(encoded) == ["b", "7", "a"]
    assert [len(value) for value in encoded.values()] == [3, 1, 0]
    assert type(encoded) is dict
    assert type(encoded["b"]) is list


def test_keys_that_collide_are_pickled() -> None:
    """No entry is lost when two keys have the same text."""
    assert encoding.decode_checkpoint_value(envelope({1: "a", "1": "b"})) == {1: "a", "1": "b"}


def test_unlisted_class_is_refused_by_find_class() -> None:
    """The unpickler is made of data and allowed types, and refuses a class before it is imported."""
    assert list(inspect.signature(encoding._RestrictedUnpickler).parameters) == ["data", "allowed_types"]
    unpickler = encoding._RestrictedUnpickler(pickle.dumps(Unlisted()), frozenset())
    with pytest.raises(pickle.UnpicklingError):
        unpickler.load()
    with pytest.raises(pickle.UnpicklingError):
        unpickler.find_class("no_such_module", "Thing")
    assert unpickler.find_class("builtins", "int") is int
    allowed = encoding._RestrictedUnpickler(pickle.dumps(Unlisted()), frozenset({f"{__name__}:Unlisted"}))
    assert isinstance(allowed.load(), Unlisted)
    assert issubclass(encoding._RestrictedUnpickler, pickle.Unpickler)


@pytest.mark.parametrize("name", ["os:system", "builtins:eval", "builtins:exec", "subprocess:Popen", "pickle:loads"])
def test_dangerous_globals_are_refused(name: str) -> None:
    """The framework's own list holds nothing that runs commands."""
    module, _, attribute = name.partition(":")
    with pytest.raises(pickle.UnpicklingError):
        encoding._RestrictedUnpickler(b"", frozenset()).find_class(module, attribute)


def test_refusal_is_a_checkpoint_exception() -> None:
    """Decoding raises one kind of error for a refused class, a broken pickle and a wrong type."""
    refused = envelope(Unlisted())
    for encoded in (refused, refused | {"__pickled__": "AAAA"}, envelope((1,)) | {"__type__": "builtins:list"}):
        with pytest.raises(WorkflowCheckpointException):
            encoding.decode_checkpoint_value({"a": [encoded]}, allowed_types=frozenset())


def test_registered_types_count_for_every_decoding() -> None:
    """Registering adds ``module:qualname`` to one set, which decoding adds to what it is given."""
    name = f"{__name__}:Unlisted"
    register_checkpoint_type(Unlisted)
    try:
        assert name in encoding._REGISTERED_CHECKPOINT_TYPE_KEYS
        found = encoding.decode_checkpoint_value(envelope(Unlisted()), allowed_types=frozenset())
        assert isinstance(found, Unlisted)
    finally:
        encoding._REGISTERED_CHECKPOINT_TYPE_KEYS.discard(name)


def test_checkpoint_fields() -> None:
    """The fields whose meaning we know are there; a new one is carried along, so this is no list of all."""
    names = [field.name for field in fields(WorkflowCheckpoint)]
    assert {
        "workflow_name",
        "graph_signature_hash",
        "checkpoint_id",
        "previous_checkpoint_id",
        "timestamp",
        "messages",
        "state",
        "pending_request_info_events",
        "iteration_count",
        "metadata",
        "version",
    } <= set(names)
    assert list(WorkflowCheckpoint("w", "g").to_dict()) == names


def members(kind: type[Any]) -> list[str]:
    """Return the public methods of a class."""
    return sorted(name for name, value in vars(kind).items() if inspect.isfunction(value) and not name.startswith("_"))


def signature(kind: type[Any], name: str) -> list[tuple[str, Any, Any]]:
    """Return name, kind and default of each parameter of a method."""
    parameters = inspect.signature(getattr(kind, name)).parameters.values()
    return [(parameter.name, parameter.kind, parameter.default) for parameter in parameters]


def test_protocol_has_exactly_the_methods_we_have() -> None:
    """A method that the framework adds to its protocol is one that we lack."""
    assert members(CheckpointStorage) == PROTOCOL
    assert set(PROTOCOL) <= set(members(TenantCheckpointStorage))


@pytest.mark.parametrize("name", PROTOCOL)
def test_signatures_are_those_of_the_protocol(name: str) -> None:
    """Parameter names, kinds and defaults are the protocol's, and each method is a coroutine function."""
    assert signature(TenantCheckpointStorage, name) == signature(CheckpointStorage, name)
    assert inspect.iscoroutinefunction(getattr(TenantCheckpointStorage, name))


@pytest.mark.parametrize("name", PROTOCOL)
def test_return_types_are_those_of_the_protocol(name: str) -> None:
    """What is awaited is what the protocol says."""
    ours = inspect.signature(getattr(TenantCheckpointStorage, name)).return_annotation
    theirs = inspect.signature(getattr(CheckpointStorage, name)).return_annotation
    assert ours == str(theirs).replace("CheckpointID", "str")


def test_file_storage_checks_what_it_saves() -> None:
    """The oracle of our payload tests takes its list of types by this name."""
    assert "allowed_checkpoint_types" in inspect.signature(FileCheckpointStorage).parameters
