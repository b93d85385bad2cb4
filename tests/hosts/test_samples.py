"""The samples, run as their users run them: scripts in processes of their own, in a directory of their own."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from support import foundry_answers
from support.uses import Event, events_in, misuses_in, uses_in, witnessed

SAMPLES = Path(__file__).parents[2] / "samples"
README = SAMPLES / "README.md"
FOUND = sorted(path.relative_to(SAMPLES).as_posix() for path in SAMPLES.rglob("*.py"))
MODEL = "history_provider/local_model.py"
"""What samples import: no sample itself."""

WITHOUT_FOUNDRY = """
import runpy, sys

sys.modules["agent_framework_foundry"] = None
runpy.run_path(sys.argv[1], run_name="__main__")
"""

TESTED = {"multi_tenant/fastapi_app.py"}
"""The samples that a test runs; the one of FastAPI is run by test_sample_fastapi.py, and those that `of` names here."""


def of(*samples: str) -> pytest.MarkDecorator:
    """Hand samples to a test as its ``sample``: there is no other way to get one, and each is noted as tested."""
    TESTED.update(samples)
    return pytest.mark.parametrize("sample", [SAMPLES / sample for sample in samples], ids=samples)


@dataclass
class Desk:
    """Where samples are run: a directory, without any settings around."""

    directory: Path
    uses: list[str] = field(default_factory=list[str])

    def watch(self, *command: str | Path) -> tuple[subprocess.CompletedProcess[str], list[Event]]:
        """Run Python with arguments; a warning is an error. Return what became of it, and what its factories did."""
        witness = self.directory / "witness.jsonl"
        witness.unlink(missing_ok=True)
        prefixes = ("COSMOS", "AZURE_", "FOUNDRY_", "PYTHON")
        environment = {name: value for name, value in os.environ.items() if not name.startswith(prefixes)}
        done = subprocess.run(
            [sys.executable, "-W", "error", *map(str, command)],
            cwd=self.directory,
            env=environment | witnessed(witness) | {foundry_answers.REQUESTS_FILE: str(self._requests)},
            capture_output=True,
            text=True,
            check=False,
        )
        return done, events_in(witness)

    def run(self, *command: str | Path) -> subprocess.CompletedProcess[str]:
        """Run Python with arguments, which must use no storage that is not open, and leave none open."""
        done, events = self.watch(*command)
        assert misuses_in(events) == []
        self.uses = [event["event"] for event in uses_in(events)]
        return done

    def printed(self, *command: str | Path) -> str:
        """Return what a run prints, which must succeed silently otherwise, and use a storage that is open."""
        done = self.run(*command)
        assert (done.returncode, done.stderr) == (0, "")
        assert self.uses
        return done.stdout

    def answered(self, sample: Path, *arguments: str) -> str:
        """Return what a sample of Foundry prints that is answered from here."""
        return self.printed(foundry_answers.__file__, sample, *arguments)

    @property
    def asked(self) -> list[dict[str, Any]]:
        """What Foundry was asked, by all runs."""
        return [json.loads(line) for line in self._requests.read_text("utf-8").splitlines()]

    @property
    def _requests(self) -> Path:
        return self.directory / "requests.jsonl"


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """Return an empty directory to run samples in."""
    return Desk(tmp_path)


def docstring_of(sample: Path) -> str:
    """Return the text at the top of a sample."""
    return ast.get_docstring(ast.parse(sample.read_text("utf-8"))) or ""


def transcript_of(sample: Path) -> Iterator[tuple[list[str], str]]:
    """Yield the arguments of each command in a docstring, and what the reader is told that it prints."""
    (block,) = re.findall(r"^    \$ .*\n(?:    .*\n)*", docstring_of(sample), re.MULTILINE)
    for entry in re.split(r"^    \$ ", block, flags=re.MULTILINE)[1:]:
        command, _, told = entry.partition("\n")
        python, script, *arguments = shlex.split(command)
        assert (python, script) == ("python", sample.name)
        yield arguments, "".join(line[4:] for line in told.splitlines(keepends=True))


@of(
    "history_provider/basic.py",
    "history_provider/conversation_persistence.py",
    "history_provider/messages.py",
    "history_provider/sessions.py",
)
def test_it_prints_what_its_docstring_says(sample: Path, desk: Desk) -> None:
    """The transcript at the top of a sample is what a reader sees who types it."""
    for arguments, told in transcript_of(sample):
        assert desk.printed(sample, *arguments) == told


@of("history_provider/basic.py", "history_provider/messages.py")
def test_it_can_be_run_again(sample: Path, desk: Desk) -> None:
    """What the first run has left is none of the second one's business."""
    assert desk.printed(sample) == desk.printed(sample)


