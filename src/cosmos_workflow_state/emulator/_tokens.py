"""Tokens of the emulator's own directory, in place of those of Entra ID.

Owns their form: a JWT whose third part is the account key, as Microsoft's emulator takes it. So only who knows the key
can make one. Must not decide what a role may do.
"""

from __future__ import annotations

import base64
import hmac
import json
from binascii import Error as NotBase64Error
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from cosmos_workflow_state.emulator._values import Json, JsonObject

__all__ = ["LIFETIME", "Principal", "Role", "TokenError", "issue_token", "read_token"]

Role: TypeAlias = Literal["reader", "contributor"]
"""The service's two built-in roles for data."""

LIFETIME: Final = 3600
"""Seconds a token is valid, unless asked otherwise."""

_SKEW: Final = 300
_HEADER: Final[JsonObject] = {"typ": "JWT", "alg": "RS256", "kid": "CosmosEmulatorPrimaryMaster"}
_PRINCIPAL: Final = "00000000-0000-0000-0000-000000000001"
_PARTS: Final = 3


class TokenError(Exception):
    """A token is not valid; the message says why, without showing it."""


@dataclass(frozen=True, slots=True)
class Principal:
    """Whom a token stands for.

    Attributes:
        id: Object id.
        role: What they may do; None for nothing.
        actions: Data actions they may do besides, as a role of one's own gives them.
    """

    id: str
    role: Role | None
    actions: frozenset[str] = frozenset()


def issue_token(  # noqa: PLR0913 - each is a claim of its own, by name
    key: str,
    role: Role | None,
    now: float,
    *,
    audience: str = "",
    lifetime: float = LIFETIME,
    actions: Iterable[str] = (),
) -> str:
    """Make a token.

    Args:
        key: The account key.
        role: The role it gives; None for none.
        now: In seconds since 1970.

    Keyword Args:
        audience: For whom it is made, for example ``https://localhost``.
        lifetime: In seconds.
        actions: Data actions that it gives besides, such as ``Microsoft.DocumentDB/databaseAccounts/readMetadata``.

    Returns:
        The token.
    """
    claims: JsonObject = {
        "aud": audience,
        "iss": "https://sts.windows.net/emulator/",
        "iat": int(now),
        "nbf": int(now),
        "exp": int(now + lifetime),
        "oid": _PRINCIPAL,
        "roles": [] if role is None else [role],
        "actions": list(actions),
    }
    parts = (json.dumps(_HEADER).encode(), json.dumps(claims).encode(), key.encode())
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)


def read_token(key: str, token: str, now: float) -> Principal:
    """Check a token and tell whom it stands for.

    A token without the claim ``roles`` gives all that data-plane tokens can: Microsoft's emulator knows no roles.

    Args:
        key: The account key.
        token: The token.
        now: In seconds since 1970.

    Returns:
        Whom it stands for.

    Raises:
        TokenError: It is malformed, made with another key, or not valid at this time.
    """
    parts = [_decoded(part) for part in token.split(".")]
    if len(parts) != _PARTS:
        raise TokenError("The token is no JWT.")
    if not hmac.compare_digest(parts[-1], key.encode()):
        raise TokenError("The token is signed with another key.")
    claims = _claims(parts[1])
    if not _number(claims, "nbf") - _SKEW <= now < _number(claims, "exp"):
        raise TokenError("The token is not valid at this time.")
    return Principal(str(claims.get("oid")), _role(claims), _actions(claims))


def _decoded(part: str) -> bytes:
    try:
        return base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True)
    except (NotBase64Error, ValueError) as error:
        raise TokenError("The token is not base64.") from error


def _claims(part: bytes) -> JsonObject:
    try:
        claims: Json = json.loads(part)
    except (ValueError, RecursionError) as error:
        raise TokenError("The claims of the token are not JSON.") from error
    if not isinstance(claims, dict):
        raise TokenError("The claims of the token are no object.")
    return claims


def _number(claims: JsonObject, name: str) -> float:
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TokenError(f"The token has no number as '{name}'.")
    return value


def _actions(claims: JsonObject) -> frozenset[str]:
    actions = claims.get("actions", [])
    if not isinstance(actions, list):
        raise TokenError("The token's 'actions' are no list.")
    return frozenset(action for action in actions if isinstance(action, str))


def _role(claims: JsonObject) -> Role | None:
    roles = claims.get("roles", ["contributor"])
    if not isinstance(roles, list):
        raise TokenError("The token's 'roles' are no list.")
    ranked: tuple[Role, ...] = ("contributor", "reader")
    return next((role for role in ranked if role in roles), None)
