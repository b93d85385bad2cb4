"""Migrating what the framework's ``CosmosCheckpointStorage`` has really written, disturbed in every way."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from agent_framework import WorkflowCheckpoint
from azure.core.exceptions import ServiceRequestError

from cosmos_workflow_state import CosmosStateFactory, TenantCheckpointStorage
from cosmos_workflow_state.testing._values import VALUES, Unlisted, same
from support.migrating import CHECKPOINTS, Account, Requests, counts
from support.states import WORKFLOW, Unregistered, chain, checkpoint
from support.terminals import on_terminal, without_escapes

MIGRATE = ("migrate", "checkpoints", "--from", CHECKPOINTS)
CONTOSO = (*MIGRATE, "--tenant", "contoso")
BY_FIELD = (*MIGRATE, "--tenant-from-field", "metadata.tenant")
OURS = "workflow-state/checkpoints"

# What the service has no numbers for; the framework's storage cannot write them to it.
STORABLE = {name: value for name, value in VALUES.items() if name != "floats-that-are-not-finite"}


@pytest.fixture
def account(tmp_path: Path) -> Account:
    """Return a state file of the test's own."""
    return Account(tmp_path)


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> Requests:
    """Return what counts requests from now on."""
    return Requests(monkeypatch)


def reasons(document: dict[str, Any]) -> dict[str, str]:
    """Return why items failed, by the id of their checkpoint."""
    return {one["id"].removeprefix(f"{WORKFLOW}_"): one["reason"] for one in document["failures"]}


def ours(account: Account, workflow: str = WORKFLOW, *, tenant: str = "contoso") -> list[WorkflowCheckpoint]:
    """Return what is listed of a workflow after a migration."""

    async def listed(factory: CosmosStateFactory) -> list[WorkflowCheckpoint]:
        return await factory.for_tenant(tenant).checkpoints.list_checkpoints(workflow_name=workflow)

    found: list[WorkflowCheckpoint] = account.in_ours(listed)
    return found


def theirs(account: Account, workflow: str = WORKFLOW) -> list[WorkflowCheckpoint]:
    """Return what the framework's storage lists."""
    found: list[WorkflowCheckpoint] = account.in_framework(
        lambda storage: storage.list_checkpoints(workflow_name=workflow)
    )
    return found


def ids(checkpoints: list[WorkflowCheckpoint]) -> list[str]:
    """Return the ids of checkpoints."""
    return [one.checkpoint_id for one in checkpoints]


def test_every_value_comes_back_as_the_framework_reads_it(account: Account) -> None:
    """All that the framework's storage can hold is the same afterwards, in every part and in the same order."""
    account.save(checkpoint(name, state={"value": value}) for name, value in STORABLE.items())

    assert counts(account.answer(*CONTOSO)) == (len(STORABLE), len(STORABLE), 0, 0)
    assert same(ours(account), theirs(account))
    assert len(ours(account)) == len(STORABLE)


def test_order_latest_and_lineage_stay(account: Account) -> None:
    """Lists, the latest and parents are those of the framework's storage, for every workflow; forks included."""
    fork = checkpoint("cp-fork", previous_checkpoint_id="cp-001", timestamp="2026-11-29T10:00:30+00:00")
    account.save([*reversed(chain(10)), fork, *chain(3, workflow='orders: "é" 1')])
    account.run(*CONTOSO)

    async def look(factory: CosmosStateFactory) -> tuple[list[str], Any, list[str], int]:
        storage: TenantCheckpointStorage = factory.for_tenant("contoso").checkpoints.for_workflow(WORKFLOW)
        lineage = [one.checkpoint_id for one in await storage.lineage("cp-009")]
        children = len(await storage.list_children("cp-001"))
        return (
            await storage.list_checkpoint_ids(workflow_name=WORKFLOW),
            await storage.get_latest(workflow_name=WORKFLOW),
            lineage,
            children,
        )

    listed, latest, lineage, children = account.in_ours(look)
    assert listed == account.in_framework(lambda storage: storage.list_checkpoint_ids(workflow_name=WORKFLOW))
    assert latest == account.in_framework(lambda storage: storage.get_latest(workflow_name=WORKFLOW))
    assert (lineage, children) == (ids(chain(10)), 2)
    assert ids(ours(account, 'orders: "é" 1')) == ids(chain(3))


