"""``config``: the settings in force and their schema."""

from __future__ import annotations

from pydantic.json_schema import GenerateJsonSchema

from cosmos_workflow_state import CosmosStateSettings
from cosmos_workflow_state.errors import CosmosStateError
from cosmos_workflow_state.settings import read_origins

from ._output import say_json
from ._screen import show, width
from ._store import explained
from ._views._settings import rows_of, settings_json, settings_table


def show_settings(*, as_json: bool) -> None:
    """Print every setting with its value, or that it is a secret, and its origin.

    Raises:
        CommandError: A setting is wrong or missing.
    """
    try:
        settings = CosmosStateSettings()
    except CosmosStateError as error:
        raise explained(error) from None
    rows = rows_of(settings, read_origins())
    if as_json:
        say_json(settings_json(rows))
    else:
        show(settings_table(rows, width()))


def print_schema() -> None:
    """Print the JSON schema of the settings."""
    say_json({"$schema": GenerateJsonSchema.schema_dialect} | CosmosStateSettings.model_json_schema())
