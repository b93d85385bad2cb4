"""What the doctor makes of answers, and how that is shown."""

from __future__ import annotations

import re
from importlib.metadata import requires, version
from typing import Any

import pytest

from cosmos_workflow_state import CosmosStateSettings
from cosmos_workflow_state._cli import _checks as checks
from cosmos_workflow_state._cli._checks import Check, Package
from cosmos_workflow_state._cli._output import ExitCode
from cosmos_workflow_state._cli._views._checks import change_lines, check_json, check_lines
from cosmos_workflow_state._definitions import CHECKPOINTS, CONTAINERS, ContainerDefinition
from cosmos_workflow_state._examining import AccountFacts, RoundTrip
from cosmos_workflow_state.errors import (
    AccessDeniedError,
    CosmosStateError,
    ProvisioningError,
    SettingsError,
    ThrottledError,
)

SETTINGS = CosmosStateSettings(_env_file=None, endpoint="https://contoso.documents.azure.com:443/")
RIGHT = CHECKPOINTS.properties("checkpoints")
REMEDY = "Give it the role:\n  az cosmosdb sql role definition create --account-name contoso --body '{}' --resource g"


def denied(*actions: str) -> AccessDeniedError:
    """Return what is raised when rights are missing."""
    return AccessDeniedError("refused", remedy=REMEDY, missing_actions=actions, status_code=403)


@pytest.mark.parametrize(
    ("statuses", "worst", "code"),
    [
        ([], "ok", ExitCode.DONE),
        (["ok", "warning"], "warning", ExitCode.DONE),
        (["ok", "failed", "warning", "failed"], "failed", ExitCode.NOT_FOUND),
    ],
    ids=str,
)
def test_the_worst_decides(statuses: list[checks.Status], worst: str, code: ExitCode) -> None:
    """Warnings end well; of several failures the first one names the code, the others may follow from it."""
    codes = iter((ExitCode.NOT_FOUND, ExitCode.TRY_AGAIN))
    found = [Check("c", one, "", code=next(codes) if one == "failed" else ExitCode.DONE) for one in statuses]

    assert (checks.worst(found), checks.code_of(found)) == (worst, code)


@pytest.mark.parametrize(
    ("error", "name", "code"),
    [
        (denied("readMetadata"), "rights", ExitCode.ACCESS_DENIED),
        (denied(), "auth", ExitCode.ACCESS_DENIED),
        (SettingsError("plain http"), "auth", ExitCode.USAGE),
        (ProvisioningError("no container"), "container", ExitCode.NOT_PROVISIONED),
        (ThrottledError("throttled"), "service", ExitCode.TRY_AGAIN),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_ends_it(error: CosmosStateError, name: str, code: ExitCode) -> None:
    """An error is the check that it belongs to; its remedy is not said twice."""
    check = checks.end(error)

    assert (check.name, check.status, check.code) == (name, "failed", code)
    assert check.remedy not in check.found or not check.remedy


@pytest.mark.parametrize(
    ("consistency", "many", "status"),
    [("Session", False, "ok"), ("Session", True, "warning"), ("Eventual", False, "warning")],
)
def test_what_sweeping_needs(consistency: str, status: str, *, many: bool) -> None:
    """Session consistency and one region that writes; otherwise it is said that nothing is swept."""
    check = checks.account(AccountFacts(consistency, ("West Europe", "North Europe")[: 1 + many], many, None))

    assert check.status == status
    assert ("not swept" in check.found) == (status == "warning")
    assert "West Europe" in check.found


@pytest.mark.parametrize(
    ("ahead", "status", "said"),
    [
        (None, "ok", "does not tell the time"),
        (-1.5, "ok", "agrees"),
        (30.0, "ok", "30 seconds ahead of"),
        (-61.0, "warning", "61 seconds behind"),
        (901.0, "failed", "901 seconds ahead of"),
    ],
)
def test_clocks(ahead: float | None, status: str, said: str) -> None:
    """A minute is worth a warning, and from a quarter of an hour on nothing works."""
    check = checks.clock(ahead)

    assert check.status == status
    assert said in check.found


def test_rights_that_are_missing() -> None:
    """All that were refused are named in one check, with one remedy."""
    check = checks.rights([denied("items/read"), denied("executeQuery", "items/read")], "token", container=True)

    assert (check.status, check.found) == ("failed", "missing data actions: items/read, executeQuery")
    assert check.remedy == REMEDY


@pytest.mark.parametrize("container", [True, False])
def test_rights_that_are_not_tried(*, container: bool) -> None:
    """What would change something is not tried, and without a container nothing in it is."""
    by_token = checks.rights([], "token", container=container).found
    by_key = checks.rights([], "key", container=container).found

    assert "items/create, " in by_token.partition("not tried: ")[2]
    assert ("items/read" in by_token) is not container
    assert "readMetadata" not in by_token
    assert by_key.endswith("saving and deleting, which a read-only key may not")


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, [("ok", "")]),
        ({"defaultTtl": None}, [("failed", "; `doctor --fix` does that")]),
        (
            {"partitionKey": {"paths": ["/workflow_name"], "kind": "Hash"}, "defaultTtl": 60},
            [("failed", "so use another container"), ("failed", "set the default TTL to -1")],
        ),
    ],
    ids=str,
)
def test_each_difference_is_a_check(changes: dict[str, Any], found: list[tuple[str, str]]) -> None:
    """All of the drift is said at once, each with its remedy; a repair is offered where it makes all of it right."""
    said = checks.container(CHECKPOINTS, RIGHT | changes, SETTINGS, needed=True)

    assert all(check.found.startswith("workflow-state/checkpoints") for check in said)
    assert [check.status for check in said] == [status for status, _ in found]
    assert all(check.remedy.endswith(end) for check, (_, end) in zip(said, found, strict=True))


