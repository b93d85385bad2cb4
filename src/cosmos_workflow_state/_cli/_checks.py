"""What the answers of an account mean: each a check that is ok, a note, a warning or failed, with what to do about it.

Pure: nothing is asked and nothing printed here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from cosmos_workflow_state._definitions import DATA_ACTIONS, ContainerDefinition
from cosmos_workflow_state._drift import Difference, differences, repairable
from cosmos_workflow_state._examining import AccountFacts, Proof, RoundTrip
from cosmos_workflow_state._remedies import MAX_CLOCK_SKEW
from cosmos_workflow_state.errors import AccessDeniedError, CosmosStateError, ProvisioningError, SettingsError
from cosmos_workflow_state.settings import CosmosStateSettings

from ._output import ExitCode
from ._store import told

Status = Literal["ok", "note", "warning", "failed"]

_NOTICEABLE_SKEW: Final = 60.0
"""Seconds."""
TESTED: Final = {"agent-framework-core": "1.23", "azure-cosmos": "4.17", "azure-identity": "1.27"}
"""Versions that the tests of this version run with, without corrections: a test fails where that is no longer so."""
_READS: Final = ("readMetadata", "items/read", "executeQuery", "readChangeFeed")
"""What reading asks for, and so what is tried."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at.

    Attributes:
        name: What.
        status: How it is.
        found: What was found, in words.
        remedy: What to do about it; empty where there is nothing to do.
        code: What a process ends with for which this is what failed first.
    """

    name: str
    status: Status
    found: str
    remedy: str = ""
    code: ExitCode = ExitCode.FAILED


@dataclass(frozen=True, slots=True)
class Package:
    """A package that is installed.

    Attributes:
        version: Its version.
        wanted: The range that this package declares, as ``>=1.20,<2``.
        tested: Major and minor version that the tests of this package ran with.
    """

    version: str
    wanted: str
    tested: str

    @property
    def as_tested(self) -> bool:
        """Whether it differs from what was tested in nothing but corrections."""
        return _numbers(self.version)[:2] == _numbers(self.tested)


def worst(checks: Iterable[Check]) -> Status:
    """Return the status of the worst of them; a note is as good as ok."""
    found = {check.status for check in checks}
    return "failed" if "failed" in found else "warning" if "warning" in found else "ok"


def code_of(checks: Iterable[Check]) -> ExitCode:
    """Return what to end with: the code of what failed first, the rest may follow from it."""
    return next((check.code for check in checks if check.status == "failed"), ExitCode.DONE)


def failure(name: str, error: CosmosStateError) -> Check:
    """Return the check for an error of the library."""
    found, remedy, code = told(error)
    return Check(name, "failed", found, remedy, code)


def end(error: CosmosStateError) -> Check:
    """Return the check for what ended the examination."""
    if isinstance(error, AccessDeniedError) and error.missing_actions:
        return failure("rights", error)
    if isinstance(error, ProvisioningError):
        return failure("container", error)
    return failure("auth" if isinstance(error, AccessDeniedError | SettingsError) else "service", error)


def accepted(proof: Proof, settings: CosmosStateSettings) -> Check:
    """Judge by what the service has let us in."""
    if proof == "secondary key":
        return Check(
            "auth",
            "warning",
            "the service accepts the secondary key and no longer the first",
            "set COSMOS_WORKFLOW_STATE_KEY to a key of today before the secondary one is regenerated as well",
        )
    who = f"a token ({settings.auth.mode})" if proof == "token" else "the key"
    return Check("auth", "ok", f"the service accepts {who}")


def account(facts: AccountFacts) -> Check:
    """Judge consistency and regions: sweeping needs Session and one region that writes."""
    regions = ", ".join(facts.write_regions)
    where = f"{len(facts.write_regions)} write regions ({regions})" if facts.many_writers else "one write region"
    found = f"{facts.consistency} consistency, {where}{f' ({regions})' if regions and not facts.many_writers else ''}"
    if facts.consistency == "Session" and not facts.many_writers:
        return Check("account", "ok", found)
    return Check(
        "account",
        "warning",
        f"{found}: keyframes and uploads that nothing refers to any more are not swept",
        "use an account whose default consistency is Session and which writes to one region, or a TTL",
    )


def clock(ahead: float | None) -> Check:
    """Judge how far the clocks are apart."""
    if ahead is None:
        return Check("clock", "ok", "the service does not tell the time")
    found = f"this machine is {abs(ahead):.0f} seconds {'ahead of' if ahead > 0 else 'behind'} the service"
    remedy = f"set the clock right; from {MAX_CLOCK_SKEW // 60} minutes on the service refuses every request"
    if abs(ahead) >= MAX_CLOCK_SKEW:
        return Check("clock", "failed", found, remedy, ExitCode.ACCESS_DENIED)
    if abs(ahead) >= _NOTICEABLE_SKEW:
        return Check("clock", "warning", found, remedy)
    # A Date header has whole seconds.
    return Check("clock", "ok", found if abs(ahead) >= 2 else "agrees with the service's")  # noqa: PLR2004 - see above


def rights(refused: Sequence[AccessDeniedError], proof: Proof, *, container: bool) -> Check:
    """Judge what reading was refused, and say what was not tried."""
    if refused:
        first = failure("rights", refused[0])
        missing = dict.fromkeys(action for error in refused for action in error.missing_actions)
        found = f"missing data actions: {', '.join(missing)}" if missing else first.found
        return Check("rights", "failed", found, first.remedy, first.code)
    tried = "the account, the container, an item and a query" if container else "the account"
    if proof == "token":
        actions = (action.removeprefix("Microsoft.DocumentDB/databaseAccounts/") for action in DATA_ACTIONS)
        short = (action.removeprefix("sqlDatabases/containers/") for action in actions)
        left = ", ".join(action for action in short if action not in (_READS if container else _READS[:1]))
        return Check("rights", "ok", f"may read {tried}; not tried: {left}")
    left = "saving and deleting, which a read-only key may not" if proof != "embedded" else "saving and deleting"
    return Check("rights", "ok", f"may read {tried}; not tried: {left}")


def container(
    wanted: ContainerDefinition, properties: Mapping[str, Any] | None, settings: CosmosStateSettings, *, needed: bool
) -> list[Check]:
    """Judge a container: one check for each difference from what it must be.

    Args:
        wanted: What it must be.
        properties: What the service says of it, None where it is not there.
        settings: They name it, and say who is to create it.
        needed: Whether it has to be there.
    """
    name = f"{settings.database}/{settings.name_of(wanted)}"
    if properties is not None:
        drift = differences(properties, wanted)
        fix = "; `doctor --fix` does that" if repairable(drift) else ""
        return [_drifted(name, one, fix) for one in drift] or [Check("container", "ok", f"{name} is as it must be")]
    if settings.effective_provisioning == "create":
        return [Check("container", "ok", f"{name} is not there yet; the first use creates it")]
    if not needed:
        remedy = "`cosmos-workflow-state provision` creates it"
        return [Check("container", "note", f"{name} is not there; only {wanted.kind} would need it", remedy)]
    remedy = "`cosmos-workflow-state provision` creates it, or says who can; `doctor --for KIND` asks for others"
    return [Check("container", "failed", f"there is no container {name}", remedy, ExitCode.NOT_PROVISIONED)]


def _drifted(name: str, one: Difference, fix: str) -> Check:
    return Check("container", "failed", f"{name}: {one.problem}", f"{one.remedy}{fix}", ExitCode.NOT_PROVISIONED)


def round_trip(trips: Sequence[RoundTrip]) -> Check:
    """Say what a request costs: the quickest of some, the first of which had to connect."""
    best = min(trips, key=lambda trip: trip.milliseconds)
    return Check(
        "round trip",
        "ok",
        f"{best.milliseconds:.1f} ms and {best.request_charge:.2f} RU for reading an item that does not exist",
    )


def packages(installed: Mapping[str, Package]) -> Check:
    """Judge versions against the ranges that this version was made for, and say which of them its tests ran with.

    Args:
        installed: By name.
    """
    wrong = {name: one.wanted for name, one in installed.items() if not in_range(one.version, one.wanted)}
    found = ", ".join(
        f"{name} {one.version}{'' if one.as_tested else f' (tested with {one.tested})'}"
        for name, one in installed.items()
    )
    if not wrong:
        return Check("versions", "ok", found)
    needed = " and ".join(f"{name}{wanted}" for name, wanted in wrong.items())
    asked = " ".join(f'"{name}{wanted}"' for name, wanted in wrong.items())
    return Check("versions", "warning", f"{found}; it has to be {needed}", f"pip install {asked}")


def in_range(version: str, wanted: str) -> bool:
    """Tell whether a version is in a range that is made of ``>=`` and ``<``; other conditions are passed over."""
    numbers = _numbers(version)
    bounds = [bound.strip() for bound in wanted.split(",")]
    above = all(numbers >= _numbers(bound[2:]) for bound in bounds if bound.startswith(">="))
    return above and all(numbers < _numbers(bound[1:]) for bound in bounds if bound.startswith("<"))


def _numbers(version: str) -> tuple[int, ...]:
    """Return the numbers at the beginning: 1.20.0b1 is taken for 1.20.0."""
    found = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, found[0].split("."))) if found else ()
