"""README and docs say what is so: code blocks run, tables are what the code has, links lead somewhere."""

from __future__ import annotations

import fnmatch
import re
import shlex
from pathlib import Path

import pytest

from cosmos_workflow_state._codec import MAX_WHOLE_BYTES
from cosmos_workflow_state._definitions import CONTAINERS, DATA_ACTIONS
from cosmos_workflow_state._documents import (
    CHECKPOINT_TYPE,
    KEYFRAME_GUARD_TYPE,
    KEYFRAME_TYPE,
    MAX_HEADER_BYTES,
    REUSE_SECONDS,
)
from cosmos_workflow_state._items import PART_BYTES, PART_TYPE, SCHEMA, UPLOAD_GUARD_TYPE, UPLOAD_SECONDS
from cosmos_workflow_state._maf import FORMAT, MAX_DEPTH
from cosmos_workflow_state.settings import MAX_PAYLOAD_BYTES
from support.pages import NOT_SAVED, PAGES, README, ROOT, blocks, name_of, programs, run, start

TUTORIAL = ROOT / "docs" / "tutorial" / "first-pause.md"
CONFIGURE = ROOT / "docs" / "how-to" / "configure.md"
PROVISION = ROOT / "docs" / "how-to" / "provision.md"
DATA_MODEL = ROOT / "docs" / "reference" / "data-model.md"
CHOICES = ROOT / "docs" / "explanation" / "choices.md"
SAMPLES = ROOT / "samples" / "README.md"
SAMPLE = ROOT / "samples" / "checkpoint_storage" / "pause_and_resume.py"


@pytest.mark.parametrize("code", programs(of_hosts=False))
def test_code_blocks_run(code: str, tmp_path: Path) -> None:
    """Every Python block is a whole program that runs as it stands."""
    assert run(code, tmp_path)


def test_the_readme_example_prints_what_it_says(tmp_path: Path) -> None:
    """The README's program, run as the page runs it, prints what the page shows and stores where the page says."""
    text = README.read_text("utf-8")
    [code] = blocks(README, "python")
    [script] = re.findall(r"Save this as `(\w+\.py)`", text)
    [command] = [block for block in blocks(README, "console") if script in block]
    setting, *program = shlex.split(command)
    name, _, value = setting.partition("=")

    assert program == [".venv/bin/python", script]
    assert [run(code, tmp_path, **{name: value})] == blocks(README, "text")
    assert (tmp_path / value.removeprefix("embedded:")).exists()
    assert f"export {name}=https://" in text


def test_the_tutorial_prints_what_it_says(tmp_path: Path) -> None:
    """Run twice, and twice again, the script prints what the page shows; as another tenant it begins anew."""
    [code] = blocks(TUTORIAL, "python")

    assert [run(code, tmp_path) for _ in range(4)] == blocks(TUTORIAL, "text") * 2
    assert run(code.replace('"contoso"', '"fabrikam"'), tmp_path) == blocks(TUTORIAL, "text")[0]


def test_examples_do_not_meet_in_one_file() -> None:
    """README, tutorial and sample may be tried in one directory: each has its own state file and workflow name."""
    texts = [page.read_text("utf-8") for page in (README, TUTORIAL, SAMPLE)]
    files = [set(re.findall(r"embedded:(\w+\.db)", text)) for text in texts]
    names = [set(re.findall(r'(?:NAME = |name=)"([\w-]+)"', text)) for text in texts]

    assert [len(found) for found in (*files, *names)] == [1] * 6
    assert len(set.union(*files)) == len(set.union(*names)) == 3


def test_state_files_of_examples_are_ignored_by_git() -> None:
    """A state file that an example leaves, with what SQLite puts beside it, is not committed by mistake."""
    patterns = (ROOT / ".gitignore").read_text("utf-8").splitlines()
    files = [f"{name}.db{end}" for name in ("state", "trip", "pause_and_resume") for end in ("", "-shm", "-wal")]

    assert [file for file in files if not any(fnmatch.fnmatch(file, pattern) for pattern in patterns)] == []


def test_the_program_that_notices_a_failed_save_does(tmp_path: Path) -> None:
    """A run goes on when its checkpoint is refused, as the pages say, and the how-to's program finds out."""
    [code] = [block for block in blocks(CONFIGURE, "python") if NOT_SAVED in block]

    refused = start(code, tmp_path)
    assert (refused.returncode, refused.stdout) == (0, f"{NOT_SAVED}\n")
    assert refused.stderr.startswith("Failed to create checkpoint at iteration 1: ")
    assert "__main__:Invoice" in refused.stderr

    listed = run(code, tmp_path, COSMOS_WORKFLOW_STATE_ALLOWED_CHECKPOINT_TYPES="__main__:Invoice")
    assert listed == "waits for an answer\n"


