"""Property paths as policies and partition keys write them: `/a/"b c"/?`.

Owns the splitting of such a path. Must not know what it is used for.
"""

from __future__ import annotations

import re
from typing import Final

from cosmos_workflow_state.emulator._engine._errors import InvalidError

__all__ = ["split"]

_STEP: Final = re.compile(r'/(?:"((?:[^"\\]|\\.)*)"|([^/"]+))')
_ESCAPE: Final = re.compile(r"\\(.)")


def split(path: str) -> tuple[str, ...]:
    """Split a path into its steps, quotes removed.

    Args:
        path: A path that starts with a slash.

    Returns:
        The steps from the root downwards.

    Raises:
        InvalidError: The path cannot be read.
    """
    steps: list[str] = []
    position = 0
    while position < len(path):
        match = _STEP.match(path, position)
        if match is None:
            break
        quoted, plain = match.groups()
        steps.append(plain if quoted is None else _ESCAPE.sub(r"\1", quoted))
        position = match.end()
    if not steps or position < len(path):
        raise InvalidError(f"The path {path!r} cannot be read.")
    return tuple(steps)
