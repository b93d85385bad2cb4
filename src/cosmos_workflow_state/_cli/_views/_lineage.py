"""Lineages as forests: who is whose child, what is the main line, and in which order all of it is drawn.

Nothing here recurses: a lineage may be thousands of checkpoints deep.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, TypeAlias

from cosmos_workflow_state.typing import CheckpointSummary

_SHORTEST_GAP: Final = 3
"""Checkpoints that a gap stands for at least: two lines say more than one that counts them."""


@dataclass(frozen=True, slots=True)
class Forest:
    """The checkpoints of one workflow by lineage.

    Attributes:
        headers: By id, oldest first.
        children: The ids of the children by id, the one on the main line last.
        roots: Ids of those whose parent is not there, oldest first; of a circle of parents its oldest.
    """

    headers: dict[str, CheckpointSummary]
    children: Mapping[str, tuple[str, ...]]
    roots: tuple[str, ...]

    @property
    def newest(self) -> str | None:
        """The id of the newest checkpoint, None when there is none."""
        return next(reversed(self.headers), None)

    @property
    def forks(self) -> list[str]:
        """The ids of those with more than one child."""
        return [one for one, children in self.children.items() if len(children) > 1]

    @property
    def waiting(self) -> list[str]:
        """The ids of those that nothing came after and that wait for an answer."""
        return [one for one, header in self.headers.items() if header.pending_request_count and not self.children[one]]


@dataclass(frozen=True, slots=True)
class Branch:
    """A side branch begins; what follows is one level deeper."""

    depth: int


@dataclass(frozen=True, slots=True)
class Node:
    """A checkpoint.

    Attributes:
        depth: How many main lines run on beside it.
        header: The checkpoint.
        told: Whether there is something to tell about it beyond that it comes after its parent.
    """

    depth: int
    header: CheckpointSummary
    told: bool


@dataclass(frozen=True, slots=True)
class Gap:
    """Checkpoints in a line about which there is nothing to tell."""

    depth: int
    first: CheckpointSummary
    last: CheckpointSummary
    count: int


Row: TypeAlias = Branch | Node | Gap


def forest_of(headers: Iterable[CheckpointSummary]) -> Forest:
    """Return the forest of a workflow's checkpoints, given oldest first."""
    known = {header.checkpoint_id: header for header in headers}
    parents = {one: header.previous_checkpoint_id for one, header in known.items()}
    for looped in _circles(parents):
        parents[looped] = None
    children: dict[str, list[str]] = {one: [] for one in known}
    roots: list[str] = []
    for one, parent in parents.items():
        (roots if parent is None or parent not in known else children[parent]).append(one)
    return Forest(known, _main_line_last(children, parents, roots), tuple(roots))


def related_to(forest: Forest, checkpoint_id: str) -> list[CheckpointSummary]:
    """Return a checkpoint with its ancestors and descendants, oldest first."""
    wanted: set[str] = set()
    one: str | None = checkpoint_id
    while one is not None and one in forest.headers and one not in wanted:  # parents may go round in a circle
        wanted.add(one)
        one = forest.headers[one].previous_checkpoint_id
    below = [checkpoint_id]
    while below:
        children = forest.children[below.pop()]
        wanted.update(children)
        below.extend(children)
    return [header for one, header in forest.headers.items() if one in wanted]


def drawn(forest: Forest, root: str, *, everything: bool) -> Iterator[Row]:
    """Yield what is drawn of the tree below a root, from top to bottom.

    The main line goes straight down and side branches come before it goes on, so their depth is bounded: by one more
    than the logarithm to base 2 of the number of checkpoints.

    Args:
        forest: All.
        root: One of its roots.
        everything: Whether long lines about which there is nothing to tell are drawn as well.
    """
    rows = _rows(forest, root)
    if everything:
        yield from rows
        return
    for plain, group in groupby(rows, key=lambda row: isinstance(row, Node) and not row.told):
        found = list(group)
        yield from _shortened([row for row in found if isinstance(row, Node)]) if plain else found


def _circles(parents: Mapping[str, str | None]) -> Iterator[str]:
    """Yield the oldest of each circle of parents."""
    order = {one: number for number, one in enumerate(parents)}
    finished: set[str] = set()
    for start in parents:
        path: dict[str, None] = {}
        one: str | None = start
        while one is not None and one in parents and one not in finished and one not in path:
            path[one] = None
            one = parents[one]
        if one is not None and one in path:
            steps = list(path)
            yield min(steps[steps.index(one) :], key=order.__getitem__)
        finished.update(path)


def _main_line_last(
    children: dict[str, list[str]], parents: Mapping[str, str | None], roots: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    """Order children: the way to the newest checkpoint is the main line, elsewhere the way into the largest tree."""
    sizes = _sizes(children, roots)
    to_newest: set[str] = set()
    one: str | None = next(reversed(children), None)
    while one is not None and one in children:
        to_newest.add(one)
        one = parents[one]
    return {
        parent: tuple(sorted(found, key=lambda child: (child in to_newest, sizes[child])))
        for parent, found in children.items()
    }


def _sizes(children: Mapping[str, list[str]], roots: Sequence[str]) -> dict[str, int]:
    order = list(roots)
    for one in order:  # grows while it is walked
        order.extend(children[one])
    sizes: dict[str, int] = {}
    for one in reversed(order):
        sizes[one] = 1 + sum(sizes[child] for child in children[one])
    return sizes


def _rows(forest: Forest, root: str) -> Iterator[Branch | Node]:
    waiting: list[tuple[str, int, bool]] = [(root, 0, False)]
    while waiting:
        start, depth, is_side = waiting.pop()
        if is_side:
            yield Branch(depth - 1)
        one: str | None = start
        while one is not None:
            children = forest.children[one]
            yield Node(depth, forest.headers[one], one == start or len(children) != 1 or _asks(forest, one))
            if len(children) > 1:
                waiting.append((children[-1], depth, False))
                waiting.extend((side, depth + 1, True) for side in reversed(children[:-1]))
                break
            one = children[0] if children else None


def _asks(forest: Forest, one: str) -> bool:
    """Return whether a checkpoint is the first that waits for something."""
    header = forest.headers[one]
    parent = forest.headers.get(header.previous_checkpoint_id or "")
    return not set(header.pending_request_ids) <= set(() if parent is None else parent.pending_request_ids)


def _shortened(line: Sequence[Node]) -> Iterator[Row]:
    if len(line) < _SHORTEST_GAP:
        yield from line
    else:
        yield Gap(line[0].depth, line[0].header, line[-1].header, len(line))
