"""Whether two values are the same in everything a pickle would keep, also where their types do not say when they are.

Neither ``==`` nor bytes will do: a class without ``__eq__`` is only equal to itself, NaN not even that, and the pickles
of equal values differ where a set has another order or a text is shared. Iterative: state may nest as deep as it likes.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, Final

_PROTOCOL: Final = 4

_Pairs = list[tuple[Any, Any]]


def same(one: Any, other: Any) -> bool:
    """Return whether two values are the same, part by part; NaN is NaN, and the order of the keys of a dict counts."""
    pending: _Pairs = [(one, other)]
    # Kept, not only their ids: parts are made on the way, and the id of one that is gone is another's soon.
    compared: dict[tuple[int, int], tuple[Any, Any]] = {}
    while pending:
        pair = pending.pop()
        identity = (id(pair[0]), id(pair[1]))
        if pair[0] is pair[1] or identity in compared:
            continue
        compared[identity] = pair
        parts = _parts_to_compare(*pair)
        if parts is None:
            return False
        pending += parts
    return True


def _parts_to_compare(one: object, other: object) -> _Pairs | None:
    """Return what must be the same for two values to be; None when they differ already."""
    kind = type(one)
    if kind is not type(other) or issubclass(kind, type):  # a class is only itself
        return None
    return _COMPARED.get(kind, _objects_to_compare)(one, other)


def _plain(one: Any, other: Any) -> _Pairs | None:
    return _if(one == other)


def _written_out(one: Any, other: Any) -> _Pairs | None:
    return _if(repr(one) == repr(other))


def _paired(one: Any, other: Any) -> _Pairs | None:
    return list(zip(one, other, strict=True)) if len(one) == len(other) else None


def _mappings(one: Any, other: Any) -> _Pairs | None:
    return _paired(*([part for item in mapping.items() for part in item] for mapping in (one, other)))


def _sets(one: Any, other: Any) -> _Pairs | None:
    # The second for members that are only equal to themselves.
    return _if(one == other or sorted(map(_pickled, one)) == sorted(map(_pickled, other)))


def _objects_to_compare(one: Any, other: Any) -> _Pairs | None:
    """Compare what pickle would take two objects apart into: how they are made, from what, and their state."""
    try:
        made, remade = one.__reduce_ex__(_PROTOCOL), other.__reduce_ex__(_PROTOCOL)
    except Exception:  # noqa: BLE001 - runs code of the state's types; what cannot be taken apart is only itself
        return None
    if isinstance(made, str) or isinstance(remade, str):
        return _if(made == remade)
    return _paired(_listed(made), _listed(remade))


def _listed(reduced: tuple[Any, ...]) -> list[Any]:
    """Return a reduction with lists in place of the iterators over items, which come fourth and fifth."""
    return [*reduced[:3], *(None if items is None else list(items) for items in reduced[3:5]), *reduced[5:]]


def _pickled(value: Any) -> bytes:
    return pickle.dumps(value, _PROTOCOL)


def _if(equal: bool) -> _Pairs | None:  # noqa: FBT001 - the condition itself
    return [] if equal else None


_COMPARED: Final[dict[type[Any], Callable[[Any, Any], _Pairs | None]]] = {
    **dict.fromkeys((int, str, bytes, bool), _plain),
    **dict.fromkeys((float, complex), _written_out),
    **dict.fromkeys((list, tuple), _paired),
    **dict.fromkeys((set, frozenset), _sets),
    dict: _mappings,
}
