"""What is to be migrated, from where, and to which tenant. Pure, but for the settings it carries.

Which tenant an item belongs to is decided here and nowhere else: an item whose tenant is in doubt goes nowhere.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from cosmos_workflow_state._identity import Scope, TenantId, TenantRule
from cosmos_workflow_state.errors import InvalidArgumentError
from cosmos_workflow_state.settings import CosmosStateSettings

TENANT_COLUMN = "tenant_value"
"""What a projection calls the field that names the tenant."""


class UnfitError(Exception):
    """One item cannot be migrated. The message says why, and has nothing of what is in it.

    Attributes:
        remedy: What to do about it, as far as it is about this one; ``""`` where there is nothing to add.
    """

    def __init__(self, message: str, remedy: str = "") -> None:
        """Keep the remedy beside the message."""
        super().__init__(message)
        self.remedy = remedy


class UnequalError(UnfitError):
    """What was written does not come back as what it was in the source, so nothing is written after it."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The container that is read.

    Attributes:
        settings: How to reach its account; the very settings of the target for the same account.
        database: Name of its database.
        container: Its name.
        named_by: What names its endpoint, as a sentence takes it.
        keys: The variables from which its keys come, the same way.
    """

    settings: CosmosStateSettings
    database: str
    container: str
    named_by: str
    keys: str

    def __str__(self) -> str:
        """Name it as on the command line."""
        return f"{self.database}/{self.container}"


@dataclass(frozen=True, slots=True)
class Assignment:
    """Which tenant items go to: always the same, or the one that a field of each item names.

    Attributes:
        tenant: The one tenant; None when a field names it.
        path: The names that lead to the field, from the outside in; empty for the one tenant.
        rule: Which tenant ids are accepted.
    """

    tenant: TenantId | None
    path: tuple[str, ...]
    rule: TenantRule

    @classmethod
    def accept(cls, settings: CosmosStateSettings, tenant: str | None, field: str | None) -> Assignment:
        """Return the assignment to a tenant or, without one, by the field at a dotted path.

        Raises:
            InvalidArgumentError: Neither or both are given, or the path has an empty name in it.
            InvalidIdentifierError: The tenant id is refused.
        """
        rule = TenantRule(settings.tenant_id_pattern, settings.tenant_id_max_length)
        if (tenant is None) == (field is None):
            raise InvalidArgumentError("give either a tenant or the field that names it")
        path = () if field is None else tuple(field.split("."))
        if not all(path):
            raise InvalidArgumentError("the field must be names joined by dots, for example metadata.tenant")
        return cls(None if tenant is None else rule.accept(tenant), path, rule)

    @property
    def only(self) -> str | None:
        """The id of the one tenant; None when a field names it."""
        return None if self.tenant is None else self.tenant.value

    @property
    def column(self) -> str:
        """What a query has to ask for besides, as the end of its list of columns."""
        names = "".join(f"[{json.dumps(name)}]" for name in self.path)
        return f", c{names} AS {TENANT_COLUMN}" if names else ""

    def tenant_of(self, row: Mapping[str, Any]) -> TenantId:
        """Return the tenant of an item, of which a query has returned `column`.

        Raises:
            UnfitError: The item does not name one.
            InvalidIdentifierError: The id that it names is refused.
        """
        if self.tenant is not None:
            return self.tenant
        value: object = row.get(TENANT_COLUMN)
        if value is None:
            raise UnfitError(f"it has no field {self.field}, which was to name its tenant")
        # What is no text is refused with its type, as any other tenant id that is none.
        return self.rule.accept(cast("str", value))

    @property
    def field(self) -> str:
        """The path as it was given."""
        return ".".join(self.path)


def present(row: Mapping[str, Any], name: str, kind: str) -> str:
    """Return what an item has under a name, which is still to be checked.

    Raises:
        UnfitError: It has nothing there, so it is none of its kind.
    """
    if row.get(name) is None:
        raise UnfitError(f"it is no {kind}: it has no {name}")
    # What is no text is refused with its type, as any other id that is none.
    return cast("str", row[name])


@dataclass(frozen=True, slots=True)
class Job:
    """One migration.

    Attributes:
        settings: Where it goes.
        origin: Where it comes from.
        assignment: Whose it becomes.
        scope: Where checkpoints go inside each tenant.
        dry_run: Whether nothing is written.
    """

    settings: CosmosStateSettings
    origin: Origin
    assignment: Assignment
    scope: Scope
    dry_run: bool