@pytest.mark.parametrize(
    ("page", "said"),
    [
        pytest.param(README, "checkpoint.save_failed", id="README: a run goes on"),
        pytest.param(TUTORIAL, "logs a warning and goes on", id="tutorial: a run goes on"),
        pytest.param(CONFIGURE, "Failed to create checkpoint", id="how-to: the framework's warning"),
        pytest.param(CONFIGURE, "checkpoint.save_failed", id="how-to: our event"),
        pytest.param(CONFIGURE, "__main__:Invoice", id="how-to: types of a script"),
        pytest.param(TUTORIAL, "no other script can restore them", id="tutorial: types of a script"),
        pytest.param(SAMPLES, "`__main__`", id="samples: types of a script"),
        pytest.param(SAMPLE, "Only this script can restore `__main__:Trip`", id="sample: types of a script"),
        pytest.param(CONFIGURE, "from agent_framework import register_checkpoint_type", id="how-to: import"),
        pytest.param(CONFIGURE, "auth=KeyAuth(key=", id="how-to: key as an argument"),
        pytest.param(CONFIGURE, "The directory of the file must exist", id="how-to: directory"),
        pytest.param(CONFIGURE, "workflow.unstable_name", id="how-to: workflow without a name"),
        pytest.param(CONFIGURE, "enableServiceLinks: false", id="how-to: Kubernetes"),
        pytest.param(SAMPLES, "COSMOS_WORKFLOW_STATE_PROVISIONING=create", id="samples: new account"),
        pytest.param(SAMPLES, f"\n.venv/bin/python {SAMPLE.relative_to(ROOT).as_posix()} pause\n", id="samples: run"),
        pytest.param(README, ".venv/bin/pip install --group bench .\n", id="README: benchmark"),
        pytest.param(DATA_MODEL, "restricted unpickler\ndirectly", id="data model: unpickler"),
        pytest.param(CHOICES, "restricted unpickler directly", id="choices: unpickler"),
    ],
)
def test_what_a_newcomer_must_be_told_is_told(page: Path, said: str) -> None:
    """Facts that cost somebody an hour stay on the page where they are looked for."""
    assert said in page.read_text("utf-8")


def test_the_table_of_rights_is_the_role() -> None:
    """The page about least privilege names exactly the data actions of the role, each with its reason."""
    rows = re.findall(r"^\| `(Microsoft\S+)` \| (.+) \|$", PROVISION.read_text("utf-8"), re.MULTILINE)

    assert dict(rows) == dict(DATA_ACTIONS)


def test_the_data_model_is_the_code() -> None:
    """The page on the data model has the paths, names and limits that the code has."""
    page = DATA_MODEL.read_text("utf-8")

    for paths in ([one.partition_key_paths for one in CONTAINERS], [tuple(one.indexed) for one in CONTAINERS]):
        assert f"| {' | '.join(', '.join(f'`{path}`' for path in those) for those in paths)} |" in page
    assert f"`schema` (`{SCHEMA}`)" in page
    for kind in (CHECKPOINT_TYPE, KEYFRAME_TYPE, KEYFRAME_GUARD_TYPE, PART_TYPE, UPLOAD_GUARD_TYPE):
        assert f"\n| `{kind}` | `" in page
    assert f"up to {PART_BYTES:,} bytes" in page
    assert f"over {PART_BYTES:,} bytes" in page
    assert f"it expires after {REUSE_SECONDS // 3600} hours" in page
    assert UPLOAD_SECONDS == 3600, "the page says an hour"
    assert f"up to {MAX_WHOLE_BYTES // 1024} KiB after compression" in page
    assert f"| `format` | `{FORMAT}` |" in page
    assert f"| {MAX_DEPTH} levels |" in page
    assert f"at most {MAX_PAYLOAD_BYTES // 2**20} MiB" in page
    assert f"| {MAX_HEADER_BYTES // 2**10} KiB; what can make it larger" in page


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link is a file of the repository, and the heading it names is in that file."""
    targets = re.findall(r"\]\((?!https?:)([^)#]+)(?:#([^)]+))?\)", page.read_text("utf-8"))

    assert [target for target, _ in targets if not (page.parent / target).exists()] == []
    assert [anchor for target, anchor in targets if anchor and anchor not in anchors(page.parent / target)] == []


def test_the_readme_is_short_and_has_the_commands() -> None:
    """Under 150 lines, with the commands to set up, to see it and to test it."""
    readme = README.read_text("utf-8")

    assert len(readme.splitlines()) < 150
    for command in (
        "python3 -m venv .venv && .venv/bin/pip install .",
        ".venv/bin/cosmos-workflow-state demo",
        "python3 -m venv .venv && .venv/bin/pip install nox && .venv/bin/nox",
    ):
        assert f"\n{command}\n" in readme
