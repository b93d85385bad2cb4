"""``provision``: what an account needs, as text for Azure's own tools; or created where a key allows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from cosmos_workflow_state import CosmosStateSettings
from cosmos_workflow_state._definitions import CHECKPOINTS
from cosmos_workflow_state._drift import Difference, differences
from cosmos_workflow_state._examining import Proof, examined
from cosmos_workflow_state._infrastructure import provisioning_plan
from cosmos_workflow_state.errors import AccessDeniedError, CosmosStateError

from ._asking import ask
from ._log import log_to_standard_error
from ._output import CommandError, ExitCode, complain, say, say_json
from ._store import explained, finish

if TYPE_CHECKING:
    from cosmos_workflow_state._infrastructure import PlanFormat

_NOT_FOR_TOKENS: Final = (
    "no role lets a token create databases and containers; whoever owns the account does that once, and gives the "
    "identity its role, with the commands on standard output"
)


@dataclass(frozen=True, slots=True)
class _State:
    """What is there.

    Attributes:
        proof: What the requests were proved with.
        missing: What is not there, in the order to create it.
        drift: How the container differs from what it must be.
    """

    proof: Proof
    missing: tuple[str, ...] = ()
    drift: tuple[Difference, ...] = ()


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
    """Create what is missing, and verify the container.

    Returns:
        DONE, or ACCESS_DENIED where it takes somebody with more rights: the commands for them are printed.

    Raises:
        CommandError: The container is not as it must be, nobody said yes, or the service refused or failed.
    """
    settings = _settings()
    log_to_standard_error(settings)
    state = finish(_look(settings))
    _refuse_drift(state.drift, settings)
    if state.missing and state.proof == "token":
        return _hand_over(settings, as_json=as_json)
    if state.missing:
        ask(_intention(state, settings), yes=yes, no="nothing was created")
        finish(_create(settings))
    _report(settings, state.missing, as_json=as_json)
    return ExitCode.DONE


def _settings() -> CosmosStateSettings:
    try:
        return CosmosStateSettings()
    except CosmosStateError as error:
        raise explained(error) from None


async def _look(settings: CosmosStateSettings) -> _State:
    proof: Proof = "embedded" if settings.is_embedded else "token"
    try:
        async with examined(settings) as examination:
            proof = examination.proof
            properties = await examination.container()
            if properties is not None:
                return _State(proof, (), differences(properties, CHECKPOINTS))
            database = proof == "token" or await examination.has_database()
            return _State(proof, ("container",) if database else ("database", "container"))
    except AccessDeniedError as error:
        # An identity without any role yet is what the printed commands are for.
        if proof == "token" and error.missing_actions:
            return _State(proof, ("container",))
        raise


async def _create(settings: CosmosStateSettings) -> None:
    async with examined(settings) as examination:
        await examination.create()


def _refuse_drift(drift: tuple[Difference, ...], settings: CosmosStateSettings) -> None:
    if not drift:
        return
    lines = [f"  {difference}" for difference in drift]
    fix = "; `doctor --fix` repairs it" if all(difference.repairable for difference in drift) else ""
    name = f"{settings.database}/{settings.checkpoint_container}"
    head = f"container {name} is there, but not as it must be{fix}:"
    raise CommandError("\n".join((head, *lines)), ExitCode.NOT_PROVISIONED)


def _intention(state: _State, settings: CosmosStateSettings) -> str:
    what = " and ".join(f"{kind} {_name(kind, settings)!r}" for kind in state.missing)
    return f"create {what} in {settings.endpoint}, throughput {settings.throughput}"


def _name(kind: str, settings: CosmosStateSettings) -> str:
    return settings.database if kind == "database" else settings.checkpoint_container


def _hand_over(settings: CosmosStateSettings, *, as_json: bool) -> ExitCode:
    complain(_NOT_FOR_TOKENS, ExitCode.ACCESS_DENIED)
    plan = provisioning_plan(settings, "az")
    if as_json:
        say_json(_document(settings, ()) | {"format": "az", "plan": plan})
    else:
        say(plan.rstrip("\n"))
    return ExitCode.ACCESS_DENIED


def _report(settings: CosmosStateSettings, created: tuple[str, ...], *, as_json: bool) -> None:
    if as_json:
        say_json(_document(settings, created))
        return
    for kind in created:
        say(f"created {kind} {_name(kind, settings)}")
    say(f"container {settings.database}/{settings.checkpoint_container} is as it must be")


def _document(settings: CosmosStateSettings, created: tuple[str, ...]) -> dict[str, Any]:
    return {
        "database": settings.database,
        "checkpoint_container": settings.checkpoint_container,
        "created": list(created),
    }
