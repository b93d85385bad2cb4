"""The reference of the settings is what the model says.

Run as a program it writes the page anew: ``python tests/unit/test_settings_reference.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pytest
from pydantic import SecretStr
from pydantic.fields import FieldInfo

from cosmos_workflow_state import CosmosStateSettings
from cosmos_workflow_state._auth_settings import AUTH_FIELDS, AUTH_MODELS, AUTO, modes_with
from cosmos_workflow_state._settings_sources import _ALIASES, SECRETS_DIR_VARIABLE, FieldPath, variable_names

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "settings.md"
INTRODUCTION = f"""\
# Settings

Every field of `CosmosStateSettings`, in its order. Where they are read, and which of them you need, is in
[Configure](../how-to/configure.md). `cosmos-workflow-state config show` prints those in force and where each comes
from, `config schema` what stands here as JSON schema.

Each is an argument of `CosmosStateSettings`; `auth.key` is the field `key` of its argument `auth`. Of several
variables in one place the first counts; those that begin with `AZURE_COSMOS_`, which are of Microsoft Agent
Framework's own package, count where none of ours is set. `{SECRETS_DIR_VARIABLE}`
is a variable only: a directory of files that are named like the variables.

This page is written by `python tests/unit/test_settings_reference.py`.
"""
NAMES: dict[Any, str] = {
    bool: "`true` or `false`",
    float: "number",
    int: "integer",
    re.Pattern[str]: "regular expression",
    SecretStr: "text, secret: masked wherever it is shown",
    str: "text",
}


def page() -> str:
    """Return the page."""
    sections = (section(path, field) for path, field in fields())
    return "\n".join((INTRODUCTION, overview(), *sections))


def fields() -> Iterator[tuple[FieldPath, FieldInfo]]:
    """Yield every setting; in place of ``auth`` the fields that its modes have."""
    for name, field in CosmosStateSettings.model_fields.items():
        if name == "auth":
            yield from ((("auth", inner), about) for inner, about in AUTH_FIELDS.items())
        else:
            yield (name,), field


def overview() -> str:
    """Return a table of all settings, each with a link to what there is to know about it."""
    rows = [
        f"| [`{name_of(path)}`](#{name_of(path).replace('.', '')}) | `{variables(path)[0]}` | {default_of(field)} |"
        for path, field in fields()
    ]
    return "\n".join(("| setting | variable | default |", "|---|---|---|", *rows, ""))


def section(path: FieldPath, field: FieldInfo) -> str:
    """Return what there is to know about a setting."""
    facts = {
        "variable": ", ".join(f"`{name}`" for name in variables(path)),
        "only where `auth.mode` is": only_where(path),
        "type": kind_of(path, field),
        "default": default_of(field),
        "example": " or ".join(f"`{example}`" for example in field.examples or ()),
    }
    lines = [f"- {name}: {fact}" for name, fact in facts.items() if fact]
    takes = f"{(field.description or '')[:1].upper()}{(field.description or '')[1:]}."
    return "\n".join((f"## `{name_of(path)}`", "", takes, "", *lines, ""))


def name_of(path: FieldPath) -> str:
    """Return a setting's name."""
    return ".".join(path)


def variables(path: FieldPath) -> list[str]:
    """Return the variables of a setting, the strongest first."""
    return [*variable_names(CosmosStateSettings.model_fields)[path], *_ALIASES.get(path, ())]


def only_where(path: FieldPath) -> str:
    """Return the modes that a setting has a meaning for, nothing for one of all modes."""
    if path[0] != "auth" or path[1] == "mode":
        return ""
    return " or ".join(f"`{mode}`" for mode in modes_with(path[1]))


def kind_of(path: FieldPath, field: FieldInfo) -> str:
    """Return the type of a setting in words."""
    if path == ("auth", "mode"):
        return choices(AUTO, *(model.model_fields["mode"].default for model in AUTH_MODELS))
    return kind(field.annotation)


def kind(annotation: Any) -> str:
    """Return a type in words.

    Raises:
        KeyError: There are no words for it yet.
    """
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return kind(arguments[0])
    if origin is Literal:
        return choices(*arguments)
    if origin is tuple:
        return f"list, separated by commas or as a JSON list; each {kind(arguments[0])}"
    if origin in {Union, UnionType}:
        return " or ".join(kind(one) for one in arguments if one is not NoneType)
    return NAMES[annotation]


def choices(*names: str) -> str:
    """Return a choice in words."""
    return f"one of {', '.join(f'`{name}`' for name in names)}"


def default_of(field: FieldInfo) -> str:
    """Return a default as the page writes it."""
    if field.is_required():
        return "none, it is required"
    default = field.get_default(call_default_factory=True, validated_data={})
    return "not set" if default in ((), None) else f"`{getattr(default, 'pattern', default)}`"


def test_the_page_is_the_model() -> None:
    """Names, variables, aliases, types, defaults, examples and descriptions: a change of the model changes the page."""
    assert PAGE.read_text("utf-8") == page(), f"run python tests/unit/{Path(__file__).name}"


def test_the_page_has_every_variable_that_is_read() -> None:
    """No variable is missing from the page, none stands there that nobody reads."""
    named = set(re.findall(r"`((?:COSMOS_WORKFLOW_STATE|AZURE_COSMOS)_\w*[A-Z])`", PAGE.read_text("utf-8")))
    known = {name for names in variable_names(CosmosStateSettings.model_fields).values() for name in names}

    assert named == known | {name for names in _ALIASES.values() for name in names} | {SECRETS_DIR_VARIABLE}


def test_every_setting_has_a_description_and_an_example() -> None:
    """Nothing is left out because the model does not say it."""
    assert [name_of(path) for path, field in fields() if not (field.description and field.examples)] == []


@pytest.mark.parametrize(
    ("annotation", "said"),
    [
        (int | None, "integer"),
        (Annotated[SecretStr | None, "checked"], "text, secret: masked wherever it is shown"),
        (Literal["a", "b"], "one of `a`, `b`"),
        (tuple[Annotated[str, "checked"], ...], "list, separated by commas or as a JSON list; each text"),
    ],
    ids=str,
)
def test_types_are_words(annotation: Any, said: str) -> None:
    """What checks a value and that it may be left out say nothing about its type."""
    assert kind(annotation) == said


def test_a_type_without_words_is_refused() -> None:
    """Whoever adds a type of setting also says what to call it."""
    with pytest.raises(KeyError):
        kind(complex)


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
