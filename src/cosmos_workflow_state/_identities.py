"""Which of the messages that are to be saved are new: the framework's rule, on digests instead of on messages.

The framework compares the identities of all that is stored with those of all that comes in. Its answer depends on no
more than the newest ``len(incoming) + 1`` of what is stored, so a history is never read for it. Pure; it knows no
message.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from typing import Final

BY_ID: Final = "i"
BY_INPUT: Final = "u"
BY_CONTENT: Final = "c"
"""How a message is told from others: by an id of its own, or by its content, as a user's input or as another's."""

_DIGEST_BYTES: Final = 16
_IDENTITY: Final = re.compile(rf"[{BY_ID}{BY_INPUT}{BY_CONTENT}][A-Za-z0-9_-]{{22}}")


def identity(told_by: str, parts: Sequence[str]) -> str:
    """Return the identity of a message in 23 characters: how it is told from others, and a digest.

    Args:
        told_by: `BY_ID`, `BY_INPUT` or `BY_CONTENT`.
        parts: The identity as the framework has it.
    """
    text = json.dumps(list(parts), ensure_ascii=False, separators=(",", ":"))
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:_DIGEST_BYTES]
    return told_by + base64.urlsafe_b64encode(digest).rstrip(b"=").decode("ascii")


def is_identity(text: str) -> bool:
    """Return whether a text is what `identity` returns."""
    return _IDENTITY.fullmatch(text) is not None


def needed(stored: int, incoming: int) -> int:
    """Return how many of the newest identities of so many stored messages decide what of the incoming is new."""
    return min(stored, incoming + 1)


def first_new(newest: Sequence[str], incoming: Sequence[str]) -> int:
    """Return the index of the first incoming message that is not stored yet; what follows it is new as well.

    What comes in may go on from what is stored, or be the whole conversation again. A user's input that is said again
    is kept rather than taken for a replay, unless it has an id.

    Args:
        newest: Identities of the newest messages that are stored, oldest first, as many as `needed`.
        incoming: Identities of the messages that are to be saved.
    """
    known, given = list(newest), list(incoming)
    if not known:
        return 0
    ends_with_input = known[-1].startswith(BY_INPUT)
    for start in range(len(given) - len(known) + 1):
        if given[start : start + len(known)] == known:
            if start == 0 and len(known) == 1 and ends_with_input:
                break
            return start + len(known)
    return _overlap(known, given, least=2 if ends_with_input else 1)


def _overlap(known: list[str], given: list[str], *, least: int) -> int:
    """Return how many of the first given ones are the last known ones, at most; 0 when fewer than ``least`` are."""
    for length in range(min(len(known), len(given)), least - 1, -1):
        if known[-length:] == given[:length]:
            return length
    return 0
