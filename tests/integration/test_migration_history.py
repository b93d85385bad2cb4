"""Migrating what the framework's ``CosmosHistoryProvider`` has really written, disturbed in every way."""

from __future__ import annotations

import base64
import json
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest
from agent_framework import Content, Message
from azure.core.exceptions import ServiceRequestError

from cosmos_workflow_state import CosmosStateFactory
from cosmos_workflow_state._appending import Append
from cosmos_workflow_state._migration._continuing import Continue
from cosmos_workflow_state.testing._values import same
from support.migrating import HISTORY, Account, Requests, counts
from support.migrating_histories import CONTOSO, DEFAULT, OURS, add, numbered, ours, reasons, texts, theirs

GONE_ON = "the history was cleared or has gone on here in the meantime"


@pytest.fixture
def account(tmp_path: Path) -> Account:
    """Return a state file of the test's own."""
    return Account(tmp_path)


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> Requests:
    """Return what counts requests from now on."""
    return Requests(monkeypatch)


def test_every_kind_of_message_comes_back(account: Account) -> None:
    """Contents of all kinds, ids, authors and properties are as the framework's provider reads them, in order."""
    contents = [
        Content.from_text("Grüße \U0001f600"),
        Content.from_function_call("call-1", "book", arguments={"cents": 1250, "nested": [1, None, 2.5]}),
        Content.from_function_result("call-1", result="done"),
        Content.from_data(b"\0\xff" * 50, media_type="application/octet-stream"),
        Content.from_uri("https://example.com/a.png", media_type="image/png"),
    ]
    account.say("s-1", [Message("assistant", [content]) for content in contents])
    account.say("s-1", [Message("user", ["x"], message_id="m-1", author_name="é", additional_properties={"a": [1]})])

    assert counts(account.answer(*CONTOSO)) == (6, 6, 0, 0)
    assert same(ours(account, "s-1"), theirs(account, "s-1"))
    assert len(ours(account, "s-1")) == 6


def test_what_is_said_again_is_not_taken_for_a_replay(account: Account) -> None:
    """Messages that are the same stay as many as they are: one by one, a first one alone, and the beginning again."""
    for text in ("yes", "yes", "no", "yes", "yes", "no"):
        account.say("s-1", [Message("user", [text])])
    account.say("s-2", [Message("user", ["hello"])])
    account.answer(*CONTOSO)
    account.say("s-2", [Message("user", ["hello"]), Message("user", ["hello"])])

    assert counts(account.answer(*CONTOSO)) == (9, 2, 7, 0)
    assert texts(ours(account, "s-1")) == ["yes", "yes", "no", "yes", "yes", "no"]
    assert texts(ours(account, "s-2")) == ["hello"] * 3


def test_sessions_and_sources_stay_apart(account: Account) -> None:
    """Each source of each session is a history of its own, under the same names."""
    account.say("s / 1", numbered(3))
    account.say("s / 1", numbered(2, 10), source_id="notes")
    account.say("s-2", numbered(1, 20))
    account.answer(*CONTOSO)

    assert texts(ours(account, "s / 1")) == texts(numbered(3))
    assert texts(ours(account, "s / 1", source_id="notes")) == texts(numbered(2, 10))
    assert texts(ours(account, "s-2")) == texts(numbered(1, 20))


def test_long_and_large_histories(account: Account) -> None:
    """More messages than an operation takes, and one that needs parts."""
    account.say("s-1", numbered(1100))
    account.say("s-2", [Message("user", [base64.b64encode(Random(7).randbytes(900_000)).decode()])])

    assert counts(account.answer(*CONTOSO)) == (1101, 1101, 0, 0)
    assert same(ours(account, "s-1"), theirs(account, "s-1"))
    assert same(ours(account, "s-2"), theirs(account, "s-2"))
    assert any(item["type"] == "part" for item in account.items(OURS))


