"""The programs of the documentation that need the packages of hosts."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.pages import programs, run


@pytest.mark.parametrize("code", programs(of_hosts=True))
def test_code_blocks_run(code: str, tmp_path: Path) -> None:
    """Every Python block is a whole program that runs as it stands."""
    assert run(code, tmp_path)
