"""Who may do what: the account key's signature, tokens and their roles.

Owns the checks before an operation runs. Must not know what operations do, and shows no key, token or signature.
https://learn.microsoft.com/rest/api/cosmos-db/access-control-on-cosmosdb-resources has the signature's form,
https://learn.microsoft.com/azure/cosmos-db/how-to-setup-rbac what roles allow.
"""

from __future__ import annotations

import base64
import hmac
import json
import time
from collections.abc import Callable, Mapping
from email.utils import formatdate, parsedate_to_datetime
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Final
from urllib.parse import unquote

from cosmos_workflow_state.emulator._gateway._failures import ServiceError
from cosmos_workflow_state.emulator._gateway._kinds import WRITES, Kind, kind_of, segments_of
from cosmos_workflow_state.emulator._tokens import Principal, Role, TokenError, read_token
from cosmos_workflow_state.emulator._values import Json, Request

__all__ = ["Authenticator", "sign"]

Clock = Callable[[], float]

_WINDOW: Final = 15 * 60
_NOT_FOR_TOKENS: Final = 5300
_NO_PERMISSION: Final = 5301
_MANAGED: Final = ("dbs", "colls")
_DELETE_BY_KEY: Final = (b"operations", b"partitionkeydelete")
_METADATA: Final = "Microsoft.DocumentDB/databaseAccounts/readMetadata"
_CONTAINERS: Final = "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers"
_QUERY: Final = f"{_CONTAINERS}/executeQuery"
_FEED: Final = f"{_CONTAINERS}/readChangeFeed"
_ROLES: Final[Mapping[Role, tuple[str, ...]]] = {
    "reader": (_METADATA, _QUERY, _FEED, f"{_CONTAINERS}/items/read"),
    "contributor": (_METADATA, f"{_CONTAINERS}/*"),
}
_BATCHED: Final = frozenset({"create", "upsert", "read", "replace", "patch", "delete"})


class Authenticator:
    """Lets a request pass or refuses it."""

    def __init__(self, key: str, *, clock: Clock = time.time, token_clock: Clock = time.time) -> None:
        """Set up the checks.

        Args:
            key: The account key, base64.

        Keyword Args:
            clock: By which signatures are new enough, in seconds since 1970: that of the clients.
            token_clock: By which tokens expire.
        """
        self._key = key
        self._secret = base64.b64decode(key, validate=True)
        self._clock = clock
        self._token_clock = token_clock

    def check(self, request: Request) -> None:
        """Refuse a request that is not allowed.

        Args:
            request: The request.

        Raises:
            ServiceError: 401 for who it is, 403 for what they may do.
        """
        authorization = request.headers.get("authorization")
        if authorization is None:
            raise _unauthorized(
                "Required Header authorization is missing. Ensure a valid Authorization token is passed."
            )
        kind, signature = _taken_apart(authorization)
        if kind == "master":
            self._check_signature(request, signature)
        elif kind == "aad":
            self._check_token(request, signature)
        else:
            raise _unauthorized("The authorization header has to be of type master or aad.")

    def _check_signature(self, request: Request, signature: str) -> None:
        payloads = _payloads(request)
        if not any(
            hmac.compare_digest(sign(self._secret, payload), signature.encode("utf-8", "replace"))
            for payload in payloads
        ):
            raise _unauthorized(
                "The input authorization token can't serve the request. The wrong key is being used or the expected"
                " payload is not built as per the protocol. Server used the following payload to sign:"
                f" {payloads[0].decode('utf-8', 'replace')!r}"
            )
        self._check_date(request.headers.get("x-ms-date") or request.headers.get("date", ""))

    def _check_date(self, text: str) -> None:
        try:
            start = parsedate_to_datetime(text).timestamp()
        except (ValueError, OverflowError) as error:
            raise _unauthorized("The date header has to be as RFC 1123 has it.") from error
        now = self._clock()
        if abs(now - start) > _WINDOW:
            raise ServiceError(
                403,
                "The authorization token is not valid at the current time. Please create another token and retry (token"
                f" start time: {_date(start)}, token expiry time: {_date(start + _WINDOW)}, current server time:"
                f" {_date(now)}).",
            )

    def _check_token(self, request: Request, token: str) -> None:
        try:
            principal = read_token(self._key, token, self._token_clock())
        except TokenError as error:
            raise _unauthorized(str(error)) from error
        _check_role(request, kind_of(request), principal)