def test_a_container_that_is_not_there() -> None:
    """Whether that is wrong depends on who is to create it."""
    creates = CosmosStateSettings(_env_file=None, endpoint="embedded:")

    for wanted in CONTAINERS:
        [missing] = checks.container(wanted, None, SETTINGS, needed=True)
        assert (missing.status, missing.code) == ("failed", ExitCode.NOT_PROVISIONED)
        assert "`doctor --for KIND` asks for others" in missing.remedy
        assert checks.container(wanted, None, creates, needed=True)[0].status == "ok"


@pytest.mark.parametrize("wanted", CONTAINERS, ids=lambda wanted: wanted.kind)
def test_a_container_that_is_not_used(wanted: ContainerDefinition) -> None:
    """Each is for who uses it: that it is not there is no failure for who does not, that it has drifted is."""
    [note] = checks.container(wanted, None, SETTINGS, needed=False)
    drift = wanted.properties(wanted.kind) | {"defaultTtl": 60}
    [drifted] = checks.container(wanted, drift, SETTINGS, needed=False)

    assert (note.status, checks.worst([note]), checks.code_of([note])) == ("note", "ok", ExitCode.DONE)
    assert note.found == f"workflow-state/{wanted.kind} is not there; only {wanted.kind} would need it"
    assert "provision" in note.remedy
    assert (drifted.status, drifted.code) == ("failed", ExitCode.NOT_PROVISIONED)
    assert [line.plain for line in check_lines([note], None)][-1] == "all is well"


def test_the_key_to_change() -> None:
    """Who gets in with the secondary key only is told before that one is regenerated too."""
    assert checks.accepted("secondary key", SETTINGS).status == "warning"
    assert checks.accepted("key", SETTINGS).found == "the service accepts the key"
    assert checks.accepted("token", SETTINGS).found == "the service accepts a token (default)"


def test_a_round_trip() -> None:
    """The quickest counts: the first one had to connect."""
    found = checks.round_trip([RoundTrip(80.0, 1.0), RoundTrip(4.26, 1.0)]).found
    assert found.startswith("4.3 ms and 1.00 RU")


@pytest.mark.parametrize(
    ("version", "inside"),
    [("1.20", True), ("1.20.0b1", True), ("1.99.3", True), ("1.19.9", False), ("2.0", False), ("unknown", False)],
)
def test_versions(version: str, *, inside: bool) -> None:
    """A version outside the range of the package's own metadata is a warning with the command that helps."""
    check = checks.packages({"azure-cosmos": Package(version, "<2,>=1.20", "1.23")})

    assert (check.status == "ok") is inside
    assert check.remedy == ("" if inside else 'pip install "azure-cosmos<2,>=1.20"')
    assert ("it has to be azure-cosmos<2,>=1.20" in check.found) is not inside


@pytest.mark.parametrize(
    ("version", "found"),
    [
        ("1.23.0", "azure-cosmos 1.23.0"),
        ("1.23.7", "azure-cosmos 1.23.7"),
        ("1.24.0", "azure-cosmos 1.24.0 (tested with 1.23)"),
        ("1.20.0", "azure-cosmos 1.20.0 (tested with 1.23)"),
    ],
)
def test_versions_that_the_tests_did_not_run_with(version: str, found: str) -> None:
    """Inside the range they are fine, and named; corrections count as tested."""
    check = checks.packages({"azure-cosmos": Package(version, ">=1.20,<2", "1.23")})

    assert (check.status, check.found) == ("ok", found)


def test_the_tested_versions_are_these() -> None:
    """What this run tests is what the doctor says: where it is not, run the whole suite and write the new number."""
    installed = {name: ".".join(version(name).split(".")[:2]) for name in checks.TESTED}

    assert installed == checks.TESTED


def test_every_tested_version_is_in_the_declared_range() -> None:
    """All of them are requirements of the package, and none is outside of what it asks for."""
    declared = {re.split(r"[\[<>=]", one)[0]: one for one in requires("cosmos-workflow-state") or ()}
    ranges = {name: re.sub(r"^[\w-]+(\[\w+\])?", "", declared[name]) for name in checks.TESTED}

    assert all(checks.in_range(checks.TESTED[name], wanted) for name, wanted in ranges.items())
    assert all(">=" in wanted and "<" in wanted for wanted in ranges.values())


def test_checks_fit_a_terminal() -> None:
    """Words are wrapped below each other; a command stays on one line, and control characters are written out."""
    check = Check("container", "failed", f"{'word ' * 30}\x1b[31m", f"{'do ' * 40}\n{REMEDY}")
    lines = [line.plain for line in check_lines([check, Check("dns", "warning", "")], 60)]
    commands = [line for line in lines if line.lstrip().startswith("az ")]

    assert all(len(line) <= 60 for line in lines if line not in commands)
    assert len(commands) == 1
    assert "\\x1b" in "".join(lines)
    assert lines[-1] == "1 check failed, 1 warning"
    assert len(check_lines([check], None)) == 6


@pytest.mark.parametrize(
    ("width", "lines"),
    [
        (None, ["changed: its default TTL was sixty seconds", "changed: this"]),
        (30, ["changed: its default TTL was", "         sixty seconds", "changed: this"]),
    ],
)
def test_what_was_changed_fits_a_terminal(width: int | None, lines: list[str]) -> None:
    """Sentences are wrapped below their beginning; in a pipe each is one line."""
    found = change_lines(["its default TTL was sixty seconds", "this"], width)

    assert [line.plain for line in found] == lines


def test_checks_as_json() -> None:
    """Each has the same four fields."""
    assert check_json(Check("dns", "ok", "found")) == {"name": "dns", "status": "ok", "found": "found", "remedy": ""}