@of("history_provider/sessions.py")
def test_sessions_are_kept(sample: Path, desk: Desk) -> None:
    """A second run goes on with what the first one has left, as it says: all but the session that was deleted."""
    desk.printed(sample)

    counts = re.findall(r"^(\w+, chat-\d): .* given: (\d)", desk.printed(sample), re.MULTILINE)
    assert counts == [("contoso, chat-1", "1"), ("contoso, chat-2", "3"), ("fabrikam, chat-1", "3")]


@of("checkpoint_storage/pause_and_resume.py")
def test_pause_and_resume(sample: Path, desk: Desk) -> None:
    """The first process pauses, another tenant finds nothing, the last process finishes."""
    checkpoint_id = desk.printed(sample, "pause").strip()

    told = desk.printed(sample, "resume", checkpoint_id, "fabrikam")
    assert told == f"fabrikam has no checkpoint {checkpoint_id}\n"
    assert desk.printed(sample, "resume", checkpoint_id) == "3 days in Oslo: yes\n"
    assert {file.name.partition(".")[0] for file in desk.directory.iterdir()} == {"pause_and_resume", "witness"}


@pytest.mark.parametrize(
    "arguments",
    [[], ["--help"], ["foo"], ["resume"], ["pause", "fabrikam"], ["resume", "ID", "fabrikam", "more"]],
    ids=" ".join,
)
@of("checkpoint_storage/pause_and_resume.py")
def test_pause_and_resume_tells_how_it_is_used(sample: Path, arguments: list[str], desk: Desk) -> None:
    """A reader who just runs it, asks for help or gets the arguments wrong is shown the three commands."""
    done = desk.run(sample, *arguments)

    assert (done.returncode, done.stdout) == (2, "")
    assert "pause_and_resume.py resume ID" in done.stderr
    assert list(desk.directory.iterdir()) == []


@of("checkpoint_storage/foundry_agents.py")
def test_foundry_agents(sample: Path, desk: Desk) -> None:
    """Each step is a checkpoint; who goes on from one asks only those agents that have not answered yet."""
    printed = desk.answered(sample)
    told, *checkpoints = printed.splitlines()
    assert told == "messages: 2, the last: messages: 1, the last: A bicycle that folds"
    assert [line.partition(" ")[2] for line in checkpoints] == [f"after {steps} steps" for steps in range(4)]

    resumed = [desk.answered(sample, line.partition(" ")[0]) for line in checkpoints]

    assert resumed == [*[f"{told}\n"] * 2, *["nothing was left to ask\n"] * 2]
    writer, reviewer = "Write", "Say"
    asked = [(body["instructions"].partition(" ")[0], body["store"]) for body in desk.asked]
    assert asked == [(writer, False), (reviewer, False)] * 2 + [(reviewer, False)]


@of("combined/foundry_history_and_checkpoints.py")
def test_foundry_history_and_checkpoints(sample: Path, desk: Desk) -> None:
    """The second process finishes what the first one began, and its agent is given what was said in the first one."""
    drafts = [desk.answered(sample, ticket) for ticket in ("7", "8")]
    assert "checkpoint.saved" in desk.uses
    assert "history.saved" in desk.uses

    assert desk.answered(sample, "7", "yes") == "messages: 3, the last: Decided: yes\n"
    assert desk.answered(sample, "7", "yes") == "nothing waits for a decision\n"
    assert desk.answered(sample, "9", "yes") == "nothing waits for a decision\n"

    first, second, last = map(foundry_answers.texts_of, desk.asked)
    assert drafts == [f"messages: 1, the last: {first[0]}\n"] * 2
    assert (first, second) == (last[:1], last[:1])
    assert last == [first[0], drafts[0].strip(), "Decided: yes"]


@of("checkpoint_storage/foundry_agents.py", "combined/foundry_history_and_checkpoints.py")
def test_foundry_is_named_where_it_is_missing(sample: Path, desk: Desk) -> None:
    """A reader who has not set the project and the model is told so before anything is stored or asked."""
    done = desk.run(sample, *["7"] * sample.parent.samefile(SAMPLES / "combined"))

    assert done.returncode == 1
    assert "FOUNDRY_MODEL" in done.stderr
    assert desk.uses == []


