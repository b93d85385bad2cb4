"""Property paths as policies and partition keys write them: `/a/"b c"/'d"e'/?`.

Owns the splitting of such a path and what is found at one. Must not know what it is used for.
"""

from __future__ import annotations

import re
from typing import Final

from cosmos_workflow_state.emulator._engine._errors import InvalidError
from cosmos_workflow_state.emulator._ordering import UNDEFINED, Value
from cosmos_workflow_state.emulator._values import Json, JsonObject

__all__ = ["split", "value_at"]

_STEP: Final = re.compile(r"""/(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([^/"']+))""")
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
        escaped, quoted, plain = match.groups()
        steps.append((plain or quoted) if escaped is None else _ESCAPE.sub(r"\1", escaped))
        position = match.end()
    if not steps or position < len(path):
        raise InvalidError(f"The path {path!r} cannot be read.")
    return tuple(steps)


def value_at(item: JsonObject, path: tuple[str, ...]) -> Value:
    """Give the value at a path of property names, `UNDEFINED` when there is none."""
    value: Json = item
    for name in path:
        if not isinstance(value, dict) or name not in value:
            return UNDEFINED
        value = value[name]
    return value
