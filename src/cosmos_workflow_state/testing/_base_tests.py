"""Tests of the six methods and of the values that go through them."""

from __future__ import annotations

import copy
import inspect
from typing import Any

import pytest
from agent_framework import CheckpointStorage, WorkflowCheckpointException

from ._capabilities import Capability, covers
from ._claims import Claims
from ._making import WORKFLOW, chain, checkpoint
from ._values import VALUES, same

METHODS = ("save", "load", "list_checkpoints", "delete", "get_latest", "list_checkpoint_ids")
MISSING = ("cp-2", "", "cp", "cp-11", "CP-1", "a/b", "..", "%")


class BaseTests(Claims):
    """The six methods of the framework's protocol do what their docstrings say."""

    @covers(Capability.BASE)
    async def test_a_storage_is_true(self, storage: CheckpointStorage) -> None:
        """The framework takes a storage that is falsy for none, and saves nothing, without a word."""
        assert bool(storage) is True

    @covers(Capability.BASE)
    @pytest.mark.parametrize("name", METHODS)
    async def test_signatures_are_those_of_the_protocol(self, storage: CheckpointStorage, name: str) -> None:
        """Every method is a coroutine function that takes what the protocol's takes."""
        method = getattr(storage, name)
        declared = list(inspect.signature(getattr(CheckpointStorage, name)).parameters.values())[1:]
        parameters = inspect.signature(method).parameters
        assert inspect.iscoroutinefunction(method)
        assert [(one.name, one.kind) for one in declared] == [
            (one.name, one.kind) for one in parameters.values() if one.default is one.empty
        ]

    @covers(Capability.BASE)
    async def test_save_returns_the_id_and_load_the_checkpoint(self, storage: CheckpointStorage) -> None:
        """Every field of a checkpoint comes back."""
        saved = checkpoint(
            "cp-1",
            previous_checkpoint_id="cp-0",
            iteration_count=7,
            metadata={"owner": "contoso", "tags": ["a", None]},
            version="1.0",
        )
        assert await storage.save(saved) == "cp-1"
        assert same(await storage.load("cp-1"), saved)

    @covers(Capability.BASE)
    async def test_a_checkpoint_of_the_framework_s_defaults(self, storage: CheckpointStorage) -> None:
        """One with an id and a timestamp that the framework made."""
        made = chain(1)[0]
        plain = type(made)(workflow_name=WORKFLOW, graph_signature_hash="1")
        await storage.save(plain)
        assert same(await storage.load(plain.checkpoint_id), plain)

    @covers(Capability.BASE)
    @pytest.mark.parametrize("missing", MISSING)
    async def test_load_of_what_is_not_there(self, storage: CheckpointStorage, missing: str) -> None:
        """It raises `WorkflowCheckpointException`, also when other checkpoints are there."""
        await storage.save(checkpoint("cp-1"))
        with pytest.raises(WorkflowCheckpointException):
            await storage.load(missing)

    @covers(Capability.BASE)
    async def test_delete(self, storage: CheckpointStorage) -> None:
        """It says whether there was one, and takes away that one only."""
        for one in chain(3):
            await storage.save(one)
        assert await storage.delete("cp-001") is True
        assert await storage.delete("cp-001") is False
        assert await storage.delete("nothing") is False
        with pytest.raises(WorkflowCheckpointException):
            await storage.load("cp-001")
        assert sorted(await storage.list_checkpoint_ids(workflow_name=WORKFLOW)) == ["cp-000", "cp-002"]

    @covers(Capability.BASE)
    async def test_deleting_the_latest_makes_the_one_before_it_the_latest(self, storage: CheckpointStorage) -> None:
        """Down to the last one; then there is none."""
        made = chain(3)
        for one in made:
            await storage.save(one)
        for one in reversed(made):
            assert await storage.get_latest(workflow_name=WORKFLOW) == one
            assert await storage.delete(one.checkpoint_id) is True
        assert await storage.get_latest(workflow_name=WORKFLOW) is None

    @covers(Capability.BASE)
    async def test_a_workflow_without_checkpoints(self, storage: CheckpointStorage) -> None:
        """None and empty lists, no exception."""
        await storage.save(checkpoint("cp-1", workflow="another"))
        assert await storage.get_latest(workflow_name=WORKFLOW) is None
        assert await storage.list_checkpoints(workflow_name=WORKFLOW) == []
        assert await storage.list_checkpoint_ids(workflow_name=WORKFLOW) == []

    @covers(Capability.BASE)
    async def test_workflows_do_not_mix(self, storage: CheckpointStorage) -> None:
        """Lists and the latest are those of the workflow asked for, by its whole name and in its case."""
        names = ("approval", "approval-2", "Approval", "appr", "approval ")
        made = {name: checkpoint(f"cp-{number}", workflow=name) for number, name in enumerate(names)}
        for one in made.values():
            await storage.save(one)
        for name, one in made.items():
            assert await storage.list_checkpoints(workflow_name=name) == [one]
            assert await storage.list_checkpoint_ids(workflow_name=name) == [one.checkpoint_id]
            assert await storage.get_latest(workflow_name=name) == one

    @covers(Capability.BASE)
    async def test_what_is_saved_is_a_copy(self, storage: CheckpointStorage) -> None:
        """State that goes on changing after a save does not change what was saved."""
        live = checkpoint()
        expected = copy.deepcopy(live)
        await storage.save(live)
        live.state["list"].append(3)
        live.iteration_count = 99
        assert await storage.load("cp-1") == expected

    @covers(Capability.BASE)
    async def test_what_is_read_is_a_copy(self, storage: CheckpointStorage) -> None:
        """Changing what load, list_checkpoints or get_latest return changes nothing that is stored."""
        saved = checkpoint()
        await storage.save(saved)
        latest = await storage.get_latest(workflow_name=WORKFLOW)
        assert latest is not None
        for one in (await storage.load("cp-1"), latest, *await storage.list_checkpoints(workflow_name=WORKFLOW)):
            one.state["list"].append(3)
        assert await storage.load("cp-1") == saved


