"""What an endpoint is: an account's URL or the embedded engine, and what its text tells.

Pure: it looks at text and opens nothing.
"""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path, PurePath
from typing import Final
from urllib.parse import urlsplit

from pydantic_core import PydanticCustomError

EMBEDDED: Final = "embedded:"
IS_A_PATH: Final = "path"

_AZURE_DOMAINS: Final = (".documents.azure.com", ".documents.azure.us", ".documents.azure.cn")


def refuse_path(value: object) -> object:
    """Return the value unchanged unless it is a path object: its text would be taken for a URL.

    Raises:
        PydanticCustomError: It is one; its type is `IS_A_PATH`.
    """
    if isinstance(value, PurePath):
        raise PydanticCustomError(IS_A_PATH, "a path")
    return value


def check_endpoint(text: str) -> str:
    """Return the text if it is an endpoint.

    Raises:
        ValueError: It is none.
    """
    accepted = _is_embedded_target(text) if text.startswith(EMBEDDED) else is_account_url(text)
    if not accepted:
        raise ValueError("not an endpoint")
    return text


def is_account_url(text: str) -> bool:
    """Tell whether the text is the URL of an account: TLS anywhere, plain http to this machine only."""
    # The parser drops tabs and newlines and clients disagree about backslashes: neither may reach it.
    if not text.isascii() or not text.isprintable() or any(character in text for character in " \\@?#"):
        return False
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return False
    host = parts.hostname or ""
    if parts.path not in {"", "/"} or not (re.fullmatch(r"[a-z0-9._-]+", host) or "[" in parts.netloc):
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and _is_loopback(host))


def is_plain_http(endpoint: str) -> bool:
    """Tell whether what is sent to this endpoint can be read on its way."""
    return urlsplit(endpoint).scheme == "http"


def is_same_account(one: str, other: str) -> bool:
    """Tell whether two URLs lead to the same place, however each is written."""
    return _place(one) == _place(other)


def account_name(endpoint: str) -> str | None:
    """Return the name of the account that Azure's tools take, or None where the endpoint does not tell it."""
    host = urlsplit(endpoint).hostname or ""
    name, dot, _ = host.partition(".")
    return name if dot and host.endswith(_AZURE_DOMAINS) else None


def _place(url: str) -> tuple[str, str | None, int]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)


def _is_embedded_target(text: str) -> bool:
    target = text.removeprefix(EMBEDDED)
    # "embedded://…" is a URL written by habit: its path would silently start with "//".
    if target != target.strip() or "\0" in target or target.startswith("//"):
        return False
    try:
        Path(target).expanduser()
    except RuntimeError:
        return False
    return True


def _is_loopback(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost"
    if isinstance(address, ipaddress.IPv4Address):
        return address.is_loopback
    return address == ipaddress.IPv6Address("::1")
