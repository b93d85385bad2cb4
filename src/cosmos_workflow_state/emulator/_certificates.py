"""Certificates for TLS on this machine.

Owns their making, in memory, new at every start. Needs the extra ``emulator``.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from typing import Final

__all__ = ["Identity", "make_identity"]

_LOCAL: Final = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Identity:
    """What a server proves itself with.

    Attributes:
        context: For the server.
        authority: PEM of the certificate that a client may trust.
    """

    context: ssl.SSLContext
    authority: bytes


def make_identity(host: str) -> Identity:
    """Make a certificate for this machine and a host name or address.

    Args:
        host: Name or address the server listens on.

    Returns:
        The certificate, ready for use.

    Raises:
        ModuleNotFoundError: trustme is not installed.
    """
    try:
        import trustme  # noqa: PLC0415 - an extra, needed for TLS only
    except ModuleNotFoundError as error:
        message = "TLS needs trustme: pip install 'cosmos-workflow-state[emulator]'"
        raise ModuleNotFoundError(message, name="trustme") from error
    authority = trustme.CA(organization_name="cosmos-workflow-state emulator")
    names = dict.fromkeys((*_LOCAL, host))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate = authority.issue_cert(*names)
    # One of the types it takes is that of a library that is not needed, and unknown without it.
    certificate.configure_cert(context)  # pyright: ignore[reportUnknownMemberType]
    return Identity(context, authority.cert_pem.bytes())
