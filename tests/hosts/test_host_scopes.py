"""Scopes that host adapters make of what a host knows: never the same for two callers."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosmos_workflow_state.errors import InvalidIdentifierError
from cosmos_workflow_state.hosts._scopes import scope_of

_PARTS = st.lists(st.none() | st.text(st.characters(exclude_categories=["Cs"])), max_size=4).map(tuple)


@given(_PARTS, _PARTS)
def test_no_two_callers_share_a_scope(one: tuple[str | None, ...], other: tuple[str | None, ...]) -> None:
    """A scope is the same only for the same identities, whatever is in them."""
    assert (scope_of("foundry", *one) == scope_of("foundry", *other)) == (one == other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("a", "b"), ("a,b",)),
        (('a"', "b"), ("a", '"b')),
        ((None,), ("null",)),
        (("",), (None,)),
        (("a", "b" * 2000), ("a", "b" * 2001)),
        (("é",), ("e\u0301",)),
    ],
    ids=str,
)
def test_what_could_be_mistaken_is_not(one: tuple[str | None, ...], other: tuple[str | None, ...]) -> None:
    """Texts that a plain joining would mix up, absent ones, long ones and ones that only look alike."""
    assert scope_of("foundry", *one) != scope_of("foundry", *other)


def test_a_long_scope_is_a_digest() -> None:
    """Identities of any length fit into a scope."""
    fits = "a" * (1024 - len('foundry:[""]'))

    assert scope_of("foundry", fits) == f'foundry:["{fits}"]'
    assert re.fullmatch("foundry:sha256:[0-9a-f]{64}", scope_of("foundry", f"{fits}a"))


def test_a_lone_surrogate_is_refused() -> None:
    """What no encoding can tell apart is no identity."""
    with pytest.raises(InvalidIdentifierError, match="lone surrogate"):
        scope_of("foundry", "\ud800")
