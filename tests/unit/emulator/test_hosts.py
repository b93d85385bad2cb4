"""Where the emulator listens, and by which names it may be called."""

from __future__ import annotations

import socket

import pytest

from cosmos_workflow_state.emulator._hosts import HostRule, RemoteAccessError, is_loopback, url_host


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("127.0.0.1", True),
        ("127.1.2.3", True),
        ("::1", True),
        ("localhost", True),
        ("LOCALHOST", True),
        ("0.0.0.0", False),  # noqa: S104 - only looked at
        ("::", False),
        ("10.0.0.1", False),
        ("example.org", False),
        ("localhost.example.org", False),
        ("", False),
    ],
)
def test_what_is_local(host: str, *, local: bool) -> None:
    """Only this machine's own addresses are, and need no permission."""
    assert is_loopback(host) is local
    if local:
        HostRule(host, allow_remote=False)
    else:
        with pytest.raises(RemoteAccessError, match="allow-remote"):
            HostRule(host, allow_remote=False)


@pytest.mark.parametrize(
    ("header", "local", "remote"),
    [
        ("localhost:8081", True, True),
        ("LocalHost", True, True),
        ("127.0.0.1:1", True, True),
        ("[::1]:8081", True, True),
        ("10.0.0.1:8081", False, True),
        (f"{socket.gethostname()}:8081", False, True),
        ("rebound.example.org:8081", False, False),
        ("", False, False),
        ("[::1", False, False),
        ("a@localhost", False, False),
        ("localhost/x", False, False),
    ],
)
def test_which_host_headers_are_accepted(header: str, *, local: bool, remote: bool) -> None:
    """Addresses and the machine's own names are; a name somebody else made lead here is not."""
    assert HostRule("127.0.0.1", allow_remote=False).accepts(header) is local
    assert HostRule("0.0.0.0", allow_remote=True).accepts(header) is remote  # noqa: S104 - only looked at


def test_a_url_leads_to_an_address() -> None:
    """What means "any address" to a server means nothing to a client; the newer kind is put in brackets."""
    hosts = ("127.0.0.1", "::1", "0.0.0.0", "::", "localhost")  # noqa: S104 - only looked at
    assert [url_host(host) for host in hosts] == ["127.0.0.1", "[::1]", "127.0.0.1", "[::1]", "localhost"]
