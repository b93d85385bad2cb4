"""Two account keys: when the service no longer accepts the one, the other is tried, once."""

from __future__ import annotations

import asyncio
import base64
import gc
import traceback
from collections.abc import AsyncIterator, MutableMapping
from typing import Any

import pytest

from cosmos_workflow_state import CosmosStateFactory, CosmosStateSettings, errors
from cosmos_workflow_state._definitions import CHECKPOINTS
from cosmos_workflow_state.emulator import CosmosEmulator, Fault
from support.states import ALLOWED_TYPES, WORKFLOW, checkpoint

OTHER = base64.b64encode(b"the other key of the account").decode()
WRONG = base64.b64encode(b"a key of another account").decode()
ROTATED = "credential.key_rotated"


@pytest.fixture
async def emulator() -> AsyncIterator[CosmosEmulator]:
    """Yield an emulator over http."""
    async with CosmosEmulator() as opened:
        yield opened


def regenerate(emulator: CosmosEmulator, key: str = OTHER) -> None:
    """Let the emulator accept another key only, as an account does whose key is regenerated."""
    emulator._authenticator._secret = base64.b64decode(key)


def settings_of(emulator: CosmosEmulator, **auth: str) -> CosmosStateSettings:
    """Return settings with these keys."""
    return emulator.settings(auth=auth, allowed_checkpoint_types=ALLOWED_TYPES)


def rotations(events: list[MutableMapping[str, Any]]) -> list[MutableMapping[str, Any]]:
    """Return the events that tell of a rotation."""
    return [event for event in events if event["event"] == ROTATED]


async def test_a_key_that_is_wrong_from_the_start(
    emulator: CosmosEmulator, events: list[MutableMapping[str, Any]]
) -> None:
    """Opening tries the other key, says so once without showing one, and goes on."""
    async with CosmosStateFactory(settings_of(emulator, key=WRONG, secondary_key=emulator.key)) as factory:
        storage = factory.for_tenant("contoso").checkpoints
        await storage.save(checkpoint("cp-1"))
        assert (await storage.load("cp-1")).checkpoint_id == "cp-1"
    (event,) = rotations(events)
    assert (event["log_level"], event["now_using"]) == ("warning", "secondary")
    assert not any(key in str(events) for key in (WRONG, emulator.key))
    assert [one["event"] for one in events].count("factory.opened") == 1


async def test_fifty_tasks_while_a_key_is_regenerated(
    emulator: CosmosEmulator, events: list[MutableMapping[str, Any]]
) -> None:
    """Each of fifty operations that meet the new key at once succeeds; the key is changed once, nothing stays open."""
    settings = settings_of(emulator, key=emulator.key, secondary_key=OTHER)
    async with CosmosStateFactory(settings) as factory:
        storage = factory.for_tenant("contoso").checkpoints
        await storage.save(checkpoint("cp-before"))
        regenerate(emulator)
        names = [f"cp-{number:02}" for number in range(50)]
        assert await asyncio.gather(*(storage.save(checkpoint(name)) for name in names)) == names
        stored = await storage.list_checkpoint_ids(workflow_name=WORKFLOW)
        assert sorted(stored) == sorted([*names, "cp-before"])
    assert len(rotations(events)) == 1
    del factory, storage
    gc.collect()  # a client that was left open would be a ResourceWarning, which is an error here


async def test_a_long_listing_goes_on_with_the_other_key(emulator: CosmosEmulator) -> None:
    """A page that is refused is asked for again; nothing is lost and nothing comes twice."""
    settings = settings_of(emulator, key=emulator.key, secondary_key=OTHER)
    async with CosmosStateFactory(settings) as factory:
        storage = factory.for_tenant("contoso").checkpoints
        for number in range(3):
            await storage.save(checkpoint(f"cp-{number}"))
        regenerate(emulator)
        assert len(await storage.list_checkpoints(workflow_name=WORKFLOW)) == 3


async def test_neither_key_is_accepted(emulator: CosmosEmulator, events: list[MutableMapping[str, Any]]) -> None:
    """A second refusal is the caller's, at every later operation too; the keys are not tried in turns for ever."""
    settings = settings_of(emulator, key=emulator.key, secondary_key=WRONG)
    async with CosmosStateFactory(settings) as factory:
        storage = factory.for_tenant("contoso").checkpoints
        await storage.save(checkpoint("cp-1"))
        regenerate(emulator)
        for _ in range(3):
            with pytest.raises(errors.AccessDeniedError) as caught:
                await storage.load("cp-1")
            assert caught.value.status_code == 401
            assert "COSMOS_WORKFLOW_STATE_KEY" in caught.value.remedy
        outcomes = await asyncio.gather(*(storage.load("cp-1") for _ in range(20)), return_exceptions=True)
        assert {type(outcome) for outcome in outcomes} == {errors.AccessDeniedError}
    assert rotations(events) == []


