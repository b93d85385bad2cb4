"""What is said about settings that are wrong: pydantic's errors as sentences, each with what the variable takes.

It reads nothing. A sentence is made of the kind and the place of an error only: its text may quote the value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from ._auth_settings import AUTH_FIELDS, SEVERAL_IDENTITIES, modes_with
from ._definitions import CONTAINERS
from ._endpoints import IS_A_PATH
from ._settings_sources import FieldPath, nearest, variable_names
from ._settings_values import shown
from .errors import SettingsError

ONE_CONTAINER: Final = "one_container"
"""Kind of the error of two kinds of state in containers of the same name."""

TWO_ACCOUNTS: Final = "two_accounts"
"""Kind of the error of an endpoint beside a connection string of another account."""


class Wording:
    """Words what is wrong with the fields of one settings class."""

    def __init__(self, fields: Mapping[str, FieldInfo]) -> None:
        """Take the fields of the class; those of ``auth`` are known."""
        self._fields = fields
        self._variables = variable_names(fields)
        self._sentences = _about_several(self._variables)

    def problems(self, error: ValidationError, origins: Mapping[FieldPath, str], arguments: Iterable[str]) -> list[str]:
        """Return a sentence for each of the errors.

        Args:
            error: What pydantic has found.
            origins: By field, the variable and place that its value was read from.
            arguments: Names of what was given as an argument.
        """
        given = frozenset(arguments)
        details = error.errors(include_url=False, include_context=False, include_input=False)
        return [self._problem(detail["type"], detail["loc"], origins, given) for detail in details]

    def sentence(self, path: FieldPath, fault: str) -> str:
        """Return the sentence about a field; ``fault`` is its first part."""
        about = (AUTH_FIELDS if path[1:] else self._fields)[path[-1]]
        name = self._variables.get(path, path)[-1]
        examples = " or ".join(f"{name}={example}" for example in about.examples or ())
        return f"{fault}: it takes {about.description}; for example {examples}"

    def _problem(
        self, kind: str, location: tuple[int | str, ...], origins: Mapping[FieldPath, str], arguments: frozenset[str]
    ) -> str:
        if kind in self._sentences:
            return self._sentences[kind]
        path = _path(kind, location)
        name = ".".join(path)
        if name == "auth":
            return self.sentence(path, "argument auth is wrong")
        if path not in self._variables:
            return f"argument {shown(name)} is unknown{self._meant(path)}"
        variable = self._variables[path][-1]
        if kind == "missing":
            return self.sentence(path, f"{variable} is not set")
        who = f"{variable}, here the argument {name}," if path[0] in arguments else origins[path]
        if kind == "extra_forbidden":
            return f"{who} has no meaning for auth.mode={location[1]}: {self._where_it_has_one(path[1])}"
        return self.sentence(
            path, f"{who} {'is a path, which is written `embedded:PATH`' if kind == IS_A_PATH else 'is wrong'}"
        )

    def _where_it_has_one(self, field: str) -> str:
        return f"remove it, or set {self._variables['auth', 'mode'][-1]}={' or '.join(modes_with(field))}"

    def _meant(self, path: FieldPath) -> str:
        """Return the end of the sentence about an argument that does not exist."""
        if ("auth", *path) in self._variables:
            return f": did you mean auth=KeyAuth({path[0]}=...)?"
        return nearest(".".join(path), map(".".join, self._variables))


def error_of(problems: Sequence[str]) -> SettingsError:
    """Return the one error that lists all problems."""
    count = "1 setting is" if len(problems) == 1 else f"{len(problems)} settings are"
    return SettingsError("\n  ".join((f"{count} wrong:", *problems)))


def _about_several(variables: Mapping[FieldPath, tuple[str, ...]]) -> Mapping[str, str]:
    """Return, by kind, the sentences about errors that are no single field's."""
    names = ", ".join(variables["auth", name][-1] for name in ("client_id", "object_id", "resource_id"))
    endpoint, connection_string = (variables[path][-1] for path in (("endpoint",), ("auth", "connection_string")))
    return {
        SEVERAL_IDENTITIES: (
            f"{names} are three names for one identity: set one of them, or none for the system-assigned identity"
        ),
        ONE_CONTAINER: (
            f"{', '.join(variables[definition.setting,][-1] for definition in CONTAINERS)} name the same container "
            "twice: each of them needs one of its own"
        ),
        TWO_ACCOUNTS: f"{endpoint} is another account than {connection_string} names: set the latter only",
    }


def _path(kind: str, location: tuple[int | str, ...]) -> FieldPath:
    """Return which field it is: inside ``auth`` a location names the union's member before the field."""
    steps = tuple(str(step) for step in location)
    if steps[0] != "auth":
        return steps[:1]
    return ("auth", *(("mode",) if kind == "union_tag_invalid" else steps[2:3]))
