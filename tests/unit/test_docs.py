"""README and docs say what is so: code blocks run, the settings table is the model, links lead somewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic.fields import FieldInfo

from cosmos_workflow_state import CosmosStateSettings, KeyAuth
from cosmos_workflow_state._documents import CHECKPOINT_TYPE, MAX_ITEM_BYTES, SCHEMA
from cosmos_workflow_state._maf import FORMAT, MAX_DEPTH
from cosmos_workflow_state._provisioning import INDEXED_PATHS, PARTITION_KEY_PATHS
from cosmos_workflow_state.settings import MAX_PAYLOAD_BYTES

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "samples" / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
TUTORIAL = ROOT / "docs" / "tutorial" / "first-pause.md"


def blocks(page: Path, language: str) -> list[str]:
    """Return the fenced blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)


def name_of(page: Path) -> str:
    """Return a page's path as a test id."""
    return page.relative_to(ROOT).as_posix()


CODE = [
    pytest.param(block, id=f"{name_of(page)}-{number}")
    for page in PAGES
    for number, block in enumerate(blocks(page, "python"), start=1)
]


def run(code: str, directory: Path) -> str:
    """Return what a code block prints, run as a script without any settings around; it must not complain."""
    script = directory / "block.py"
    script.write_text(code, "utf-8")
    environment = {name: value for name, value in os.environ.items() if "COSMOS" not in name}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("code", CODE)
def test_code_blocks_run(code: str, tmp_path: Path) -> None:
    """Every Python block is a whole program that runs as it stands."""
    assert run(code, tmp_path)


def test_the_tutorial_prints_what_it_says(tmp_path: Path) -> None:
    """Run twice, the tutorial's script prints what the page shows; as another tenant it begins anew."""
    [code] = blocks(TUTORIAL, "python")

    assert [run(code, tmp_path), run(code, tmp_path)] == blocks(TUTORIAL, "text")
    assert run(code.replace('"contoso"', '"fabrikam"'), tmp_path) == blocks(TUTORIAL, "text")[0]


def settings() -> Iterator[tuple[str, str, FieldInfo]]:
    """Yield the name, the variable and the field of every setting."""
    for name, field in CosmosStateSettings.model_fields.items():
        if name != "auth":
            yield name, f"COSMOS_WORKFLOW_STATE_{name.upper()}", field
            continue
        for inner, inner_field in KeyAuth.model_fields.items():
            yield f"auth.{inner}", f"COSMOS_WORKFLOW_STATE_AUTH__{inner.upper()}", inner_field


def default_of(field: FieldInfo) -> str:
    """Return a default as the table writes it."""
    if field.is_required():
        return "required"
    default = field.default
    return "none" if default == () else f"`{getattr(default, 'pattern', default)}`"


def test_the_settings_table_is_the_model() -> None:
    """Names, variables, defaults, examples and descriptions are the model's, in its order."""
    page = (ROOT / "docs" / "how-to" / "configure.md").read_text("utf-8")
    rows = [
        [cell.strip() for cell in line.strip("|").split(" | ")] for line in page.splitlines() if line.startswith("| `")
    ]

    assert [[name, variable, default, example, takes] for name, variable, _, default, example, takes in rows] == [
        [f"`{name}`", f"`{variable}`", default_of(field), f"`{(field.examples or [''])[0]}`", field.description]
        for name, variable, field in settings()
    ]


def test_the_data_model_is_the_code() -> None:
    """The page on the data model has the paths, names and limits that the code has."""
    page = (ROOT / "docs" / "reference" / "data-model.md").read_text("utf-8")

    assert ", ".join(f"`{path}`" for path in PARTITION_KEY_PATHS) in page
    assert ", ".join(f"`{path}`" for path in INDEXED_PATHS) in page
    assert f"| `type` | `{CHECKPOINT_TYPE}` |" in page
    assert f"| `schema` | `{SCHEMA}` |" in page
    assert f"| `format` | `{FORMAT}` |" in page
    assert f"| {MAX_DEPTH} levels |" in page
    assert f"at most {MAX_PAYLOAD_BYTES // 2**20} MiB" in page
    assert f"| {MAX_ITEM_BYTES // 2**20} MiB, of the service |" in page


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link is a file of the repository."""
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text("utf-8"))

    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_the_readme_is_short_and_has_the_commands() -> None:
    """Under 150 lines, with the commands to set up, to see it and to test it."""
    readme = (ROOT / "README.md").read_text("utf-8")

    assert len(readme.splitlines()) < 150
    for command in (
        "python3 -m venv .venv && .venv/bin/pip install .",
        ".venv/bin/cosmos-workflow-state demo",
        "python3 -m venv .venv && .venv/bin/pip install nox && .venv/bin/nox",
    ):
        assert f"\n{command}\n" in readme
