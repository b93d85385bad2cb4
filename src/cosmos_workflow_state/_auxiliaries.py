"""Finding the items that serve checkpoints: keyframes, parts and their guards, of a tenant, a workflow or a scope."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass

from . import _queries
from ._documents import read_auxiliary
from ._gateway import Meter
from ._identity import Scope, full_key, tenant_prefix
from ._logging import ITEM_UNREADABLE, emit
from ._records import AnyPlace, Auxiliary, UnreadableError
from ._view import CheckpointView


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of one upload that were found.

    Attributes:
        place: Where they live.
        write_id: Which upload.
        owner: Id of the item that they were written for.
        item_ids: Their ids.
    """

    place: AnyPlace
    write_id: str
    owner: str
    item_ids: tuple[str, ...]


async def auxiliaries(
    view: CheckpointView, kind: str, meter: Meter, *, workflow_name: str | None, scope: Scope | None
) -> AsyncIterator[Auxiliary | None]:
    """Yield the items of one type; None stands for one that cannot be read, or is not what was asked for.

    Args:
        view: Whose.
        kind: The type.
        meter: Counts what it costs.
        workflow_name: In one workflow, None for in all of the tenant's.
        scope: In one scope, None for in all.
    """
    text = _queries.AUXILIARIES if workflow_name is None else _queries.in_one_workflow(_queries.AUXILIARIES)
    text = text if scope is None else _queries.in_one_scope(text)
    parameters = _queries.of_type(kind, view.tenant, workflow_name, scope)
    key = tenant_prefix(view.tenant) if workflow_name is None else full_key(view.tenant, workflow_name)
    async for item in view.backend.gateway.query(text, parameters, key, meter):
        try:
            found = read_auxiliary(item, view.tenant)
        except UnreadableError:
            found = None
        asked = found and workflow_name in {None, found.place.workflow_name} and scope in {None, found.place.scope}
        if not asked:
            emit(view.backend.logger.error, ITEM_UNREADABLE, tenant_id=view.tenant.value, scope=view.scope.value)
        yield found if asked else None


def by_upload(parts: Iterable[Auxiliary]) -> list[Parts]:
    """Return parts together with those of the same upload."""
    found: dict[tuple[AnyPlace, str, str], list[str]] = {}
    for part in parts:
        found.setdefault((part.place, part.write_id, part.owner), []).append(part.item_id)
    return [Parts(*which, tuple(item_ids)) for which, item_ids in found.items()]
