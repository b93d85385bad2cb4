"""Which addresses the emulator listens on, and by which names it may be called.

Owns the rules that keep it on this machine unless somebody says otherwise. Must not know of HTTP.
"""

from __future__ import annotations

import ipaddress
import socket
from typing import Final
from urllib.parse import urlsplit

__all__ = ["HostRule", "RemoteAccessError", "is_loopback", "url_host"]

_FORBIDDEN: Final = frozenset("@/?#\\ \t")
"""Would make more than a host of a URL: the header becomes part of the URL that clients are sent to."""


class RemoteAccessError(ValueError):
    """The emulator is to listen where other machines reach it, and nobody allowed that."""


class HostRule:
    """Decides by the Host header whether a request is meant for the emulator.

    A web page may make a browser send requests to any address under a name of its own; those are refused.
    """

    def __init__(self, host: str, *, allow_remote: bool) -> None:
        """Set the rule.

        Args:
            host: Name or address to listen on.

        Keyword Args:
            allow_remote: Whether other machines may reach it.

        Raises:
            RemoteAccessError: They would, and may not.
        """
        if not allow_remote and not is_loopback(host):
            raise RemoteAccessError(
                f"{host} can be reached from other machines: allow_remote=True (--allow-remote) if that is meant"
            )
        self._names = {"localhost", host.lower()}
        self._any_address = allow_remote
        if allow_remote:
            self._names.add(socket.gethostname().lower())

    def accepts(self, header: str) -> bool:
        """Tell whether a Host header is acceptable, whatever its port."""
        if not _FORBIDDEN.isdisjoint(header):
            return False
        try:
            name = urlsplit(f"//{header}").hostname or ""
        except ValueError:
            return False
        # An address cannot be made to mean another machine, only a name can.
        return name in self._names or is_loopback(name) or (self._any_address and _is_address(name))


def is_loopback(host: str) -> bool:
    """Tell whether only this machine reaches a name or address."""
    return host.lower() == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)


def url_host(host: str) -> str:
    """Write a name or address as URLs have it; "any address" becomes this machine's own."""
    address = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - replaced, not listened on
    return f"[{address}]" if ":" in address else address


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
