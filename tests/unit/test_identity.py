"""Who owns an item and what it is called: nothing meets that must not."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosmos_workflow_state._identity import (
    MAX_NAME_BYTES,
    Scope,
    TenantId,
    TenantRule,
    accept_checkpoint_id,
    accept_workflow_name,
    checkpoint_item_id,
    encode_component,
    full_key,
    possible_checkpoint_id,
    tenant_prefix,
)
from cosmos_workflow_state.errors import InvalidIdentifierError
from cosmos_workflow_state.settings import CosmosStateSettings
from support.strategies import awkward_texts, quick, texts

_FIELDS = CosmosStateSettings.model_fields
DEFAULT_RULE = TenantRule(_FIELDS["tenant_id_pattern"].default, _FIELDS["tenant_id_max_length"].default)
UNENCODABLE = [
    pytest.param("a\0b", id="nul"),
    pytest.param("a\ud800", id="surrogate"),
    pytest.param("\udfff", id="low"),
]
NO_TEXT: list[Any] = [pytest.param(None, id="none"), pytest.param(7, id="int"), pytest.param(b"t1", id="bytes")]


def decode(encoded: str) -> str:
    """Undo `encode_component` below its limit."""
    assert not encoded.startswith("~~")
    raw = re.sub(rb"~([0-9A-F]{2})", lambda match: bytes.fromhex(match[1].decode()), encoded.encode("ascii"))
    return raw.decode()


@quick
@given(texts | awkward_texts)
def test_encoding_is_reversible_below_its_limit(text: str) -> None:
    """What is encoded can be decoded to exactly the text, so no two texts meet."""
    assert decode(encode_component(text, 1_000_000)) == text


@quick
@given(texts | awkward_texts, texts | awkward_texts, st.integers(0, 20))
def test_encoding_is_injective_on_both_sides_of_the_limit(one: str, other: str, limit: int) -> None:
    """Two texts have the same form only when they are the same, hashed or not."""
    assert (encode_component(one, limit) == encode_component(other, limit)) is (one == other)


@quick
@given(texts, st.integers(0, 40))
def test_hashed_and_plain_forms_cannot_meet(text: str, limit: int) -> None:
    """Over the limit a text becomes ``~~`` and 64 hex digits; below it nothing starts with ``~~``."""
    encoded = encode_component(text, limit)
    plain = encode_component(text, 1_000_000)
    if len(plain) > limit:
        assert re.fullmatch(r"~~[0-9a-f]{64}", encoded)
    else:
        assert encoded == plain
    assert not plain.startswith("~~")


@pytest.mark.parametrize("text", ["~", "~~", "~41", "~~" + "0" * 64, "A", "%41"])
def test_texts_that_look_encoded_stay_themselves(text: str) -> None:
    """A text written like an escape or a hash is not mistaken for one."""
    assert decode(encode_component(text, 600)) == text


@pytest.mark.parametrize(("length", "hashed"), [(600, False), (601, True)])
def test_limit_of_a_checkpoint_id_is_inclusive(length: int, *, hashed: bool) -> None:
    """600 encoded bytes are kept, 601 are hashed."""
    item_id = checkpoint_item_id(Scope(""), "a" * length)
    assert item_id.startswith("cp::~~") is hashed


@quick
@given(texts | awkward_texts, texts.filter(bool) | awkward_texts.filter(bool))
def test_item_ids_are_safe_in_a_url(scope: str, checkpoint_id: str) -> None:
    """An item id has only characters that no URL, path or client touches, and is never a relative path."""
    item_id = checkpoint_item_id(Scope(scope), checkpoint_id)
    assert re.fullmatch(r"[A-Za-z0-9._~:-]+", item_id)
    assert item_id not in {".", ".."}


@quick
@given(st.sampled_from(["a", "~", "é", "\U0001f600", ":"]), st.integers(0, 2000), st.integers(1, 2000))
def test_item_ids_never_exceed_what_the_service_takes(character: str, scope_length: int, id_length: int) -> None:
    """However long the parts are, the id has at most 1,023 bytes."""
    item_id = checkpoint_item_id(Scope(character * scope_length), character * id_length)
    assert len(item_id.encode()) <= 1023


@quick
@given(awkward_texts, awkward_texts, awkward_texts, awkward_texts)
def test_scope_and_id_never_run_together(scope: str, checkpoint_id: str, other_scope: str, other_id: str) -> None:
    """Two pairs have the same item id only when both their parts are the same."""
    same = checkpoint_item_id(Scope(scope), checkpoint_id) == checkpoint_item_id(Scope(other_scope), other_id)
    assert same is ((scope, checkpoint_id) == (other_scope, other_id))


@pytest.mark.parametrize(
    ("one", "other"),
    [(("a", "b:c"), ("a:b", "c")), (("", "a:b"), ("a", "b")), (("a", ""), ("", "a")), (("~3A", "x"), (":", "x"))],
)
def test_separator_in_a_part_does_not_shift_the_border(one: tuple[str, str], other: tuple[str, str]) -> None:
    """A colon inside a scope or id is not the colon between them."""
    assert checkpoint_item_id(Scope(one[0]), one[1]) != checkpoint_item_id(Scope(other[0]), other[1])


def test_case_is_kept() -> None:
    """Ids that differ in case are different ids."""
    assert checkpoint_item_id(Scope("A"), "b") != checkpoint_item_id(Scope("a"), "B")


@pytest.mark.parametrize("tenant_id", ["t1", "t10", "T1", "a", "0", "contoso.com", "user@contoso", "a_b-c", "a" * 128])
def test_default_rule_accepts(tenant_id: str) -> None:
    """Usual tenant ids are accepted, unchanged."""
    assert DEFAULT_RULE.accept(tenant_id) == TenantId(tenant_id)


@pytest.mark.parametrize(
    "tenant_id",
    [
        "",
        " ",
        "t1\n",
        "\nt1",
        "t1 ",
        " t1",
        "t1\r",
        ".t1",
        "_t1",
        "-",
        "..",
        "t/1",
        "t\\1",
        "t?1",
        "t#1",
        "t:1",
        "tä",
        "t\uff11",
        "a" * 129,
    ],
)
def test_default_rule_refuses(tenant_id: str) -> None:
    """What does not match as a whole is refused, a trailing newline too, never trimmed or normalised."""
    with pytest.raises(InvalidIdentifierError, match="tenant_id"):
        DEFAULT_RULE.accept(tenant_id)


def test_tenants_that_are_prefixes_or_differ_in_case_stay_apart() -> None:
    """``t1``, ``t10`` and ``T1`` have different keys and prefixes."""
    tenants = [DEFAULT_RULE.accept(tenant_id) for tenant_id in ("t1", "t10", "T1")]
    assert len({tuple(full_key(tenant, "0w")) for tenant in tenants}) == 3
    assert len({tuple(tenant_prefix(tenant)) for tenant in tenants}) == 3


def test_keys_of_a_tenant() -> None:
    """The partition key is tenant and workflow, its prefix is the tenant."""
    assert full_key(TenantId("t1"), "w") == ["t1", "w"]
    assert tenant_prefix(TenantId("t1")) == ["t1"]


def test_refused_tenant_id_is_not_quoted() -> None:
    """A refused tenant id may be anything, a token too: the message does not repeat it."""
    with pytest.raises(InvalidIdentifierError) as raised:
        DEFAULT_RULE.accept("secret token")
    assert "secret" not in str(raised.value)


def test_length_is_bounded_in_characters_and_bytes() -> None:
    """A generous rule cannot let a tenant id grow past what a partition key takes."""
    generous = TenantRule(re.compile(r".*", re.DOTALL), 1024)
    assert generous.accept("é" * 512) == TenantId("é" * 512)
    for tenant_id in ("é" * 513, "a" * 1025):
        with pytest.raises(InvalidIdentifierError, match="1024"):
            generous.accept(tenant_id)


@pytest.mark.parametrize("text", [*UNENCODABLE, *NO_TEXT])
def test_what_no_identifier_can_be(text: Any) -> None:
    """NUL, lone surrogates and other kinds are refused everywhere, whatever the rule of tenants says."""
    everything = TenantRule(re.compile(r".*", re.DOTALL), 1024)
    for accept in (everything.accept, Scope.accept, accept_workflow_name, accept_checkpoint_id):
        with pytest.raises(InvalidIdentifierError):
            accept(text)


@pytest.mark.parametrize("accept", [Scope.accept, accept_workflow_name], ids=["scope", "workflow name"])
def test_names_are_bounded_in_bytes(accept: Any) -> None:
    """1,024 UTF-8 bytes are accepted, one more is not."""
    accept("é" * (MAX_NAME_BYTES // 2))
    with pytest.raises(InvalidIdentifierError, match="1025 UTF-8 bytes"):
        accept("é" * (MAX_NAME_BYTES // 2) + "a")


def test_empty_text_is_a_scope_but_no_name_or_id() -> None:
    """The unnamed scope is a scope; a workflow or checkpoint without a name is refused."""
    assert Scope.accept("") == Scope("")
    for accept in (accept_workflow_name, accept_checkpoint_id):
        with pytest.raises(InvalidIdentifierError, match="empty"):
            accept("")


@quick
@given(texts.filter(lambda text: 0 < len(text.encode()) <= MAX_NAME_BYTES))
def test_any_other_text_is_accepted_unchanged(text: str) -> None:
    """Workflow names, scopes and checkpoint ids may be any text."""
    assert accept_workflow_name(text) == text
    assert accept_checkpoint_id(text) == text
    assert Scope.accept(text).value == text
    assert possible_checkpoint_id(text) == text


@pytest.mark.parametrize("checkpoint_id", ["", *UNENCODABLE])
def test_ids_that_cannot_have_been_saved_do_not_exist(checkpoint_id: str) -> None:
    """Loading such an id is "not found", no error of its own."""
    assert possible_checkpoint_id(checkpoint_id) is None


@pytest.mark.parametrize("checkpoint_id", NO_TEXT)
def test_asking_with_another_kind_is_an_error(checkpoint_id: Any) -> None:
    """An id that is no text is the caller's mistake, not a checkpoint that is not there."""
    with pytest.raises(InvalidIdentifierError, match="must be a str"):
        possible_checkpoint_id(checkpoint_id)
