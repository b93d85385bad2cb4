"""The way of every command into the library: settings, factory, storage; and of the library's errors out of it.

Whoever imports this loads azure and the framework.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

from cosmos_workflow_state import CosmosStateFactory, CosmosStateSettings, TenantCheckpointStorage
from cosmos_workflow_state._clients import is_to_be_made
from cosmos_workflow_state.errors import (
    AccessDeniedError,
    CheckpointNotFoundError,
    CosmosStateError,
    InvalidArgumentError,
    InvalidIdentifierError,
    ProvisioningError,
    ServiceUnavailableError,
    SettingsError,
    ThrottledError,
)
from cosmos_workflow_state.typing import CheckpointSummary

from ._log import log_to_standard_error
from ._output import CommandError, ExitCode, printable

_Value = TypeVar("_Value")

_CANDIDATES_SHOWN: Final = 10

_CODES: Final[dict[type[CosmosStateError], ExitCode]] = {
    AccessDeniedError: ExitCode.ACCESS_DENIED,
    CheckpointNotFoundError: ExitCode.NOT_FOUND,
    InvalidArgumentError: ExitCode.USAGE,
    InvalidIdentifierError: ExitCode.USAGE,
    ProvisioningError: ExitCode.NOT_PROVISIONED,
    SettingsError: ExitCode.USAGE,
}
_REMEDIES: Final[dict[type[CosmosStateError], str]] = {
    AccessDeniedError: "check the key or the role of the identity; `config show` shows which settings are in force",
    ServiceUnavailableError: "`cosmos-workflow-state doctor` shows where the way ends; it may also work later",
    ThrottledError: "try again later, or provision more request units",
}


@dataclass(frozen=True, slots=True)
class Place:
    """Where to look.

    Attributes:
        tenant: Whose checkpoints.
        scope: Which scope of the tenant, ``""`` for the unnamed one.
        workflow: The one workflow to look at, None for all of the scope.
    """

    tenant: str
    scope: str = ""
    workflow: str | None = None

    def __str__(self) -> str:
        """Name the place in a sentence."""
        scope = f"scope {self.scope!r}" if self.scope else "the unnamed scope"
        workflow = "" if self.workflow is None else f" for workflow {self.workflow!r}"
        return f"tenant {self.tenant!r} in {scope}{workflow}"


class _LookingSettings(CosmosStateSettings):
    """The settings of the environment, for who never creates anything, whatever they say of that."""

    def __init__(self) -> None:
        """Read them."""
        super().__init__()

    @property
    def effective_provisioning(self) -> Literal["verify", "skip"]:
        """What is done about the container: nothing, or it is verified."""
        return "skip" if self.provisioning == "skip" else "verify"


@asynccontextmanager
async def opened(place: Place) -> AsyncGenerator[TenantCheckpointStorage]:
    """Open the storage of a place, by the settings of the environment; what is not there is not created.

    Raises:
        CommandError: There is no state file.
    """
    settings = _LookingSettings()
    log_to_standard_error(settings)
    if settings.is_embedded and (settings.embedded_path is None or is_to_be_made(settings)):
        raise CommandError(_no_state(settings.embedded_path), ExitCode.NOT_PROVISIONED)
    async with CosmosStateFactory(settings) as factory:
        storage = factory.for_tenant(place.tenant).checkpoints.scoped(place.scope)
        yield storage if place.workflow is None else storage.for_workflow(place.workflow)


def _no_state(path: Path | None) -> str:
    if path is None:
        return (
            "the embedded engine in memory ends with the process that uses it, so there is nothing to look at; "
            "COSMOS_WORKFLOW_STATE_ENDPOINT=embedded:PATH names a state file"
        )
    return (
        f"there is no state file {str(path.absolute())!r}; is the path in COSMOS_WORKFLOW_STATE_ENDPOINT right? An "
        "application creates the file at its first use, or `cosmos-workflow-state provision`"
    )


def finish(work: Coroutine[Any, Any, _Value]) -> _Value:
    """Do the work of a command.

    Raises:
        CommandError: In place of the library's errors.
    """
    try:
        return asyncio.run(work)
    except CosmosStateError as error:
        raise explained(error) from None


def explained(error: CosmosStateError) -> CommandError:
    """Return what the user of a command is told about an error of the library, and the exit code."""
    found, remedy, code = told(error)
    # An error's own remedy has lines of its own.
    joint = "\n" if remedy and remedy in str(error) else " " if found.endswith("?") else "; "
    return CommandError(f"{found}{joint}{remedy}" if remedy else found, code)


def told(error: CosmosStateError) -> tuple[str, str, ExitCode]:
    """Return what an error of the library says, what to do about it, and the exit code."""
    code = ExitCode.TRY_AGAIN if error.retryable else ExitCode.FAILED
    code = next((known for kind, known in _CODES.items() if isinstance(error, kind)), code)
    # An error may bring a better remedy than the one for its kind.
    own: str = getattr(error, "remedy", "")
    remedy = own or next((text for kind, text in _REMEDIES.items() if isinstance(error, kind)), "")
    return f"{str(error).removesuffix(own).rstrip()}{_which(error)}", remedy, code


def _which(error: CosmosStateError) -> str:
    """Say which checkpoint an error is about, where its text does not."""
    known = getattr(error, "checkpoint_id", None)
    if known is None or str(known) in str(error):
        return ""
    workflow = getattr(error, "workflow_name", None)
    return f" (checkpoint {known!r}{'' if workflow is None else f' of workflow {workflow!r}'})"


async def resolve(storage: TenantCheckpointStorage, place: Place, text: str) -> CheckpointSummary:
    """Return the one checkpoint that an id, or the beginning of one, means.

    Raises:
        CommandError: None is meant, or more than one.
    """
    found = await storage.find_checkpoints(text)
    meant = [one for one in found if one.checkpoint_id == text] or found
    if not meant:
        raise CommandError(
            f"no checkpoint of {place} has an id that begins with {text!r}; `checkpoints list` shows what there is",
            ExitCode.NOT_FOUND,
        )
    if len(meant) > 1:
        raise CommandError(_ambiguous(text, meant), ExitCode.USAGE)
    return meant[0]


def _ambiguous(text: str, meant: list[CheckpointSummary]) -> str:
    # An id that breaks the line would begin one that is none of ours.
    lines = [f"  {printable(one.checkpoint_id)} of {printable(one.workflow_name)}" for one in meant[:_CANDIDATES_SHOWN]]
    if len(meant) > _CANDIDATES_SHOWN:
        lines.append(f"  and {len(meant) - _CANDIDATES_SHOWN:,} more")
    remedy = "give more of it, or --workflow where the ids are the same"
    return "\n".join((f"{text!r} may be any of {len(meant):,} checkpoints; {remedy}:", *lines))
