"""``AgentSession`` to bytes and back: payload format ``maf-session/1``, the JSON of the framework's own file store.

Only public names of Microsoft Agent Framework are used. What its ``FileSessionStore`` persists is persisted, and what
that cannot keep is kept (numbers that are not finite, lone surrogates), and what it would lose, or not read back, is
refused (two keys with one text, what a registered type's decoder does not take). Errors say where a value is, never
what it is.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

from agent_framework import AgentSession

from ._fields import field
from ._records import RefusedTypesError, UnreadableError

FORMAT: Final = "maf-session/1"

MAX_DEPTH: Final = 256
"""Levels of nested dicts and lists. The framework takes two Python frames a level to restore them and Python stops at
1,000 (``sys.getrecursionlimit``): half of them are left to whoever calls ``get``."""

_TYPE: Final = "session"
_VERSION: Final = "1.0"
_SCALARS: Final = frozenset({str, int, float, bool, type(None)})
_MAX_KEY: Final = 60
_MAX_PATH: Final = 1000
"""Characters of a key, and of a path, that an error shows."""

_NOT_JSON: Final = "it is neither JSON nor of a type that register_state_type knows"
_TOO_DEEP: Final = f"the session's state is nested more than {MAX_DEPTH} levels deep"


class _RefusedError(Exception):
    """A value cannot be stored.

    Attributes:
        reason: Why.
        value: The value.
        steps: The way to it, outermost first.
    """

    def __init__(self, reason: str, value: object, steps: Sequence[str] = ()) -> None:
        """Keep what is known."""
        super().__init__(reason)
        self.reason, self.value, self.steps = reason, value, list(steps)

    def text(self) -> str:
        """Say where it is and why it is refused, not what it is."""
        return f"{''.join(self.steps)[:_MAX_PATH]} ({type(self.value).__name__}) cannot be stored: {self.reason}"


def serialize(session: object) -> bytes:
    """Copy a session into bytes.

    Raises:
        RefusedTypesError: It is no plain ``AgentSession``, or holds a value that cannot be stored; the message says
            where.
    """
    # A subclass would come back as the class it is derived from.
    if type(session) is not AgentSession:
        raise RefusedTypesError(f"session must be an AgentSession itself, not {type(session).__name__}")
    _check_outside(session)
    try:
        return _encoded(session)
    except RecursionError:
        raise RefusedTypesError(_TOO_DEEP) from None
    except _RefusedError as error:
        raise RefusedTypesError(error.text()) from None
    except Exception:  # noqa: BLE001 - the code of the state's types runs, and may raise anything
        raise RefusedTypesError(_complaint(session)) from None


def deserialize(raw: bytes) -> AgentSession:
    """Rebuild a session from bytes; each call makes a new one.

    Raises:
        RefusedTypesError: The decoder of a registered type does not take what is stored.
        UnreadableError: They are not what `serialize` makes.
    """
    snapshot = _snapshot(raw)
    try:
        return AgentSession.from_dict(snapshot)
    except RecursionError:
        raise UnreadableError(_TOO_DEEP) from None
    except ValueError as error:
        # The framework's own: the type's name and the path, not what the decoder has said.
        raise RefusedTypesError(f"the session cannot be restored: {error}") from None


def _check_outside(session: AgentSession) -> None:
    outside: dict[str, object] = {
        "session_id": session.session_id,
        "service_session_id": session.service_session_id,
        "state": session.state,
    }
    kinds = {"session_id": (str,), "service_session_id": (str, Mapping, type(None)), "state": (dict,)}
    for name, value in outside.items():
        if not isinstance(value, kinds[name]):
            raise RefusedTypesError(f"{name} of the session must not be a {type(value).__name__}")


def _encoded(session: AgentSession) -> bytes:
    service_session_id = session.service_session_id
    if isinstance(service_session_id, Mapping):
        service_session_id = _plain("service_session_id", dict(service_session_id))
    snapshot = {
        "type": _TYPE,
        "session_id": session.session_id,
        "service_session_id": service_session_id,
        "state": _plain("state", session.state),
        "version": _VERSION,
    }
    return json.dumps(snapshot, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def _plain(name: str, values: dict[Any, Any]) -> dict[str, Any]:
    """Return values as the framework encodes them, of JSON types alone.

    Raises:
        _RefusedError: One has no such form.
        RecursionError: They are nested too deep, or contain themselves.
        Exception: What the code of the values' types raises.
    """
    probe = AgentSession(session_id="-")
    probe.state = values
    plain = {str(key): value for key, value in probe.to_dict()["state"].items()}
    try:
        _check(values, plain, 1)
    except _RefusedError as error:
        error.steps.insert(0, name)
        raise
    return plain


def _check(live: object, plain: object, depth: int) -> None:
    """Check what the framework has made of a value that is no scalar."""
    if depth > MAX_DEPTH:
        raise RecursionError
    for step, live_child, child in _pairs(live, plain):
        if type(child) not in _SCALARS:
            try:
                _check(live_child, child, depth + 1)
            except _RefusedError as error:
                error.steps.insert(0, _step(step))
                raise


def _pairs(live: object, plain: object) -> Iterator[tuple[str | int, object, object]]:
    """Yield what is in a container beside what it was made of, where that is one as well, else beside itself."""
    before: Sequence[object] | None = None
    if isinstance(plain, list):
        inside: list[tuple[str | int, object]] = list(enumerate(cast("list[object]", plain)))
        # The framework makes lists of lists and tuples alone.
        before = cast("Sequence[object]", live)
    elif isinstance(plain, dict):
        inside = list(cast("dict[str | int, object]", plain).items())
        # Of another class of mappings it may be the class's own code that has left something out.
        if type(live) is dict:
            before = list(cast("dict[object, object]", live).values())
            if len(before) > len(inside):
                raise _RefusedError("two of its keys have the same text", cast("object", live))
    else:
        raise _RefusedError(_NOT_JSON, plain)
    for index, (step, child) in enumerate(inside):
        yield step, child if before is None or len(before) != len(inside) else before[index], child


def _complaint(session: AgentSession) -> str:
    """Say where in a session the value is whose own code has raised something, and what; it is looked for anew."""
    with contextlib.suppress(Exception):  # also keys may have code of their own
        for name, values in (("service_session_id", session.service_session_id), ("state", session.state)):
            error = _raised_by(values)
            if error is not None:
                return _innermost([name], values, error).text()
    return "the session cannot be stored: the code of a value in it raised something"


def _innermost(steps: list[str], value: object, error: Exception) -> _RefusedError:
    """Return the innermost value that raises something, with the way to it."""
    for step, child in _children(value):
        inner = _raised_by(child)
        if inner is not None:
            return _innermost([*steps, _step(step)], child, inner)
    # Where warnings are errors, the framework's own about an unregistered type is the first to be raised.
    reason = _NOT_JSON if isinstance(error, Warning) else f"{type(error).__name__} was raised"
    return _RefusedError(reason, value, steps)


def _raised_by(value: object) -> Exception | None:
    try:
        json.dumps(_plain("", {"": value}))
    except (_RefusedError, RecursionError):
        return None
    except Exception as error:  # noqa: BLE001 - as in `serialize`
        return error
    return None


def _children(value: object) -> Iterable[tuple[str | int, object]]:
    if isinstance(value, Mapping):
        return [(str(key), child) for key, child in cast("Mapping[object, object]", value).items()]
    return enumerate(cast("Sequence[object]", value)) if isinstance(value, list | tuple) else ()


def _step(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if len(step) <= _MAX_KEY else f".{step[:_MAX_KEY]}…"


def _snapshot(raw: bytes) -> dict[str, Any]:
    """Return the fields of a snapshot.

    Raises:
        UnreadableError: It is none of a version that is known here.
    """
    try:
        snapshot = json.loads(raw.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        raise UnreadableError("a session is not JSON") from None
    fields = cast("dict[str, Any]", snapshot if isinstance(snapshot, dict) else {})
    if (fields.get("type"), fields.get("version")) != (_TYPE, _VERSION):
        raise UnreadableError("a session is of a version that is not known here")
    if not field(fields, "session_id", str):
        raise UnreadableError("a session has no id of its own")
    if fields.get("service_session_id") is not None and not isinstance(fields["service_session_id"], str | dict):
        raise UnreadableError("a session has an impossible service_session_id")
    field(fields, "state", dict)
    return fields
