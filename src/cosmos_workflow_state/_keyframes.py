"""Which keyframe a payload is stored against, and what this process remembers of keyframes. No I/O.

A lineage of checkpoints starts with a keyframe, its whole state; what follows is stored as the difference to that. Each
difference is larger than the one before, as the state moves away: once together they have cost as much as the keyframe
did, the next one is written. So neither is most of the bill, however fast a state grows.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Final

from ._codec import MAX_WHOLE_BYTES, encode_difference, encode_whole
from ._records import CheckpointKey, EncodedPayload, Keyframe, Place

_MAX_BYTES: Final = 64 * 1024 * 1024
_MAX_TIMES_LARGER: Final = 4
"""How many times larger than a payload its keyframe may be: whoever loads the one reads and decompresses the other."""

_MAX_HEADS: Final = 20_000


@dataclass(frozen=True, slots=True)
class Base:
    """What the next checkpoint of a lineage may be stored against.

    Attributes:
        keyframe: The keyframe that the lineage is at.
        spent: Bytes of the differences along the lineage since.
    """

    keyframe: Keyframe
    spent: int


@dataclass(frozen=True, slots=True)
class Encoding:
    """A payload, ready to be stored.

    Attributes:
        payload: The encoded state.
        base: The keyframe it refers to, None when it stands alone.
        is_new: Whether that keyframe has to be stored with it.
    """

    payload: EncodedPayload
    base: Base | None = None
    is_new: bool = False


def encode(raw: bytes, base: Base | None, *, ttl: int | None, keyframe_id: str, payload_format: str) -> Encoding:
    """Encode a payload in the way that costs least in the long run.

    Args:
        raw: The payload before the codecs.
        base: What is known of its lineage, None for nothing.
        ttl: Seconds that the checkpoint will live, None for ever: a keyframe has to outlive it.
        keyframe_id: The id of a new keyframe, if one is needed.
        payload_format: What the bytes mean.

    Raises:
        UnreadableError: The remembered keyframe is damaged.
    """
    if base is not None and base.keyframe.serves(ttl) and base.keyframe.size <= _MAX_TIMES_LARGER * len(raw):
        difference = encode_difference(raw, base.keyframe, spent=base.spent, payload_format=payload_format)
        if _is_worth_it(difference, base.keyframe):
            return Encoding(difference, replace(base, spent=difference.spent))
    whole = encode_whole(raw, payload_format=payload_format)
    if len(whole.data) <= MAX_WHOLE_BYTES:
        return Encoding(whole)
    keyframe = Keyframe(keyframe_id, len(raw), whole.data, ttl)
    nothing = encode_difference(raw, keyframe, spent=0, payload_format=payload_format)
    return Encoding(nothing, Base(keyframe, nothing.spent), is_new=True)


def _is_worth_it(difference: EncodedPayload, keyframe: Keyframe) -> bool:
    """Return whether a difference costs less than a new keyframe would, now and with those before it."""
    expected_whole = difference.size * len(keyframe.data) / keyframe.size
    return difference.spent <= len(keyframe.data) and 2 * len(difference.data) <= expected_whole


class KeyframeMemory:
    """The keyframes that this process has written or read lately, compressed, and which lineage is at which.

    Bounded; forgetting one costs a read or a new keyframe, never a wrong answer: each key is a whole identity.
    """

    def __init__(self, max_bytes: int = _MAX_BYTES) -> None:
        """Start knowing nothing.

        Args:
            max_bytes: Compressed bytes that are kept, of all tenants together.
        """
        self._max_bytes = max_bytes
        self._bytes = 0
        self._keyframes: OrderedDict[tuple[Place, str], Keyframe] = OrderedDict()
        self._heads: OrderedDict[CheckpointKey | Place, tuple[str, int]] = OrderedDict()

    def remember(self, key: CheckpointKey, base: Base) -> None:
        """Note what the children of a checkpoint may be stored against."""
        self.keep(key.place, base.keyframe)
        for head in (key, key.place):
            self._heads[head] = (base.keyframe.id, base.spent)
            self._heads.move_to_end(head)
        while len(self._heads) > _MAX_HEADS:
            self._heads.popitem(last=False)

    def base_of(self, key: CheckpointKey) -> Base | None:
        """Return what a child of this checkpoint may be stored against, None when that is not known here."""
        return self._base(key, key.place)

    def last_of(self, place: Place) -> Base | None:
        """Return what the checkpoint seen last of a workflow and scope was stored against, None when none was seen."""
        return self._base(place, place)

    def get(self, place: Place, keyframe_id: str) -> Keyframe | None:
        """Return a keyframe, None when it is not remembered."""
        found = self._keyframes.get((place, keyframe_id))
        if found is not None:
            self._keyframes.move_to_end((place, keyframe_id))
        return found

    def forget(self, place: Place, keyframe_id: str) -> None:
        """Forget a keyframe that may no longer be referred to."""
        found = self._keyframes.pop((place, keyframe_id), None)
        self._bytes -= 0 if found is None else len(found.data)

    def keep(self, place: Place, keyframe: Keyframe) -> None:
        """Note a keyframe that was read."""
        self.forget(place, keyframe.id)
        if len(keyframe.data) > self._max_bytes:
            return
        self._keyframes[place, keyframe.id] = keyframe
        self._bytes += len(keyframe.data)
        while self._bytes > self._max_bytes:
            _, oldest = self._keyframes.popitem(last=False)
            self._bytes -= len(oldest.data)

    def _base(self, head: CheckpointKey | Place, place: Place) -> Base | None:
        keyframe_id, spent = self._heads.get(head, (None, 0))
        keyframe = None if keyframe_id is None else self.get(place, keyframe_id)
        return None if keyframe is None else Base(keyframe, spent)
