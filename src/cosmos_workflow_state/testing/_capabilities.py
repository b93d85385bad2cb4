"""What a storage may claim, and the mark that says which claim a test is about."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

import pytest

MARK: Final = "checkpoint_contract"
"""The pytest mark of every test of the kit; our pytest plugin registers it."""


class Capability(StrEnum):
    """What a checkpoint storage can be held to, one word a group of tests."""

    BASE = "base"
    VALUES = "values"
    ISOLATION = "isolation"
    HOSTILE_IDS = "hostile-ids"
    ORDERING = "ordering"
    ALLOW_LIST = "allow-list"
    LARGE = "large"
    CONCURRENCY = "concurrency"
    IDEMPOTENT_RETRY = "idempotent-retry"
    LIFECYCLE = "lifecycle"
    GRAPH_RESUME = "graph-resume"
    FUNCTIONAL_RESUME = "functional-resume"
    SUB_WORKFLOW_RESUME = "sub-workflow-resume"
    AGENT_RESUME = "agent-resume"

    @property
    def about(self) -> str:
        """What the tests of the group show, in a sentence."""
        return _ABOUT[self]


_ABOUT: Final[Mapping[Capability, str]] = {
    Capability.BASE: "The six methods of the protocol do what their docstrings say.",
    Capability.VALUES: "State comes back as it was, in type and content.",
    Capability.ISOLATION: "Two owners (tenants, users) of one store never see, change or delete what is the other's.",
    Capability.HOSTILE_IDS: "Checkpoint ids and workflow names may be any text.",
    Capability.ORDERING: "Lists are oldest first, the latest is the last, and nothing older stands in for it.",
    Capability.ALLOW_LIST: "Only listed types are restored, and save refuses what load would.",
    Capability.LARGE: "States of several megabytes, and long histories.",
    Capability.CONCURRENCY: "Many calls at once, by one storage and by two, and cancelled ones.",
    Capability.IDEMPOTENT_RETRY: "A save or delete that is repeated does no harm.",
    Capability.LIFECYCLE: "What is saved outlives the storage object: another process finds it.",
    Capability.GRAPH_RESUME: "A graph workflow pauses for a human and goes on in a new instance.",
    Capability.FUNCTIONAL_RESUME: "So does a functional workflow, and no step runs twice.",
    Capability.SUB_WORKFLOW_RESUME: "So does a workflow inside a workflow.",
    Capability.AGENT_RESUME: "So does a workflow that is used as an agent and has an agent in it.",
}


def covers(capability: Capability, *also: Capability) -> pytest.MarkDecorator:
    """Mark a test with the capability it is about.

    Args:
        capability: What ``-m`` and a table of results find it under.
        also: What it needs besides.
    """
    mark: pytest.MarkDecorator = getattr(pytest.mark, MARK)
    return mark(capability=capability, also=also)
