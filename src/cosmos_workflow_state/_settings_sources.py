"""Where settings come from: environment, ``.env`` and secrets directory, by variable name.

It owns the names of the variables and their precedence, and knows nothing of what a value must look like.
Problems are made of variable names and fixed texts; a value never becomes part of one.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

from pydantic_settings import BaseSettings, DotEnvSettingsSource, EnvSettingsSource

from ._auth_settings import AUTH_FIELDS, AUTO
from ._settings_values import shown

PREFIX: Final = "COSMOS_WORKFLOW_STATE_"
KEY_VARIABLE: Final = f"{PREFIX}KEY"
SECRETS_DIR_VARIABLE: Final = f"{PREFIX}SECRETS_DIR"

FieldPath: TypeAlias = tuple[str, ...]
PathText: TypeAlias = Path | str

_ALIASES: Final[Mapping[FieldPath, tuple[str, ...]]] = {
    ("endpoint",): ("AZURE_COSMOS_ENDPOINT",),
    ("database",): ("AZURE_COSMOS_DATABASE_NAME",),
    ("auth", "key"): ("AZURE_COSMOS_KEY",),
}
_KEY: Final[FieldPath] = ("auth", "key")
_ALIAS_NAMES: Final = frozenset(name for names in _ALIASES.values() for name in names)
_SECRETS: Final = "the secrets directory"

_Found: TypeAlias = Mapping[str, tuple[str, str]]
"""By upper-case variable name: the name as it is written in its place, and the value."""


@dataclass(frozen=True, slots=True)
class Read:
    """What the places hold.

    Attributes:
        values: As the model takes them.
        origins: The variable, and its place, that each field's value came from.
        problems: One sentence for each name or place that is wrong.
    """

    values: Mapping[str, object] = field(repr=False)
    origins: Mapping[FieldPath, str]
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Level:
    where: str
    found: _Found = field(repr=False)


def variable_names(fields: Iterable[str]) -> Mapping[FieldPath, tuple[str, ...]]:
    """Return the variables of each field, the strongest first; ``auth`` is nested and has its own."""
    return {
        **{(name,): (f"{PREFIX}{name.upper()}",) for name in fields if name != "auth"},
        **{("auth", name): (f"{PREFIX}AUTH__{name.upper()}",) for name in AUTH_FIELDS},
        ("auth", "key"): (f"{PREFIX}AUTH__KEY", KEY_VARIABLE),
    }


def read(settings: type[BaseSettings], env_file: PathText | None, secrets_dir: PathText | None) -> Read:
    """Read the three places for one settings class.

    Args:
        settings: Its fields give the names.
        env_file: None for none; one that does not exist is passed over.
        secrets_dir: None for what ``COSMOS_WORKFLOW_STATE_SECRETS_DIR`` says.
    """
    problems: list[str] = []
    names = variable_names(settings.model_fields)
    levels = [
        _Level("the environment", _folded(EnvSettingsSource(settings, case_sensitive=True).env_vars)),
        _Level(".env", _read_dotenv(settings, env_file, problems)),
    ]
    _, given = _first(levels, (SECRETS_DIR_VARIABLE,)) or ("", None)
    levels.append(_Level(_SECRETS, _read_secrets(secrets_dir or given, problems)))
    known = frozenset(name for group in names.values() for name in group) | {SECRETS_DIR_VARIABLE}
    problems += (problem for level in levels for problem in _unknown(level, known))
    values, origins = _assemble(levels, names)
    return Read(values, origins, tuple(problems))


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the end of a sentence about an unknown name: the known one it is nearest to, if there is any."""
    matches = difflib.get_close_matches(name, sorted(known), n=1)
    return f": did you mean {matches[0]}?" if matches else ""


def _read_dotenv(settings: type[BaseSettings], env_file: PathText | None, problems: list[str]) -> _Found:
    try:
        # "utf-8-sig" also takes the mark that some editors put before the first name.
        source = DotEnvSettingsSource(settings, env_file=env_file, env_file_encoding="utf-8-sig", case_sensitive=True)
    except (OSError, UnicodeDecodeError):
        problems.append(f".env cannot be read: it takes UTF-8 text; for example {PREFIX}ENDPOINT=embedded:")
        return {}
    return _folded(source.env_vars)


def _read_secrets(directory: PathText | None, problems: list[str]) -> _Found:
    if directory is None:
        return {}
    try:
        files = [file for file in Path(directory).expanduser().iterdir() if _is_ours(file.name)]
    except (OSError, RuntimeError, ValueError):
        problems.append(
            f"{SECRETS_DIR_VARIABLE} is wrong: it takes a directory that can be read; "
            f"for example {SECRETS_DIR_VARIABLE}=/run/secrets"
        )
        return {}
    return _folded({file.name: _read_secret(file, problems) for file in files})


def _read_secret(file: Path, problems: list[str]) -> str | None:
    try:
        return file.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        problems.append(f"{shown(file.name)} in {_SECRETS} cannot be read: it takes a file of UTF-8 text")
        return None


def _folded(variables: Mapping[str, str | None]) -> _Found:
    # Where a name is spelt in two ways, the upper-case spelling comes last and wins.
    ordered = sorted(variables.items(), key=lambda item: item[0].isupper())
    return {name.upper(): (name, value) for name, value in ordered if value and _is_ours(name)}


def _is_ours(name: str) -> bool:
    return name.upper().startswith(PREFIX) or name.upper() in _ALIAS_NAMES


def _unknown(level: _Level, known: frozenset[str]) -> Iterator[str]:
    for name, (written, _) in level.found.items():
        if name == SECRETS_DIR_VARIABLE and level.where == _SECRETS:
            yield f"{name} in {_SECRETS} is out of place: it is read from the environment and .env"
        elif name.startswith(PREFIX) and name not in known:
            yield f"{shown(written)} in {level.where} is unknown{nearest(name, known)}"


def _first(levels: Iterable[_Level], names: Sequence[str]) -> tuple[str, str] | None:
    hits = ((level, name) for level in levels for name in names if name in level.found)
    return next(((f"{name} in {level.where}", level.found[name][1]) for level, name in hits), None)


def _assemble(
    levels: Sequence[_Level], names: Mapping[FieldPath, tuple[str, ...]]
) -> tuple[dict[str, object], dict[FieldPath, str]]:
    values: dict[str, Any] = {"auth": {}}
    origins: dict[FieldPath, str] = {}
    for path, variables in names.items():
        hit = _first(levels, variables) or _first(levels, _ALIASES.get(path, ()))
        if hit is not None:
            origins[path], value = hit
            target = values if len(path) == 1 else values[path[0]]
            target[path[-1]] = value
    auth: dict[str, object] = values["auth"]
    # Somebody else's key that lies around is no contradiction of what was chosen here.
    if str(auth.get("mode", AUTO)).lower() not in {AUTO, "key"} and origins.get(_KEY, "").startswith(_ALIASES[_KEY]):
        del auth["key"]
    if not auth:
        del values["auth"]
    return values, origins
