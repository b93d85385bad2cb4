"""How many request units a second a container of ours is created with, as one word of the settings.

https://learn.microsoft.com/azure/cosmos-db/concepts-limits has the bounds. Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal, Self, cast

_STEPS: Final = {"manual": (400, 100), "autoscale": (1000, 1000)}
"""By kind: the least, and what it must be a multiple of."""

_MOST: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Throughput:
    """What a new container is given.

    Attributes:
        kind: ``serverless`` for nothing at all, as serverless accounts and shared databases need it.
        request_units: RU a second; the most that ``autoscale`` goes up to; 0 for ``serverless``.
    """

    kind: Literal["serverless", "manual", "autoscale"]
    request_units: int = 0

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return what a text such as ``serverless``, ``manual:400`` or ``autoscale:1000`` means.

        Raises:
            ValueError: It means nothing, or the service would not accept the number.
        """
        word = text.lower()
        if word == "serverless":
            return cls("serverless")
        found = re.fullmatch(r"(manual|autoscale):([0-9]{1,7})", word, re.ASCII)
        if found is None:
            raise ValueError("no throughput")
        kind, request_units = found[1], int(found[2])
        least, step = _STEPS[kind]
        if not least <= request_units <= _MOST or request_units % step:
            raise ValueError("not a throughput that the service has")
        return cls(cast("Literal['manual', 'autoscale']", kind), request_units)


def check_throughput(text: str) -> str:
    """Return the text in lower case if it is a throughput.

    Raises:
        ValueError: It is none.
    """
    Throughput.parse(text)
    return text.lower()
