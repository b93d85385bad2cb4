"""What all settings models share: a refusal of changes that shows no value, and texts turned into values.

It knows no field and reads nothing.
"""

from __future__ import annotations

import json
import re
from typing import Final, NoReturn

from .errors import SettingsError

_ACCOUNT_KEY: Final = re.compile(r"[A-Za-z0-9+/]{86}==")
"""64 bytes in base64: what the service makes as a key, and what nobody calls anything."""


class Frozen:
    """Refuses changes by the name of the field: pydantic's own refusal would quote the value."""

    def __setattr__(self, name: str, value: object) -> NoReturn:
        """Refuse."""
        del value
        raise _frozen_error(self, name)

    def __delattr__(self, name: str) -> NoReturn:
        """Refuse."""
        raise _frozen_error(self, name)


def shown(name: str) -> str:
    """Return the name if it is written like one: a key whose ``=`` was forgotten reads as a name too."""
    plain = re.fullmatch(r"[A-Z0-9_]{1,80}|[a-z0-9_.]{1,80}", name) is not None
    return name if plain else f"a name of {len(name)} characters (not shown)"


def fold_case(value: object) -> object:
    """Return a text in lower case, anything else as it is."""
    return value.lower() if isinstance(value, str) else value


def refuse_key(value: object) -> object:
    """Return the value; refuse a text with an account key in it, which would be shown wherever the setting is.

    Raises:
        ValueError: It has one.
    """
    if isinstance(value, str) and _ACCOUNT_KEY.search(value):
        raise ValueError("an account key")
    return value


def split_names(value: object) -> object:
    """Return the names of a text, separated by commas or a JSON list; anything else as it is."""
    if not isinstance(value, str):
        return value
    if not value.lstrip().startswith("["):
        return tuple(name.strip() for name in value.split(",") if name.strip())
    try:
        return json.loads(value)
    except RecursionError:
        raise ValueError("not a list") from None


def _frozen_error(model: object, field: str) -> SettingsError:
    return SettingsError(f"{type(model).__name__} is frozen: {shown(field)} cannot be changed, build another one")
