"""Whether an endpoint can be reached: its name, and TLS. What is said over TLS is for the client.

The client needs neither answer; a person who cannot get in does.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from contextlib import suppress
from typing import Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from ._checks import Check
from ._output import ExitCode

PATIENCE: Final = 10.0
"""Seconds for each step, at most."""
_HERE: Final = frozenset({"localhost", "127.0.0.1", "::1"})
"""Hosts whose certificate the client does not verify."""


async def reach(endpoint: str, patience: float) -> list[Check]:
    """Return the checks of name and TLS; the last one has failed where there is no way.

    Args:
        endpoint: Of the settings.
        patience: Seconds for each step.
    """
    parts = urlsplit(endpoint)
    host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    if parts.scheme in getproxies() and not proxy_bypass(host):
        return [Check("network", "ok", "goes through the proxy of the environment; DNS and TLS are not tried")]
    name = await _look_up(host, port, patience)
    if name.status == "failed":
        return [name]
    return [name, await _connect(host, port, patience, tls=parts.scheme == "https")]


async def _look_up(host: str, port: int, patience: float) -> Check:
    try:
        async with asyncio.timeout(patience):
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        remedy = "is COSMOS_WORKFLOW_STATE_ENDPOINT right? a private endpoint needs its private DNS zone"
        return Check("dns", "failed", f"{host} has no address", remedy, ExitCode.TRY_AGAIN)
    addresses = list(dict.fromkeys(str(one[4][0]) for one in found))
    if addresses == [host]:
        return Check("dns", "ok", f"{host} is an address already")
    more = f" and {len(addresses) - 1} more" if addresses[1:] else ""
    return Check("dns", "ok", f"{host} is {addresses[0]}{more}")


async def _connect(host: str, port: int, patience: float, *, tls: bool) -> Check:
    name = "tls" if tls else "connection"
    try:
        async with asyncio.timeout(patience):
            _, writer = await asyncio.open_connection(host, port, ssl=_context(host) if tls else None)
    except ssl.SSLCertVerificationError as error:
        remedy = "a proxy that opens TLS needs its certificate in SSL_CERT_FILE; otherwise this is not the account"
        return Check(
            name, "failed", f"the certificate is not trusted: {error.verify_message}", remedy, ExitCode.TRY_AGAIN
        )
    except OSError as error:
        remedy = "is COSMOS_WORKFLOW_STATE_ENDPOINT right, and does a firewall let this machine through?"
        found = f"no connection to port {port} ({_fault(error, patience)})"
        return Check(name, "failed", found, remedy, ExitCode.TRY_AGAIN)
    session: ssl.SSLObject | None = writer.get_extra_info("ssl_object")
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
    if session is None:
        return Check(name, "ok", f"port {port} answers; plain http, which only this machine can read")
    verified = "not verified, as it is of this machine" if host in _HERE else "verified"
    return Check(name, "ok", f"{session.version()}, the certificate is {verified}")


def _context(host: str) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if host in _HERE:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def _fault(error: OSError, patience: float) -> str:
    if isinstance(error, TimeoutError) and not error.errno:
        return f"no answer in {patience:g} seconds"
    if isinstance(error, ssl.SSLError):
        return "what answers does not speak TLS"
    # asyncio's own text quotes the address in Python's way.
    return os.strerror(error.errno).lower() if error.errno else "no answer"
