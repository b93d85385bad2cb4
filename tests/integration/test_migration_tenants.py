"""Whose a migrated history becomes, and how it is named where it is read from, written to or left out."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from agent_framework import Message

from cosmos_workflow_state.testing._values import same
from support.migrating import HISTORY, Account, counts
from support.migrating_histories import BY_FIELD, CONTOSO, DEFAULT, OURS, add, numbered, ours, texts, theirs


@pytest.fixture
def account(tmp_path: Path) -> Account:
    """Return a state file of the test's own."""
    return Account(tmp_path)


def owned(*tenants: str | None) -> list[Message]:
    """Return a conversation of which each message names this tenant, or none."""
    properties: list[dict[str, Any]] = [{} if tenant is None else {"tenant": tenant} for tenant in tenants]
    return [Message("user", [f"message {number}"], additional_properties=one) for number, one in enumerate(properties)]


def test_each_message_names_its_tenant(account: Account) -> None:
    """By a field; each session goes to the one tenant that all of its messages name."""
    account.say("s-1", owned("contoso", "contoso"))
    account.say("s-2", owned("fabrikam"))
    account.say("s-2", owned("fabrikam"), source_id="notes")
    code, output, _ = account.run(*BY_FIELD)

    assert code == 0
    assert "4 messages in agent-db/history: 4 written, 0 there already, 0 failed" in output
    assert re.search(r"^fabrikam +2 +0 +0$", output, re.MULTILINE)
    assert counts(account.answer(*BY_FIELD)) == (4, 0, 4, 0)
    assert same(ours(account, "s-1"), theirs(account, "s-1"))
    assert same(ours(account, "s-2", tenant="fabrikam"), theirs(account, "s-2"))
    assert len(ours(account, "s-2", tenant="fabrikam", source_id="notes")) == 1


@pytest.mark.parametrize(
    ("first", "second", "source_id", "reason"),
    [
        (owned(None, None), owned("fabrikam"), DEFAULT, "a message of it names no tenant (it has no field "),
        (owned("fabrikam"), owned("no tenant!"), DEFAULT, "a message of it names no tenant (tenant_id (10 characters)"),
        (owned("fabrikam"), owned("contoso"), DEFAULT, "its messages name several tenants"),
        (owned("fabrikam"), owned("contoso"), "notes", "its messages name several tenants"),
        (owned("fabrikam"), owned(None), "notes", "a message of it names no tenant (it has no field "),
    ],
    ids=["questions-without", "refused", "two", "two-by-source", "none-in-a-source"],
)
def test_no_session_is_torn_apart(
    account: Account, first: list[Message], second: list[Message], source_id: str, reason: str
) -> None:
    """A session that is not one tenant's is left out as a whole, and named; the others are there."""
    account.say("torn", first)
    account.say("torn", second, source_id=source_id)
    account.say("whole", owned("fabrikam"))
    code, output, complaints = account.run(*BY_FIELD)
    document = account.answer(*BY_FIELD)
    number = len(first) + len(second)

    assert (code, counts(document)) == (1, (number + 1, 0, 1, number))
    assert f"1 written, 0 there already, {number} failed" in output
    assert f"  the session is left out as a whole: {reason}" in complaints
    assert "    session torn: " in complaints
    assert {(one["place"], one["tenant_id"]) for one in document["failures"]} == {("torn", None)}
    assert {one["source_id"] for one in document["failures"]} == {DEFAULT, source_id}
    assert {item["session_id"] for item in account.items(OURS)} == {"whole"}


def test_what_a_session_was_left_out_for_can_be_put_right(account: Account) -> None:
    """Once all of its messages name the tenant, it is copied like any other."""
    account.say("s-1", owned("fabrikam", None))
    account.run(*BY_FIELD)
    [item] = [one for one in account.items(HISTORY) if not one["message"].get("additional_properties")]
    item["message"]["additional_properties"] = {"tenant": "fabrikam"}
    account.change(HISTORY, item)

    assert counts(account.answer(*BY_FIELD)) == (2, 2, 0, 0)


