"""Failed saves, seen: counted for each storage and told to the application's hook.

The framework's graph runner logs the exception of a failed save and goes on, so an exception alone is seen by nobody.
"""

from __future__ import annotations

import copy

from ._logging import HOOK_FAILED
from ._view import CheckpointView
from .errors import CosmosStateError
from .typing import SaveFailure, SaveFailures


class SaveFailureCounter:
    """Counts the failed saves of one storage object.

    Attributes:
        seen: The count and the last error so far.
    """

    __slots__ = ("_view", "seen")

    def __init__(self, view: CheckpointView) -> None:
        """Start at none."""
        self._view = view
        self.seen = SaveFailures()

    def note(self, workflow_name: str | None, checkpoint_id: str | None, error: Exception) -> None:
        """Count a failed save and tell the hook; whatever that raises, the save raises what it would have raised."""
        self.seen = SaveFailures(self.seen.count + 1, _without_frames(error))
        view, hook = self._view, self._view.backend.on_save_failed
        if hook is None:
            return
        try:
            hook(SaveFailure(view.tenant.value, view.scope.value, workflow_name, checkpoint_id, error))
        except Exception as failure:  # noqa: BLE001 - an application's code, which may raise anything
            kind = type(failure).__name__
            view.tell(view.backend.logger.error, HOOK_FAILED, workflow_name, checkpoint_id, error_type=kind)


def _without_frames(error: Exception) -> CosmosStateError:
    """Return a copy without traceback and cause: their frames hold the state, of up to 64 MiB, for as long as they."""
    if isinstance(error, CosmosStateError):
        return copy.copy(error)
    return CosmosStateError(f"the save failed with {type(error).__name__}")