def test_the_source_is_only_read(account: Account) -> None:
    """Not an ETag of the source changes, nor a container beside ours appears."""
    account.say("s-1", numbered(3))
    before = account.items(HISTORY)
    account.answer(*CONTOSO)

    assert account.items(HISTORY) == before
    assert account.containers() == {HISTORY, OURS}


def test_a_repeat_is_cheap_and_writes_nothing(account: Account, requests: Requests) -> None:
    """What was written well before the last write takes one request a history: for its last message in the source."""
    for number in range(10):
        account.say(f"s-{number}", numbered(20))
    account.answer(*CONTOSO)
    requests.clock.offset = 200
    account.say("s-last", numbered(2))
    account.answer(*CONTOSO)
    before = account.items(OURS)
    requests.sent.clear()

    assert counts(account.answer(*CONTOSO)) == (202, 0, 202, 0)
    assert sum("OFFSET 0 LIMIT 1" in body for _, body in requests.sent) == 10
    assert sum("ASC" in body for _, body in requests.sent) == 1
    assert requests.written == []
    assert account.items(OURS) == before


def test_what_has_gone_on_here_is_left(account: Account, requests: Requests) -> None:
    """A conversation that was migrated whole and continued here is there; soon after, and later without reading it."""
    account.say("s-1", numbered(4))
    account.say("s-2", numbered(1))
    account.answer(*CONTOSO)
    add(account, "s-1", numbered(2, 50))
    assert counts(account.answer(*CONTOSO)) == (5, 0, 5, 0)

    requests.clock.offset = 200
    add(account, "s-2", numbered(1, 90))
    requests.sent.clear()
    assert counts(account.answer(*CONTOSO)) == (5, 0, 5, 0)
    assert sum("ASC" in body for _, body in requests.sent) == 1
    assert texts(ours(account, "s-1")) == texts([*numbered(4), *numbered(2, 50)])


@pytest.mark.parametrize("later", [0, 200], ids=["soon", "later"])
def test_another_history_is_left_and_reported(account: Account, requests: Requests, later: float) -> None:
    """Whether it has fewer, as many or more messages: what is there and is not the source's stays as it is."""
    for number in (1, 2, 3):
        account.say(f"s-{number}", numbered(2))
        add(account, f"s-{number}", numbered(number, 30))
    requests.clock.offset = later
    account.say("s-9", numbered(1))
    account.answer(*CONTOSO)
    document = account.answer(*CONTOSO)

    assert counts(document) == (7, 0, 1, 6)
    assert reasons(document) == {"another history of this session and source is there, or it has gone on here"}
    assert {one["place"] for one in document["failures"]} == {"s-1", "s-2", "s-3"}
    assert sum(one["newest"] for one in document["failures"]) == 3
    assert [len(ours(account, f"s-{number}")) for number in (1, 2, 3)] == [1, 2, 3]


@pytest.mark.parametrize("later", [0, 200], ids=["soon", "later"])
def test_what_was_cleared_here_does_not_come_back(account: Account, requests: Requests, later: float) -> None:
    """A history that somebody has cleared after the migration stays cleared."""
    account.say("s-1", numbered(2))
    account.say("s-2", numbered(2))
    account.answer(*CONTOSO)
    account.in_ours(lambda factory: factory.for_tenant("contoso").history().clear("s-1"))
    requests.clock.offset = later
    document = account.answer(*CONTOSO)

    assert counts(document) == (4, 0, 2, 2)
    assert reasons(document) == {"the history was cleared here, and was left so"}
    assert "delete_session('s-1')" in document["failures"][0]["remedy"]
    assert ours(account, "s-1") == []


@pytest.mark.parametrize("later", [0, 200], ids=["soon", "later"])
@pytest.mark.parametrize("said", [numbered(1), [*numbered(2, 50), *numbered(1, 2)]], ids=["beginning", "end"])
def test_what_is_said_after_a_clearing_is_no_copy(
    account: Account, requests: Requests, said: list[Message], later: float
) -> None:
    """Where what was said here since begins or ends as the source does, the source still stays away."""
    account.say("s-1", numbered(3))
    account.answer(*CONTOSO)
    account.in_ours(lambda factory: factory.for_tenant("contoso").history().clear("s-1"))
    add(account, "s-1", said)
    requests.clock.offset = later
    account.say("s-2", numbered(1))
    account.answer(*CONTOSO)

    assert reasons(account.answer(*CONTOSO)) == {"the history was cleared here, and was left so"}
    assert texts(ours(account, "s-1")) == texts(said)


