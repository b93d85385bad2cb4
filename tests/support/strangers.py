"""Types of an application that are on no list of allowed types, or that fail when they are pickled or restored."""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn

from support.payloads import Point

SECRET = "4111-1111-1111-1111"


class Stranger:
    """A class that no allow-list names."""


class Registered:
    """A class that tests register; it holds something else."""

    def __init__(self, held: object = None) -> None:
        """Hold something."""
        self.held = held


class Other:
    """Another class that no allow-list names."""


class Recorder:
    """A class that tells when it is unpickled."""

    unpickled: ClassVar[list[str]] = []

    def __getstate__(self) -> dict[str, str]:
        """Have a state, so that `__setstate__` is called."""
        return {"name": "recorder"}

    def __setstate__(self, state: dict[str, str]) -> None:
        """Tell of it."""
        self.unpickled.append(state["name"])


class FailsToUnpickle:
    """A class that quotes its content when it cannot be restored."""

    def __init__(self, secret: str) -> None:
        """Keep the content."""
        self.secret = secret

    def __setstate__(self, state: dict[str, str]) -> NoReturn:
        """Quote the content."""
        raise ValueError(state["secret"])


class FailsToPickle:
    """A class that quotes its content when it cannot be pickled."""

    def __getstate__(self) -> NoReturn:
        """Quote the content."""
        raise ValueError(SECRET)


class UnpicklesAsAnother:
    """A class whose pickle brings back an object of another class."""

    def __reduce__(self) -> tuple[type[Any], tuple[int, int]]:
        """Become a point."""
        return (Point, (1, 2))


class StrangeText(str):
    """A subclass of str that no allow-list names."""

    __slots__ = ()


class KeyWithoutText:
    """A key that cannot become text."""

    def __str__(self) -> str:
        """Quote the content."""
        raise ValueError(SECRET)


class TextProxy:
    """What a lazy proxy of a text looks like: it claims the class of the text behind it."""

    @property
    def __class__(self) -> type[Any]:
        """Claim to be a str."""
        return str


def name_of(kind: type[Any]) -> str:
    """Return the name by which a type is allowed or refused."""
    return f"{kind.__module__}:{kind.__qualname__}"
