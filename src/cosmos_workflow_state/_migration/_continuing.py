"""Adding to a history exactly what comes next in it: by its place, not by whether it looks like what is there.

A save of the framework's leaves out what looks like a replay, which what follows in a history that is copied may do.
"""

from __future__ import annotations

from collections.abc import Sequence

from cosmos_workflow_state._appending import Append
from cosmos_workflow_state._conversations import Conversation
from cosmos_workflow_state._heads import Head
from cosmos_workflow_state._messages import Entry
from cosmos_workflow_state.errors import StateChangedError


class Continue(Append):
    """Adds messages behind those that are there; what another migration has added of them meanwhile is left out."""

    def __init__(self, conversation: Conversation, entries: Sequence[Entry], ttl: int | None, *, start: int) -> None:
        """Set what is added, how many seconds it lives, and how many messages come before it."""
        super().__init__(conversation, entries, ttl)
        self._end = start + len(entries)

    async def _judge(self, head: Head) -> None:
        """Find out how many of the messages that are left are stored by now.

        Raises:
            StateChangedError: Something else is there, or the history was cleared.
        """
        stored = head.messages - (self._end - len(self._left))
        if head.was_cleared or not 0 <= stored <= len(self._left):
            self._refuse()
        found = await self._conversation.newest_identities(head, stored)
        if list(found) != [cargo.entry.stored for cargo in self._left[:stored]]:
            self._refuse()
        self._stored = stored

    def _refuse(self) -> None:
        raise StateChangedError(
            "the history was cleared or has gone on here in the meantime", **self._conversation.which
        )
