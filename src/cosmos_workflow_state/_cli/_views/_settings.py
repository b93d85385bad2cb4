"""Settings, one row each, secrets masked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from pydantic import BaseModel, SecretStr
from pydantic_settings import BaseSettings
from rich.text import Text

from cosmos_workflow_state.settings import SettingOrigin

from ._layout import Column, layout

_PREFIX: Final = "COSMOS_WORKFLOW_STATE_"
_MASK: Final = "**********"
_DEFAULT: Final = "default"
_DERIVED: Final = "other settings"


@dataclass(frozen=True, slots=True)
class SettingRow:
    """One setting in force.

    Attributes:
        name: Its name, dotted for a nested one.
        variable: The variable it was read from, or could be.
        value: As JSON; a mask for a secret, None where it is not set.
        source: Where it comes from.
    """

    name: str
    variable: str
    value: Any
    source: str


def rows_of(settings: BaseSettings, origins: Mapping[str, SettingOrigin]) -> list[SettingRow]:
    """Return a row for each setting, in the order of the model."""
    return list(_rows(settings, origins, ""))


def settings_table(rows: Sequence[SettingRow], width: int | None) -> list[Text]:
    """Return rows as lines."""
    columns = (Column("setting", style="cyan"), Column("value"), Column("from"))
    return layout(columns, [(row.name, _text(row.value), _from(row)) for row in rows], width)


def short_table(rows: Sequence[SettingRow], width: int | None) -> list[Text]:
    """Return rows as lines, without the names of variables."""
    columns = (Column("setting", style="cyan"), Column("value"), Column("from"))
    return layout(columns, [(row.name, _text(row.value), row.source) for row in rows], width)


def settings_json(rows: Sequence[SettingRow]) -> dict[str, Any]:
    """Return rows as JSON."""
    return {
        "settings": [
            {"name": row.name, "variable": row.variable, "value": row.value, "source": row.source} for row in rows
        ]
    }


def _rows(model: BaseModel, origins: Mapping[str, SettingOrigin], prefix: str) -> Iterator[SettingRow]:
    for name, field in type(model).model_fields.items():
        value, path = getattr(model, name), f"{prefix}{name}"
        if isinstance(value, BaseModel):
            yield from _rows(value, origins, f"{path}.")
            continue
        origin = origins.get(path)
        variable = _variable(path) if origin is None else origin.variable
        source = origin.place if origin else _DEFAULT if value == field.get_default() else _DERIVED
        yield SettingRow(path, variable, _plain(value), source)


def _plain(value: Any) -> Any:
    if isinstance(value, SecretStr):
        return _MASK
    if isinstance(value, re.Pattern):
        return str(cast("re.Pattern[str]", value).pattern)
    return list(cast("Sequence[Any]", value)) if isinstance(value, tuple) else value


def _text(value: Any) -> str:
    if value is None or value == []:
        return "not set"
    return ", ".join(cast("Sequence[str]", value)) if isinstance(value, list) else str(value)


def _from(row: SettingRow) -> str:
    return row.source if row.variable == _variable(row.name) else f"{row.source}: {row.variable}"


def _variable(name: str) -> str:
    return f"{_PREFIX}{name.upper().replace('.', '__')}"
