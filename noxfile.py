"""Everything that is checked, one session a question. ``nox`` asks all of them, ``nox -s unit`` one.

What the sessions install comes from the dependency groups in pyproject.toml, so that versions stand in one place.
Arguments after ``--`` go to pytest: ``nox -s unit -- -k settings``. ``nox -r`` keeps the environments.
"""

from __future__ import annotations

import os
import shutil
import tarfile
from pathlib import Path

import nox

nox.needs_version = ">=2025.5"
nox.options.error_on_external_run = True
# The order is by how soon a session says no.
nox.options.sessions = [
    "lint",
    "types",
    "unit",
    "integration",
    "samples",
    "conformance",
    "coverage",
    "against_emulator",
    "package",
    "peer_suite",
]

ROOT = Path(__file__).parent
PROJECT = nox.project.load_toml("pyproject.toml")

# What a developer has set for an account of theirs is no part of a test.
NO_SETTINGS = {name: None for name in os.environ if name.startswith(("COSMOS_WORKFLOW_STATE_", "AZURE_COSMOS_"))}

# Every line and branch of these is tested: a mistake in them loses or shows somebody's state.
FULLY_COVERED = (
    "_appending.py",
    "_auxiliaries.py",
    "_azure_commands.py",
    "_batches.py",
    "_browsing.py",
    "_checkpoints.py",
    "_clearing.py",
    "_clients.py",
    "_codec/*",
    "_collecting.py",
    "_committing.py",
    "_connection.py",
    "_conversations.py",
    "_credentials.py",
    "_definitions.py",
    "_documents.py",
    "_drift.py",
    "_erasing.py",
    "_failures.py",
    "_gateway.py",
    "_heads.py",
    "_history*.py",
    "_identities.py",
    "_identity.py",
    "_infrastructure.py",
    "_inspecting.py",
    "_items.py",
    "_keyframes.py",
    "_listing.py",
    "_maf.py",
    "_message*.py",
    "_migration/*",
    "_operations.py",
    "_payloads.py",
    "_provisioning.py",
    "_reading.py",
    "_remedies.py",
    "_saving.py",
    "_service_errors.py",
    "_session*.py",
    "_sweeping.py",
    "_templates.py",
    "_throughput.py",
    "_uploads.py",
    "_view.py",
    "emulator/_gateway/_auth.py",
    "emulator/_hosts.py",
    "emulator/_tokens.py",
    "hosts/*",
)


@nox.session
def lint(session: nox.Session) -> None:
    """Ask whether style, format and the directions of imports are kept."""
    session.install(*_group("lint"))
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")
    # Imports are read from the source; nothing needs to be installed for that.
    session.run("lint-imports", env={"PYTHONPATH": "src"})


@nox.session
def types(session: nox.Session) -> None:
    """Ask both type checkers, in their strict modes."""
    session.install("-e", ".", *_group("types"))
    session.run("mypy")
    # The wrapper would otherwise look on the network for a newer version, only to say so.
    quiet = {"PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}
    session.run("pyright", "--pythonpath", _python(session), env=quiet)


@nox.session
def unit(session: nox.Session) -> None:
    """Run the tests of single modules."""
    _pytest(session, "tests/unit")


@nox.session
def integration(session: nox.Session) -> None:
    """Run the tests of the whole way, through the real client into the embedded engine."""
    _pytest(session, "tests/integration")


@nox.session
@nox.parametrize("how", ["http", "https"])
def against_emulator(session: nox.Session, how: str) -> None:
    """Run the same tests through the real client into the emulator, by key over HTTP and by token over TLS."""
    session.install("-e", ".[emulator]", *_group("test"))
    session.run("pytest", "tests/integration", f"--against={how}", *session.posargs, env=NO_SETTINGS)


@nox.session
def peer_suite(session: nox.Session) -> None:
    """Run tests of azure-cosmos itself against the emulator, and hold the outcome against the checked-in ledger.

    The tests are those of the source distribution of the installed version; it is downloaded, and nothing of it kept.
    Arguments are names of test modules: ``nox -s peer_suite -- test_ttl``.
    """
    session.install("-e", ".[emulator]", *_group("test"))
    session.run("python", "tests/peer_suite/run.py", str(_peer_source(session)), *session.posargs, env=NO_SETTINGS)


@nox.session
def samples(session: nox.Session) -> None:
    """Run the samples, in processes of their own, and the adapters inside the hosts; Foundry's answers are made up."""
    session.install(*_group("hosts"), *_group("samples"))
    _pytest(session, "tests/hosts")


@nox.session
def conformance(session: nox.Session) -> None:
    """Run the public conformance kit on the framework's checkpoint storages and on ours."""
    _pytest(session, "tests/conformance")


@nox.session
def coverage(session: nox.Session) -> None:
    """Combine what the test sessions before have measured, and hold it against the two limits."""
    session.install(*(requirement for requirement in _group("test") if requirement.startswith("coverage")))
    session.run("coverage", "combine")
    session.run("coverage", "report", "--fail-under=97")
    paths = (f"src/cosmos_workflow_state/{path}" for path in FULLY_COVERED)
    session.run("coverage", "report", f"--include={','.join(paths)}", "--fail-under=100")


@nox.session
def package(session: nox.Session) -> None:
    """Build the wheel, install it where nothing else is, and run the demo from it, twice."""
    temporary = Path(session.create_tmp())
    wheels = temporary / "wheels"
    shutil.rmtree(wheels, ignore_errors=True)
    session.run("python", "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(wheels), ".")
    session.install(*map(str, wheels.glob("*.whl")))
    # Away from the checkout, whose files could stand in for what the wheel lacks.
    session.chdir(temporary)
    for _ in range(2):
        session.run("cosmos-workflow-state", "demo", env=NO_SETTINGS)


def _group(name: str) -> tuple[str, ...]:
    return nox.project.dependency_groups(PROJECT, name)


def _peer_source(session: nox.Session) -> Path:
    """Download the source distribution of the azure-cosmos that is installed, and unpack it."""
    tell = "from importlib.metadata import version; print(version('azure-cosmos'))"
    version = str(session.run("python", "-c", tell, silent=True)).strip()
    folder = Path(session.create_tmp()) / f"azure-cosmos-{version}"
    shutil.rmtree(folder, ignore_errors=True)
    source = ("--no-deps", "--no-binary=azure-cosmos", f"azure-cosmos=={version}")
    session.run("python", "-m", "pip", "download", "--quiet", f"--dest={folder}", *source)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as files:
        files.extractall(folder, filter="data")
    (unpacked,) = (found for found in folder.iterdir() if found.is_dir())
    return unpacked


def _python(session: nox.Session) -> str:
    folder = "Scripts" if os.name == "nt" else "bin"
    return str(Path(session.virtualenv.location) / folder / "python")


def _pytest(session: nox.Session, *paths: str) -> None:
    session.install("-e", ".", *_group("test"))
    data = ROOT / f".coverage.{session.name}"
    for stale in ROOT.glob(f"{data.name}*"):
        stale.unlink()
    measured = ("coverage", "run", "--parallel-mode", "-m", "pytest")
    session.run(*measured, *paths, *session.posargs, env={"COVERAGE_FILE": str(data), **NO_SETTINGS})
