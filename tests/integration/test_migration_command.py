"""The command ``migrate``: where it reads from, with which key, and how it says no."""

from __future__ import annotations

import base64
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from agent_framework import Message
from azure.cosmos.exceptions import CosmosHttpResponseError

from cosmos_workflow_state import CosmosStateSettings
from cosmos_workflow_state._migration._job import Assignment
from cosmos_workflow_state.emulator import CosmosEmulator
from cosmos_workflow_state.errors import InvalidArgumentError
from support.migrating import CHECKPOINTS, HISTORY, Account, Requests, counts
from support.states import chain

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "migrate.md"
CONTOSO = ("--tenant", "contoso")
MIGRATE = ("migrate", "checkpoints", "--from", CHECKPOINTS)
SOURCE_KEY = "COSMOS_MIGRATE_SOURCE_KEY"
OTHER_KEY = base64.b64encode(b"another").decode()


@pytest.fixture
def account(tmp_path: Path) -> Account:
    """Return a state file of the test's own."""
    return Account(tmp_path)


@pytest.fixture
def other(tmp_path: Path) -> Account:
    """Return a second one, with three checkpoints of the framework's storage."""
    directory = tmp_path / "other"
    directory.mkdir()
    made = Account(directory)
    made.save(chain(3))
    return made


@pytest.fixture
def emulator() -> Iterator[CosmosEmulator]:
    """Yield an emulator that listens."""
    with CosmosEmulator() as running:
        yield running


def listening(emulator: CosmosEmulator) -> Account:
    """Return the emulator as an account, with three checkpoints of the framework's storage."""
    made = Account.at(emulator.endpoint, emulator.key)
    made.save(chain(3))
    return made