@pytest.mark.parametrize("behind", [0, 1], ids=["same-time", "slower-clock"])
def test_a_child_is_after_its_parent(account: Account, behind: int) -> None:
    """Where the framework's storage would resume the parent, because of equal or wrong clocks, ours does not."""
    parent = checkpoint("b-parent", timestamp="2026-11-29T10:00:05+00:00")
    child = checkpoint("a-child", previous_checkpoint_id="b-parent", timestamp=f"2026-11-29T10:00:0{5 - behind}+00:00")
    account.save([child, parent])
    account.run(*CONTOSO)

    assert ids(ours(account)) == ["b-parent", "a-child"]


def test_a_child_of_an_earlier_run_is_after_its_parent(account: Account) -> None:
    """The time of a parent is known also when another process has migrated it."""
    account.save([checkpoint("parent", timestamp="2026-11-29T10:00:05+00:00")])
    account.run(*CONTOSO)
    account.save([checkpoint("child", previous_checkpoint_id="parent", timestamp="2026-11-29T10:00:04+00:00")])
    account.run(*CONTOSO)

    assert ids(ours(account)) == ["parent", "child"]


def test_a_lineage_in_a_circle_ends(account: Account) -> None:
    """Checkpoints that are each other's parents are migrated like others."""
    account.save([checkpoint("a", previous_checkpoint_id="b"), checkpoint("b", previous_checkpoint_id="a")])

    assert counts(account.answer(*CONTOSO)) == (2, 2, 0, 0)


def test_the_source_is_only_read(account: Account) -> None:
    """Not an ETag of the source changes, nor a container beside ours appears."""
    account.save(chain(5))
    before = account.items(CHECKPOINTS)
    account.run(*CONTOSO)

    assert account.items(CHECKPOINTS) == before
    assert account.containers() == {CHECKPOINTS, OURS}


def test_a_repeat_is_cheap_and_writes_nothing(account: Account, requests: Requests) -> None:
    """What is there is known by its header; of a workflow only what was written last is read and compared again."""
    account.save(chain(59))
    account.run(*CONTOSO)
    requests.clock.offset = 10
    account.save(chain(60))
    account.run(*CONTOSO)
    before = account.items(OURS)
    requests.sent.clear()

    assert counts(account.answer(*CONTOSO)) == (60, 0, 60, 0)
    assert len(requests.sent) < 20
    assert requests.written == []
    assert account.items(OURS) == before


def test_new_checkpoints_follow(account: Account) -> None:
    """What the application has added to the source since is all that a second run writes."""
    account.save(chain(4))
    account.run(*CONTOSO)
    account.save(chain(6))

    assert counts(account.answer(*CONTOSO)) == (6, 2, 4, 0)
    assert same(ours(account), theirs(account))


def test_killed_again_and_again(account: Account) -> None:
    """Killed at some request, before and after the engine has done it, the next run goes on; nothing is missing."""
    account.save([*chain(8), *chain(8, workflow="orders")])
    ends: list[int] = []
    left: list[int] = []
    for number in count():
        ends.append(account.killed(*CONTOSO, dies_at=29 + 3 * number, after=number % 2 == 1))
        left.append(len(ours(account)) + len(ours(account, "orders")))
        if ends[-1] == 0:
            break

    assert len(ends) > 3
    assert left == sorted(left)
    assert any(0 < there < 16 for there in left)
    assert counts(account.answer(*CONTOSO)) == (16, 0, 16, 0)
    assert same(ours(account), theirs(account))
    assert same(ours(account, "orders"), theirs(account, "orders"))


def test_two_at_once_are_harmless(account: Account) -> None:
    """Two processes that migrate the same end well, and everything is there once and in order."""
    account.save([*chain(20), *chain(20, workflow="orders")])
    processes = [account.started(*CONTOSO) for _ in range(2)]
    documents = [json.loads(process.communicate()[0]) for process in processes]

    assert [process.returncode for process in processes] == [0, 0]
    assert [document["failed"] for document in documents] == [0, 0]
    assert counts(account.answer(*CONTOSO)) == (40, 0, 40, 0)
    assert same(ours(account), theirs(account))
    assert len(ours(account)) == 20


