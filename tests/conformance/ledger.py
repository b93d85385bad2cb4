"""Which tests of the kit a storage does not pass, and why; and the page that says so.

Owns the rules and the page. Must not run anything: what was collected comes in, a page goes out.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple


class Known(NamedTuple):
    """A failure that somebody has looked at.

    Attributes:
        reason: What it comes from.
        varies: Whether it depends on the machine, so that a pass is no surprise.
    """

    reason: str
    varies: bool


@dataclass(frozen=True, slots=True)
class Ledger:
    """The failures that are known.

    Attributes:
        versions: With which versions of which packages they were looked at.
        known: By storage and test.
    """

    versions: Mapping[str, str]
    known: Mapping[tuple[str, str], Known]

    @classmethod
    def parse(cls, text: str) -> Ledger:
        """Read a ledger.

        Args:
            text: TOML: a table ``versions``, and under the name of each storage tables with ``reason``, ``tests`` and,
                where it depends on the machine, ``varies = true``.

        Raises:
            ValueError: A reason is empty, or a test stands there twice.
            KeyError: Something is missing.
        """
        tables = tomllib.loads(text)
        versions = tables.pop("versions")
        known: dict[tuple[str, str], Known] = {}
        for storage, test, entry in _entries(tables):
            if (storage, test) in known or not entry["reason"].strip():
                raise ValueError(f"{storage}, {test}: it stands there twice, or without a reason")
            known[storage, test] = Known(entry["reason"], entry.get("varies", False))
        return cls(versions, known)


def _entries(tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    for storage, entries in tables.items():
        for entry in entries:
            for test in entry["tests"]:
                yield storage, test, entry


class Case(NamedTuple):
    """A test of the kit on one storage.

    Attributes:
        storage: The name of the storage's class.
        capability: What the test is about.
        test: Its name, with parameters.
        unclaimed: Why it is skipped; empty when it is not.
    """

    storage: str
    capability: str
    test: str
    unclaimed: str


def stale(cases: Iterable[Case], ledger: Ledger) -> list[str]:
    """Return what the ledger lists and is not run, as ``storage::test``."""
    run = {(case.storage, case.test) for case in cases if not case.unclaimed}
    return sorted("::".join(known) for known in ledger.known.keys() - run)


def page(cases: Sequence[Case], abouts: Mapping[str, str], ledger: Ledger, introduction: str) -> str:
    """Return the page.

    Args:
        cases: All tests on all storages, in the order of the page.
        abouts: By capability, in the order of the page, what it holds a storage to.
        ledger: What fails; all else that is claimed passes.
        introduction: What comes before the table.
    """
    storages = list(dict.fromkeys(case.storage for case in cases))
    versions = ", ".join(f"{package} {version}" for package, version in ledger.versions.items())
    lines = [introduction.format(versions=versions), "", *_table(storages, cases, abouts, ledger)]
    for storage in storages:
        own = [case for case in cases if case.storage == storage]
        lines += ["", f"## `{storage}`", "", *_unclaimed(own), *_failures(own, ledger)]
    return "\n".join(lines).rstrip("\n") + "\n"


def _table(storages: Sequence[str], cases: Sequence[Case], abouts: Mapping[str, str], ledger: Ledger) -> Iterator[str]:
    yield _row(["capability", "what it means", *(f"`{storage}`" for storage in storages)])
    yield _row(["---"] * (2 + len(storages)))
    for capability, about in abouts.items():
        counts = (
            _count([case for case in cases if (case.storage, case.capability) == (storage, capability)], ledger)
            for storage in storages
        )
        yield _row([capability, about, *counts])
    totals = (_count([case for case in cases if case.storage == storage], ledger) for storage in storages)
    yield _row(["all", "", *totals])


def _count(cases: Sequence[Case], ledger: Ledger) -> str:
    claimed = [case for case in cases if not case.unclaimed]
    passed = sum((case.storage, case.test) not in ledger.known for case in claimed)
    return f"{passed} of {len(claimed)}" if claimed else "not claimed"


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _unclaimed(cases: Sequence[Case]) -> Iterator[str]:
    reasons = dict.fromkeys(case.unclaimed for case in cases if case.unclaimed)
    if reasons:
        yield "Not claimed:"
        yield ""
        yield from (f"- {reason}" for reason in reasons)
        yield ""


def _failures(cases: Sequence[Case], ledger: Ledger) -> Iterator[str]:
    failing = [case for case in cases if (case.storage, case.test) in ledger.known and not case.unclaimed]
    if not failing:
        yield "Passes all that it claims."
        return
    yield "Fails:"
    yield ""
    by_reason = sorted(failing, key=lambda case: list(ledger.known).index((case.storage, case.test)))
    for known, group in groupby(by_reason, key=lambda case: ledger.known[case.storage, case.test]):
        varies = " This depends on the machine." if known.varies else ""
        yield f"- {known.reason}{varies}"
        yield from (f"  - {line}" for line in _named([case.test for case in group]))


def _named(tests: Sequence[str]) -> Iterator[str]:
    """Yield a line a function, with the parameters it was called with."""
    for name, group in groupby(tests, key=lambda test: test.partition("[")[0]):
        parameters = ", ".join(test.partition("[")[2].removesuffix("]") for test in group)
        yield f"`{name}`: {parameters}" if parameters else f"`{name}`"
