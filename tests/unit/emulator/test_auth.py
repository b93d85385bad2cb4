"""Who may do what: signatures with the account key, tokens, roles."""

from __future__ import annotations

import base64
import json
from email.utils import formatdate
from urllib.parse import quote

import pytest

from cosmos_workflow_state.emulator._clock import MovableClock
from cosmos_workflow_state.emulator._gateway._auth import Authenticator, sign
from cosmos_workflow_state.emulator._gateway._failures import ServiceError
from cosmos_workflow_state.emulator._gateway._kinds import kind_of
from cosmos_workflow_state.emulator._tokens import Role, TokenError, issue_token, read_token
from cosmos_workflow_state.emulator._values import Request

SECRET = b"a secret of some bytes"
KEY = base64.b64encode(SECRET).decode()
NOW = 1_800_000_000.0
ITEM = "/dbs/d/colls/c/docs/one"


def signed(
    payload: str, *, method: str = "GET", path: str = ITEM, date: float | str = NOW, header: str = "x-ms-date"
) -> Request:
    """Make a request that is signed for a payload: type and link, each on its line."""
    text = formatdate(date, usegmt=True) if isinstance(date, float) else date
    dates = f"{text.lower()}\n\n" if header == "x-ms-date" else f"\n{text.lower()}\n"
    signature = sign(SECRET, f"{method.lower()}\n{payload}\n{dates}".encode()).decode()
    authorization = quote(f"type=master&ver=1.0&sig={signature}", safe="-_.!~*'()")
    return Request(method, path, {"authorization": authorization, header: text}, b"")


