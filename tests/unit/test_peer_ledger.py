"""The rules by which a run of the peer suite is held against its ledger."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from peer_suite.ledger import Ledger, Outcome, PeerTest, judge, read_outcomes
from peer_suite.modules import MODULES

ONE = PeerTest("test_a", "test_one")
TWO = PeerTest("test_a", "test_two")
EMPTY = Ledger({}, {})


def outcomes(**by_name: str) -> list[Outcome]:
    """Make outcomes of tests of one module."""
    return [Outcome(PeerTest("test_a", name), outcome, "it broke") for name, outcome in by_name.items()]


def complaints(ledger: Ledger, **by_name: str) -> list[str]:
    """Judge a run of one module."""
    return list(judge(outcomes(**by_name), ledger, ["test_a"]).complaints)


def test_the_ledger_that_is_checked_in() -> None:
    """It can be read, names tests of modules that are run, and gives a reason for each."""
    path = Path(__file__).parents[1] / "peer_suite" / "ledger.toml"
    ledger = Ledger.parse(path.read_text(encoding="utf-8"))
    listed = {**ledger.out_of_scope, **ledger.not_passing}
    assert {test.module for test in listed} <= set(MODULES)
    assert all(reason.strip() for reason in listed.values())


def test_a_ledger_is_read() -> None:
    """Names with parameters are quoted, and what is not there is empty."""
    ledger = Ledger.parse('[out_of_scope.test_a]\n"test_one[1]" = "triggers"\n')
    assert ledger == Ledger({PeerTest("test_a", "test_one[1]"): "triggers"}, {})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[failing.test_a]\n", "two tables, out_of_scope and not_passing, not \\['failing'\\]"),
        ('[out_of_scope.test_a]\nx = "1"\n[not_passing.test_a]\nx = "2"\n', "in both tables: test_a::x"),
    ],
)
def test_a_ledger_of_another_form(text: str, message: str) -> None:
    """What is not understood is refused, not passed over."""
    with pytest.raises(ValueError, match=message):
        Ledger.parse(text)


def test_outcomes_are_read() -> None:
    """A failure in the tear-down counts although the call passed; after a failed call it adds nothing."""
    lines = [
        json.dumps({"module": "test_a", "test": name, "outcome": outcome, "message": message})
        for name, outcome, message in (
            ("test_one", "passed", ""),
            ("test_one", "failed", "tear-down"),
            ("test_two", "failed", "call"),
            ("test_two", "failed", "tear-down"),
        )
    ]
    assert read_outcomes(lines) == [Outcome(ONE, "failed", "tear-down"), Outcome(TWO, "failed", "call")]


def test_as_expected() -> None:
    """Whatever is listed fails and whatever is not passes: no complaint; what is skipped does not count."""
    ledger = Ledger({ONE: "triggers"}, {})
    verdict = judge(outcomes(test_one="failed", test_two="passed", test_three="skipped"), ledger, ["test_a"])
    assert (list(verdict.complaints), verdict.share) == ([], 1.0)
    assert [line.split() for line in verdict.table] == [
        ["passed", "failed", "skipped", "out", "of", "scope"],
        ["test_a", "1", "0", "1", "1"],
        ["all", "1", "0", "1", "1"],
    ]
    assert verdict.counts == "1 passed, 1 skipped, 1 xfailed"


def test_a_failure_that_is_not_listed() -> None:
    """It is named with what went wrong, and the share drops."""
    assert complaints(EMPTY, test_one="failed", test_two="passed") == [
        "test_a::test_one failed and is not in the ledger: it broke",
        "50.0% of the tests in scope pass, 90% have to",
    ]


def test_a_listed_test_that_passes() -> None:
    """It has to leave the ledger, of either table."""
    found = complaints(
        Ledger({ONE: "triggers"}, {TWO: "a race"}), test_one="passed", test_two="passed", test_x="passed"
    )
    assert found == [
        "test_a::test_one passes: take it out of the ledger (triggers)",
        "test_a::test_two passes: take it out of the ledger (a race)",
    ]


def test_a_listed_test_that_does_not_exist() -> None:
    """Entries of modules that were run have to have been run; others are passed over."""
    ledger = Ledger({ONE: "triggers", PeerTest("test_b", "test_one"): "triggers"}, {})
    assert complaints(ledger, test_two="passed") == ["test_a::test_one is in the ledger and was not run"]


def test_a_module_without_tests() -> None:
    """Nothing run is not nothing wrong."""
    assert complaints(EMPTY) == ["test_a: no test of it was run", "0.0% of the tests in scope pass, 90% have to"]


def test_what_does_not_pass_within_the_share() -> None:
    """Nine of ten are enough when the tenth is listed."""
    passing = {f"test_{number}": "passed" for number in range(9)}
    assert complaints(Ledger({}, {ONE: "a race"}), test_one="failed", **passing) == []
