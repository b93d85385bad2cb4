"""``WorkflowCheckpoint`` to bytes and back: payload format ``maf/1``.

The only module that touches private names of Microsoft Agent Framework (a canary test pins each of them).

``maf/1`` is an 8-byte big-endian length, that many bytes of JSON head ``{"tenant", "scope", "skeleton"}`` and then the
raw segments one after another. The skeleton is the framework's own encoding of the checkpoint; in its pickle envelopes
the base64 text is replaced by the length of the segment that holds the pickle. The framework pickles every user dict
that has one of the envelope's two keys, so an envelope cannot be forged by state.

Segments are restored here, with the framework's own restricted unpickler: its ``decode_checkpoint_value`` would want
the base64 back, and logs the text of whatever unpickling raises, which may quote the state.
"""

from __future__ import annotations

import base64
import hashlib
import json
import pickle
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, Final, TypeVar, cast

from agent_framework import WorkflowCheckpoint
from agent_framework._workflows._checkpoint_encoding import (
    _PICKLE_MARKER,  # pyright: ignore[reportPrivateUsage] - pinned by tests/unit/test_maf_canary.py
    _REGISTERED_CHECKPOINT_TYPE_KEYS,  # pyright: ignore[reportPrivateUsage] - the same
    _TYPE_MARKER,  # pyright: ignore[reportPrivateUsage] - the same
    _encode_pickle,  # pyright: ignore[reportPrivateUsage] - the same
    _RestrictedUnpickler,  # pyright: ignore[reportPrivateUsage] - the same
    encode_checkpoint_value,
)

from ._records import CheckpointHeader, CheckpointKey, RefusedTypesError, TypesNotAllowedError, UnreadableError
from .typing import PickledValue

_Kind = TypeVar("_Kind")
_Restore = Callable[[bytes, str], Any]
"""What becomes of a pickle, given the type it says it is of."""

FORMAT: Final = "maf/1"

MAX_DEPTH: Final = 256
"""Levels of nested dicts and lists. Restoring takes two Python frames a level and Python stops at 1,000
(``sys.getrecursionlimit``): half of them are left to whoever calls ``load``."""

_LENGTH_BYTES: Final = 8
_MAX_EXACT: Final = 2**53
_REMEMBERED_SEGMENTS: Final = 8192
_KEY_TYPES: Final = frozenset({int, float, bool, type(None), bytes, str})
_FIELDS: Final = frozenset(field.name for field in fields(WorkflowCheckpoint))
_JSON_TYPES: Final = (dict, list, str, int, float, type(None))

_NOT_ALLOWED: Final = (
    "the state holds types that loading refuses; register them with register_checkpoint_type or list them in "
    "COSMOS_WORKFLOW_STATE_ALLOWED_CHECKPOINT_TYPES"
)
_NOT_HERE: Final = (
    "the state holds types that this process does not have; define them in a module that every process can import, "
    "a class of __main__ exists only in its own script"
)
_CHANGES: Final = "the state changes while it is copied"
_COMES_BACK_WRONG: Final = "the state holds values that do not come back from their pickle as what they were"


class RestorePolicy:
    """Which types a checkpoint may bring back, and the segments already known to come back.

    Of some ten pickles in a checkpoint at most three are new in a save, so what was checked is remembered by digest.
    Types that the application registers with the framework later only add to the list, so what was remembered holds.
    """

    def __init__(self, allowed_types: frozenset[str]) -> None:
        """Start with nothing checked.

        Args:
            allowed_types: ``module:qualname`` beyond the framework's own list.
        """
        self.allowed_types = allowed_types
        self._checked: OrderedDict[bytes, None] = OrderedDict()

    def check(self, segment: bytes, type_key: str) -> None:
        """Check that ``restore`` would give back this pickle, unless that is known.

        Raises:
            RefusedTypesError: It would not.
        """
        digest = hashlib.sha256(type_key.encode("utf-8", "surrogatepass") + b"\0" + segment).digest()
        if digest in self._checked:
            self._checked.move_to_end(digest)
            return
        self.restore(segment, type_key)
        self._remember(digest)

    def restore(self, segment: bytes, type_key: str) -> Any:
        """Return the value of a pickle, of exactly the type it says.

        Raises:
            RefusedTypesError: It holds a type that is not allowed, does not come back, or comes back as another type.
        """
        unpickler = _RecordingUnpickler(segment, self.allowed_types | _REGISTERED_CHECKPOINT_TYPE_KEYS)
        try:
            value = unpickler.load()
        except RecursionError:
            raise
        except Exception:  # noqa: BLE001 - unpickling runs code of the state's types, which may raise anything
            raise unpickler.refusal(type_key) from None
        if _type_name(value) != type_key:
            raise RefusedTypesError(_COMES_BACK_WRONG, (type_key,))
        return value

    def _remember(self, digest: bytes) -> None:
        self._checked[digest] = None
        if len(self._checked) > _REMEMBERED_SEGMENTS:
            self._checked.popitem(last=False)