def with_token(token: str, method: str = "GET", path: str = ITEM, **headers: str) -> Request:
    """Make a request with a token."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return Request(method, path, {"authorization": f"type=aad&ver=1.0&sig={token}", **sent}, b"")


def check(request: Request) -> None:
    """Check a request at a fixed time."""
    Authenticator(KEY, clock=lambda: NOW, token_clock=lambda: NOW).check(request)


def refusal(request: Request) -> tuple[int, int | None]:
    """Return status and sub-status with which a request is refused."""
    with pytest.raises(ServiceError) as caught:
        check(request)
    assert KEY not in caught.value.message
    return caught.value.status, caught.value.sub_status


@pytest.mark.parametrize(
    ("method", "path", "payload"),
    [
        ("GET", "/", "\n"),
        ("POST", "/dbs", "dbs\n"),
        ("GET", "/dbs/D b/", "dbs\ndbs/D b"),
        ("POST", "/dbs/d/colls/", "colls\ndbs/d"),
        ("GET", "/dbs/d/colls/c/pkranges/", "pkranges\ndbs/d/colls/c"),
        ("POST", "/dbs/d/colls/c/docs/", "docs\ndbs/d/colls/c"),
        ("PUT", "/dbs/d/colls/c/docs/%C3%A9%20x/", "docs\ndbs/d/colls/c/docs/é x"),
        ("GET", "/offers", "offers\n"),
        ("GET", "/offers/AbC=", "offers\nabc="),
        ("GET", "/dbs/Aa==/colls/AaBb=/docs/AaBbCc==", "docs\naabbcc=="),
        ("POST", "/dbs/d/colls/c/operations/partitionkeydelete", "colls\ndbs/d/colls/c"),
        ("GET", "/DBS/d/", "dbs\nDBS/d"),
    ],
)
def test_a_right_signature_passes(method: str, path: str, payload: str) -> None:
    """Each form in which clients sign a path is accepted: by name, by resource id, and without any."""
    check(signed(payload, method=method, path=path))


def test_the_date_header_counts_where_there_is_no_other() -> None:
    """Clients that cannot set x-ms-date sign the standard header."""
    check(signed(f"docs\n{ITEM[1:]}", header="date"))


@pytest.mark.parametrize(
    "request_",
    [
        Request("GET", ITEM, {}, b""),
        Request("GET", ITEM, {"authorization": ""}, b""),
        Request("GET", ITEM, {"authorization": "Bearer abc"}, b""),
        Request("GET", ITEM, {"authorization": "type=resource&ver=1.0&sig=abc"}, b""),
        Request("GET", ITEM, {"authorization": "type=master&ver=1.0"}, b""),
        signed("docs\ndbs/d/colls/c/docs/two"),
        signed(f"colls\n{ITEM[1:]}"),
        signed(f"docs\n{ITEM[1:]}", date="yesterday"),
        signed(f"docs\n{ITEM[1:]}", date=""),
        with_token("é"),
    ],
    ids=["none", "empty", "bearer", "resource", "no signature", "link", "type", "date", "no date", "token"],
)
def test_a_wrong_authorization_is_401(request_: Request) -> None:
    """Whatever does not prove the key is refused, and the refusal does not show the key."""
    assert refusal(request_) == (401, None)


def test_the_payload_that_should_have_been_signed_is_told() -> None:
    """A signature for something else is answered with what the service would have signed."""
    with pytest.raises(ServiceError, match=r"sign: 'get\\ndocs\\ndbs/d/colls/c/docs/one\\n"):
        check(signed("docs\nother"))


@pytest.mark.parametrize(("age", "status"), [(899.0, None), (-899.0, None), (901.0, 403), (-901.0, 403)])
def test_a_signature_is_good_for_fifteen_minutes(age: float, status: int | None) -> None:
    """A signature of another time, before or after, is refused with both times."""
    request = signed(f"docs\n{ITEM[1:]}", date=NOW - age)
    if status is None:
        check(request)
    else:
        assert refusal(request) == (status, None)


ALLOWED = None
CONTROL = (403, 5300)
DENIED = (403, 5301)
FLAG = "True"


@pytest.mark.parametrize(
    ("request_", "contributor", "reader", "nobody"),
    [
        (("GET", "/", {}), ALLOWED, ALLOWED, DENIED),
        (("GET", "/dbs/d/", {}), ALLOWED, ALLOWED, DENIED),
        (("GET", "/dbs/d/colls/c/pkranges/", {}), ALLOWED, ALLOWED, DENIED),
        (("GET", ITEM, {}), ALLOWED, ALLOWED, DENIED),
        (("GET", "/dbs/d/colls/c/docs/", {}), ALLOWED, ALLOWED, DENIED),
        (("POST", "/dbs/d/colls/c/docs/", {"x_ms_documentdb_isquery": "true"}), ALLOWED, ALLOWED, DENIED),
        (("POST", "/dbs/d/colls/c/docs/", {"x_ms_cosmos_is_query_plan_request": FLAG}), ALLOWED, ALLOWED, DENIED),
        (("POST", "/dbs/d/colls/c/docs/", {}), ALLOWED, DENIED, DENIED),
        (("POST", "/dbs/d/colls/c/docs/", {"x_ms_documentdb_is_upsert": FLAG}), ALLOWED, DENIED, DENIED),
        (("POST", "/dbs/d/colls/c/docs/", {"x_ms_cosmos_is_batch_request": FLAG}), ALLOWED, DENIED, DENIED),
        (("PUT", ITEM, {}), ALLOWED, DENIED, DENIED),
        (("PATCH", ITEM, {}), ALLOWED, DENIED, DENIED),
        (("DELETE", ITEM, {}), ALLOWED, DENIED, DENIED),
        (("POST", "/dbs", {}), CONTROL, CONTROL, CONTROL),
        (("POST", "/dbs", {"x_ms_documentdb_isquery": "true"}), ALLOWED, ALLOWED, DENIED),
        (("POST", "/dbs", {"x_ms_cosmos_is_query_plan_request": FLAG}), CONTROL, CONTROL, CONTROL),
        (("POST", "/dbs", {"x_ms_cosmos_is_batch_request": FLAG}), CONTROL, CONTROL, CONTROL),
        (("POST", "/dbs/d/colls/", {"x_ms_cosmos_is_query_plan_request": FLAG}), CONTROL, CONTROL, CONTROL),
        (("DELETE", "/dbs/d/", {}), CONTROL, CONTROL, CONTROL),
        (("POST", "/dbs/d/colls/", {}), CONTROL, CONTROL, CONTROL),
        (("PUT", "/dbs/d/colls/c/", {}), CONTROL, CONTROL, CONTROL),
        (("DELETE", "/dbs/d/colls/c/", {}), CONTROL, CONTROL, CONTROL),
        (("POST", "/offers", {"x_ms_documentdb_isquery": "true"}), CONTROL, CONTROL, CONTROL),
    ],
)
def test_roles(
    request_: tuple[str, str, dict[str, str]],
    contributor: tuple[int, int] | None,
    reader: tuple[int, int] | None,
    nobody: tuple[int, int] | None,
) -> None:
    """Contributors read and write items, readers read; who has no role does nothing, and nobody manages by token."""
    method, path, headers = request_
    expected: list[tuple[Role | None, tuple[int, int] | None]] = [
        ("contributor", contributor),
        ("reader", reader),
        (None, nobody),
    ]
    for role, outcome in expected:
        request = with_token(issue_token(KEY, role, NOW), method, path, **headers)
        if outcome is None:
            check(request)
        else:
            assert refusal(request) == outcome


def test_the_refusal_names_principal_and_action() -> None:
    """As the service does, so that an administrator knows what to assign to whom."""
    with pytest.raises(ServiceError, match=r"principal \[0+-.*1\].*\[Microsoft.*/items/replace\]"):
        check(with_token(issue_token(KEY, "reader", NOW), "PATCH"))


ACTIONS = "Microsoft.DocumentDB/databaseAccounts"
ITEMS = f"{ACTIONS}/sqlDatabases/containers/items"
FEED = "/dbs/d/colls/c/docs"


@pytest.mark.parametrize(
    ("actions", "method", "path", "flag", "body"),
    [
        ({f"{ACTIONS}/readMetadata"}, "GET", "/dbs/d/colls/c", "", ""),
        ({f"{ACTIONS}/readMetadata"}, "GET", "/dbs/d/colls/c/pkranges", "", ""),
        ({f"{ITEMS}/read"}, "GET", ITEM, "", ""),
        ({f"{ITEMS}/create"}, "POST", FEED, "", "{}"),
        ({f"{ITEMS}/upsert"}, "POST", FEED, "x-ms-documentdb-is-upsert", "{}"),
        ({f"{ITEMS}/replace"}, "PUT", ITEM, "", "{}"),
        ({f"{ITEMS}/replace"}, "PATCH", ITEM, "", "{}"),
        ({f"{ITEMS}/delete"}, "DELETE", ITEM, "", ""),
        ({f"{ACTIONS}/sqlDatabases/containers/readChangeFeed"}, "GET", FEED, "", ""),
        (
            {f"{ACTIONS}/sqlDatabases/containers/{name}" for name in ("executeQuery", "readChangeFeed")},
            *("POST", FEED, "x-ms-documentdb-isquery", "{}"),
        ),
        (
            {f"{ITEMS}/read", f"{ITEMS}/create", f"{ITEMS}/replace"},
            *("POST", FEED, "x-ms-cosmos-is-batch-request"),
            '[{"operationType":"Read"},{"operationType":"Create"},{"operationType":"Patch"},{"operationType":"Read"}]',
        ),
        *(
            ({f"{ITEMS}/create"}, "POST", FEED, "x-ms-cosmos-is-batch-request", body)
            for body in (
                "",
                "{",
                "{}",
                "[]",
                "[1]",
                '[{"operationType":1}]',
                '[{"operationType":"Else"}]',
                "[" * 100_000,
            )
        ),
    ],
)
def test_a_role_of_ones_own(actions: set[str], method: str, path: str, flag: str, body: str) -> None:
    """Exactly these data actions let the request pass; without any one of them it is refused by that one's name."""

    def ask(given: set[str]) -> None:
        token = issue_token(KEY, None, NOW, actions=given)
        headers = {"authorization": f"type=aad&ver=1.0&sig={token}", **({flag: "True"} if flag else {})}
        check(Request(method, path, headers, body.encode()))

    ask(actions)
    for missing in actions:
        with pytest.raises(ServiceError, match=f"{missing}]"):
            ask(actions - {missing})


