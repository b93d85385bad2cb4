"""``doctor``: everything between the settings and the containers, checked in the order in which it can fail."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from importlib.metadata import requires, version
from typing import Any, Final

from rich.text import Text

from cosmos_workflow_state import CosmosStateSettings
from cosmos_workflow_state._clients import is_to_be_made
from cosmos_workflow_state._definitions import CHECKPOINTS, CONTAINERS, ContainerDefinition
from cosmos_workflow_state._drift import Difference, differences, repairable
from cosmos_workflow_state._examining import Examination, RoundTrip, examined
from cosmos_workflow_state.errors import AccessDeniedError, CosmosStateError
from cosmos_workflow_state.settings import read_origins

from . import _checks as checks
from ._asking import ask
from ._checks import TESTED, Check, Package
from ._log import log_to_standard_error
from ._network import PATIENCE, reach
from ._output import PROGRAM, CommandError, ExitCode, say_json
from ._screen import show, width
from ._store import finish
from ._views._checks import change_lines, check_json, check_lines
from ._views._settings import SettingRow, rows_of, settings_json, short_table

_SHOWN: Final = frozenset({"endpoint", "database", *(one.setting for one in CONTAINERS), "auth.mode"})
"""Settings that are shown although they have their defaults; `config show` shows all."""
_TRIPS: Final = 3


@dataclass(slots=True)
class _Findings:
    """What was found.

    Attributes:
        checks: In the order in which it was looked.
        properties: The definitions of the containers that are there, by kind.
    """

    checks: list[Check]
    properties: dict[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])

    def drift(self, wanted: ContainerDefinition) -> tuple[Difference, ...]:
        """Return how a container differs from what it must be; not at all where it is not there."""
        properties = self.properties.get(wanted.kind)
        return () if properties is None else differences(properties, wanted)

    @property
    def to_repair(self) -> dict[str, tuple[Difference, ...]]:
        """The differences of the containers that can be made right, by kind."""
        found = {wanted.kind: self.drift(wanted) for wanted in CONTAINERS}
        return {kind: drift for kind, drift in found.items() if drift and repairable(drift)}


@dataclass(slots=True)
class _Report:
    """What is shown at the end.

    Attributes:
        rows: The settings in force.
        checks: All checks.
        changed: What a repair has put right.
    """

    rows: list[SettingRow] = field(default_factory=list[SettingRow])
    checks: list[Check] = field(default_factory=list[Check])
    changed: list[str] = field(default_factory=list[str])


def run_doctor(*, fix: bool, yes: bool, as_json: bool, kinds: Collection[str]) -> ExitCode:
    """Check everything, and repair the containers when asked to.

    Args:
        fix: Whether to repair.
        yes: Whether to do so without asking.
        as_json: Whether the result is JSON.
        kinds: The kinds of the containers that have to be there; the one for checkpoints when none is named.

    Returns:
        The code of what failed first.

    Raises:
        CommandError: Nobody said yes to a repair, or it failed; what was found is shown before.
    """
    report = _Report()
    try:
        settings = CosmosStateSettings()
    except CosmosStateError as error:
        report.checks = [checks.failure("settings", error), _versions()]
        return _finished(report, as_json=as_json)
    log_to_standard_error(settings)
    report.rows = [row for row in rows_of(settings, read_origins()) if row.name in _SHOWN or row.source != "default"]
    found = finish(_examine(settings, kinds))
    report.checks = [*found.checks, _versions()]
    if fix and found.to_repair:
        _fix(settings, found, report, yes=yes, as_json=as_json)
        report.checks = [*finish(_examine(settings, kinds)).checks, _versions()]
    return _finished(report, as_json=as_json)


def _fix(settings: CosmosStateSettings, found: _Findings, report: _Report, *, yes: bool, as_json: bool) -> None:
    if not as_json and not yes:
        show(check_lines(report.checks, width()))  # to be read before the answer
    try:
        ask(_intention(settings, found), yes=yes, no="nothing was changed")
        finish(_repair(settings, found, report))
    except CommandError:
        if as_json or yes:
            _finished(report, as_json=as_json)
        raise


def _intention(settings: CosmosStateSettings, found: _Findings) -> str:
    """Say what a repair replaces, and what it keeps."""
    replaced = " and ".join(
        f"the {' and the '.join(dict.fromkeys(one.subject for one in found.to_repair[wanted.kind]))} "
        f"of container {settings.database}/{settings.name_of(wanted)}"
        for wanted in CONTAINERS
        if wanted.kind in found.to_repair
    )
    return f"replace {replaced}, and keep all items, the indexes that others have added and all else"


def _finished(report: _Report, *, as_json: bool) -> ExitCode:
    if as_json:
        document = settings_json(report.rows) | {
            "checks": [check_json(check) for check in report.checks],
            "worst": checks.worst(report.checks),
            "changed": report.changed,
        }
        say_json(document)
    else:
        if report.rows:
            show([*short_table(report.rows, width()), Text()])
        show([*change_lines(report.changed, width()), *check_lines(report.checks, width())])
    return checks.code_of(report.checks)


async def _examine(settings: CosmosStateSettings, kinds: Collection[str]) -> _Findings:
    if is_to_be_made(settings):
        return _Findings([_engine(settings)])
    patience = min(PATIENCE, settings.operation_timeout)
    found = _Findings([] if settings.is_embedded else await reach(settings.endpoint, patience))
    if checks.worst(found.checks) == "failed":
        return found
    try:
        async with examined(settings) as examination:
            if settings.is_embedded:
                found.checks.append(_engine(settings))
            await _ask(examination, settings, found, kinds or (CHECKPOINTS.kind,))
    except CosmosStateError as error:
        # Nothing was found yet: the engine itself could not be opened.
        found.checks.append(checks.end(error) if found.checks else checks.failure("engine", error))
    return found


async def _ask(
    examination: Examination, settings: CosmosStateSettings, found: _Findings, kinds: Collection[str]
) -> None:
    if not settings.is_embedded:
        found.checks.append(checks.accepted(examination.proof, settings))
    facts = await examination.account()
    found.checks.append(checks.account(facts))
    if not settings.is_embedded:
        found.checks.append(checks.clock(facts.ahead))
    for wanted in CONTAINERS:
        properties = await examination.container(wanted)
        if properties is not None:
            found.properties[wanted.kind] = properties
    # Rights are given for the database, so one container stands for all. Under another partition key there is no way
    # to read in it, whatever the rights.
    there = (one for one in CONTAINERS if one.kind in found.properties)
    readable = next((one for one in there if repairable(found.drift(one))), None)
    refused, trips = ([], []) if readable is None else await _read(examination, readable)
    found.checks.append(checks.rights(refused, examination.proof, container=readable is not None))
    for wanted in CONTAINERS:
        properties = found.properties.get(wanted.kind)
        found.checks += checks.container(wanted, properties, settings, needed=wanted.kind in kinds)
    if trips:
        found.checks.append(checks.round_trip(trips))


async def _read(
    examination: Examination, wanted: ContainerDefinition
) -> tuple[list[AccessDeniedError], list[RoundTrip]]:
    """Try to read an item and to query; return what was refused, and how long reading took."""
    refused: list[AccessDeniedError] = []
    trips: list[RoundTrip] = []
    try:
        trips = [await examination.read_nothing(wanted) for _ in range(_TRIPS)]
    except AccessDeniedError as error:
        refused.append(error)
    try:
        await examination.query(wanted)
    except AccessDeniedError as error:
        refused.append(error)
    return refused, trips


async def _repair(settings: CosmosStateSettings, found: _Findings, report: _Report) -> None:
    async with examined(settings) as examination:
        for wanted in CONTAINERS:
            if wanted.kind in found.to_repair:
                repair = await examination.repair(wanted)
                name = f"{settings.database}/{settings.name_of(wanted)}"
                report.changed += [f"{name}: {one.problem}" for one in repair.changed]


def _engine(settings: CosmosStateSettings) -> Check:
    path = settings.embedded_path
    if path is None:
        return Check("engine", "ok", "embedded, in memory: nothing outlives a process")
    state = ", which is not there yet: the first use creates it" if is_to_be_made(settings) else ""
    return Check("engine", "ok", f"embedded, the state file {path}{state}")


def _versions() -> Check:
    ranges: dict[str, Package] = {}
    for requirement in requires(PROGRAM) or ():
        name = next((known for known in TESTED if requirement.startswith(known)), None)
        if name is not None:
            wanted = requirement.removeprefix(name).partition(";")[0]
            ranges[name] = Package(version(name), wanted.partition("]")[2] or wanted, TESTED[name])
    return checks.packages(ranges)
