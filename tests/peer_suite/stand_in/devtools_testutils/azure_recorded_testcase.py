"""The credential that the tests use away from the emulator's address, where this suite never runs them."""

from __future__ import annotations

from typing import Never


def get_credential(*, is_async: bool = False) -> Never:
    """Refuse: on ``https://localhost:8081/`` the tests take the emulator's key."""
    raise NotImplementedError(f"the peer suite runs on https://localhost:8081/ only (is_async={is_async})")