def test_new_messages_follow(account: Account, requests: Requests) -> None:
    """What was said in the source since is all that a second run writes, in its place."""
    account.say("s-1", numbered(3))
    account.answer(*CONTOSO)
    requests.clock.offset = 200
    account.say("s-1", numbered(4, 3))

    assert counts(account.answer(*CONTOSO)) == (7, 4, 3, 0)
    assert same(ours(account, "s-1"), theirs(account, "s-1"))


def test_what_expires_here_does_not_count_as_missing(account: Account, requests: Requests) -> None:
    """With a time to live, messages that are gone are not written again as long as newer ones of theirs are there."""
    account.environment["COSMOS_WORKFLOW_STATE_HISTORY_TTL"] = "100"
    account.say("s-1", numbered(3))
    account.answer(*CONTOSO)
    requests.clock.offset = 60
    account.say("s-1", numbered(3, 3))
    assert counts(account.answer(*CONTOSO)) == (6, 3, 3, 0)
    requests.clock.offset = 110

    assert counts(account.answer(*CONTOSO)) == (6, 0, 6, 0)
    assert texts(ours(account, "s-1")) == texts(numbered(3, 3))


def test_killed_again_and_again(account: Account) -> None:
    """Killed at some request, before and after the engine has done it, the next run goes on; nothing is missing."""
    account.say("long", numbered(700))
    for number in range(6):
        account.say(f"s-{number}", numbered(5))
    ends: list[int] = []
    left: list[int] = []
    for number in count():
        ends.append(account.killed(*CONTOSO, dies_at=22 + 4 * number, after=number % 2 == 1))
        there = account.containers() & {OURS} and account.items(OURS)
        left.append(sum(item["type"] == "message" for item in there or []))
        if ends[-1] == 0:
            break

    assert len(ends) > 3
    assert left == sorted(left)
    assert any(0 < there < 730 for there in left)
    assert counts(account.answer(*CONTOSO)) == (730, 0, 730, 0)
    for session in ("long", *(f"s-{number}" for number in range(6))):
        assert same(ours(account, session), theirs(account, session))


def test_two_at_once_are_harmless(account: Account) -> None:
    """Two processes that migrate the same end well, and every message is there once and in order."""
    account.say("long", numbered(300))
    for number in range(8):
        account.say(f"s-{number}", numbered(5))
    processes = [account.started(*CONTOSO) for _ in range(2)]
    documents = [json.loads(process.communicate()[0]) for process in processes]

    assert [process.returncode for process in processes] == [0, 0]
    assert [document["failed"] for document in documents] == [0, 0]
    assert same(ours(account, "long"), theirs(account, "long"))
    assert all(same(ours(account, f"s-{number}"), theirs(account, f"s-{number}")) for number in range(8))


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (numbered(2, 50), GONE_ON),
        (numbered(9, 50), GONE_ON),
        (numbered(2), None),
    ],
    ids=["other-messages", "too-many", "another-migration"],
)
def test_who_writes_between_looking_and_writing(
    account: Account, requests: Requests, other: list[Message], reason: str | None
) -> None:
    """What another migration has added is taken as it is; behind anything else nothing is written."""
    account.say("s-1", numbered(3))
    add(account, "other", numbered(1))

    async def come_first(body: str) -> None:
        if '"operationType"' in body:
            requests.before = None
            async with CosmosStateFactory(account.settings()) as factory:
                await factory.for_tenant("contoso").history().save_messages("s-1", other)

    requests.before = come_first
    document = account.answer(*CONTOSO)

    assert reasons(document) == ({reason} if reason else set())
    assert len(ours(account, "s-1")) == (len(other) if reason else 3)


