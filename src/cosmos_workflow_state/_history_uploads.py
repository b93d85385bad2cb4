"""Deleting the parts of messages that nothing names, so that what a message may still come to name is never deleted.

A message is committed only if the guard of its parts is still there. Once that is taken away, no message can come to
name them, and one that does already is found by what is asked afterwards. Why no clock and no lock is in that, and what
it needs of the account: see `_collecting`.
"""

from __future__ import annotations

from collections.abc import Iterable

from . import _history_queries
from ._collecting import take_away
from ._conversations import Conversation
from ._items import upload_guard_item


async def collect(conversation: Conversation, write_id: str, item_ids: Iterable[str]) -> None:
    """Delete the guard and the parts of an upload, unless a message names it; who is about to writes it anew.

    Args:
        conversation: Of any source of the session.
        write_id: Which upload.
        item_ids: Its parts.

    Raises:
        ServiceError: The service refused, throttled or could not be reached; a repeat goes on.
    """
    place, gateway, meter = conversation.place, conversation.backend.gateway, conversation.meter
    await take_away(gateway, place, upload_guard_item(place, write_id), meter)
    named = gateway.query(_history_queries.NAMING, _history_queries.naming(place, write_id), place.key, meter)
    if not [item async for item in named]:
        await conversation.uploads.remove(item_ids)