class _RecordingUnpickler(_RestrictedUnpickler):
    """The framework's unpickler, which also says what it refused and what it did not find."""

    def __init__(self, data: bytes, allowed_types: frozenset[str]) -> None:
        super().__init__(data, allowed_types)
        self._refused: list[str] = []
        self._missing: list[str] = []

    def find_class(self, module: str, name: str) -> Any:
        try:
            return super().find_class(module, name)
        except pickle.UnpicklingError:
            self._refused.append(f"{module}:{name}")
            raise
        except (ImportError, AttributeError):
            self._missing.append(f"{module}:{name}")
            raise

    def refusal(self, type_key: str) -> RefusedTypesError:
        if self._refused:
            return TypesNotAllowedError(_NOT_ALLOWED, tuple(self._refused))
        if self._missing:
            return RefusedTypesError(_NOT_HERE, tuple(self._missing))
        return RefusedTypesError(_COMES_BACK_WRONG, (type_key,))


def header_of(checkpoint: WorkflowCheckpoint, key: CheckpointKey) -> CheckpointHeader:
    """Return the queryable part of a checkpoint.

    Raises:
        RefusedTypesError: A field that the framework sets has a kind it never gives it.
    """
    parent = checkpoint.previous_checkpoint_id
    pending = checkpoint.pending_request_info_events
    _expect("pending_request_info_events", pending, dict)
    _expect_text("graph_signature_hash", checkpoint.graph_signature_hash)
    _expect_text("version", checkpoint.version)
    return CheckpointHeader(
        key=key,
        previous_checkpoint_id=None if parent is None else _expect_text("previous_checkpoint_id", parent),
        timestamp=_expect_text("timestamp", checkpoint.timestamp),
        iteration_count=_expect_exact_number("iteration_count", checkpoint.iteration_count),
        pending_request_ids=tuple(_expect_text("a request id", str(request_id)) for request_id in pending),
    )


def serialize(checkpoint: WorkflowCheckpoint, key: CheckpointKey, policy: RestorePolicy) -> bytes:
    """Return a checkpoint as ``maf/1`` bytes that are known to come back under the same policy.

    Must run on the event loop and before the first await: the state is live, in a thread it would tear.

    Raises:
        RefusedTypesError: A value cannot be pickled, would be refused by ``deserialize``, or nests too deep.
    """
    try:
        skeleton, segments = _lifted(_fields_of(checkpoint), policy)
        if (skeleton["workflow_name"], skeleton["checkpoint_id"]) != (key.workflow_name, key.checkpoint_id):
            raise RefusedTypesError(_CHANGES)
        head = _json_head({"tenant": key.tenant.value, "scope": key.scope.value, "skeleton": skeleton})
    except RecursionError:
        raise RefusedTypesError("the state contains itself or nests too deep") from None
    return b"".join([len(head).to_bytes(_LENGTH_BYTES, "big"), head, *segments])


def deserialize(raw: bytes, key: CheckpointKey, policy: RestorePolicy) -> WorkflowCheckpoint:
    """Return the checkpoint in ``maf/1`` bytes, after checking that it is the one asked for.

    Fields that a later version of the framework added are left out.

    Raises:
        UnreadableError: The bytes are no ``maf/1``, or belong to another tenant, scope, workflow or id.
        RefusedTypesError: A type is not allowed, or a value does not come back.
    """
    values = _known_fields(raw, key, policy.restore)
    try:
        return WorkflowCheckpoint(**values)
    except TypeError:
        raise UnreadableError("the payload lacks a field of a checkpoint") from None


def outline(raw: bytes, key: CheckpointKey) -> dict[str, Any]:
    """Return the fields of the checkpoint in ``maf/1`` bytes, with a `PickledValue` in place of each pickle.

    Raises:
        UnreadableError: The bytes are no ``maf/1``, or belong to another tenant, scope, workflow or id.
    """
    return _known_fields(raw, key, _described)


