"""Lists of databases, containers and offers: read whole, queried, page by page.

Owns how documents in memory are queried. Must not know what they describe.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cosmos_workflow_state.emulator._engine._errors import InvalidError
from cosmos_workflow_state.emulator._engine._json import dump, parse_object
from cosmos_workflow_state.emulator._engine._paths import value_at
from cosmos_workflow_state.emulator._gateway._answers import metadata_answer
from cosmos_workflow_state.emulator._gateway._call import Call
from cosmos_workflow_state.emulator._gateway._pages import FEED, read_page
from cosmos_workflow_state.emulator._ordering import term
from cosmos_workflow_state.emulator._query import Candidate, Seek
from cosmos_workflow_state.emulator._values import JsonObject, Response

__all__ = ["ListSource", "list_answer"]

_NUMBER_BYTES = 4


@dataclass(frozen=True, slots=True)
class ListSource:
    """Documents as queries read them; see `ItemSource`. Everything is indexed."""

    documents: Sequence[JsonObject]

    def is_indexed(self, path: tuple[str, ...]) -> bool:
        """Say yes."""
        return bool(path)

    def is_fixed(self, path: tuple[str, ...]) -> bool:
        """Say no: documents may differ in everything."""
        return not path

    def has_composite(self, order: tuple[tuple[tuple[str, ...], bool], ...]) -> bool:
        """Say yes."""
        return bool(order)

    def scan(self, seek: Seek | None, after: bytes | None) -> Iterator[Candidate]:
        """Read documents; see `ItemSource.scan`."""
        found = list(enumerate(self.documents))
        if seek is not None:
            path = seek.path
            found = [each for each in found if _within(term(value_at(each[1], path)), seek)]
            found.sort(key=lambda each: term(value_at(each[1], path)), reverse=seek.descending)
        numbers = [number for number, _ in found]
        start = 0 if after is None else _behind(numbers, after)
        for number, document in found[start:]:
            yield Candidate(document, number.to_bytes(_NUMBER_BYTES, "big"))


def list_answer(call: Call, name: str, rid: str, documents: Sequence[JsonObject]) -> Response:
    """Answer a list, or a query over it, page by page.

    Args:
        call: The request.
        name: What the list is called in the answer's body.
        rid: The `_rid` of what the documents belong to.
        documents: All of them.

    Returns:
        The response.

    Raises:
        ServiceError: The query cannot be run.
    """
    query: JsonObject = parse_object(call.body) if call.is_query else {"query": FEED}
    page = read_page(call, ListSource(documents), query, [name, rid])
    body = b'{"_rid":%b,%b:[%b],"_count":%d}' % (dump(rid), dump(name), b",".join(page.texts), len(page.texts))
    headers = {"x-ms-continuation": page.continuation} if page.continuation else {}
    return metadata_answer(call, body, headers=headers)


def _within(value: bytes, seek: Seek) -> bool:
    low, high = seek.low, seek.high
    if low is not None and (value < low.value or (value == low.value and not low.inclusive)):
        return False
    return high is None or value < high.value or (value == high.value and high.inclusive)


def _behind(numbers: list[int], after: bytes) -> int:
    number = int.from_bytes(after, "big")
    if number not in numbers:
        raise InvalidError("The continuation does not belong to this query.")
    return numbers.index(number) + 1