@pytest.mark.parametrize(
    "arguments",
    [
        ("--from", CHECKPOINTS),
        ("--from", CHECKPOINTS, *CONTOSO, "--tenant-from-field", "metadata.tenant"),
        CONTOSO,
        ("--from", "checkpoints", *CONTOSO),
        ("--from", "agent-db/", *CONTOSO),
        ("--from", "a/b/c", *CONTOSO),
        ("--from", CHECKPOINTS, "--tenant", "no tenant!"),
        ("--from", CHECKPOINTS, "--tenant-from-field", "metadata..tenant"),
        ("--from", CHECKPOINTS, *CONTOSO, "--from-endpoint", "ftp://secret"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("kind", ["checkpoints", "history"])
def test_wrong_usage(account: Account, kind: str, arguments: tuple[str, ...]) -> None:
    """Exit code 2 and one message, before anything is asked."""
    code, output, complaints = account.run("migrate", kind, *arguments)

    assert (code, output) == (2, "")
    assert complaints
    assert "secret" not in complaints
    assert not Path(account.endpoint.removeprefix("embedded:")).exists()


def test_an_assignment_is_to_one_tenant_or_by_a_field() -> None:
    """Neither and both are refused."""
    settings = CosmosStateSettings(endpoint="embedded:", _env_file=None)
    for tenant, field in ((None, None), ("contoso", "metadata.tenant")):
        with pytest.raises(InvalidArgumentError, match="either a tenant or the field"):
            Assignment.accept(settings, tenant, field)


def test_a_scope_that_is_refused(account: Account) -> None:
    """A scope is checked like every other."""
    assert account.run(*MIGRATE, *CONTOSO, "--scope", "x" * 1025)[0] == 2


def test_the_source_has_to_be_there(account: Account) -> None:
    """Exit code 6 names the container that is missing; nothing is created."""
    account.create(HISTORY, "/session_id")
    code, output, complaints = account.run(*MIGRATE, *CONTOSO)

    assert (code, output) == (6, "")
    assert "there is no container agent-db/checkpoints in embedded:" in complaints
    assert account.containers() == {HISTORY}


@pytest.mark.parametrize(("kind", "source"), [("checkpoints", HISTORY), ("history", CHECKPOINTS)])
def test_the_source_has_to_be_of_its_kind(account: Account, kind: str, source: str) -> None:
    """A container with another partition key is not read: exit code 6."""
    account.create(CHECKPOINTS, "/workflow_name")
    account.create(HISTORY, "/session_id")
    code, _, complaints = account.run("migrate", kind, "--from", source, *CONTOSO)

    assert code == 6
    assert f"the partition key of container {source} is " in complaints


def test_ours_is_no_source(account: Account) -> None:
    """Our own container cannot be migrated into itself."""
    account.save(chain(1))
    account.run(*MIGRATE, *CONTOSO)
    code, _, complaints = account.run("migrate", "checkpoints", "--from", "workflow-state/checkpoints", *CONTOSO)

    assert code == 6
    assert "is /tenant_id, /workflow_name; what CosmosCheckpointStorage writes has /workflow_name" in complaints


def test_from_another_account(account: Account, other: Account) -> None:
    """The endpoint of the source is an option; here it needs no key."""
    document = account.answer(*MIGRATE, *CONTOSO, "--from-endpoint", other.endpoint)

    assert counts(document) == (3, 3, 0, 0)
    assert other.containers() == {CHECKPOINTS}
    assert account.containers() == {"workflow-state/checkpoints"}


def test_from_an_account_with_a_key(account: Account, emulator: CosmosEmulator) -> None:
    """The key for the source is an environment variable."""
    listening(emulator)
    account.environment[SOURCE_KEY] = emulator.key

    assert counts(account.answer(*MIGRATE, *CONTOSO, "--from-endpoint", emulator.endpoint)) == (3, 3, 0, 0)


def test_a_key_that_the_source_does_not_accept(account: Account, emulator: CosmosEmulator) -> None:
    """Exit code 4 names the variable and the option, and does not repeat the key."""
    listening(emulator)
    account.environment[SOURCE_KEY] = OTHER_KEY
    code, _, complaints = account.run(*MIGRATE, *CONTOSO, "--from-endpoint", emulator.endpoint)

    assert code == 4
    assert OTHER_KEY not in complaints
    assert f"Is {SOURCE_KEY} a key of the account that --from-endpoint names, " in complaints


def test_a_key_that_the_account_of_both_does_not_accept(emulator: CosmosEmulator) -> None:
    """Where the source is in the account of the target, its endpoint is that of the settings, and so is its key."""
    target = listening(emulator)
    target.environment[SOURCE_KEY] = OTHER_KEY
    code, _, complaints = target.run(*MIGRATE, *CONTOSO)
    del target.environment[SOURCE_KEY]
    target.environment["COSMOS_WORKFLOW_STATE_KEY"] = OTHER_KEY
    own = target.run(*MIGRATE, *CONTOSO)

    assert (code, own[0]) == (4, 4)
    assert f"Is {SOURCE_KEY} a key of the account that COSMOS_WORKFLOW_STATE_ENDPOINT names, " in complaints
    assert "Is COSMOS_WORKFLOW_STATE_KEY (AZURE_COSMOS_KEY) a key of the account that COSMOS_WORK" in own[2]


AZURE_CLI = {"COSMOS_WORKFLOW_STATE_AUTH__MODE": "azure_cli", "PATH": ""}


@pytest.mark.parametrize(
    ("endpoint", "environment", "code", "said"),
    [
        ("http://localhost:1/", {}, 2, f"--from-endpoint is plain http, over which no token is sent: .* {SOURCE_KEY},"),
        ("https://127.0.0.1:1/", {SOURCE_KEY: OTHER_KEY}, 5, "is --from-endpoint right"),
        ("https://127.0.0.1:1/", AZURE_CLI, 4, f"Without {SOURCE_KEY} an identity is asked for a token"),
        ("embedded:nodir/x.db", {}, 6, "is --from-endpoint right"),
        ("embedded:.", {}, 6, "the state file that --from-endpoint names cannot be opened"),
    ],
    ids=["plain-http", "nobody-there", "no-token", "no-file", "no-state-file"],
)
def test_the_source_is_blamed_by_its_own_names(
    account: Account, endpoint: str, environment: dict[str, str], code: int, said: str
) -> None:
    """What is wrong with the source is said of the option and the variable that name it, not of the target's."""
    account.environment.update(environment)
    ended, _, complaints = account.run(*MIGRATE, *CONTOSO, "--from-endpoint", endpoint)

    assert ended == code
    assert re.search(said, complaints)
    assert "COSMOS_WORKFLOW_STATE_ENDPOINT" not in complaints
    assert "COSMOS_WORKFLOW_STATE_KEY" not in complaints


@pytest.mark.parametrize("dry", [(), ("--dry-run",)], ids=["written", "dry"])
def test_no_source_is_created(account: Account, tmp_path: Path, dry: tuple[str, ...]) -> None:
    """A state file that is not there is none to read: exit code 6, and neither it nor the target is there then."""
    named = account.run(*MIGRATE, *CONTOSO, *dry, "--from-endpoint", f"embedded:{tmp_path}/typo.db")
    own = account.run(*MIGRATE, *CONTOSO, *dry)

    assert (named[:2], own[:2]) == ((6, ""), (6, ""))
    assert f"there is no state file '{tmp_path}/typo.db' to migrate from; is --from-endpoint right?" in named[2]
    assert "is COSMOS_WORKFLOW_STATE_ENDPOINT right?" in own[2]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["checkpoints", "history"])
def test_a_dry_run_creates_nothing(account: Account, other: Account, tmp_path: Path, kind: str) -> None:
    """Not the state file of the target either; what would be written is counted all the same."""
    other.say("s-1", [Message("user", ["hello"])])
    command = ("migrate", kind, "--from", f"agent-db/{kind}", *CONTOSO, "--from-endpoint", other.endpoint)
    before = sorted(tmp_path.rglob("*"))
    dry = account.answer(*command, "--dry-run")

    assert sorted(tmp_path.rglob("*")) == before
    assert dry["written"] == dry["found"] > 0
    assert account.answer(*command)["written"] == dry["written"]


@pytest.mark.parametrize("kind", ["checkpoints", "history"])
def test_a_dry_run_creates_nothing_in_an_account(emulator: CosmosEmulator, kind: str) -> None:
    """Neither database nor container, where the settings would create them, also when they are looked for."""
    target = listening(emulator)
    target.say("s-1", [Message("user", ["hello"])])
    before = target.containers()
    for _ in range(2):
        document = target.answer("migrate", kind, "--from", f"agent-db/{kind}", *CONTOSO, "--dry-run")
        assert document["written"] == document["found"] > 0
        assert target.containers() == before
    target.environment["COSMOS_WORKFLOW_STATE_DATABASE"] = "agent-db"
    target.environment["COSMOS_WORKFLOW_STATE_CHECKPOINT_CONTAINER"] = "new-checkpoints"
    target.environment["COSMOS_WORKFLOW_STATE_HISTORY_CONTAINER"] = "new-history"
    assert target.run("migrate", kind, "--from", f"agent-db/{kind}", *CONTOSO, "--dry-run")[0] == 0
    assert target.containers() == before


def test_a_dry_run_needs_the_directory(account: Account, other: Account, tmp_path: Path) -> None:
    """Where the target could not be created either, that is what a dry run is for."""
    account.environment["COSMOS_WORKFLOW_STATE_ENDPOINT"] = f"embedded:{tmp_path}/nodir/state.db"
    code, _, complaints = account.run(*MIGRATE, *CONTOSO, "--from-endpoint", other.endpoint, "--dry-run")

    assert code == 6
    assert "the state file that COSMOS_WORKFLOW_STATE_ENDPOINT names cannot be opened" in complaints


def test_nothing_is_migrated_into_memory(account: Account, other: Account) -> None:
    """It would be gone with the command; a dry run may look what there is."""
    account.environment["COSMOS_WORKFLOW_STATE_ENDPOINT"] = "embedded:"
    from_other = (*MIGRATE, *CONTOSO, "--from-endpoint", other.endpoint)
    code, output, complaints = account.run(*from_other)

    assert (code, output) == (6, "")
    assert "the embedded engine in memory ends with the process" in complaints
    assert counts(account.answer(*from_other, "--dry-run")) == (3, 3, 0, 0)


@pytest.mark.parametrize("key", ["not a key", "é", "abc"])
def test_what_is_no_key(account: Account, key: str) -> None:
    """Exit code 2 names the variable and not its value."""
    account.environment[SOURCE_KEY] = key
    code, _, complaints = account.run(*MIGRATE, *CONTOSO)

    assert code == 2
    assert f"--from-endpoint or {SOURCE_KEY} is wrong" in complaints
    assert key not in complaints


def test_the_key_of_the_target_is_for_the_target(emulator: CosmosEmulator, other: Account) -> None:
    """With a key for the target and none for the source, the source is reached by an identity or not at all."""
    target = listening(emulator)
    document = target.answer(*MIGRATE, *CONTOSO, "--from-endpoint", other.endpoint)
    code, _, complaints = target.run(*MIGRATE, *CONTOSO, "--from-endpoint", "http://localhost:1/")

    assert counts(document) == (3, 3, 0, 0)
    assert code == 2
    assert "plain http, over which no token is sent" in complaints


def test_the_second_key_counts(emulator: CosmosEmulator) -> None:
    """Where the first key is not accepted the other one is tried, as everywhere."""
    target = listening(emulator)
    target.environment["COSMOS_WORKFLOW_STATE_AUTH__SECONDARY_KEY"] = emulator.key
    target.environment["COSMOS_WORKFLOW_STATE_KEY"] = OTHER_KEY

    assert counts(target.answer(*MIGRATE, *CONTOSO)) == (3, 3, 0, 0)


def test_a_key_that_is_taken_away(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the service stops accepting the key half-way, the command ends with 4; another key goes on from there."""
    account.save(chain(8))
    requests, left = Requests(monkeypatch), iter(range(3))

    async def refuse(body: str) -> None:
        if "c.id = @id" in body and next(left, None) is None:
            raise CosmosHttpResponseError(status_code=401, message="no")

    requests.before = refuse
    code, _, complaints = account.run(*MIGRATE, *CONTOSO)
    requests.before = None

    assert code == 4
    assert "of 8 are written; the same command goes on from there" in complaints
    assert counts(account.answer(*MIGRATE, *CONTOSO))[3] == 0


def test_a_target_that_is_not_there(emulator: CosmosEmulator) -> None:
    """With provisioning that only verifies, a dry run says so like a run: exit code 6."""
    target = listening(emulator)
    target.environment["COSMOS_WORKFLOW_STATE_PROVISIONING"] = "verify"

    assert [target.run(*MIGRATE, *CONTOSO, *dry)[0] for dry in ((), ("--dry-run",))] == [6, 6]


def test_many_failures_are_told_once(account: Account) -> None:
    """People see each reason once with the first items; programs see all."""
    account.save(chain(8))
    del account.environment["COSMOS_WORKFLOW_STATE_ALLOWED_CHECKPOINT_TYPES"]
    code, _, complaints = account.run(*MIGRATE, *CONTOSO)

    assert code == 1
    assert complaints.count("support.states:Invoice") == 1
    assert "8 of them would be the newest" not in complaints
    assert "invoice-approval_cp-004 and 3 more" in complaints
    assert len(account.answer(*MIGRATE, *CONTOSO)["failures"]) == 8
    assert json.loads(account.run(*MIGRATE, *CONTOSO, "--json")[2])["error"]["kind"] == "failed"


def test_the_page_shows_what_is_printed(account: Account) -> None:
    """Every command of the how-to prints what stands below it, one after another."""
    account.save(chain(12))
    account.say("s-1", [Message(("user", "assistant")[turn % 2], [f"message {turn}"]) for turn in range(6)])
    [block] = re.findall(r"^```console\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    commands = re.findall(r"^\$ cosmos-workflow-state (.+)$", block, re.MULTILINE)
    printed = [f"$ cosmos-workflow-state {command}\n{account.run(*shlex.split(command))[1]}" for command in commands]

    assert "\n".join(printed) == block
