"""``doctor``: everything between the settings and the container, checked in the order in which it can fail."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import requires, version
from typing import Any, Final

from rich.text import Text

from cosmos_workflow_state import CosmosStateSettings
from cosmos_workflow_state._definitions import CHECKPOINTS
from cosmos_workflow_state._drift import Difference, differences
from cosmos_workflow_state._examining import Examination, RoundTrip, examined
from cosmos_workflow_state._provisioning import Repair
from cosmos_workflow_state.errors import AccessDeniedError, CosmosStateError
from cosmos_workflow_state.settings import read_origins

from . import _checks as checks
from ._asking import ask
from ._checks import TESTED, Check, Package
from ._log import log_to_standard_error
from ._network import PATIENCE, reach
from ._output import PROGRAM, ExitCode, say_json
from ._screen import show, width
from ._store import finish
from ._views._checks import change_lines, check_json, check_lines
from ._views._settings import SettingRow, rows_of, settings_json, short_table

_SHOWN: Final = frozenset({"endpoint", "database", "checkpoint_container", "auth.mode"})
"""Settings that are shown although they have their defaults; `config show` shows all."""
_TRIPS: Final = 3


@dataclass(slots=True)
class _Findings:
    """What was found.

    Attributes:
        checks: In the order in which it was looked.
        properties: The container's definition, None without one.
    """

    checks: list[Check]
    properties: Mapping[str, Any] | None = None

    @property
    def drift(self) -> tuple[Difference, ...]:
        """How the container differs from what it must be."""
        return () if self.properties is None else differences(self.properties, CHECKPOINTS)


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


def run_doctor(*, fix: bool, yes: bool, as_json: bool) -> ExitCode:
    """Check everything, and repair the container when asked to.

    Returns:
        The code of what failed first.

    Raises:
        CommandError: Nobody said yes to a repair, or it failed.
    """
    report = _Report()
    try:
        settings = CosmosStateSettings()
    except CosmosStateError as error:
        report.checks = [checks.failure("settings", error), _versions()]
        return _finished(report, as_json=as_json)
    log_to_standard_error(settings)
    report.rows = [row for row in rows_of(settings, read_origins()) if row.name in _SHOWN or row.source != "default"]
    found = finish(_examine(settings))
    report.checks = [*found.checks, _versions()]
    if fix:
        _fix(settings, found, report, yes=yes, as_json=as_json)
    return _finished(report, as_json=as_json)


def _fix(settings: CosmosStateSettings, found: _Findings, report: _Report, *, yes: bool, as_json: bool) -> None:
    wrong = [difference for difference in found.drift if difference.repairable]
    if not wrong:
        return
    if not as_json and not yes:
        show(check_lines(report.checks, width()))
    subjects = " and ".join(dict.fromkeys(difference.subject for difference in wrong))
    what = f"replace the {subjects} of container {settings.database}/{settings.checkpoint_container}"
    ask(what, yes=yes, no="nothing was changed", about=[f"{one.problem}: {one.remedy}" for one in wrong])
    report.changed = [one.problem for one in finish(_repair(settings)).changed]
    report.checks = [*finish(_examine(settings)).checks, _versions()]


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


async def _examine(settings: CosmosStateSettings) -> _Findings:
    patience = min(PATIENCE, settings.operation_timeout)
    found = _Findings(_engine(settings) if settings.is_embedded else await reach(settings.endpoint, patience))
    if found.checks[-1].status == "failed" or _is_to_be_made(settings):
        return found
    try:
        async with examined(settings) as examination:
            await _ask(examination, settings, found)
    except CosmosStateError as error:
        found.checks.append(checks.end(error))
    return found


async def _ask(examination: Examination, settings: CosmosStateSettings, found: _Findings) -> None:
    if not settings.is_embedded:
        found.checks.append(checks.accepted(examination.proof, settings))
    facts = await examination.account()
    found.checks.append(checks.account(facts))
    if not settings.is_embedded:
        found.checks.append(checks.clock(facts.ahead))
    found.properties = await examination.container()
    # Under another partition key there is no way to read in it, whatever the rights.
    readable = all(one.subject != "partition key" for one in found.drift) and found.properties is not None
    refused, trips = await _read(examination) if readable else ([], [])
    found.checks.append(checks.rights(refused, examination.proof, container=readable))
    found.checks += checks.container(found.properties, settings)
    if trips:
        found.checks.append(checks.round_trip(trips))


async def _read(examination: Examination) -> tuple[list[AccessDeniedError], list[RoundTrip]]:
    """Try to read an item and to query; return what was refused, and how long reading took."""
    refused: list[AccessDeniedError] = []
    trips: list[RoundTrip] = []
    try:
        trips = [await examination.read_nothing() for _ in range(_TRIPS)]
    except AccessDeniedError as error:
        refused.append(error)
    try:
        await examination.query()
    except AccessDeniedError as error:
        refused.append(error)
    return refused, trips


async def _repair(settings: CosmosStateSettings) -> Repair:
    async with examined(settings) as examination:
        return await examination.repair()


def _engine(settings: CosmosStateSettings) -> list[Check]:
    path = settings.embedded_path
    if path is None:
        return [Check("engine", "ok", "embedded, in memory: nothing outlives a process")]
    state = "" if path.exists() else ", which is not there yet: the first use creates it"
    return [Check("engine", "ok", f"embedded, the state file {path}{state}")]


def _is_to_be_made(settings: CosmosStateSettings) -> bool:
    """Tell whether looking would create a state file."""
    path = settings.embedded_path
    return path is not None and path.parent.is_dir() and not path.exists()


def _versions() -> Check:
    ranges: dict[str, Package] = {}
    for requirement in requires(PROGRAM) or ():
        name = next((known for known in TESTED if requirement.startswith(known)), None)
        if name is not None:
            wanted = requirement.removeprefix(name).partition(";")[0]
            ranges[name] = Package(version(name), wanted.partition("]")[2] or wanted, TESTED[name])
    return checks.packages(ranges)
