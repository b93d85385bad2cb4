"""What is known to fail is expected to: a failure that the ledger does not list is one, and so is a listed pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.ledger import Ledger

LEDGER = Path(__file__).with_name("ledger.toml")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Expect the failures that the ledger lists."""
    known = Ledger.parse(LEDGER.read_text("utf-8")).known
    for item in items:
        storage = getattr(getattr(item, "cls", None), "__name__", "").removeprefix("Test")
        if (storage, item.name) in known:
            failure = known[storage, item.name]
            item.add_marker(pytest.mark.xfail(reason=failure.reason, strict=not failure.varies))
