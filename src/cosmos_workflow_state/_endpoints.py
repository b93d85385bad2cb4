"""What an endpoint may be: the URL of an account, or the embedded engine in memory or on a file.

Pure, but for looking up a home directory. A refusal never quotes what was refused: it may hold a key.
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


def refuse_path(value: object) -> object:
    """Return the value unchanged unless it is a path object: its text would be taken for a URL.

    Raises:
        PydanticCustomError: It is one; its type is `IS_A_PATH`.
    """
    if isinstance(value, PurePath):
        raise PydanticCustomError(IS_A_PATH, "a path")
    return value


def check_endpoint(text: str) -> str:
    """Return the endpoint unchanged.

    Raises:
        ValueError: It is neither an account's nor the embedded engine's.
    """
    accepted = _is_embedded_target(text) if text.startswith(EMBEDDED) else _is_account_url(text)
    if not accepted:
        raise ValueError("not an endpoint")
    return text


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


def _is_account_url(text: str) -> bool:
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


def _is_loopback(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost"
    if isinstance(address, ipaddress.IPv4Address):
        return address.is_loopback
    return address == ipaddress.IPv6Address("::1")
