"""The rules of the conformance ledger, and the page made from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.ledger import Case, Known, Ledger, page, stale

ENTRIES = """
[versions]
framework = "1.23"

[[Files]]
reason = "Files are not sorted."
varies = true
tests = ["test_order[a]", "test_order[b]"]

[[Files]]
reason = "Ids are names."
tests = ["test_slash"]
"""
CASES = [
    Case("Files", "ordering", "test_order[a]", ""),
    Case("Files", "ordering", "test_order[b]", ""),
    Case("Files", "ordering", "test_latest", ""),
    Case("Files", "ids", "test_slash", ""),
    Case("Files", "owners", "test_owners", "owners: it has none"),
    Case("Ours", "ordering", "test_latest", ""),
    Case("Ours", "owners", "test_owners", ""),
]
ABOUTS = {"ordering": "In order.", "ids": "Any text.", "owners": "Apart."}

PAGE = """\
With framework 1.23.

| capability | what it means | `Files` | `Ours` |
| --- | --- | --- | --- |
| ordering | In order. | 1 of 3 | 1 of 1 |
| ids | Any text. | 0 of 1 | not claimed |
| owners | Apart. | not claimed | 1 of 1 |
| all |  | 1 of 4 | 2 of 2 |

## `Files`

Not claimed:

- owners: it has none

Fails:

- Files are not sorted. This depends on the machine.
  - `test_order`: a, b
- Ids are names.
  - `test_slash`

## `Ours`

Passes all that it claims.
"""


def test_a_ledger_is_read() -> None:
    """By storage and test, with the reason, and with whether the machine decides."""
    ledger = Ledger.parse(ENTRIES)
    assert ledger.versions == {"framework": "1.23"}
    assert ledger.known == {
        ("Files", "test_order[a]"): Known("Files are not sorted.", varies=True),
        ("Files", "test_order[b]"): Known("Files are not sorted.", varies=True),
        ("Files", "test_slash"): Known("Ids are names.", varies=False),
    }


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param('[[Files]]\nreason = "again"\ntests = ["test_slash"]', id="twice"),
        pytest.param('[[Files]]\nreason = " "\ntests = ["test_a"]', id="without-a-reason"),
    ],
)
def test_a_ledger_that_cannot_be_meant(entry: str) -> None:
    """A test that stands there twice, or without a reason, is refused."""
    with pytest.raises(ValueError, match="twice, or without a reason"):
        Ledger.parse(f"{ENTRIES}\n{entry}")


def test_the_ledger_that_is_checked_in() -> None:
    """It can be read, and ours is not in it."""
    text = (Path(__file__).parents[1] / "conformance" / "ledger.toml").read_text("utf-8")
    storages = {storage for storage, _ in Ledger.parse(text).known}
    assert storages == {"InMemoryCheckpointStorage", "FileCheckpointStorage", "CosmosCheckpointStorage"}


def test_what_is_listed_and_not_run() -> None:
    """A test that is gone, or whose capability is not claimed, has no place in the ledger."""
    ledger = Ledger.parse(f'{ENTRIES}\n[[Files]]\nreason = "x"\ntests = ["test_gone", "test_owners"]')
    assert stale(CASES, ledger) == ["Files::test_gone", "Files::test_owners"]
    assert stale(CASES, Ledger.parse(ENTRIES)) == []


def test_the_page() -> None:
    """A table of what passes, and for each storage what it does not claim and what fails, with the reasons."""
    assert page(CASES, ABOUTS, Ledger.parse(ENTRIES), "With {versions}.") == PAGE
