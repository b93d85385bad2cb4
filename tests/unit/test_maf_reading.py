"""Reading ``maf/1``: another's, damaged or foreign bytes are an error before anything of them is run."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from cosmos_workflow_state._identity import Scope, TenantId
from cosmos_workflow_state._maf import RestorePolicy, deserialize, serialize
from cosmos_workflow_state._records import CheckpointKey, RefusedTypesError, UnreadableError
from support.payloads import (
    KEY,
    Point,
    checkpoint_of,
    policy,
    same,
)
from support.strangers import (
    Recorder,
    Stranger,
    name_of,
)


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
    with pytest.raises(UnreadableError, match="nothing refers to"):
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
    with pytest.raises(RefusedTypesError, match="do not come back"):
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


@pytest.mark.parametrize("name", ["__main__:Gone", "no_such_module:Gone"])
def test_type_that_this_process_has_not_got(name: str) -> None:
    """An allowed class that is not found here is named as missing, not as refused, and not as the type around it."""
    module, qualname = name.split(":")
    segment = b"\x80\x04\x8c" + bytes([len(module)]) + module.encode()
    segment += b"\x8c" + bytes([len(qualname)]) + qualname.encode() + b"\x93)\x81."
    head, _ = split(serialize(checkpoint_of(1), KEY, policy()))
    head["skeleton"]["state"]["value"] = {"__pickled__": len(segment), "__type__": "builtins:tuple"}
    with pytest.raises(RefusedTypesError, match="does not have") as caught:
        deserialize(join(head, segment), KEY, policy(name))
    assert caught.value.types == (name,)
