"""What a host knows of a request, as one scope: injective, so that no two callers ever share one."""

from __future__ import annotations

import hashlib
import json

from cosmos_workflow_state._identity import MAX_NAME_BYTES
from cosmos_workflow_state.errors import InvalidIdentifierError


def scope_of(host: str, *parts: str | None) -> str:
    """Return the scope of a host's identities: ``host:["user",null,"context"]``, or a digest of it when it is long.

    Args:
        host: Which adapter asks; scopes of two adapters never meet.
        *parts: The identities, None for one that is not there; their number is part of the scope.

    Raises:
        InvalidIdentifierError: A part has a lone surrogate, which no request can be told by.
    """
    text = f"{host}:{json.dumps(parts, ensure_ascii=False, separators=(',', ':'))}"
    try:
        raw = text.encode()
    except UnicodeEncodeError:
        raise InvalidIdentifierError("an identity of the request must not contain a lone surrogate") from None
    # JSON begins with a bracket, so the two forms cannot meet.
    return text if len(raw) <= MAX_NAME_BYTES else f"{host}:sha256:{hashlib.sha256(raw).hexdigest()}"
