"""What a process remembers of checkpoints: hints only, bounded, each under its whole identity."""

from __future__ import annotations

import pytest

from cosmos_workflow_state import _lineage
from cosmos_workflow_state._identity import Scope, TenantId
from cosmos_workflow_state._lineage import LineageMemory
from cosmos_workflow_state._records import CheckpointKey

T1, T10 = TenantId("t1"), TenantId("t10")
UNNAMED, SESSION = Scope(""), Scope("session-42")


def key(tenant: TenantId = T1, scope: Scope = UNNAMED, workflow: str = "w", checkpoint_id: str = "c") -> CheckpointKey:
    """Return a whole identity."""
    return CheckpointKey(tenant, scope, workflow, checkpoint_id)


def test_nothing_is_known_at_first() -> None:
    """A new process has no hints."""
    memory = LineageMemory()
    assert memory.time_of(key()) is None
    assert memory.workflow_of(T1, UNNAMED, "c") is None


def test_time_and_workflow_of_what_was_seen() -> None:
    """What was remembered last is known."""
    memory = LineageMemory()
    memory.remember(key(), 5)
    memory.remember(key(), 7)
    assert memory.time_of(key()) == 7
    assert memory.workflow_of(T1, UNNAMED, "c") == "w"


@pytest.mark.parametrize(
    "other",
    [key(tenant=T10), key(scope=SESSION), key(workflow="v"), key(checkpoint_id="d")],
    ids=["tenant", "scope", "workflow", "id"],
)
def test_every_part_of_the_identity_counts(other: CheckpointKey) -> None:
    """A hint about one checkpoint says nothing about another, however alike."""
    memory = LineageMemory()
    memory.remember(key(), 5)
    assert memory.time_of(other) is None


@pytest.mark.parametrize(
    ("tenant", "scope", "checkpoint_id"), [(T10, UNNAMED, "c"), (T1, SESSION, "c"), (T1, UNNAMED, "d")]
)
def test_workflow_is_known_only_to_its_tenant_and_scope(tenant: TenantId, scope: Scope, checkpoint_id: str) -> None:
    """One tenant's workflow never steers another's load."""
    memory = LineageMemory()
    memory.remember(key(), 5)
    assert memory.workflow_of(tenant, scope, checkpoint_id) is None


def test_an_id_in_several_workflows_gives_no_hint() -> None:
    """Where an id is ambiguous the store must be asked, also after one of the two is seen again."""
    memory = LineageMemory()
    memory.remember(key(workflow="v"), 1)
    memory.remember(key(workflow="w"), 2)
    memory.remember(key(workflow="w"), 3)
    assert memory.workflow_of(T1, UNNAMED, "c") is None
    assert memory.time_of(key(workflow="v")) == 1
    assert memory.time_of(key(workflow="w")) == 3


def test_memory_is_bounded_and_forgets_the_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over the bound what was not seen for longest goes."""
    monkeypatch.setattr(_lineage, "_REMEMBERED", 2)
    memory = LineageMemory()
    for checkpoint_id in ("a", "b", "a", "c"):
        memory.remember(key(checkpoint_id=checkpoint_id), 1)
    known = [checkpoint_id for checkpoint_id in "abc" if memory.workflow_of(T1, UNNAMED, checkpoint_id)]
    assert known == ["a", "c"]
    assert memory.time_of(key(checkpoint_id="b")) is None