def jwt(claims: object, key: str = KEY) -> str:
    """Make a token as Microsoft's emulator takes it, with any claims."""
    header = {"typ": "JWT", "alg": "RS256", "x5t": "CosmosEmulatorPrimaryMaster", "kid": "CosmosEmulatorPrimaryMaster"}
    parts = [json.dumps(header).encode(), claims if isinstance(claims, bytes) else json.dumps(claims).encode()]
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in (*parts, key.encode()))


def test_a_token_of_microsofts_emulator_passes_percent_encoded_or_not() -> None:
    """Its tokens know no roles: they may do all that tokens can."""
    token = jwt({"aud": "https://localhost.localhost", "nbf": NOW, "exp": NOW + 7200, "oid": "someone"})
    check(with_token(token, "DELETE"))
    check(Request("DELETE", ITEM, {"authorization": quote(f"type=aad&ver=1.0&sig={token}")}, b""))
    assert read_token(KEY, token, NOW).id == "someone"


@pytest.mark.parametrize(
    "token",
    [
        "",
        "a.b",
        "a.b.c.d",
        "*.*.*",
        jwt({"nbf": NOW, "exp": NOW + 1}, key="another"),
        jwt(b"{"),
        jwt(b"[" * 100_000),
        jwt(b"\xff"),
        jwt([]),
        jwt({"exp": NOW + 1}),
        jwt({"nbf": "0", "exp": NOW + 1}),
        jwt({"nbf": True, "exp": NOW + 1}),
        jwt({"nbf": NOW, "exp": NOW}),
        jwt({"nbf": NOW + 301, "exp": NOW + 900}),
        jwt({"nbf": NOW, "exp": NOW + 1, "roles": "contributor"}),
        jwt({"nbf": NOW, "exp": NOW + 1, "actions": "read"}),
    ],
)
def test_a_token_that_is_not_valid_is_401(token: str) -> None:
    """Malformed, with another key, expired, not yet valid: refused, without a word of the token."""
    with pytest.raises(TokenError) as caught:
        read_token(KEY, token, NOW)
    assert KEY not in str(caught.value)
    assert refusal(with_token(token)) == (401, None)


def test_tokens_expire_by_the_movable_clock() -> None:
    """Moving the clock makes a token expire, and leaves signatures alone."""
    clock = MovableClock(lambda: NOW)
    authenticator = Authenticator(KEY, clock=lambda: NOW, token_clock=clock)
    request = with_token(issue_token(KEY, "reader", clock()))
    authenticator.check(request)
    clock.advance(3600)
    with pytest.raises(ServiceError):
        authenticator.check(request)
    authenticator.check(signed(f"docs\n{ITEM[1:]}"))
    clock.offset = 0.0
    authenticator.check(request)
    assert clock.offset == 0.0


def test_a_strange_method_is_its_own_kind() -> None:
    """What is none of HTTP's usual methods is no write by mistake, nor an error."""
    assert kind_of(Request("TRACE", "/dbs/d", {}, b"")).operation == "trace"