def _described(segment: bytes, type_key: str) -> PickledValue:
    return PickledValue(type_key, len(segment), hashlib.sha256(segment).hexdigest())


def _lifted(live: dict[str, Any], policy: RestorePolicy) -> tuple[Any, list[bytes]]:
    try:
        encoded = encode_checkpoint_value(live)
    except RecursionError:
        raise
    except Exception:  # noqa: BLE001 - pickling runs code of the state's types; what they raise may quote the state
        raise RefusedTypesError("the state cannot be pickled", _unique(_unpicklable(live))) from None
    lift = _Lift(policy)
    try:
        skeleton = lift.walk(live, encoded, 1)
    except (RecursionError, RefusedTypesError):
        raise
    except Exception:  # noqa: BLE001 - as above; and what changes meanwhile does not fit its encoding
        raise RefusedTypesError(_CHANGES) from None
    if lift.refused:
        raise _joined(lift.refused)
    return skeleton, lift.segments


def _known_fields(raw: bytes, key: CheckpointKey, restore: _Restore) -> dict[str, Any]:
    """Return the fields that this version knows; the others are not even unpickled."""
    try:
        return _read_fields(raw, key, restore)
    except RecursionError:
        raise UnreadableError("the payload nests deeper than the caller's stack leaves room for") from None


def _read_fields(raw: bytes, key: CheckpointKey, restore: _Restore) -> dict[str, Any]:
    head, segments = _split(raw)
    skeleton = head["skeleton"]
    found = (head.get("tenant"), head.get("scope"), skeleton.get("workflow_name"), skeleton.get("checkpoint_id"))
    if found != (key.tenant.value, key.scope.value, key.workflow_name, key.checkpoint_id):
        raise UnreadableError("header and payload disagree on tenant, scope, workflow or id")
    reader = _SegmentReader(segments, restore)
    values = {name: reader.walk(value, wanted=name in _FIELDS) for name, value in skeleton.items()}
    reader.expect_end()
    if reader.refused:
        raise _joined(reader.refused)
    return {name: value for name, value in values.items() if name in _FIELDS}


def _fields_of(checkpoint: WorkflowCheckpoint) -> dict[str, Any]:
    """Return the live fields, also those that a subclass adds; not by a method that it may have overridden."""
    return {field.name: getattr(checkpoint, field.name) for field in fields(checkpoint)}


class _Lift:
    """Takes the pickles out of the framework's encoding, checking each."""

    def __init__(self, policy: RestorePolicy) -> None:
        self._policy = policy
        self.segments: list[bytes] = []
        self.refused: list[RefusedTypesError] = []

    def walk(self, live: Any, encoded: Any, depth: int) -> Any:
        if not isinstance(encoded, (dict, list)):
            return encoded
        if depth > MAX_DEPTH:
            raise RefusedTypesError(f"the state nests over {MAX_DEPTH} levels of dicts and lists")
        if isinstance(encoded, list):
            children = cast("Sequence[Any]", encoded)
            return [self.walk(one, child, depth + 1) for one, child in zip(live, children, strict=True)]
        mapping = cast("dict[str, Any]", encoded)
        if _PICKLE_MARKER in mapping:
            try:
                return self._lift(mapping)
            except RefusedTypesError as error:
                self.refused.append(error)
                return None
        if any(type(name) is not str for name in live):
            whole = self._whole(live)
            if whole is not None:
                return whole
        return {
            name: self.walk(one, child, depth + 1)
            for one, (name, child) in zip(live.values(), mapping.items(), strict=True)
        }

    def _lift(self, envelope: Mapping[str, str]) -> dict[str, Any]:
        segment, type_key = base64.b64decode(envelope[_PICKLE_MARKER]), envelope[_TYPE_MARKER]
        self._policy.check(segment, type_key)
        self.segments.append(segment)
        return {_PICKLE_MARKER: len(segment), _TYPE_MARKER: type_key}

    def _whole(self, live: dict[Any, Any]) -> dict[str, Any] | None:
        """Pickle a dict whose keys JSON would turn into text, where it surely comes back; else None."""
        if not {type(name) for name in live} <= _KEY_TYPES:
            return None
        try:
            return self._lift(_encode_pickle(live))
        except Exception:  # noqa: BLE001 - as in _lifted; the framework's own encoding is there already
            return None


