"""What the framework leaves out of a message is told by type; what it keeps is not."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

import pytest
from agent_framework import Content, Message

from cosmos_workflow_state._message_losses import types_left_out


@dataclass
class Order:
    """A value of the application's."""

    number: int


class Encoded:
    """A value that encodes itself, without attributes of its own."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Return nothing."""
        return {}

    @classmethod
    def from_dict(cls, _value: Any) -> Encoded:
        """Return one."""
        return cls()


OURS = f"{__name__}:Order"


@pytest.mark.parametrize(
    ("value", "types"),
    [
        (b"\0", ("builtins:bytes",)),
        ((1, 2), ("builtins:tuple",)),
        ({1}, ("builtins:set",)),
        (datetime(2026, 11, 30, tzinfo=UTC), ("datetime:datetime",)),
        ([Order(1), 1, {"deeper": [Order(2)]}], (OURS,)),
        ({"a": Order(1), "b": b""}, (OURS, "builtins:bytes") if OURS < "builtins" else ("builtins:bytes", OURS)),
        (MappingProxyType({"a": Order(1)}), (OURS,)),
    ],
    ids=["bytes", "tuple", "set", "datetime", "in lists", "in dicts", "in a mapping"],
)
def test_what_is_left_out(value: Any, types: tuple[str, ...]) -> None:
    """Beside a message's texts, and in what a tool is called with."""
    assert types_left_out(Message("user", ["hi"], additional_properties={"x": value})) == types
    call = Content.from_function_call(call_id="1", name="order", arguments={"x": value})
    assert types_left_out(Message("assistant", [call])) == types


@pytest.mark.parametrize(
    "value", ["", 1, 2**70, 1.5, float("nan"), True, None, [1, ["a"]], {"a": {"b": None}}, Encoded()], ids=repr
)
def test_what_is_kept(value: Any) -> None:
    """What JSON has, and what encodes itself."""
    assert types_left_out(Message("user", ["hi"], additional_properties={"x": value})) == ()


def test_what_is_left_out_on_purpose() -> None:
    """A service's own answer is not part of a message, nor is the text of an error."""
    message = Message("assistant", ["hi"], raw_representation=Order(1))
    message.contents[0].raw_representation = Order(2)
    message.additional_properties["citation"] = {"raw_representation": Order(3), "_hidden": Order(4)}
    assert types_left_out(message) == ()


def test_what_refers_back() -> None:
    """A value within itself is looked at once."""
    circle: dict[str, Any] = {"order": Order(1)}
    circle["again"] = [circle]
    assert types_left_out(Message("user", ["hi"], additional_properties=circle)) == (OURS,)