def test_each_item_names_its_tenant(account: Account) -> None:
    """By a field; an item without it, or with what is no tenant id, goes nowhere and is reported with its id."""
    tenants: list[Any] = ["contoso", "fabrikam", "contoso", None, "no tenant!", ["contoso"], {"id": "contoso"}]
    account.save(
        replace(one, metadata={} if tenant is None else {"tenant": tenant})
        for one, tenant in zip(chain(7), tenants, strict=True)
    )
    code, output, complaints = account.run(*BY_FIELD)
    document = account.answer(*BY_FIELD)

    assert code == 1
    assert re.findall(r"^(\w+) +(\d) +(\d) +(\d)$", output, re.MULTILINE) == [
        ("contoso", "2", "0", "0"),
        ("fabrikam", "1", "0", "0"),
    ]
    assert "7 checkpoints in agent-db/checkpoints: 3 written, 0 there already, 4 failed" in output
    assert "4 items failed, of which the source still has all:" in complaints
    assert "    workflow invoice-approval: invoice-approval_cp-003\n" in complaints
    assert counts(document) == (7, 0, 3, 4)
    assert document["tenants"][0] == {"tenant_id": "contoso", "written": 0, "already_there": 2, "failed": 0}
    assert reasons(document)["cp-003"] == "it has no field metadata.tenant, which was to name its tenant"
    assert "must match" in reasons(document)["cp-004"]
    assert reasons(document)["cp-005"] == "tenant_id must be a str, not list"
    assert reasons(document)["cp-006"] == "tenant_id must be a str, not dict"
    assert ids(ours(account)) == ["cp-000", "cp-002"]
    assert ids(ours(account, tenant="fabrikam")) == ["cp-001"]


def test_a_field_may_have_any_name(account: Account) -> None:
    """Names are taken as they are, quotes and all; what is no object on the way has no such field."""
    name = 'té"nant\\ OR 1=1 --'
    metadata: list[dict[str, Any]] = [{"a": {name: "contoso"}}, {"a": "contoso"}, {"a": [1]}]
    account.save(replace(one, metadata=held) for one, held in zip(chain(3), metadata, strict=True))

    assert counts(account.answer(*MIGRATE, "--tenant-from-field", f"metadata.a.{name}")) == (3, 1, 0, 2)
    assert ids(ours(account)) == ["cp-000"]


def test_a_scope_can_be_given(account: Account) -> None:
    """Checkpoints go into a scope of the tenant, and not beside it."""
    account.save(chain(2))
    document = account.answer(*CONTOSO, "--scope", "imported")

    async def listed(factory: CosmosStateFactory) -> list[str]:
        storage = factory.for_tenant("contoso").checkpoints.scoped("imported")
        return await storage.list_checkpoint_ids(workflow_name=WORKFLOW)

    assert (document["scope"], document["written"]) == ("imported", 2)
    assert account.in_ours(listed) == ["cp-000", "cp-001"]
    assert ours(account) == []


def test_what_is_refused_is_reported_and_can_follow(account: Account) -> None:
    """Types that are not allowed are named, for each item; once they are allowed a second run brings those, too."""
    account.save(chain(3, state={"plain": 1}))
    account.save([checkpoint("cp-typed", timestamp="2026-11-29T11:00:00+00:00")])
    allowed = account.environment.pop("COSMOS_WORKFLOW_STATE_ALLOWED_CHECKPOINT_TYPES")
    code, _, complaints = account.run(*CONTOSO)
    document = account.answer(*CONTOSO)
    account.environment["COSMOS_WORKFLOW_STATE_ALLOWED_CHECKPOINT_TYPES"] = allowed

    assert code == 1
    assert "support.states:Invoice" in reasons(document)["cp-typed"]
    assert [one["newest"] for one in document["failures"]] == [True]
    assert "1 of them would be the newest: without it, work" in complaints
    assert counts(document) == (4, 0, 3, 1)
    assert counts(account.answer(*CONTOSO)) == (4, 1, 3, 0)
    assert ids(ours(account))[-1] == "cp-typed"