class ValueTests(Claims):
    """State comes back as it was."""

    @covers(Capability.VALUES)
    @pytest.mark.parametrize("name", VALUES)
    async def test_a_value_comes_back(self, storage: CheckpointStorage, name: str) -> None:
        """In type, in order and in every part, from each of the methods that return a checkpoint."""
        saved = checkpoint(state={"value": VALUES[name]})
        await storage.save(saved)
        [listed] = await storage.list_checkpoints(workflow_name=WORKFLOW)
        for back in (await storage.load("cp-1"), await storage.get_latest(workflow_name=WORKFLOW), listed):
            assert back is not None
            assert same(back.state["value"], VALUES[name])

    @covers(Capability.VALUES)
    async def test_all_values_in_one_checkpoint(self, storage: CheckpointStorage) -> None:
        """In state, in metadata and in pending requests alike."""
        request = VALUES["requests"]
        pending = {request.request_id: request}
        saved = checkpoint(state=dict(VALUES), metadata=dict(VALUES), pending_request_info_events=pending)
        await storage.save(saved)
        assert same(await storage.load("cp-1"), saved)

    @covers(Capability.VALUES)
    @pytest.mark.parametrize(
        "keyed",
        [
            pytest.param({2025: "a", 2026: "b"}, id="int"),
            pytest.param({None: "a", True: "b", 2.5: "c"}, id="none-bool-float"),
            pytest.param({b"a": "a", "a": "b"}, id="bytes"),
        ],
    )
    async def test_keys_of_a_dict_keep_their_kind(self, storage: CheckpointStorage, keyed: dict[Any, Any]) -> None:
        """Keys are not made text: code that looks up ``by_year[2026]`` still finds it after a resume."""
        await storage.save(checkpoint(state={"keyed": keyed}))
        assert same((await storage.load("cp-1")).state["keyed"], keyed)
