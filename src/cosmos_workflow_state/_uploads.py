"""Bytes that are too many for one item: parts that are written before, read with, and deleted after what names them.

An upload begins with its guard. What names the upload is written in one batch that also deletes the guard, so whoever
removes the guard first decides: either the upload is committed, or its parts are free to be collected. No clock and no
lock is in that.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from ._gateway import Gateway, Meter
from ._identity import part_item_id
from ._items import lies_in, part_items, parts_of, read_part, upload_guard_item
from ._records import AnyPlace, UnreadableError, Upload
from ._threads import side_by_side


class MissingItemError(Exception):
    """An item that another one names is not there: deleted meanwhile, not yet on this replica, or lost."""


@dataclass(frozen=True, slots=True)
class Uploads:
    """Writes, reads and deletes parts in one place, for one operation.

    Attributes:
        gateway: The container.
        place: Where the parts live.
        meter: Counts what it costs.
    """

    gateway: Gateway
    place: AnyPlace
    meter: Meter

    async def write(self, owner: str, data: bytes, ttl: int) -> Upload | None:
        """Store bytes in parts; return None, with nothing stored, when an item can hold them itself.

        Args:
            owner: Id of the item that will name them.
            data: All of the bytes.
            ttl: Seconds until the owner expires, ``NEVER`` for never.

        Raises:
            ServiceError: The service refused, throttled or could not be reached; what was stored is swept later.
        """
        count = parts_of(data)
        if not count:
            return None
        made = await self._begin(count)
        items = part_items(self.place, made, owner, data, ttl)
        await side_by_side(partial(self.gateway.create, item, self.meter) for item in items)
        return made

    async def _begin(self, count: int) -> Upload:
        """Write the guard of a new upload, which is never sent twice.

        One whose answer was lost may still be under way: it would stand there again after it was taken away.
        """
        while True:
            made, unknown_before = Upload(uuid.uuid4().hex, count), self.meter.unknown_outcomes
            await self.gateway.create(upload_guard_item(self.place, made.write_id), self.meter)
            if self.meter.unknown_outcomes == unknown_before:
                return made

    async def read(self, made: Upload) -> bytes:
        """Return the bytes of an upload.

        Raises:
            MissingItemError: A part is not there.
            ServiceError: The service refused, throttled or could not be reached.
            UnreadableError: A part is damaged or another's.
        """
        pieces = [b""] * made.parts

        async def read(number: int) -> None:
            item = await self.gateway.read(self.place.key, part_item_id(made.write_id, number), self.meter)
            if item is None:
                raise MissingItemError
            if not lies_in(item, self.place):
                raise UnreadableError("a part is another's")
            pieces[number] = read_part(item, made)

        await side_by_side(partial(read, number) for number in range(made.parts))
        return b"".join(pieces)

    async def remove(self, item_ids: Iterable[str]) -> None:
        """Delete parts that nothing names any more.

        Raises:
            ServiceError: The service refused, throttled or could not be reached; what is left is swept later.
        """
        await side_by_side(partial(self.gateway.delete, self.place.key, item_id, self.meter) for item_id in item_ids)


def part_ids(made: Upload) -> tuple[str, ...]:
    """Return the ids of the items of an upload."""
    return tuple(part_item_id(made.write_id, number) for number in range(made.parts))
