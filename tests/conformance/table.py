"""Run the conformance kit on the four storages and write the page that says what each of them passes.

    python tests/conformance/table.py            # runs all, writes docs/reference/conformance.md
    python tests/conformance/table.py --check    # runs nothing: is the page what the ledger and the tests say?

A run that is not as the ledger says writes nothing.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any, Final

import pytest
from ledger import Case, Ledger, page, stale

HERE: Final = Path(__file__).parent
PAGE: Final = HERE.parents[1] / "docs" / "reference" / "conformance.md"
INTRODUCTION: Final = """\
# Conformance

What checkpoint storages pass of the tests of `cosmos_workflow_state.testing`: the three of Microsoft Agent Framework,
of which the one for Cosmos DB runs on our embedded engine, and ours, `TenantCheckpointStorage`. "22 of 24" are tests
that pass, of those of what the storage claims. You can [run them on your own](../how-to/test-your-own-storage.md).

This page is written by `python tests/conformance/table.py`. Every failure was looked at by hand, and has its reason in
`tests/conformance/ledger.toml`: the suite fails when something else does, and when something that stands there passes.

Looked at with {versions}."""


class Collected:
    """A pytest plugin that keeps what was collected.

    It goes by the marks: pytest has to be the first to import the kit, or it could not explain its asserts.

    Attributes:
        cases: The tests of the kit on each storage.
        abouts: By capability, what it means.
    """

    def __init__(self) -> None:
        """Start with nothing."""
        self.cases: list[Case] = []
        self.abouts: dict[str, str] = {}

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Keep the tests of the kit."""
        for item in session.items:
            mark = item.get_closest_marker("checkpoint_contract")
            if mark is not None and isinstance(item, pytest.Function):
                self._keep(item, mark.kwargs["capability"], *mark.kwargs["also"])

    def _keep(self, item: pytest.Function, *needed: Any) -> None:
        self.abouts = self.abouts or {one.value: one.about for one in type(needed[0])}
        unclaimed = getattr(item.cls, "unclaimed", {})
        reasons = [f"{one}: {unclaimed[one]}" for one in needed if one in unclaimed]
        storage = getattr(item.cls, "__name__", "").removeprefix("Test")
        self.cases.append(Case(storage, needed[0], item.name, next(iter(reasons), "")))


def main() -> int:
    """Run or collect, then write or compare; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="run nothing, and compare the page")
    check: bool = parser.parse_args().check
    collected = Collected()
    arguments = ["--collect-only", "-qq"] if check else ["--quiet"]
    modules = sorted(map(str, HERE.glob("test_conformance_*.py")))
    status = pytest.main([*modules, "-p", "no:cacheprovider", *arguments], plugins=[collected])
    ledger = Ledger.parse((HERE / "ledger.toml").read_text("utf-8"))
    complaints = [f"{known} is in the ledger and is not run" for known in stale(collected.cases, ledger)]
    written = page(collected.cases, collected.abouts, ledger, INTRODUCTION)
    if check and written != PAGE.read_text("utf-8"):
        complaints.append(f"{PAGE.name} is not what the tests and the ledger say: run {Path(__file__).name}")
    if not (check or status or complaints):
        PAGE.write_text(written, "utf-8")
    sys.stdout.writelines(f"{complaint}\n" for complaint in complaints)
    return int(status) or bool(complaints)


if __name__ == "__main__":
    sys.exit(main())
