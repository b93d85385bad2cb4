"""``migrate``: from the containers of the framework's own stores into ours."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from pydantic import SecretStr
from rich.text import Text

from cosmos_workflow_state import CosmosStateSettings, TenantHistoryProvider
from cosmos_workflow_state._credentials import account_keys, where_keys_are
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
from cosmos_workflow_state._remedies import ENDPOINT
from cosmos_workflow_state.errors import CosmosStateError, SettingsError
from cosmos_workflow_state.settings import ConnectionStringAuth, DefaultAuth, KeyAuth

from ._log import log_to_standard_error
from ._output import CommandError, ExitCode, complain, printable, say, say_json, warn
from ._screen import progress, show, width
from ._store import explained, finish
from ._views._layout import Column, counted, layout

SOURCE_KEY: Final = "COSMOS_MIGRATE_SOURCE_KEY"
"""Environment variable with the key for the source; a key on the command line would be in everybody's process list."""

FROM_ENDPOINT: Final = "--from-endpoint"

_Migrate = Callable[[Job, Tally], Coroutine[Any, Any, None]]

_SHOWN: Final = 5
"""Ids of a place, places of a reason, sources: people see the first of them, programs all."""
_NOUNS: Final = {"checkpoints": "checkpoint", "history": "message"}
_PLACES: Final = {"checkpoints": "workflow", "history": "session"}
_DEFAULT_SOURCE: Final = TenantHistoryProvider.DEFAULT_SOURCE_ID


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
    _warn_of_sources(tally)
    if not tally.failures:
        return ExitCode.DONE
    complain("\n".join(_failed(kind, request, tally.failures)), ExitCode.FAILED)
    return ExitCode.FAILED


def _job(request: Request) -> Job:
    try:
        settings = CosmosStateSettings()
        database, container = _named(request.source)
        return Job(
            settings=settings,
            origin=_origin(settings, request, database, container),
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


def _origin(settings: CosmosStateSettings, request: Request, database: str, container: str) -> Origin:
    """Return where it comes from; with the very settings of the target when nothing else is asked for."""
    endpoint, key = request.endpoint, os.environ.get(SOURCE_KEY)
    if not endpoint and not key:
        return Origin(settings, database, container, ENDPOINT, where_keys_are(settings))
    named_by = FROM_ENDPOINT if endpoint else ENDPOINT
    return Origin(_source_settings(settings, endpoint, key), database, container, named_by, SOURCE_KEY)


def _source_settings(settings: CosmosStateSettings, endpoint: str | None, key: str | None) -> CosmosStateSettings:
    """Return how the source is reached.

    A key of the target's account opens no other account: without one for the source, that takes an identity.
    """
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
        f"{FROM_ENDPOINT} or {SOURCE_KEY} is wrong: the one takes an https:// account endpoint or `embedded:PATH`, the "
        "other an account key, as `az cosmosdb keys list` prints it",
        ExitCode.USAGE,
    )


def _show(kind: str, request: Request, tally: Tally) -> None:
    heading = "would write" if request.dry_run else "written"
    if request.tenant is None and tally.tenants:
        show(_by_tenant(tally, heading))
    counts = f"{tally.written:,} {heading}, {tally.already_there:,} there already, {len(tally.failures):,} failed"
    say(f"{counted(tally.found, _NOUNS[kind])} in {request.source}: {counts}")
    if tally.sources:
        say(f"{'source' if len(tally.sources) == 1 else 'sources'}: {_some(sorted(tally.sources))}")


def _warn_of_sources(tally: Tally) -> None:
    """Say how histories are found again that are not where an agent looks when it is told nothing."""
    others = sorted(set(tally.sources) - {_DEFAULT_SOURCE})
    if others:
        calls = _some([f"history({source_id!r})" for source_id in others])
        warn(f"history() reads the source {_DEFAULT_SOURCE!r} and no other; what is in the others is read by {calls}")


def _by_tenant(tally: Tally, heading: str) -> list[Text]:
    columns = [Column("tenant", style="cyan"), *(Column(name, right=True) for name in (heading, "there", "failed"))]
    rows = [
        [tenant, *(f"{number:,}" for number in (counts.written, counts.already_there, counts.failed))]
        for tenant, counts in sorted(tally.tenants.items())
    ]
    return layout(columns, rows, width())


def _failed(kind: str, request: Request, failures: list[Failure]) -> Iterator[str]:
    """Yield lines about what failed: each reason once, below it the first of the places and items that it is for."""
    yield f"{counted(len(failures), 'item')} failed, of which the source still has all:"
    by_reason: dict[str, dict[tuple[str, str], list[str]]] = {}
    for one in failures:
        place = (_place_of(kind, request, one), one.remedy)
        by_reason.setdefault(one.reason, {}).setdefault(place, []).append(one.item_id)
    for reason, places in by_reason.items():
        yield f"  {reason}"
        for (named, remedy), ids in islice(places.items(), _SHOWN):
            yield f"    {named}: {_some(ids)}"
            if remedy:
                yield f"      > {printable(remedy)}"
        if len(places) > _SHOWN:
            yield f"    and {counted(len(places) - _SHOWN, f'more {_PLACES[kind]}')}"
    newest = sum(one.newest for one in failures)
    if newest:
        them = "it" if newest == 1 else "them"
        yield f"{newest:,} of them would be the newest: without {them}, work would go on from something older"


def _place_of(kind: str, request: Request, failure: Failure) -> str:
    """Name where something was to go: what the command line does not say already."""
    noun = _PLACES[kind]
    place = f"{noun} {printable(failure.place)}" if failure.place else f"no {noun}"
    source = "" if failure.source_id in {None, _DEFAULT_SOURCE} else f", source {printable(str(failure.source_id))}"
    tenant = f" of tenant {failure.tenant_id}" if request.tenant is None and failure.tenant_id else ""
    return f"{place}{source}{tenant}"


def _some(texts: Sequence[str]) -> str:
    """Return the first of some texts, and how many more there are."""
    more = f" and {len(texts) - _SHOWN:,} more" if len(texts) > _SHOWN else ""
    return f"{', '.join(map(printable, texts[:_SHOWN]))}{more}"


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
        "sources": [
            {"source_id": source_id, "found": number, "is_default": source_id == _DEFAULT_SOURCE}
            for source_id, number in sorted(tally.sources.items())
        ],
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
                "source_id": one.source_id,
                "tenant_id": one.tenant_id,
                "reason": one.reason,
                "remedy": one.remedy,
                "newest": one.newest,
            }
            for one in tally.failures
        ],
    }
