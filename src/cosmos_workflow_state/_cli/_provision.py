"""``provision``: what an account needs, as text for Azure's own tools; or created where a key allows it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from cosmos_workflow_state import CosmosStateSettings
from cosmos_workflow_state._clients import is_to_be_made
from cosmos_workflow_state._definitions import CONTAINERS, ContainerDefinition
from cosmos_workflow_state._drift import Difference, differences, repairable
from cosmos_workflow_state._examining import Examination, Proof, examined
from cosmos_workflow_state._infrastructure import provisioning_plan
from cosmos_workflow_state.errors import AccessDeniedError, CosmosStateError

from ._asking import ask
from ._log import log_to_standard_error
from ._output import CommandError, ExitCode, complain, say, say_json
from ._store import explained, finish

if TYPE_CHECKING:
    from cosmos_workflow_state._infrastructure import PlanFormat

_NOTHING_KEPT: Final = (
    "the embedded engine in memory ends with the process that uses it, so what is created here would be gone at once; "
    "COSMOS_WORKFLOW_STATE_ENDPOINT=embedded:PATH names a state file"
)
_NOT_FOR_TOKENS: Final = (
    "no role lets a token create databases and containers; whoever owns the account does that once, and gives the "
    "identity its role, with the commands on standard output"
)


@dataclass(frozen=True, slots=True)
class _Container:
    """One container as it was found.

    Attributes:
        wanted: What it must be.
        there: Whether it is there.
        drift: How it differs from what it must be.
    """

    wanted: ContainerDefinition
    there: bool = False
    drift: tuple[Difference, ...] = ()


@dataclass(frozen=True, slots=True)
class _State:
    """What is there.

    Attributes:
        proof: What the requests were proved with.
        database: Whether the database is there, as far as it can be known.
        containers: All of them, in the order to create them.
        refused: Why nothing could be looked at; None where it could.
    """

    proof: Proof
    database: bool
    containers: tuple[_Container, ...]
    refused: AccessDeniedError | None = None

    @property
    def missing(self) -> tuple[ContainerDefinition, ...]:
        """The containers that are not there."""
        return tuple(one.wanted for one in self.containers if not one.there)

    @property
    def drifted(self) -> tuple[_Container, ...]:
        """The containers that are not as they must be."""
        return tuple(one for one in self.containers if one.drift)


_NOTHING_THERE: Final = tuple(map(_Container, CONTAINERS))


def print_plan(output: PlanFormat, *, as_json: bool) -> None:
    """Print what makes an account ready for the settings in force. Asks nobody anything.

    Raises:
        CommandError: A setting is wrong or missing.
    """
    plan = provisioning_plan(_settings(), output)
    if as_json:
        say_json({"format": output, "plan": plan})
    else:
        say(plan.rstrip("\n"))


def provision(*, yes: bool, as_json: bool) -> ExitCode:
    """Create what is missing, and verify what is there.

    Returns:
        DONE, NOT_PROVISIONED where a container is not as it must be, or ACCESS_DENIED where it takes somebody with more
        rights: the commands for them are printed.

    Raises:
        CommandError: Nobody said yes, the service refused or failed, or what is created would not be kept.
    """
    settings = _settings()
    log_to_standard_error(settings)
    if settings.is_embedded and settings.embedded_path is None:
        raise CommandError(_NOTHING_KEPT, ExitCode.NOT_PROVISIONED)
    state = finish(_look(settings))
    if state.missing and state.proof == "token":
        return _hand_over(settings, state, as_json=as_json)
    if state.missing:
        ask(_intention(state, settings), yes=yes, no="nothing was created")
        finish(_create(settings, state.missing))
    _report(settings, state, as_json=as_json)
    if not state.drifted:
        return ExitCode.DONE
    complain("\n".join(_drift_lines(settings, state)), ExitCode.NOT_PROVISIONED)
    return ExitCode.NOT_PROVISIONED


def _settings() -> CosmosStateSettings:
    try:
        return CosmosStateSettings()
    except CosmosStateError as error:
        raise explained(error) from None


async def _look(settings: CosmosStateSettings) -> _State:
    if is_to_be_made(settings):  # who says no is left with no state file
        return _State("embedded", database=False, containers=_NOTHING_THERE)
    proof: Proof = "embedded" if settings.is_embedded else "token"
    try:
        async with examined(settings) as examination:
            proof = examination.proof
            containers = tuple([await _container(examination, wanted) for wanted in CONTAINERS])
            there = proof == "token" or any(one.there for one in containers) or await examination.has_database()
            return _State(proof, there, containers)
    except AccessDeniedError as error:
        # An identity without any role yet is what the printed commands are for.
        if proof == "token" and error.missing_actions:
            return _State(proof, database=True, containers=_NOTHING_THERE, refused=error)
        raise


async def _container(examination: Examination, wanted: ContainerDefinition) -> _Container:
    properties = await examination.container(wanted)
    drift = () if properties is None else differences(properties, wanted)
    return _Container(wanted, properties is not None, drift)


async def _create(settings: CosmosStateSettings, missing: tuple[ContainerDefinition, ...]) -> None:
    async with examined(settings) as examination:
        for wanted in missing:
            await examination.create(wanted)


def _intention(state: _State, settings: CosmosStateSettings) -> str:
    *names, last = [repr(settings.name_of(wanted)) for wanted in state.missing]
    containers = f"containers {', '.join(names)} and {last}" if names else f"container {last}"
    database = "" if state.database else f"database {settings.database!r}, and in it "
    return f"create {database}{containers} in {settings.endpoint}, throughput {settings.throughput}"


def _drift_lines(settings: CosmosStateSettings, state: _State) -> Iterator[str]:
    for one in state.drifted:
        fix = "; `doctor --fix` repairs it" if repairable(one.drift) else ""
        name = f"{settings.database}/{settings.name_of(one.wanted)}"
        yield f"container {name} is there, but not as it must be{fix}:"
        yield from (f"  {difference}" for difference in one.drift)


def _hand_over(settings: CosmosStateSettings, state: _State, *, as_json: bool) -> ExitCode:
    why = [] if state.refused is None else [str(state.refused)]
    complain("\n".join((_NOT_FOR_TOKENS, *why, *_drift_lines(settings, state))), ExitCode.ACCESS_DENIED)
    plan = provisioning_plan(settings, "az")
    if as_json:
        say_json(_document(settings, state, created=False) | {"format": "az", "plan": plan})
    else:
        say(plan.rstrip("\n"))
    return ExitCode.ACCESS_DENIED


def _report(settings: CosmosStateSettings, state: _State, *, as_json: bool) -> None:
    if as_json:
        say_json(_document(settings, state, created=True))
        return
    if not state.database:
        say(f"created database {settings.database}")
    for one in state.containers:
        name = f"{settings.database}/{settings.name_of(one.wanted)}"
        how = "is not as it must be" if one.drift else "is as it must be"
        say(f"container {name} {how}" if one.there else f"created container {name}")


def _document(settings: CosmosStateSettings, state: _State, *, created: bool) -> dict[str, Any]:
    return {
        "database": settings.database,
        "containers": [
            {
                "kind": one.wanted.kind,
                "name": settings.name_of(one.wanted),
                "state": _state_of(one, created=created),
                "problems": [str(difference) for difference in one.drift],
            }
            for one in state.containers
        ],
    }


def _state_of(one: _Container, *, created: bool) -> str:
    if not one.there:
        return "created" if created else "missing"
    return "drifted" if one.drift else "there"