async def test_both_keys_are_given_up_in_order(emulator: CosmosEmulator) -> None:
    """The other key, once in use, may be refused like any."""
    settings = settings_of(emulator, key=emulator.key, secondary_key=OTHER)
    async with CosmosStateFactory(settings) as factory:
        storage = factory.for_tenant("contoso").checkpoints
        await storage.save(checkpoint("cp-1"))
        regenerate(emulator)
        await storage.load("cp-1")
        regenerate(emulator, WRONG)
        with pytest.raises(errors.AccessDeniedError):
            await storage.load("cp-1")


@pytest.mark.parametrize("second", [{}, {"secondary_key": WRONG}], ids=["none", "the same"])
async def test_without_another_key(
    emulator: CosmosEmulator, events: list[MutableMapping[str, Any]], second: dict[str, str]
) -> None:
    """There is nothing to try: one refusal, no event of a rotation."""
    async with CosmosStateFactory(settings_of(emulator, key=WRONG, **second)) as factory:
        with pytest.raises(errors.AccessDeniedError):
            await factory.for_tenant("contoso").checkpoints.load("cp-1")
    assert rotations(events) == []


@pytest.mark.parametrize("wrong", [WRONG, "no-base64!"], ids=["of another account", "no base64"])
async def test_keys_are_in_no_variable_of_a_frame(emulator: CosmosEmulator, wrong: str) -> None:
    """Error trackers record the variables of each frame that an error has come through: no key of ours is in one."""
    second = base64.b64encode(b"a second key of another account").decode()
    async with CosmosStateFactory(settings_of(emulator, key=wrong, secondary_key=second)) as factory:
        with pytest.raises(errors.CosmosStateError) as caught:
            await factory.for_tenant("contoso").checkpoints.load("cp-1")
    printed = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    frames = [frame for frame in printed.stack if "cosmos_workflow_state" in frame.filename]
    assert frames
    values = "\n".join(value for frame in frames for value in (frame.locals or {}).values())
    assert wrong not in values
    assert second not in values


async def test_the_other_key_is_still_there_after_an_outage(
    emulator: CosmosEmulator, events: list[MutableMapping[str, Any]]
) -> None:
    """A service that cannot be reached while the key changes has not refused the other key."""
    settings = settings_of(emulator, key=emulator.key, secondary_key=OTHER)
    async with CosmosStateFactory(settings) as factory:
        storage = factory.for_tenant("contoso").checkpoints
        await storage.save(checkpoint("cp-1"))
        regenerate(emulator)
        emulator.faults.add(Fault(resource="account", status=500, times=None))
        with pytest.raises(errors.ServiceUnavailableError):
            await storage.load("cp-1")
        emulator.faults.clear()
        assert (await storage.load("cp-1")).checkpoint_id == "cp-1"
    assert len(rotations(events)) == 1


async def test_the_other_key_is_still_there_after_a_refusal_of_something_else(emulator: CosmosEmulator) -> None:
    """A 403 while the other key opens, as a firewall gives it, has not refused that key: it is tried again."""
    settings = settings_of(emulator, key=emulator.key, secondary_key=OTHER)
    async with CosmosStateFactory(settings) as factory:
        state = factory.for_tenant("contoso")
        await state.checkpoints.save(checkpoint("cp-1"))
        await state.history().count("s-1")
        regenerate(emulator)
        emulator.faults.add(Fault(resource="colls", status=403, times=None))
        with pytest.raises(errors.AccessDeniedError) as caught:
            await state.checkpoints.load("cp-1")
        assert caught.value.status_code == 403
        emulator.faults.clear()
        assert await state.history().count("s-1") == 0
        assert (await state.checkpoints.load("cp-1")).checkpoint_id == "cp-1"


async def test_closing_while_the_key_changes(emulator: CosmosEmulator) -> None:
    """Whoever is refused after the factory was closed is told that it is closed."""
    factory = CosmosStateFactory(settings_of(emulator, key=emulator.key, secondary_key=OTHER))
    container = await factory._connection.container(CHECKPOINTS)
    await factory.close()
    with pytest.raises(errors.FactoryClosedError):
        await factory._connection.replaces(CHECKPOINTS, container)
