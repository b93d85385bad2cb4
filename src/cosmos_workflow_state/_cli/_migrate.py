"""``migrate``: from the containers of the framework's own stores into ours."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from typing import Any, Final

from pydantic import SecretStr
from rich.text import Text

from cosmos_workflow_state import CosmosStateSettings
from cosmos_workflow_state._credentials import account_keys
from cosmos_workflow_state._identity import Scope
from cosmos_workflow_state._migration import (
    Assignment,
    Failure,
    Job,
    Origin,
    Tally,
    migrate_checkpoints,
    migrate_histories,
)
from cosmos_workflow_state.errors import CosmosStateError, SettingsError
from cosmos_workflow_state.settings import ConnectionStringAuth, DefaultAuth, KeyAuth

from ._log import log_to_standard_error
from ._output import CommandError, ExitCode, complain, printable, say, say_json
from ._screen import progress, show, width
from ._store import explained, finish
from ._views._layout import Column, counted, layout

SOURCE_KEY: Final = "COSMOS_MIGRATE_SOURCE_KEY"
"""Environment variable with the key for the source; a key on the command line would be in everybody's process list."""

_Migrate = Callable[[Job, Tally], Coroutine[Any, Any, None]]

_IDS_SHOWN: Final = 5
_NOUNS: Final = {"checkpoints": "checkpoint", "history": "message"}


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked for, as it was written.

    Attributes:
        source: ``DATABASE/CONTAINER``.
        endpoint: The account of the source, None for the one of the settings.
        tenant: The one tenant, or None.
        tenant_field: The field that names the tenant, or None.
        scope: Where checkpoints go inside the tenant.
        dry_run: Whether nothing is written.
        as_json: Whether the result is JSON.
    """

    source: str
    endpoint: str | None
    tenant: str | None
    tenant_field: str | None
    scope: str
    dry_run: bool
    as_json: bool


def checkpoints(request: Request) -> ExitCode:
    """Migrate checkpoints, and report.

    Returns:
        DONE, or FAILED when there are items that were not migrated.

    Raises:
        CommandError: The request or a setting is wrong, or the service refused or failed.
    """
    return _migrate("checkpoints", request, migrate_checkpoints)


def history(request: Request) -> ExitCode:
    """Migrate chat histories, and report.

    Returns:
        DONE, or FAILED when there are messages that were not migrated.

    Raises:
        CommandError: The request or a setting is wrong, or the service refused or failed.
    """
    return _migrate("history", request, migrate_histories)


def _migrate(kind: str, request: Request, migrate: _Migrate) -> ExitCode:
    job = _job(request)
    log_to_standard_error(job.settings)
    with progress(f"migrating {kind}") as report:
        tally = Tally(report)
        try:
            finish(migrate(job, tally))
        except CommandError as error:
            if not tally.written:
                raise
            done = f"{tally.written:,} of {tally.found:,} are written; the same command goes on from there"
            raise CommandError(f"{error}\n{done}", error.code) from None
    if request.as_json:
        say_json(_document(kind, request, tally))
    else:
        _show(kind, request, tally)
    if not tally.failures:
        return ExitCode.DONE
    complain("\n".join(_failed(tally.failures)), ExitCode.FAILED)
    return ExitCode.FAILED


def _job(request: Request) -> Job:
    try:
        settings = CosmosStateSettings()
        database, container = _named(request.source)
        return Job(
            settings=settings,
            origin=Origin(_source_settings(settings, request.endpoint), database, container),
            assignment=Assignment.accept(settings, request.tenant, request.tenant_field),
            scope=Scope.accept(request.scope),
            dry_run=request.dry_run,
        )
    except CosmosStateError as error:
        raise explained(error) from None


def _named(source: str) -> tuple[str, str]:
    database, _, container = source.partition("/")
    if not database or not container or "/" in container:
        raise CommandError("--from takes DATABASE/CONTAINER, for example agent-db/checkpoints", ExitCode.USAGE)
    return database, container


def _source_settings(settings: CosmosStateSettings, endpoint: str | None) -> CosmosStateSettings:
    """Return how the source is reached; the very settings when nothing else is asked for.

    A key of the target's account opens no other account: without one for the source, that takes an identity.
    """
    key = os.environ.get(SOURCE_KEY)
    if not endpoint and not key:
        return settings
    keyed = isinstance(settings.auth, KeyAuth | ConnectionStringAuth)
    try:
        found = CosmosStateSettings(
            endpoint=endpoint or settings.endpoint,
            auth=KeyAuth(key=SecretStr(key)) if key else DefaultAuth() if keyed else settings.auth,
        )
        account_keys(found)
    except (SettingsError, ValueError):
        # Neither the error's text nor its chain may go on: the one names other variables, the other may quote the key.
        pass
    else:
        return found
    raise CommandError(
        f"--from-endpoint or {SOURCE_KEY} is wrong: the one takes an https:// account endpoint or `embedded:PATH`, the "
        "other an account key, as `az cosmosdb keys list` prints it",
        ExitCode.USAGE,
    )


def _show(kind: str, request: Request, tally: Tally) -> None:
    heading = "would write" if request.dry_run else "written"
    if request.tenant is None and tally.tenants:
        show(_by_tenant(tally, heading))
    counts = f"{tally.written:,} {heading}, {tally.already_there:,} there already, {len(tally.failures):,} failed"
    say(f"{counted(tally.found, _NOUNS[kind])} in {request.source}: {counts}")


def _by_tenant(tally: Tally, heading: str) -> list[Text]:
    columns = [Column("tenant", style="cyan"), *(Column(name, right=True) for name in (heading, "there", "failed"))]
    rows = [
        [tenant, *(f"{number:,}" for number in (counts.written, counts.already_there, counts.failed))]
        for tenant, counts in sorted(tally.tenants.items())
    ]
    return layout(columns, rows, width())


def _failed(failures: list[Failure]) -> Iterator[str]:
    """Yield lines about what failed: each reason once, with the first of the items that it is the reason for."""
    yield f"{counted(len(failures), 'item')} failed, of which the source still has all:"
    by_reason: dict[str, list[str]] = {}
    for one in failures:
        by_reason.setdefault(one.reason, []).append(one.item_id)
    for reason, ids in by_reason.items():
        more = f" and {len(ids) - _IDS_SHOWN:,} more" if len(ids) > _IDS_SHOWN else ""
        yield f"  {reason}"
        yield f"    {', '.join(map(printable, ids[:_IDS_SHOWN]))}{more}"
    newest = sum(one.newest for one in failures)
    if newest:
        yield f"{newest:,} of them would be the newest: without it, work would go on from something older"


def _document(kind: str, request: Request, tally: Tally) -> dict[str, Any]:
    return {
        "kind": kind,
        "source": request.source,
        "scope": request.scope,
        "dry_run": request.dry_run,
        "found": tally.found,
        "written": tally.written,
        "already_there": tally.already_there,
        "failed": len(tally.failures),
        "tenants": [
            {
                "tenant_id": tenant_id,
                "written": counts.written,
                "already_there": counts.already_there,
                "failed": counts.failed,
            }
            for tenant_id, counts in sorted(tally.tenants.items())
        ],
        "failures": [
            {
                "id": one.item_id,
                "place": one.place,
                "tenant_id": one.tenant_id,
                "reason": one.reason,
                "newest": one.newest,
            }
            for one in tally.failures
        ],
    }