def sign(secret: bytes, payload: bytes) -> bytes:
    """Sign what a request is about.

    Args:
        secret: The decoded account key.
        payload: Verb, resource and date.

    Returns:
        The signature, base64.
    """
    return base64.b64encode(hmac.digest(secret, payload, "sha256"))


def _payloads(request: Request) -> tuple[bytes, ...]:
    """Give what the client may have signed: a resource goes by its path or by the last `_rid` of it, in lower case."""
    kind, links = _signed(request.path)
    date = request.headers.get("x-ms-date", "").lower()
    plain = "" if date else request.headers.get("date", "").lower()
    verb, dates = request.method.lower(), f"\n{date}\n{plain}\n".encode("utf-8", "replace")
    return tuple(f"{verb}\n".encode() + kind.lower() + b"\n" + link + dates for link in links)


@lru_cache(maxsize=1024)
def _signed(path: str) -> tuple[bytes, tuple[bytes, ...]]:
    """Give the type a path names and the forms in which its resource may be signed."""
    segments = segments_of(path)
    if segments[-2:] == _DELETE_BY_KEY:
        # Signed as an operation on the container.
        segments = segments[:-2]
    if not segments:
        return b"", (b"",)
    kind, owner = (segments[-1], segments[:-1]) if len(segments) % 2 else (segments[-2], segments)
    return kind, (b"/".join(owner), owner[-1].lower() if owner else b"")


def _check_role(request: Request, kind: Kind, principal: Principal) -> None:
    if kind.resource == "offers" or (kind.resource in _MANAGED and kind.operation in WRITES):
        raise ServiceError(
            403,
            f"Request blocked by Auth emulator : The given request [{request.method} {request.path}] cannot be"
            " authorized by AAD token in data plane. Learn more: https://aka.ms/cosmos-native-rbac.",
            _NOT_FOR_TOKENS,
        )
    for action in _actions(request, kind):
        if not _may(principal, action):
            raise ServiceError(
                403,
                f"Request is blocked because principal [{principal.id}] does not have required RBAC permissions to"
                f" perform action [{action}] on resource [{request.path}].",
                _NO_PERMISSION,
            )


def _may(principal: Principal, action: str) -> bool:
    role = () if principal.role is None else _ROLES[principal.role]
    return action in principal.actions or any(fnmatchcase(action, pattern) for pattern in role)


def _actions(request: Request, kind: Kind) -> tuple[str, ...]:
    """Give the data actions a request needs; queries of clients need two."""
    if kind.resource != "docs":
        return (f"{_CONTAINERS}/{kind.resource}/{kind.operation}" if kind.operation in WRITES else _METADATA,)
    if kind.operation in ("query", "plan"):
        return _QUERY, _FEED
    if kind.operation == "list":
        return (_FEED,)
    names = _batched(request.body) if kind.operation == "batch" else (kind.operation,)
    return tuple(f"{_CONTAINERS}/items/{'replace' if name == 'patch' else name}" for name in names)


def _batched(body: bytes) -> tuple[str, ...]:
    """Give the operations of a batch, each once; one that nobody can read counts as a write."""
    try:
        found: Json = json.loads(body)
    except (ValueError, RecursionError):
        return ("create",)
    operations = found if isinstance(found, list) else []
    names = (operation.get("operationType") for operation in operations if isinstance(operation, dict))
    known = (name.lower() for name in names if isinstance(name, str) and name.lower() in _BATCHED)
    return tuple(dict.fromkeys(known)) or ("create",)


def _taken_apart(authorization: str) -> tuple[str, str]:
    """Split the header into type and signature; a key's comes percent-encoded, a token's mostly not."""
    fields = dict(part.split("=", 1) for part in unquote(authorization).split("&") if "=" in part)
    return fields.get("type", ""), fields.get("sig", "")


def _date(seconds: float) -> str:
    return formatdate(seconds, usegmt=True)


def _unauthorized(message: str) -> ServiceError:
    return ServiceError(401, message)
