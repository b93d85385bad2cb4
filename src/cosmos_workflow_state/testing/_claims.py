"""What the tests of the kit get to test: the three fixtures, and what a storage does not claim."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import ClassVar, Final, TypeAlias

import pytest
from agent_framework import CheckpointStorage

from ._capabilities import MARK, Capability

Reopen: TypeAlias = Callable[[], Awaitable[CheckpointStorage]]
"""Opens the store under test once more, as another process would."""

StorageOf: TypeAlias = Callable[[str], Awaitable[CheckpointStorage]]
"""Opens the storage of one owner in the store under test."""

_NOT_OVERRIDDEN: Final = "{owner} has to override the fixture `{name}`{unless}"


class Claims:
    """The fixtures that a subclass provides; all tests of the kit derive from this.

    Attributes:
        unclaimed: What the storage does not set out to do, each with the reason; the tests are skipped with it.
        large_state_bytes: Size of a state that is over most limits of one record or item.
        huge_state_bytes: Size of a state that needs more than one request or file to most services.
    """

    unclaimed: ClassVar[Mapping[Capability, str]] = {}
    large_state_bytes: ClassVar[int] = 3_000_000
    huge_state_bytes: ClassVar[int] = 20_000_000

    @pytest.fixture
    def storage(self) -> CheckpointStorage:
        """Give a storage with nothing in it, which allows the kit's `ALLOWED_TYPES`. To be overridden."""
        raise NotImplementedError(self._says("storage", ""))

    @pytest.fixture
    def reopen(self, storage: CheckpointStorage) -> Reopen:
        """Give what opens the store of `storage` again. To be overridden, unless `Capability.LIFECYCLE` is unclaimed.

        What it returns must share no memory with `storage`, as far as that can be.
        """
        if Capability.LIFECYCLE not in self.unclaimed:
            raise NotImplementedError(self._says("reopen", ", or leave Capability.LIFECYCLE unclaimed"))

        async def same() -> CheckpointStorage:
            return storage

        return same

    @pytest.fixture
    def storage_of(self) -> StorageOf:
        """Give what opens the storage of an owner by name, in one empty store.

        To be overridden, unless `Capability.ISOLATION` is unclaimed. Names are letters and digits.
        """
        raise NotImplementedError(self._says("storage_of", ", or leave Capability.ISOLATION unclaimed"))

    @pytest.fixture(autouse=True)
    def skip_what_is_unclaimed(self, request: pytest.FixtureRequest) -> None:
        """Skip a test of a capability that is not claimed, before anything is opened."""
        for mark in request.node.iter_markers(MARK):
            for capability in (mark.kwargs["capability"], *mark.kwargs["also"]):
                if capability in self.unclaimed:
                    pytest.skip(f"{capability} is not claimed: {self.unclaimed[capability]}")

    def _says(self, name: str, unless: str) -> str:
        return _NOT_OVERRIDDEN.format(owner=type(self).__name__, name=name, unless=unless)
