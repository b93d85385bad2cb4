"""What is expected of the peer suite: which of its tests do not pass, and whether a run was as expected.

Owns the rules and the report. Must not run anything: outcomes come in, a verdict goes out.
"""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

REQUIRED_SHARE: Final = 0.9
"""Of the tests in scope that have to pass."""


class PeerTest(NamedTuple):
    """A test of the suite; its name has the parameters in it."""

    module: str
    name: str

    def __str__(self) -> str:
        """Return it as one would look for it."""
        return f"{self.module}::{self.name}"


@dataclass(frozen=True, slots=True)
class Ledger:
    """The tests that do not pass, each with its reason.

    Attributes:
        out_of_scope: They need what the emulator does not set out to do.
        not_passing: They are in scope and fail nevertheless.
    """

    out_of_scope: Mapping[PeerTest, str]
    not_passing: Mapping[PeerTest, str]

    @classmethod
    def parse(cls, text: str) -> Ledger:
        """Read a ledger.

        Args:
            text: TOML with the two tables, a table a module in each, and a reason a test in those.

        Returns:
            The ledger.

        Raises:
            ValueError: The text is not of this form, or a test is in both tables.
        """
        tables = tomllib.loads(text)
        if tables.keys() - {"out_of_scope", "not_passing"}:
            raise ValueError(f"a ledger has two tables, out_of_scope and not_passing, not {sorted(tables)}")
        ledger = cls(_entries(tables.get("out_of_scope", {})), _entries(tables.get("not_passing", {})))
        if twice := ledger.out_of_scope.keys() & ledger.not_passing.keys():
            raise ValueError(f"in both tables: {', '.join(map(str, sorted(twice)))}")
        return ledger


def _entries(table: Mapping[str, Mapping[str, str]]) -> dict[PeerTest, str]:
    return {PeerTest(module, name): reason for module, tests in table.items() for name, reason in tests.items()}


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a test ended.

    Attributes:
        test: The test.
        outcome: passed, failed or skipped, as pytest says.
        message: What went wrong, in a line.
    """

    test: PeerTest
    outcome: str
    message: str


def read_outcomes(lines: Iterable[str]) -> list[Outcome]:
    """Read what the plugin has written; of a test that fails twice (in its tear-down, too) the first counts.

    Args:
        lines: JSON objects.

    Returns:
        One outcome a test, in the order of the run.
    """
    outcomes: dict[PeerTest, Outcome] = {}
    for line in lines:
        fields = json.loads(line)
        outcome = Outcome(PeerTest(fields["module"], fields["test"]), fields["outcome"], fields["message"])
        known = outcomes.get(outcome.test)
        if known is None or known.outcome == "passed":
            outcomes[outcome.test] = outcome
    return list(outcomes.values())


@dataclass(frozen=True, slots=True)
class Verdict:
    """A run held against the ledger.

    Attributes:
        complaints: What is not as the ledger says, in sentences; empty when all is.
        share: Of the tests in scope that were not skipped, how many passed.
        table: Lines to print.
        counts: The run in pytest's words: what fails as the ledger says has "xfailed".
    """

    complaints: Sequence[str]
    share: float
    table: Sequence[str]
    counts: str


def judge(outcomes: Sequence[Outcome], ledger: Ledger, modules: Sequence[str]) -> Verdict:
    """Hold a run against the ledger.

    Args:
        outcomes: How the tests ended.
        ledger: What was expected.
        modules: The modules that were run; entries of others are passed over.

    Returns:
        The verdict.
    """
    in_scope = [one for one in outcomes if one.test not in ledger.out_of_scope and one.outcome != "skipped"]
    share = sum(one.outcome == "passed" for one in in_scope) / max(len(in_scope), 1)
    complaints = [*_surprises(outcomes, ledger), *_stale(outcomes, ledger, modules)]
    if share < REQUIRED_SHARE:
        complaints.append(f"{share:.1%} of the tests in scope pass, {REQUIRED_SHARE:.0%} have to")
    return Verdict(complaints, share, [*_table(outcomes, ledger, modules)], _counts(outcomes, ledger))


def _counts(outcomes: Sequence[Outcome], ledger: Ledger) -> str:
    listed = {**ledger.out_of_scope, **ledger.not_passing}
    words = {"failed": "xfailed", "passed": "xpassed"}
    counts = Counter(words.get(one.outcome, one.outcome) if one.test in listed else one.outcome for one in outcomes)
    return ", ".join(f"{count} {word}" for word, count in sorted(counts.items()))


def _surprises(outcomes: Sequence[Outcome], ledger: Ledger) -> Iterator[str]:
    listed = {**ledger.out_of_scope, **ledger.not_passing}
    for one in outcomes:
        if one.outcome == "failed" and one.test not in listed:
            yield f"{one.test} failed and is not in the ledger: {one.message}"
        if one.outcome == "passed" and one.test in listed:
            yield f"{one.test} passes: take it out of the ledger ({listed[one.test]})"


def _stale(outcomes: Sequence[Outcome], ledger: Ledger, modules: Sequence[str]) -> Iterator[str]:
    ran = {one.test for one in outcomes}
    for test in (*ledger.out_of_scope, *ledger.not_passing):
        if test.module in modules and test not in ran:
            yield f"{test} is in the ledger and was not run"
    for module in modules:
        if module not in {test.module for test in ran}:
            yield f"{module}: no test of it was run"


_COLUMNS: Final = ("passed", "failed", "skipped", "out of scope")


def _table(outcomes: Sequence[Outcome], ledger: Ledger, modules: Sequence[str]) -> Iterator[str]:
    width = max(map(len, modules))
    yield "  ".join((" " * width, *_COLUMNS))
    total: Counter[str] = Counter()
    for module in modules:
        counts = Counter(_column(one, ledger) for one in outcomes if one.test.module == module)
        total += counts
        yield _row(module, width, counts)
    yield _row("all", width, total)


def _column(one: Outcome, ledger: Ledger) -> str:
    return "out of scope" if one.test in ledger.out_of_scope else one.outcome


def _row(label: str, width: int, counts: Counter[str]) -> str:
    return "  ".join((f"{label:<{width}}", *(f"{counts[column]:>{len(column)}}" for column in _COLUMNS)))
