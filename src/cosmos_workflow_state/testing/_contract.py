"""All tests of the kit in one class."""

from __future__ import annotations

from ._allow_list_tests import AllowListTests
from ._base_tests import BaseTests, ValueTests
from ._concurrency_tests import ConcurrencyTests, LifecycleTests, RetryTests
from ._identity_tests import HostileIdTests, IsolationTests
from ._order_tests import OrderTests
from ._resume_tests import ResumeTests
from ._size_tests import LargeTests


class CheckpointStorageContract(
    BaseTests,
    ValueTests,
    IsolationTests,
    HostileIdTests,
    OrderTests,
    AllowListTests,
    LargeTests,
    ConcurrencyTests,
    RetryTests,
    LifecycleTests,
    ResumeTests,
):
    """The tests of a checkpoint storage; subclass it under a name that pytest collects, and override the fixtures.

    Every test carries the mark ``checkpoint_contract(capability=...)`` with a `Capability`, so that
    ``-m "checkpoint_contract(capability='ordering')"`` selects those of one.

    Attributes:
        unclaimed: What the storage does not set out to do, each with the reason; the tests are skipped with it.
        large_state_bytes: Size of a state that is over most limits of one record or item.
        huge_state_bytes: Size of a state that needs more than one request or file to most services.
    """
