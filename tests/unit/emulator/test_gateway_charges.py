"""Request charges against the published figures."""

from __future__ import annotations

import pytest

from cosmos_workflow_state.emulator._gateway._charges import (
    delete_charge,
    query_charge,
    read_charge,
    replace_charge,
    write_charge,
)

KILOBYTE = 1024


def test_published_figures() -> None:
    """Point reads and writes without indexes cost what the service documents, to 1 KB and to 100 KB."""
    assert [read_charge(KILOBYTE), read_charge(100 * KILOBYTE)] == [1, 10]
    assert [write_charge(KILOBYTE, 2), write_charge(100 * KILOBYTE, 2)] == [5, 50]
    assert replace_charge(KILOBYTE, 0) == 10
    assert read_charge(1) == 1
    assert delete_charge() == 5


def test_indexes_and_results_cost() -> None:
    """Every index term, row and byte makes an operation dearer."""
    assert write_charge(KILOBYTE, 12) == 6
    assert replace_charge(KILOBYTE, 12) == 11
    assert query_charge(0, 0) == 2.8
    assert query_charge(1, 10 * KILOBYTE) == pytest.approx(3.19, abs=0.1)
    assert query_charge(2, 0) > query_charge(1, 0)