@of("checkpoint_storage/foundry_agents.py", "combined/foundry_history_and_checkpoints.py")
def test_the_package_of_foundry_is_named_where_it_is_missing(sample: Path, desk: Desk) -> None:
    """A reader who has not installed it is told so in one sentence."""
    script = desk.directory / "without.py"
    script.write_text(WITHOUT_FOUNDRY, "utf-8")
    done = desk.run(script, sample)

    assert (done.returncode, done.stdout) == (1, "")
    assert "agent-framework-foundry" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@of(
    "checkpoint_storage/foundry_agents.py",
    "combined/foundry_history_and_checkpoints.py",
    "history_provider/conversation_persistence.py",
)
def test_it_helps(sample: Path, desk: Desk) -> None:
    """What a sample takes is printed with all that its docstring says."""
    done = desk.run(sample, "--help")

    assert (done.returncode, done.stderr) == (0, "")
    assert docstring_of(sample) in done.stdout


@of("testing/test_approval.py")
def test_testing(sample: Path, desk: Desk) -> None:
    """The tests of an application that a reader copies pass, and what they make go wrong is all that does."""
    done = desk.printed("-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts=", sample)

    assert re.search(r"^4 passed", done, re.MULTILINE)
    assert [use for use in desk.uses if use.endswith("_failed")] == ["checkpoint.load_failed"] * 2


MISTAKES = {
    "used after it was closed": """
        async def opened():
            async with factory:
                return factory.for_tenant("contoso").checkpoints

        async def main():
            await build().run(Trip("Oslo", 3), checkpoint_storage=await opened())
    """,
    "left open": """
        async def main():
            await build().run(Trip("Oslo", 3), checkpoint_storage=factory.for_tenant("contoso").checkpoints)
    """,
}
BLUNDER = """
import asyncio, sys

sys.path.append(sys.argv[1])
from cosmos_workflow_state import CosmosStateFactory, CosmosStateSettings
from pause_and_resume import Trip, build

settings = CosmosStateSettings(endpoint="embedded:", allowed_checkpoint_types=["pause_and_resume:Trip"])
factory = CosmosStateFactory(settings)
"""


@pytest.mark.parametrize(
    ("mistake", "seen"),
    [("used after it was closed", ["checkpoint.save_failed"] * 2), ("left open", ["left open"])],
)
@of("checkpoint_storage/pause_and_resume.py")
def test_mistakes_with_the_factory_are_seen(sample: Path, mistake: str, seen: list[str], desk: Desk) -> None:
    """The framework passes over a storage that is closed, so a run succeeds; what the tests look at tells it."""
    script = desk.directory / "blunder.py"
    script.write_text(f"{BLUNDER}{textwrap.dedent(MISTAKES[mistake])}\nasyncio.run(main())\n", "utf-8")

    done, events = desk.watch(script, sample.parent)

    assert done.returncode == 0
    assert misuses_in(events) == seen


def test_each_has_a_state_file_of_its_own() -> None:
    """Samples that are run in the same directory do not meet what others have stored."""
    texts = [(SAMPLES / name).read_text("utf-8") for name in FOUND if name not in {MODEL, "testing/test_approval.py"}]

    assert len({re.findall(r"embedded:(\w+\.db)", text)[0] for text in texts}) == len(texts)


def test_every_sample_is_tested() -> None:
    """No sample is there that no test runs."""
    assert set(FOUND) == {*TESTED, MODEL}


@pytest.mark.parametrize("sample", FOUND)
def test_it_is_short(sample: str) -> None:
    """A sample is read in one go."""
    assert len((SAMPLES / sample).read_text("utf-8").splitlines()) < 120


ROWS = re.findall(r"^\| \[(.*?)\]\((.*?)\) \| (.*?) \| (.*?) \| `(.*?)` \|$", README.read_text("utf-8"), re.MULTILINE)


def test_the_table_lists_every_sample() -> None:
    """samples/README.md has a row for each sample there is, and links it."""
    assert [(shown, linked) for shown, linked, *_ in ROWS] == [(name, name) for name in FOUND if name != MODEL]


@pytest.mark.parametrize(("sample", "command"), [(row[1], row[-1]) for row in ROWS])
def test_the_tables_command_is_the_docstrings(sample: str, command: str) -> None:
    """A row says how its sample is run as the sample does itself, but from the clone."""
    path = f"samples/{sample}"

    assert path in command
    assert command.replace(path, Path(path).name).replace(".venv/bin/python", "python") in docstring_of(
        SAMPLES / sample
    )