class _SegmentReader:
    """Restores the values of a skeleton, each pickle from its segment, in the order in which they were taken out."""

    def __init__(self, segments: memoryview, restore: _Restore) -> None:
        self._segments = segments
        self._restore = restore
        self._position = 0
        self.refused: list[RefusedTypesError] = []

    def walk(self, value: Any, *, wanted: bool) -> Any:
        if isinstance(value, dict):
            mapping = cast("dict[str, Any]", value)
            if _PICKLE_MARKER in mapping:
                segment = self._take(mapping[_PICKLE_MARKER])
                return self._restored(segment, str(mapping.get(_TYPE_MARKER))) if wanted else None
            return {name: self.walk(child, wanted=wanted) for name, child in mapping.items()}
        if isinstance(value, list):
            children = cast("Sequence[Any]", value)
            return [self.walk(child, wanted=wanted) for child in children]
        return value

    def expect_end(self) -> None:
        if self._position != len(self._segments):
            raise UnreadableError("the payload has bytes that nothing refers to")

    def _restored(self, segment: bytes, type_key: str) -> Any:
        try:
            return self._restore(segment, type_key)
        except RefusedTypesError as error:
            self.refused.append(error)
            return None

    def _take(self, length: Any) -> bytes:
        start, self._position = self._position, self._position + (length if isinstance(length, int) else -1)
        if not start <= self._position <= len(self._segments):
            raise UnreadableError("a segment of the payload is not where its head says")
        return bytes(self._segments[start : self._position])


def _json_head(head: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(head, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    except ValueError:
        # Python refuses to write integers of over 4,300 digits (sys.get_int_max_str_digits); reading would too.
        raise RefusedTypesError("the state holds an integer with more digits than Python converts") from None
    except TypeError:
        # The framework asks isinstance, which a proxy answers for the object behind it; JSON wants the object itself.
        raise RefusedTypesError("the state holds proxies of texts or numbers", _unique(_proxies(head))) from None


def _split(raw: bytes) -> tuple[dict[str, Any], memoryview]:
    view = memoryview(raw)
    end = _LENGTH_BYTES + int.from_bytes(view[:_LENGTH_BYTES], "big")
    if len(view) < max(_LENGTH_BYTES, end):
        raise UnreadableError("the payload ends within its head")
    try:
        head = json.loads(bytes(view[_LENGTH_BYTES:end]).decode("utf-8", "surrogatepass"))
    except ValueError:
        raise UnreadableError("the head of the payload is not JSON") from None
    if not isinstance(head, dict) or not isinstance(cast("dict[str, Any]", head).get("skeleton"), dict):
        raise UnreadableError("the head of the payload has no skeleton")
    return cast("dict[str, Any]", head), view[end:]


def _unpicklable(value: Any) -> Iterator[str]:
    """Yield the types of the values, below plain dicts and lists, that cannot be pickled."""
    if type(value) in {dict, list}:
        children = cast("Iterable[Any]", value.values() if isinstance(value, dict) else value)
        for child in children:
            yield from _unpicklable(child)
        return
    try:
        encode_checkpoint_value(value)
    except Exception:  # noqa: BLE001 - as in _lifted
        yield _type_name(value)


def _proxies(value: Any) -> Iterator[str]:
    """Yield the types of the values that JSON cannot hold."""
    if not issubclass(type(value), _JSON_TYPES):
        yield _type_name(value)
    elif isinstance(value, (dict, list)):
        children = cast("Iterable[Any]", value.values() if isinstance(value, dict) else value)
        for child in children:
            yield from _proxies(child)


def _joined(refusals: Sequence[RefusedTypesError]) -> RefusedTypesError:
    """Return one refusal with all types that are refused for the reason of the first."""
    reason = str(refusals[0])
    return RefusedTypesError(reason, _unique(name for each in refusals if str(each) == reason for name in each.types))


def _unique(types: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(types))


def _type_name(value: Any) -> str:
    return f"{type(value).__module__}:{type(value).__qualname__}"


def _expect(name: str, value: Any, kind: type[_Kind]) -> _Kind:
    if not isinstance(value, kind):
        raise RefusedTypesError(f"{name} must be {kind.__name__}, not {type(value).__name__}")
    return value


def _expect_exact_number(name: str, value: Any) -> int:
    number = int(_expect(name, value, int))
    if abs(number) > _MAX_EXACT:
        raise RefusedTypesError(f"{name} must be within 2**53, which JSON numbers hold exactly")
    return number


def _expect_text(name: str, value: Any) -> str:
    text = _expect(name, value, str)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise RefusedTypesError(f"{name} must not contain a lone surrogate") from None
    return text
