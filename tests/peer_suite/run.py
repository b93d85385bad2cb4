"""Run tests of azure-cosmos itself, unchanged, against the emulator, and hold the outcome against the ledger.

    python tests/peer_suite/run.py FOLDER [MODULE ...]

FOLDER is the unpacked source distribution of azure-cosmos. The tests take the address and the key of Microsoft's
emulator for their own, so the port 8081 of this machine has to be free. Each module runs in a process of its own: the
tests of one module leave items behind that tests of another stumble over.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ledger import Ledger, Outcome, judge, read_outcomes
from modules import MODULES

from cosmos_workflow_state.emulator import CosmosEmulator, Fault

HERE: Final = Path(__file__).parent

PORT: Final = 8081
KEY: Final = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="
"""The published key of Microsoft's emulator, which the tests have built in."""

NETWORK: Final = 0.005
"""Seconds until an answer. The tests expect a network between them and the service: read timeouts of 1e-12 s have to
be hit, and an answer that is there in the same turn of the client's event loop arrives before them."""

LIMIT: Final = 600
"""Seconds a module may take."""


async def main() -> int:
    """Run the modules, print the table and what is not as expected, and return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="the unpacked source distribution of azure-cosmos")
    parser.add_argument("modules", nargs="*", default=MODULES, metavar="MODULE")
    arguments = parser.parse_args()
    ledger = Ledger.parse((HERE / "ledger.toml").read_text(encoding="utf-8"))
    started = time.monotonic()
    outcomes = await _run_all(arguments.folder / "tests", arguments.modules)
    verdict = judge(outcomes, ledger, arguments.modules)
    counts = f"{verdict.counts} in {time.monotonic() - started:.2f}s"
    _say(*verdict.table, f"of those in scope {verdict.share:.1%} pass", *verdict.complaints, counts)
    return bool(verdict.complaints)


async def _run_all(tests: Path, modules: Sequence[str]) -> list[Outcome]:
    outcomes: list[Outcome] = []
    async with CosmosEmulator(port=PORT, tls=True, key=KEY) as emulator:
        emulator.faults.add(Fault(resource="*", delay=NETWORK, times=None))
        for module in modules:
            outcomes += await _run(tests, module)
    return outcomes


async def _run(tests: Path, module: str) -> list[Outcome]:
    with tempfile.TemporaryDirectory() as folder:
        written, printed = Path(folder) / "outcomes", Path(folder) / "printed"
        written.touch()
        with printed.open("wb") as output:
            process = await asyncio.create_subprocess_exec(
                *_command(module), cwd=tests, env=_environment(written), stdout=output, stderr=output
            )
            try:
                await asyncio.wait_for(process.wait(), LIMIT)
            except TimeoutError:
                process.kill()
                await process.wait()
                _say(f"{module} was stopped after {LIMIT} s")
        outcomes = read_outcomes(written.read_text(encoding="utf-8").splitlines())
        if not outcomes:
            _say(printed.read_text(encoding="utf-8", errors="replace"))
        return outcomes


def _say(*lines: str) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


def _command(module: str) -> Sequence[str]:
    # What the tests themselves warn of is not ours to mend; everything else is as their own pipeline has it.
    quiet = ("--quiet", "--tb=no", "--no-summary", "--disable-warnings", "-p", "no:cacheprovider")
    # Theirs says nothing to pytest, but without it the configuration of whatever project lies around would hold.
    theirs = ("-c", "../pyproject.toml", "-o", "asyncio_default_fixture_loop_scope=function")
    return (sys.executable, "-m", "pytest", *quiet, *theirs, "-p", "peer_outcomes", f"{module}.py")


def _environment(outcomes: Path) -> dict[str, str]:
    """Return this process's environment without what the tests would take for an account of theirs."""
    foreign = ("ACCOUNT_", "COSMOS_", "AZURE_", "GLOBAL_ACCOUNT_", "READ_LOCATION", "WRITE_LOCATION")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    path = os.pathsep.join(filter(None, (str(HERE / "stand_in"), os.environ.get("PYTHONPATH"))))
    return {**kept, "PYTHONPATH": path, "PEER_OUTCOMES": str(outcomes)}


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
