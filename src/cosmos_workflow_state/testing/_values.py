"""Values that the state of a workflow may hold: types to allow, a corpus of values, and how two values are compared.

Owns the types that tests of the kit put into checkpoints; their module is part of what is stored, so that every storage
can be told to allow them. Must not know what a test does with them.
"""

from __future__ import annotations

import dataclasses
import uuid
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from typing import Any, Final, cast

from agent_framework import Content, Message, WorkflowCheckpoint, WorkflowEvent, WorkflowMessage


class Colour(Enum):
    """An enum of an application."""

    RED = "red"
    BLUE = ("b", 1)


@dataclass(frozen=True, slots=True)
class Money:
    """A frozen dataclass with slots."""

    amount: Decimal
    currency: str


@dataclass
class Expense:
    """A dataclass that holds others; what the workflows of the kit are about."""

    purpose: str
    total: Money
    receipts: list[str] = field(default_factory=list[str])
    attachment: object = None

    @dataclass
    class Category:
        """A class inside a class."""

        name: str


@dataclass
class Question:
    """What a human is asked."""

    expense: Expense


class Items(list[Any]):
    """A subclass of list."""


class Record(dict[str, Any]):
    """A subclass of dict."""


@dataclass
class Retired:
    """A type that is allowed, and that a later version of the application does not have any more."""

    number: int


@dataclass
class Registered:
    """A type that the allow-list does not name, and that is registered with the framework instead."""

    number: int


class Unlisted:
    """A type that nobody allows."""


def name_of(kind: type[Any]) -> str:
    """Return ``module:qualname``, the name under which the framework allows a type."""
    return f"{kind.__module__}:{kind.__qualname__}"


ALLOWED_TYPES: Final = tuple(map(name_of, (Colour, Money, Expense, Expense.Category, Question, Items, Record, Retired)))
"""The types of the kit that a storage under test has to allow, as ``module:qualname``."""

EXPENSE: Final = Expense("Gr\u00fc\u00dfe, \U0001f600", Money(Decimal("12.50"), "EUR"), ["train", "hotel"])


def _nested(depth: int) -> Any:
    value: Any = "deep"
    for _ in range(depth):
        value = {"of": [value]}
    return value


VALUES: Final[Mapping[str, Any]] = {
    "none": None,
    "booleans": [True, False],
    "integers": [0, -1, 2**31, -(2**53)],
    "integers-beyond-a-double": [2**53 + 1, -(2**63) - 1, 2**70],
    "floats": [0.1, -0.0, 5e-324, 1.7976931348623157e308],
    "floats-without-a-fraction": [1.0, 1e16],
    "floats-that-are-not-finite": [float("nan"), float("inf"), float("-inf")],
    "text": ["", " ", "a\r\nb\tc", '"\\ud800', "\u2028", "Gr\u00fc\u00dfe", "\U0001f600", "e\u0301 \u00e9"],
    "text-with-nul": "a\0b",
    "bytes": [b"", b"\0\xff", bytearray(b"ab")],
    "times": [
        datetime(2026, 11, 29, 10, 0, 0, 123456, tzinfo=UTC),
        datetime(2026, 11, 29, 10, tzinfo=timezone(timedelta(hours=-3, minutes=-30))),
        datetime(2026, 11, 29),  # noqa: DTZ001 - without a zone, too
        date(2026, 11, 29),
        time(10, 0, 0, 1),
        timedelta(days=-1, microseconds=1),
    ],
    "numbers-of-other-kinds": [Decimal("1.10"), Decimal("NaN"), complex(0.1, -0.0), range(1, 9, 2)],
    "uuid": uuid.UUID(int=2**127 + 1),
    "tuples": [(), (1,), ((1, 2), [3])],
    "sets": [set[int](), {1, 2}, frozenset({"a", None})],
    "collections": [OrderedDict(b=1, a=2), defaultdict(list, a=[1]), Counter("aab"), deque([1, 2], maxlen=2)],
    "enums": list(Colour),
    "dataclasses": [EXPENSE, EXPENSE.total, Expense("nested", EXPENSE.total, [], EXPENSE)],
    "class-in-a-class": Expense.Category("travel"),
    "subclasses-of-containers": [Items([1, (2,)]), Record(a=1)],
    "containers-that-are-empty": [[], {}, [[]], {"a": {}}],
    "order-of-keys": {"b": 1, "a": 2, "c": {"z": 1, "y": 2}},
    "keys-that-are-odd": {"": 1, " ": 2, "a.b": 3, "/x": 4, "\U0001f600": 5, "k" * 1000: 6},
    "keys-that-stores-use": {"id": 1, "_ts": 2, "_etag": 3, "ttl": 4, "$type": 5, "_id": 6, "type": 7},
    "keys-that-the-framework-uses": {"__pickled__": "no", "__type__": "builtins:int", "a": (1,)},
    "keys-that-are-the-same-as-text": {1: "int", "1": "str", None: 2, "None": 3},
    "nesting": _nested(40),
    "messages": [Message("user", [EXPENSE.purpose]), Message("assistant", [Content.from_text("yes")])],
    "calls-of-tools": [
        Content.from_function_call("call-1", "book", arguments={"cents": 1250}),
        Content.from_function_result("call-1", result=[1, "two"]),
    ],
    "messages-between-executors": WorkflowMessage(EXPENSE, source_id="desk"),
    "requests": WorkflowEvent.request_info("request-1", "desk", Question(EXPENSE), bool),
    "checkpoint-in-a-checkpoint": WorkflowCheckpoint("inner", "1", "cp-1", state={"expense": EXPENSE, "tuple": (1,)}),
}
"""Values by name that the framework's `FileCheckpointStorage` gives back as they were: that is the bar."""


def same(one: Any, other: Any) -> bool:
    """Return whether two values are the same in type, order and every part; NaN is NaN, and 0.0 is not -0.0."""
    return bool(form(one) == form(other))


def form(value: Any) -> Any:
    """Return the type of a value and its content, part by part, in a form of which ``==`` leaves nothing out."""
    return type(value), _content(value)


def _content(value: Any) -> Any:
    content = value
    if isinstance(value, (float, complex, Decimal)):
        content = repr(value)
    elif isinstance(value, dict):
        content = [(form(key), form(held)) for key, held in cast("Mapping[Any, Any]", value).items()]
    elif isinstance(value, (list, tuple, deque)):
        content = [form(item) for item in cast("list[Any]", value)]
    elif isinstance(value, (set, frozenset)):
        content = {repr(form(item)) for item in cast("set[Any]", value)}
    elif isinstance(value, (Message, WorkflowEvent)):
        content = form(vars(value))
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        content = [form(getattr(value, part.name)) for part in dataclasses.fields(value)]
    return content
