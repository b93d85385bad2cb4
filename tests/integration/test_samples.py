"""The samples, run as their users run them: scripts in processes of their own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SAMPLES = Path(__file__).parents[2] / "samples"
PAUSE_AND_RESUME = SAMPLES / "checkpoint_storage" / "pause_and_resume.py"


def run(directory: Path, sample: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Return a sample run in a directory, without any settings around."""
    environment = {name: value for name, value in os.environ.items() if "COSMOS" not in name}
    return subprocess.run(
        [sys.executable, str(sample), *arguments],
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def printed(directory: Path, *arguments: str) -> str:
    """Return what one run of pause_and_resume prints, which must succeed silently otherwise."""
    done = run(directory, PAUSE_AND_RESUME, *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


def test_pause_and_resume(tmp_path: Path) -> None:
    """The first process pauses, another tenant finds nothing, the last process finishes."""
    checkpoint_id = printed(tmp_path, "pause")

    assert printed(tmp_path, "resume", checkpoint_id, "fabrikam") == f"fabrikam has no checkpoint {checkpoint_id}"
    assert printed(tmp_path, "resume", checkpoint_id) == "3 days in Oslo: yes"


@pytest.mark.parametrize(
    "arguments",
    [[], ["--help"], ["foo"], ["resume"], ["pause", "fabrikam"], ["resume", "ID", "fabrikam", "more"]],
    ids=" ".join,
)
def test_pause_and_resume_tells_how_it_is_used(arguments: list[str], tmp_path: Path) -> None:
    """A reader who just runs it, asks for help or gets the arguments wrong is shown the three commands."""
    done = run(tmp_path, PAUSE_AND_RESUME, *arguments)

    assert (done.returncode, done.stdout) == (2, "")
    assert "pause_and_resume.py resume ID" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_pause_and_resume_has_a_file_of_its_own(tmp_path: Path) -> None:
    """What the tutorial or the README have stored in the same directory is not met, nor met by them."""
    printed(tmp_path, "pause")

    assert {file.name.partition(".")[0] for file in tmp_path.iterdir()} == {"pause_and_resume"}


def test_samples_are_short() -> None:
    """A sample is under 60 lines of code a user writes: neither blank nor the text at its top."""
    for sample in SAMPLES.rglob("*.py"):
        code = sample.read_text("utf-8").split('"""', 2)[2]
        assert len([line for line in code.splitlines() if line.strip()]) < 60, sample.name


@pytest.mark.parametrize("sample", sorted(SAMPLES.rglob("*.py")), ids=lambda sample: sample.name)
def test_the_table_names_every_sample(sample: Path) -> None:
    """samples/README.md links each sample there is."""
    table = (SAMPLES / "README.md").read_text("utf-8")

    assert re.search(re.escape(f"]({sample.relative_to(SAMPLES).as_posix()})"), table)