def test_who_clears_between_looking_and_writing(account: Account, requests: Requests) -> None:
    """What was said and cleared meanwhile ends the work on a history, also where it begins like the source since."""
    account.say("s-1", numbered(3))
    add(account, "other", numbered(1))

    async def come_first(body: str) -> None:
        if '"operationType"' in body:
            requests.before = None
            async with CosmosStateFactory(account.settings()) as factory:
                history = factory.for_tenant("contoso").history()
                await history.save_messages("s-1", numbered(1, 50))
                await history.clear("s-1")
                await history.save_messages("s-1", numbered(1))

    requests.before = come_first
    assert reasons(account.answer(*CONTOSO)) == {GONE_ON}
    assert texts(ours(account, "s-1")) == texts(numbered(1))


def test_appending_is_judged_by_place() -> None:
    """What the migration does in its own way is still what appending asks before each try."""
    assert "_judge" in vars(Append)
    assert "_judge" in vars(Continue)


def test_what_is_not_read_back_is_reported(account: Account, requests: Requests) -> None:
    """A history of which messages are taken away while it is written does not count as written."""
    account.say("s-1", numbered(2))
    requests.sent.clear()

    async def clear(body: str) -> None:
        if "ORDER BY c.sort_key DESC" in body and any("operationType" in sent for sent in requests.written):
            requests.before = None
            async with CosmosStateFactory(account.settings()) as factory:
                await factory.for_tenant("contoso").history().delete_session("s-1")

    requests.before = clear
    document = account.answer(*CONTOSO)

    assert reasons(document) == {"what was written cannot be read back"}


@pytest.mark.parametrize(
    "message",
    ["text", None, {"role": "user", "contents": 7}, {"contents": [{"type": "text"}]}],
    ids=["text", "nothing", "contents", "no-role"],
)
def test_what_the_framework_cannot_read_is_reported(account: Account, message: Any) -> None:
    """A message that the framework's provider would pass over is reported; the others are there, in every run."""
    account.say("s-1", numbered(3))
    [item] = [one for one in account.items(HISTORY) if one["message"]["contents"][0]["text"] == "message 2"]
    account.change(HISTORY, {**item, "message": message})

    for expected in ((3, 2, 0, 1), (3, 0, 2, 1)):
        document = account.answer(*CONTOSO)
        assert counts(document) == expected
        assert reasons(document) == {"its message is not what the framework writes"}
        assert document["failures"][0]["id"] == item["id"]
    assert texts(ours(account, "s-1")) == ["message 0", "message 1"]


def test_the_last_message_may_be_unreadable(account: Account, requests: Requests) -> None:
    """Then a history is not told by it, and is compared as a whole."""
    account.say("s-1", numbered(2))
    account.say("s-2", numbered(1))
    account.answer(*CONTOSO)
    [item] = [one for one in account.items(HISTORY) if one["message"]["contents"][0]["text"] == "message 1"]
    account.change(HISTORY, {**item, "message": 7})
    requests.clock.offset = 200
    account.say("s-2", numbered(1, 1))
    account.answer(*CONTOSO)

    assert counts(account.answer(*CONTOSO)) == (4, 0, 3, 1)


def test_items_that_are_no_messages_at_all(account: Account) -> None:
    """Whatever else lies in the container is reported."""
    account.say("s-1", numbered(1))
    account.change(HISTORY, {"id": "stranger"})
    account.change(HISTORY, {"id": "sourceless", "session_id": "s-1"})
    account.change(HISTORY, {"id": "numbered", "session_id": "s-1", "source_id": 7})

    assert {one["id"]: one["reason"] for one in account.answer(*CONTOSO)["failures"]} == {
        "stranger": "it is no message: it has no session_id",
        "sourceless": "it is no message: it has no source_id",
        "numbered": "source_id must be a str, not int",
    }


