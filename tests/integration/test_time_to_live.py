"""How long a checkpoint lives: the setting, and what a storage says in its place."""

from __future__ import annotations

from typing import Any

import pytest

from cosmos_workflow_state import CosmosStateFactory, CosmosStateSettings, errors
from support.items import stored_items
from support.states import checkpoint
from support.targets import factory_of


async def test_the_time_to_live_of_what_is_saved(file_settings: CosmosStateSettings) -> None:
    """Demands 7 and 8: the setting is the default, a storage overrides it, and never is a field left out."""
    settings = file_settings.model_copy(update={"checkpoint_ttl": 7200})
    async with factory_of(settings) as factory:
        storage = factory.for_tenant("contoso").checkpoints
        await storage.save(checkpoint("cp-setting"))
        await storage.with_ttl(2**31 - 1).save(checkpoint("cp-longest"))
        await storage.with_ttl(None).save(checkpoint("cp-never"))
    async with factory_of(file_settings) as factory:
        await factory.for_tenant("contoso").checkpoints.save(checkpoint("cp-default"))

    async with stored_items(settings) as items:
        found = {name: await items.read("contoso", f"cp-{name}") for name in ("setting", "longest", "never", "default")}
    assert found["setting"]["ttl"] == 7200
    assert found["longest"]["ttl"] == 2**31 - 1
    assert "ttl" not in found["never"]
    assert "ttl" not in found["default"]


async def test_narrowing_keeps_the_time_to_live(factory: CosmosStateFactory) -> None:
    """Every storage that is derived from one with a time to live has it too, until it is given another."""
    storage = factory.for_tenant("contoso").checkpoints.with_ttl(60)
    for derived in (storage.scoped("s-1"), storage.for_workflow("invoices"), storage.scoped("s-1").for_workflow("w")):
        assert derived._view.ttl == 60
    narrowed = storage.scoped("s-1").for_workflow("w").with_ttl(None)
    assert (narrowed.scope, narrowed._view.workflow_name, narrowed._view.ttl) == ("s-1", "w", None)


@pytest.mark.parametrize("seconds", [0, -1, 2**31, True, 1.0, "60", float("nan")], ids=repr)
async def test_refused_times_to_live(factory: CosmosStateFactory, seconds: Any) -> None:
    """Demand 8: what the service would refuse, or take for something else, is refused before anything is saved."""
    with pytest.raises(errors.InvalidArgumentError, match="seconds must be None or an int from 1 to 2147483647"):
        factory.for_tenant("contoso").checkpoints.with_ttl(seconds)