def test_another_history_can_be_deleted_as_it_is_said(account: Account) -> None:
    """What is said to do where another history is in the way helps: deleted so, the next run copies the session."""
    account.say("s 'one'", numbered(3))
    add(account, "s 'one'", numbered(1, 30))
    code, _, complaints = account.run(*CONTOSO)
    remedies = {one["remedy"] for one in account.answer(*CONTOSO)["failures"]}
    call = f"for_tenant('contoso').history('{DEFAULT}').delete_session(\"s 'one'\")"

    assert code == 1
    assert "    session s 'one': " in complaints
    assert f"      > if what is there is not wanted, look at it first: {call} deletes it" in complaints
    assert [call in remedy for remedy in remedies] == [True]
    account.in_ours(lambda factory: eval(call, {"for_tenant": factory.for_tenant}))  # noqa: S307 - what is advised
    assert counts(account.answer(*CONTOSO)) == (3, 3, 0, 0)


def test_sources_are_named(account: Account) -> None:
    """People and programs are told which there are; where one is not the default, how it is read, and so it is."""
    account.say("s-1", numbered(2), source_id="my_chat")
    _, output, complaints = account.run(*CONTOSO)
    document = account.answer(*CONTOSO)
    warning = json.loads(account.run(*CONTOSO, "--json")[2])["warning"]

    assert output.endswith("\nsource: my_chat\n")
    assert document["sources"] == [{"source_id": "my_chat", "found": 2, "is_default": False}]
    assert complaints == (
        f"WARNING: history() reads the source '{DEFAULT}' and no other; what is in the others is read by "
        "history('my_chat')\n"
    )
    assert warning in complaints
    assert ours(account, "s-1") == []
    assert texts(ours(account, "s-1", source_id="my_chat")) == texts(numbered(2))


def test_only_other_sources_are_warned_of(account: Account) -> None:
    """Of many the first few are named to people, all to programs; the default one takes no warning."""
    account.say("s-1", numbered(1))
    assert account.run(*CONTOSO)[2] == ""
    for number in range(7):
        account.say("s-1", numbered(1), source_id=f"chat-{number}")
    _, output, complaints = account.run(*CONTOSO)
    document = account.answer(*CONTOSO)

    assert output.endswith(f"sources: {DEFAULT}, chat-0, chat-1, chat-2, chat-3 and 3 more\n")
    assert "history('chat-4') and 2 more\n" in complaints
    assert [one["source_id"] for one in document["sources"]] == [DEFAULT, *(f"chat-{number}" for number in range(7))]


def test_the_place_of_a_failure_is_named(account: Account) -> None:
    """The session, and the tenant where the command line does not say it; of many the first few."""
    for number in range(7):
        account.say(f"s-{number}", owned("contoso"))
        add(account, f"s-{number}", numbered(1))
    account.change(HISTORY, {"id": "stranger"})
    _, _, complaints = account.run(*BY_FIELD)

    assert len(re.findall(r"^    session s-\d of tenant contoso: \S+$", complaints, re.MULTILINE)) == 5
    assert "\n    and 2 more sessions\n" in complaints
    assert "\n    no session: stranger\n" in complaints
    assert "7 of them would be the newest: without them, work" in complaints


def test_the_source_of_a_failure_is_named(account: Account) -> None:
    """Where it is not the default one."""
    account.say("s-1", numbered(1), source_id="notes")
    [item] = account.items(HISTORY)
    account.change(HISTORY, {**item, "message": 7})
    [failure] = account.answer(*CONTOSO)["failures"]

    assert (failure["place"], failure["source_id"]) == ("s-1", "notes")
    assert f"\n    session s-1, source notes: {item['id']}\n" in account.run(*CONTOSO)[2]
