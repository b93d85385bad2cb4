"""Tables, ids, values and settings as commands show them."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr
from rich.text import Text

from cosmos_workflow_state import CosmosStateSettings, KeyAuth
from cosmos_workflow_state._cli._output import printable, say
from cosmos_workflow_state._cli._screen import show
from cosmos_workflow_state._cli._views._headers import header_fields, header_json, headers_table
from cosmos_workflow_state._cli._views._layout import Column, layout, moment, shorten, shown_ids, wrapped_list
from cosmos_workflow_state._cli._views._settings import rows_of, settings_json, settings_table
from cosmos_workflow_state._cli._views._state import checkpoint_lines
from cosmos_workflow_state._cli._views._values import brief, is_deeper, plain, to_json
from cosmos_workflow_state.settings import SettingOrigin
from cosmos_workflow_state.typing import PickledValue
from support.headers import header

COLUMNS = (Column("name"), Column("bytes", right=True))


class Colour(Enum):
    """A value that is a name."""

    RED = 1


@dataclass(frozen=True, slots=True)
class Line:
    """A value without a dict of its own."""

    article: str
    price: Any


class Basket:
    """A value with attributes."""

    def __init__(self) -> None:
        self.lines = [Line("paper", Decimal("1.50"))]


class Bare:
    """A value without attributes."""


def texts(lines: list[Any]) -> list[str]:
    """Return lines without their styles."""
    return [line.plain for line in lines]


def test_a_table_is_aligned_by_what_a_terminal_shows() -> None:
    """Wide characters take two columns; no line ends in blanks."""
    assert texts(layout(COLUMNS, [["支付", "8"], ["a", "1,234"]], 20)) == [
        "name  bytes",
        "----  -----",
        "支付      8",
        "a     1,234",
    ]


def test_a_table_that_does_not_fit_becomes_records() -> None:
    """Each row is a block that begins with its first column; what is empty is left out."""
    rows = [["x" * 20, "1"], ["y", ""]]

    assert texts(layout(COLUMNS, rows, 20)) == ["x" * 20, "  bytes: 1", "y"]
    assert len(texts(layout(COLUMNS, rows, None))) == 4


@given(st.lists(st.text(), max_size=6), st.sampled_from([None, 80]))
def test_shown_ids_are_told_apart(ids: list[str], width: int | None) -> None:
    """However alike ids are, what is shown of each is the beginning of no other; a pipe gets all of it."""
    shown = shown_ids(ids, width)

    assert len(set(shown.values())) == len(set(map(printable, set(ids)))) or width is not None
    for one in ids:
        assert printable(one).startswith(shown[one])
        assert (shown[one] == printable(one)) or not any(
            printable(other).startswith(shown[one]) for other in ids if other != one
        )


def test_ids_of_people_are_never_abbreviated() -> None:
    """A short id is whole; of a long one eight characters are shown, or as many as tell it apart."""
    assert shown_ids(["cp-00000001", "3f0c1a2b-11", "3f0c1a2b-12-a", "9" * 36], 80) == {
        "cp-00000001": "cp-00000001",
        "3f0c1a2b-11": "3f0c1a2b-11",
        "3f0c1a2b-12-a": "3f0c1a2b-12",
        "9" * 36: "9" * 8,
    }


@given(st.text())
def test_nothing_shown_can_steer_a_terminal(text: str) -> None:
    """Whatever an id or a state has in it, what is printed is printable and begins no escape sequence."""
    assert printable(text).isprintable()


@pytest.mark.parametrize(
    ("timestamp", "shown"),
    [
        ("2026-11-29T10:00:00.123456+02:00", "2026-11-29 08:00:00"),
        ("yesterday", "yesterday"),
        ("\x1b[31mEVIL\x1b]0;title", r"\x1b[31mEVIL\x1b]0;title"),
        ("0001-01-01T00:00:00+14:00", "0001-01-01T00:00:00+14:00"),
    ],
    ids=["offset", "no time", "escapes", "before the first year"],
)
def test_times_are_utc(timestamp: str, shown: str) -> None:
    """What cannot be read as a time is shown as it is."""
    assert moment(timestamp) == shown


def test_texts_are_shortened_to_a_limit() -> None:
    """The three dots count."""
    assert [shorten("abcdef", limit) for limit in (6, 5, 2)] == ["abcdef", "ab...", "..."]


def test_headers_have_the_columns_they_need() -> None:
    """Workflow and expiry have columns only where there are several or some."""
    expires = datetime(2026, 12, 1, tzinfo=UTC)
    alone = texts(headers_table([header("a")], 80))
    several = texts(headers_table([header("a"), header("b", workflow_name="other", expires=expires)], 120))

    assert alone[0].split() == ["checkpoint", "time", "(UTC)", "step", "waiting", "bytes", "stored"]
    assert several[0].split()[1] == "workflow"
    assert several[3].endswith("2026-12-01 00:00:00")
    assert header_json(header("b", expires=expires))["expires"] == "2026-12-01T00:00:00+00:00"


@pytest.mark.parametrize(
    ("width", "lines"),
    [
        (None, ["alpha, beta, gamma, delta"]),
        (40, ["alpha, beta, gamma, delta"]),
        (18, ["alpha, beta,", "  gamma, delta"]),
        (3, ["alpha,", "  beta,", "  gamma,", "  delta"]),
    ],
)
def test_lists_are_wrapped_between_their_parts(width: int | None, lines: list[str]) -> None:
    """No part is broken in two: an id has to be copied whole."""
    found = wrapped_list(["alpha", "beta", "gamma", "delta"], width, indent="  ")

    assert found == [f"  {line.lstrip()}" for line in lines]


def test_requests_of_a_checkpoint_stay_in_their_column() -> None:
    """Two ids as they are made do not fit on one line of 80 columns."""
    ids = ("e7b06b43-85e2-4df5-a10a-d788c48016c8", "58cf43fe-d672-48b8-8c04-286902b37cf9")
    lines = texts(checkpoint_lines(header("a", pending=ids), {}, 80))
    piped = texts(checkpoint_lines(header("a", pending=ids), {}, None))

    assert lines[5:7] == [f"waits for   {ids[0]},", f"            {ids[1]}"]
    assert piped[5] == f"waits for   {ids[0]}, {ids[1]}"


def test_fields_of_a_header_count_what_they_do_not_list() -> None:
    """Only a hundred requests are listed in a header."""
    asked = header("a", pending=("r",), pending_request_count=3)

    assert dict(header_fields(asked))["waits for"] == ["r", "2 more"]
    assert dict(header_fields(header("a")))["waits for"] == ["nothing"]


@pytest.mark.parametrize(
    ("value", "limit", "shown"),
    [
        ({"a": [1, None]}, 20, '{"a": [1, null]}'),
        ({"a": "x" * 50, "b": 1}, 20, '{"a": "xxxxxxxxxx...'),
        (["x" * 50], 20, '["xxxxxxxxxxxxxxx...'),
        ("x" * 50, 10, '"xxxxxx...'),
        ("\x9b31m", 20, r'"\x9b31m"'),
        (PickledValue("module:Type", 1234, ""), 40, "<pickled module:Type, 1,234 bytes>"),
        (PickledValue("module:Type", 1, ""), 5, "<pickled Type, 1 byte>"),
    ],
    ids=str,
)
def test_values_in_brief(value: Any, limit: int, shown: str) -> None:
    """What is short is shown, of what is long the beginning, and a pickle is named."""
    assert brief(value, limit) == shown


def test_json_has_no_numbers_that_json_does_not_have() -> None:
    """NaN and the infinities are texts; a pickle is the object that stands for it in the store."""
    value = {"a": [math.nan, math.inf, -math.inf, 2**70], "p": PickledValue("m:T", 5, "x")}

    assert to_json(value) == {
        "a": ["NaN", "Infinity", "-Infinity", 2**70],
        "p": {"__pickled__": 5, "__type__": "m:T"},
    }


def test_restored_values_become_plain() -> None:
    """Objects are their attributes and their type; what has none is only its type."""
    here = __name__

    assert plain({1: (b"abc", {2.5}), Colour.RED: Basket(), (1,): Bare()}).value == {
        "<int 1>": ["<3 bytes>", [2.5]],
        f"<{here}:Colour Colour.RED>": {
            "__type__": f"{here}:Basket",
            "lines": [
                {"__type__": f"{here}:Line", "article": "paper", "price": "<decimal:Decimal 1.50>"},
            ],
        },
        "<tuple int 1>": f"<{here}:Bare>",
    }
    assert plain([Colour.RED, str, 1j]).value == [
        f"<{here}:Colour Colour.RED>",
        "<class builtins:str>",
        "<builtins:complex 1j>",
    ]


def test_keys_that_look_alike_are_told_apart() -> None:
    """Every entry is there, by a key that says its type where it is no text; what is still the same is numbered."""
    keys: list[Any] = [
        1,
        "1",
        None,
        "None",
        False,
        b"a",
        "<int 1>",
        ("a", 1),
        ("a", "1"),
        Bare(),
        Bare(),
        (((((1,),),),),),
    ]
    shown = list(plain(dict.fromkeys(keys, 0) | {2.0: 0}).value)

    assert shown == [
        *("<int 1>", "1", "<None>", "None", "<False>", "<b'a'>", "<int 1> (2)"),
        *("<tuple 'a', int 1>", "<tuple 'a', '1'>"),
        *(f"<{__name__}:Bare>", f"<{__name__}:Bare> (2)", "<tuple tuple tuple <builtins:tuple>>", "<float 2.0>"),
    ]
    assert list(plain({1: "int", "<int 1>": "text"}).value.items()) == [("<int 1>", "int"), ("<int 1> (2)", "text")]


class Member:
    """A value that knows the one it belongs to, and its own."""

    def __init__(self, parent: Member | None = None) -> None:
        self.parent = parent
        self.members: list[Member] = []


def test_a_value_in_itself_is_shown_once() -> None:
    """What refers back to where it stands says how far up; what stands beside it does not count."""
    here = f"{__name__}:Member"
    root = Member()
    root.members = [Member(root) for _ in range(40)]  # looked into again at every reference, 2 ** 100 at this depth
    found = plain(root)
    circle: list[Any] = []
    circle.append(circle)

    assert found.whole
    assert found.value["members"] == [{"__type__": here, "parent": f"<{here}, 3 levels up>", "members": []}] * 40
    assert plain(circle).value == ["<builtins:list, 1 level up>"]


def test_a_value_in_many_places_is_bounded() -> None:
    """A few bytes can have more values than there is time for: beyond a budget they are left out, and that is said."""
    shared: list[Any] = []
    for _ in range(60):
        shared = [shared, shared]
    found = plain({"a": shared, "b": 1}, budget=1_000)
    twice = plain([[1], [1]])

    assert not found.whole
    assert len(json.dumps(found.value)) < 50_000
    assert (twice.value, twice.whole) == ([[1], [1]], True)


@pytest.mark.parametrize(("levels", "deeper"), [(4, False), (3, True)])
def test_how_deep_a_state_is(levels: int, *, deeper: bool) -> None:
    """Dicts and lists count, one in the other; it takes no stack to find out."""
    endless: list[Any] = []
    for _ in range(100_000):
        endless = [endless]

    assert is_deeper({"a": [{"b": [1]}]}, levels) is deeper
    assert is_deeper(endless, 256)


def test_lines_are_printable_whoever_made_them(capsys: pytest.CaptureFixture[str]) -> None:
    """The last thing before a line is written takes the power from it, whether or not a view has done so before."""
    show([Text("plain "), Text("a\x1b[31m", "red").append("\x9b\n", "bold")])
    say("two\nlines\x1b]0;title")

    assert capsys.readouterr().out == "plain \na\\x1b[31m\\x9b\\n\ntwo\nlines\\x1b]0;title\n"


def test_settings_are_shown_with_origins_and_without_secrets() -> None:
    """A secret is a mask in every form; a value has the variable, the default or other settings as its origin."""
    settings = CosmosStateSettings(
        _env_file=None,
        endpoint="https://contoso.documents.azure.com",
        auth=KeyAuth(key=SecretStr("a2V5")),
        database="db",
    )
    origins = {
        "auth.key": SettingOrigin("COSMOS_WORKFLOW_STATE_KEY", ".env"),
        "endpoint": SettingOrigin("COSMOS_WORKFLOW_STATE_ENDPOINT", "the environment"),
    }
    rows = rows_of(settings, origins)
    shown = {line.split()[0]: re.split("  +", line)[1:] for line in texts(settings_table(rows, None))}

    assert shown["auth.key"] == ["**********", ".env: COSMOS_WORKFLOW_STATE_KEY"]
    assert shown["endpoint"][1:] == ["the environment"]
    assert shown["auth.mode"] == ["key", "default"]
    assert shown["database"] == ["db", "other settings"]
    assert shown["allowed_checkpoint_types"] == ["not set", "default"]
    assert "a2V5" not in json.dumps(settings_json(rows))
    assert settings_json(rows)["settings"][5] == {
        "name": "auth.mode",
        "variable": "COSMOS_WORKFLOW_STATE_AUTH__MODE",
        "value": "key",
        "source": "default",
    }


def test_settings_that_are_lists_are_shown_as_such() -> None:
    """Types are separated by commas, as the variable takes them, and a list in JSON."""
    settings = CosmosStateSettings(_env_file=None, endpoint="embedded:", allowed_checkpoint_types=["a:B", "c:D"])
    rows = rows_of(settings, {})

    assert "a:B, c:D" in "\n".join(texts(settings_table(rows, 80)))
    assert json.dumps(["a:B", "c:D"]) in json.dumps(settings_json(rows))
