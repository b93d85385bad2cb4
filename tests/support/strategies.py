"""Texts and settings that the property tests share."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st

# No deadline: on a machine that several sessions share, one slow example says nothing.
quick = settings(deadline=None, max_examples=100)

texts = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"))
"""Any text that can be an identifier: no lone surrogates, no NUL."""

awkward_texts = st.text(st.sampled_from("aA0.~:/\\?#% _-é7E\u202e\U0001f600\uff1a\n"), max_size=12)
"""Short texts of characters that an encoding may trip over, so that two of them are often almost the same."""