def test_what_is_deleted_in_the_meantime_is_reported(account: Account, requests: Requests) -> None:
    """A message that was listed and is no longer there when its turn comes is neither lost nor made up."""
    account.say("s-1", numbered(2))
    first = account.items(HISTORY)[0]

    async def delete(body: str) -> None:
        if "ORDER BY c.sort_key ASC" in body:
            requests.before = None
            await account.delete(HISTORY, first["id"], "s-1")

    requests.before = delete
    document = account.answer(*CONTOSO)
    assert counts(document) == (2, 1, 0, 1)
    assert reasons(document) == {"it was deleted from the source in the meantime"}


def test_a_message_that_comes_meanwhile_waits_for_the_next_run(account: Account, requests: Requests) -> None:
    """What was not there when the source was listed is not counted, and not written."""
    account.say("s-1", numbered(1))

    async def say(body: str) -> None:
        if "ORDER BY c.sort_key ASC" in body:
            requests.before = None
            item = {"id": "new", "session_id": "s-1", "source_id": DEFAULT, "sort_key": 2**62}
            await account.write(HISTORY, {**item, "message": numbered(1, 1)[0].to_dict()})

    requests.before = say
    assert counts(account.answer(*CONTOSO)) == (1, 1, 0, 0)
    assert counts(account.answer(*CONTOSO)) == (2, 1, 1, 0)


def test_a_damaged_history_of_ours_is_reported(account: Account) -> None:
    """What is there and cannot be read is left; other sessions go on."""
    account.say("s-1", numbered(1))
    account.say("s-2", numbered(1))
    account.answer(*CONTOSO)
    head = next(one for one in account.items(OURS) if one["type"] == "history_head" and one["session_id"] == "s-1")
    account.change(OURS, {**head, "recent": 7})

    assert counts(account.answer(*CONTOSO)) == (2, 0, 1, 1)


@pytest.mark.parametrize("dry", [(), ("--dry-run",)], ids=["written", "dry"])
def test_what_is_refused_is_reported(account: Account, dry: tuple[str, ...]) -> None:
    """A limit of ours holds for what is migrated, too, in a dry run as well."""
    account.environment["COSMOS_WORKFLOW_STATE_MAX_PAYLOAD_BYTES"] = "2000"
    account.say("s-1", [Message("user", ["x" * 3000])])
    account.say("s-2", [Message("user", ["x"])])
    document = account.answer(*CONTOSO, *dry)

    assert counts(document) == (2, 1, 0, 1)
    assert "the limit is 2000" in next(iter(reasons(document)))


def test_a_dry_run_writes_nothing(account: Account) -> None:
    """Not even the container; it counts what would be written and what is there."""
    account.say("s-1", numbered(3))
    code, output, _ = account.run(*CONTOSO, "--dry-run")
    assert (code, account.containers()) == (0, {HISTORY})
    assert output.startswith("3 messages in agent-db/history: 3 would write, 0 there already, 0 failed\n")

    account.run(*CONTOSO)
    before = account.items(OURS)
    account.say("s-1", numbered(2, 3))
    assert counts(account.answer(*CONTOSO, "--dry-run")) == (5, 2, 3, 0)
    assert account.items(OURS) == before


def test_an_empty_container_is_no_error(account: Account) -> None:
    """There is nothing to do, and nothing is created for it."""
    account.create(HISTORY, "/session_id")

    assert counts(account.answer(*CONTOSO)) == (0, 0, 0, 0)
    assert account.containers() == {HISTORY}


def test_when_the_service_fails_the_same_command_goes_on(account: Account, requests: Requests) -> None:
    """Exit code 5 and no result; the next run completes it."""
    for number in range(6):
        account.say(f"s-{number}", numbered(2))
    left = iter(range(40))

    async def fail(_body: str) -> None:
        if next(left, None) is None:
            raise ServiceRequestError("dropped")

    requests.before = fail
    code, output, _ = account.run(*CONTOSO, "--json")
    requests.before = None

    assert (code, output) == (5, "")
    assert counts(account.answer(*CONTOSO))[3] == 0
    assert all(same(ours(account, f"s-{number}"), theirs(account, f"s-{number}")) for number in range(6))