def test_all_refused_types_are_named_at_once(account: Account) -> None:
    """A checkpoint with several types that are not allowed names all of them, and nothing of their content."""
    account.save([checkpoint("cp", state={"a": Unlisted(), "b": [Unregistered("secret")], "c": (1,)})])
    [failure] = account.answer(*CONTOSO)["failures"]

    assert "testing._values:Unlisted, support.states:Unregistered" in failure["reason"]
    assert "list them in COSMOS_WORKFLOW_STATE_ALLOWED_CHECKPOINT_TYPES" in failure["reason"]
    assert "register_checkpoint_type" not in failure["reason"]
    assert "secret" not in failure["reason"]
    assert (failure["place"], failure["tenant_id"]) == (WORKFLOW, "contoso")


def damaged(item: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Return an item that the framework's storage could not read."""
    return {**item, **fields}


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"checkpoint_id": 7}, "it is no checkpoint: it has no str checkpoint_id"),
        ({"previous_checkpoint_id": 7}, "it is no checkpoint: it has no str previous_checkpoint_id"),
        ({"iteration_count": True}, "it is no checkpoint: it has no int iteration_count"),
        ({"timestamp": "yesterday"}, "timestamp must be an ISO 8601 date and time"),
        ({"added": 1}, "its fields are not those of a checkpoint of this version of the framework"),
        ({"state": {"a": {"__pickled__": "%", "__type__": "builtins:tuple"}}}, "a pickled value in it is no base64"),
        ({"state": {"a": {"__pickled__": 7, "__type__": "builtins:tuple"}}}, "a pickled value in it is no base64"),
        ({"state": {"a": {"__pickled__": "é", "__type__": "builtins:tuple"}}}, "a pickled value in it is no base64"),
        ({"state": {"a": {"__pickled__": "gARLAS4=", "__type__": "a:B"}}}, "do not come back from their pickle"),
        ({"checkpoint_id": "a\0b"}, "checkpoint_id must not contain NUL"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
@pytest.mark.parametrize("dry", [(), ("--dry-run",)], ids=["written", "dry"])
def test_what_cannot_be_read_is_reported(
    account: Account, fields: dict[str, Any], reason: str, dry: tuple[str, ...]
) -> None:
    """Damaged and foreign items are reported one by one, in a dry run as well; the others are migrated."""
    account.save(chain(3))
    account.change(CHECKPOINTS, damaged(account.items(CHECKPOINTS)[1], **fields))
    document = account.answer(*CONTOSO, *dry)

    assert counts(document) == (3, 2, 0, 1)
    assert reason in reasons(document)["cp-001"]


def test_items_that_are_no_checkpoints_at_all(account: Account) -> None:
    """Whatever else lies in the container is reported as well, also without a partition key."""
    account.save(chain(1))
    account.change(CHECKPOINTS, {"id": "stranger"})
    account.change(CHECKPOINTS, {"id": "number", "workflow_name": 7})

    assert reasons(account.answer(*CONTOSO)) == {
        "stranger": "it is no checkpoint: it has no workflow_name",
        "number": "workflow_name must be a str, not int",
    }


def test_another_checkpoint_of_the_same_id_is_left(account: Account) -> None:
    """What is there and is not the source's is reported and not touched."""
    account.save(chain(2))
    other = checkpoint("cp-001", state={"mine": True}, iteration_count=9)
    account.in_ours(lambda factory: factory.for_tenant("contoso").checkpoints.save(other))

    document = account.answer(*CONTOSO)
    assert counts(document) == (2, 1, 0, 1)
    assert reasons(document) == {"cp-001": "another checkpoint of this id is there already, and was left as it is"}
    assert ours(account)[-1].state == {"mine": True}


def test_what_differs_ends_the_work_on_its_workflow(account: Account) -> None:
    """What was written last and is not what the source has is reported in every run, and nothing is put behind it."""
    account.save([*chain(2), *chain(2, workflow="orders")])
    account.run(*CONTOSO)
    changed = replace(chain(2)[1], state={"changed": True})
    account.in_ours(lambda factory: factory.for_tenant("contoso").checkpoints.save(changed))
    account.save([*chain(4), *chain(4, workflow="orders")])

    for _ in range(2):
        document = account.answer(*CONTOSO)
        assert reasons(document) == {
            "cp-001": "what is there now is not what the source has",
            "cp-002": "not tried, because invoice-approval_cp-001 of the same workflow has failed so",
            "cp-003": "not tried, because invoice-approval_cp-001 of the same workflow has failed so",
        }
    assert len(ours(account)) == 2
    assert same(ours(account, "orders"), theirs(account, "orders"))


def test_what_cannot_be_read_back_is_reported(account: Account) -> None:
    """A copy that was damaged is no copy."""
    account.save(chain(1))
    account.run(*CONTOSO)
    [item] = [item for item in account.items(OURS) if item["type"] == "checkpoint"]
    account.change(OURS, {**item, "payload": {**item["payload"], "data": "AAAA"}})

    assert "what is there now cannot be read back: " in reasons(account.answer(*CONTOSO))["cp-000"]


def test_a_workflow_that_cannot_be_listed_fails_as_a_whole(account: Account) -> None:
    """Where ours cannot say what is there, nothing is written; other workflows go on."""
    account.save([*chain(2), *chain(1, workflow="orders")])
    account.run(*CONTOSO)
    item = next(item for item in account.items(OURS) if item["workflow_name"] == WORKFLOW)
    account.change(OURS, {**item, "sort_key": f"{item['sort_key']}x"})
    document = account.answer(*CONTOSO)

    assert counts(document) == (3, 0, 1, 2)
    assert set(reasons(document).values()) == {"the sort key of the item is malformed"}


def test_what_is_deleted_in_the_meantime_is_reported(account: Account, requests: Requests) -> None:
    """An item that was listed and is no longer there when its turn comes is neither lost nor made up."""
    account.save(chain(2))

    async def delete(body: str) -> None:
        if "c.id = @id" in body and "cp-000" in body:
            requests.before = None
            await account.delete(CHECKPOINTS, f"{WORKFLOW}_cp-000", WORKFLOW)

    requests.before = delete
    assert reasons(account.answer(*CONTOSO)) == {"cp-000": "it was deleted from the source in the meantime"}
    assert ids(ours(account)) == ["cp-001"]


def test_a_dry_run_writes_nothing(account: Account) -> None:
    """Not even the container; it counts what would be written, failed ones included, and what is there."""
    account.save(chain(3))
    code, output, _ = account.run(*CONTOSO, "--dry-run")
    assert (code, account.containers()) == (0, {CHECKPOINTS})
    assert output == "3 checkpoints in agent-db/checkpoints: 3 would write, 0 there already, 0 failed\n"

    account.run(*CONTOSO)
    before = account.items(OURS)
    account.save(chain(5))
    assert counts(account.answer(*CONTOSO, "--dry-run")) == (5, 2, 3, 0)
    assert account.items(OURS) == before


@pytest.mark.parametrize("dry", [(), ("--dry-run",)], ids=["written", "dry"])
def test_what_is_too_large_is_reported(account: Account, dry: tuple[str, ...]) -> None:
    """A limit of ours holds for what is migrated, too."""
    account.environment["COSMOS_WORKFLOW_STATE_MAX_PAYLOAD_BYTES"] = "2000"
    account.save([checkpoint("small"), checkpoint("large", state={"text": "x" * 3000})])
    document = account.answer(*CONTOSO, *dry)

    assert counts(document) == (2, 1, 0, 1)
    assert "the limit is 2000" in reasons(document)["large"]


def test_when_the_service_fails_the_same_command_goes_on(account: Account, requests: Requests) -> None:
    """Exit code 5, no result, and a word about how far it is."""
    account.save(chain(8))
    left = iter(range(30))

    async def fail(_body: str) -> None:
        if next(left, None) is None:
            raise ServiceRequestError("dropped")

    requests.before = fail
    code, output, complaints = account.run(*CONTOSO, "--json")
    requests.before = None
    error = json.loads(complaints)["error"]

    assert (code, output, error["kind"]) == (5, "", "try_again")
    assert re.search(r"^the service could not be reached.*\n\d of 8 are written; ", error["message"])
    assert counts(account.answer(*CONTOSO))[3] == 0
    assert same(ours(account), theirs(account))


def test_progress_on_a_terminal(account: Account) -> None:
    """A bar while it works, and the result when it is done."""
    account.save(chain(150))
    code, shown = on_terminal(*CONTOSO, columns=80, environment=account.environment)

    assert code == 0
    assert "migrating checkpoints" in shown
    assert without_escapes(shown).splitlines()[-1].endswith("150 written, 0 there already, 0 failed")
