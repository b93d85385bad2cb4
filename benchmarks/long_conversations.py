"""Long conversations: what this package stores, asks for and takes, beside the framework's own Cosmos storage.

    python benchmarks/long_conversations.py [--turns 15 40 100 300] [--kind sequential functional images]

The framework's own workflows run, turn after turn, and every checkpoint that they save goes to both storages and, as
the floor, an item of 5 KB to the bare client; the three take turns. Requests, bytes and charges are counted at the
client's transport, the bytes that this package stores in what its container holds. Where the framework's storage is
refused because a state is over 2 MB, what it would have stored counts, but no charge and no time. Without options it
takes about a minute; 300 turns of all three kinds take most of an hour and a few GB of disk.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import resource
import statistics
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from importlib.metadata import version
from itertools import pairwise
from math import ceil
from pathlib import Path
from typing import Final

from _conversations import KINDS
from _measuring import STAGES, Cost, Stopwatch
from _subjects import BY_ID, FLOOR, KNOWN, LATEST, MAF, OURS, Ours, Subject, open_subject
from agent_framework import InMemoryCheckpointStorage, WorkflowCheckpoint

RECENT: Final = 5
"""Turns up to that of a row, from which its charges, requests and times are: the state is about as large in each."""

MAX_ITEM_BYTES: Final = 2 * 1024 * 1024
"""What the service takes in an item (https://learn.microsoft.com/azure/cosmos-db/concepts-limits)."""

MEGABYTE: Final = 1_000_000
NOBODY: Final = "none: the conversation alone"


class Recorder(InMemoryCheckpointStorage):
    """Hands what the framework saves to all subjects, whose order changes every time, and keeps what it cost."""

    def __init__(self, subjects: Sequence[Subject], watch: Stopwatch) -> None:
        """Start with nothing recorded."""
        super().__init__()
        self._subjects = subjects
        self._watch = watch
        self.saves: list[dict[str, Cost]] = []
        self._newest: WorkflowCheckpoint | None = None
        self._failure: Exception | None = None

    async def save(self, checkpoint: WorkflowCheckpoint) -> str:
        """Save everywhere; the framework's runner passes over what this raises, so it is kept."""
        first = len(self.saves) % max(1, len(self._subjects))
        costs: dict[str, Cost] = {}
        try:
            for subject in (*self._subjects[first:], *self._subjects[:first]):
                costs[subject.name] = await subject.transport.measure(subject.save(checkpoint), self._watch)
        except Exception as failure:
            self._failure = failure
            raise
        self.saves.append(costs)
        self._newest = checkpoint
        return checkpoint.checkpoint_id

    def check(self) -> None:
        """Raise what a save has raised, if one has."""
        if self._failure is not None:
            raise self._failure

    async def read(self) -> dict[str, dict[str, Cost]]:
        """Read the newest checkpoint in every way, everywhere except where it was refused; return what it cost."""
        newest = self._newest
        if newest is None:
            raise LookupError("nothing was saved")
        return {
            each.name: await each.cold_reads(newest) for each in self._subjects if not self.saves[-1][each.name].refused
        }


@dataclass(frozen=True, slots=True)
class Run:
    """What a conversation has cost up to a turn.

    Attributes:
        turn: How many it has had.
        saves: The cost of every save, by subject.
        recent: Those of the last `RECENT` turns.
        reads: The cold reads after each of these turns, by subject.
        refused_at: The turn in which the framework's storage was refused first, None for in none.
        stored: Bytes of all our items.
        items: Our items by type.
    """

    turn: int
    saves: Sequence[Mapping[str, Cost]]
    recent: Sequence[Mapping[str, Cost]]
    reads: Sequence[Mapping[str, Mapping[str, Cost]]]
    refused_at: int | None
    stored: int
    items: Counter[str]

    def of(self, name: str) -> list[Cost]:
        """Return what the recent saves of a subject cost, without those that were refused."""
        return [costs[name] for costs in self.recent if not costs[name].refused]


async def converse(kind: str, turns: Sequence[int], directory: Path) -> AsyncIterator[Run]:
    """Run one conversation with all subjects, and yield what it has cost at each of these turns."""
    watch = Stopwatch()
    async with AsyncExitStack() as stack:
        ours, *others = [await open_subject(name, directory, stack) for name in (OURS, MAF, FLOOR)]
        assert isinstance(ours, Ours)  # noqa: S101 - it was the first to be opened
        recorder = Recorder((ours, *others), watch)
        ends: list[int] = [0]
        reads: list[dict[str, dict[str, Cost]]] = []
        stack.enter_context(watch.attached())
        async for turn in KINDS[kind](max(turns), recorder):
            recorder.check()
            ends.append(len(recorder.saves))
            if any(turn <= each < turn + RECENT for each in turns):
                reads.append(await recorder.read())
            if turn in turns:
                recent = recorder.saves[ends[max(0, turn - RECENT)] :]
                yield Run(
                    turn,
                    tuple(recorder.saves),
                    recent,
                    reads[-RECENT:],
                    _refused(recorder.saves, ends),
                    *await ours.stored(),
                )


def _refused(saves: Sequence[Mapping[str, Cost]], ends: Sequence[int]) -> int | None:
    """Return the first turn in which a save of the framework's storage was refused."""
    return next(
        (turn for turn, (a, b) in enumerate(pairwise(ends), 1) if any(costs[MAF].refused for costs in saves[a:b])), None
    )


async def alone(kind: str, turns: int, name: str, directory: Path) -> None:
    """Run a conversation with one subject or none, and print the most memory that this process has had, in bytes."""
    async with AsyncExitStack() as stack:
        subjects = [] if name == NOBODY else [await open_subject(name, directory, stack)]
        recorder = Recorder(subjects, Stopwatch())
        async for _ in KINDS[kind](turns, recorder):
            recorder.check()
    print(_most_memory())


def _most_memory() -> int:
    """Return the bytes this process has had at most; where there is no /proc, those of its parent's fork count too."""
    status = Path("/proc/self/status")
    if status.exists():
        return 1024 * int(status.read_text().partition("VmHWM:")[2].split()[0])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


async def peak_memory(kind: str, turns: int, name: str) -> int:
    """Return the most memory, in bytes, that a process of its own has for a conversation with one subject."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, __file__, "--kind", kind, "--turns", str(turns), "--alone", name, stdout=asyncio.subprocess.PIPE
    )
    printed, _ = await process.communicate()
    return int(printed)


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """Yield the lines of a Markdown table."""
    yield f"| {' | '.join(heads)} |"
    yield f"|{'---|' * len(heads)}"
    for row in rows:
        yield f"| {' | '.join(str(cell) for cell in row)} |"
    yield ""


def stored(runs: Sequence[Run]) -> Iterator[str]:
    """Yield the table of the bytes that are stored."""
    yield from table(
        ("turns", "checkpoints", f"{MAF}, MB", f"{OURS}, MB", "times less", "items", "bytes sent, MB", f"{MAF} fails"),
        (_stored_row(run) for run in runs),
    )


def _stored_row(run: Run) -> tuple[object, ...]:
    theirs = sum(costs[MAF].sent for costs in run.saves)
    sent = sum(costs[OURS].sent for costs in run.saves)
    items = ", ".join(f"{count} {kind}" for kind, count in sorted(run.items.items()))
    fails = _expected(run) if run.refused_at is None else f"in turn {run.refused_at}"
    size = f"{run.stored / MEGABYTE:.2f}"
    megabytes = f"{theirs / MEGABYTE:.1f}"
    return run.turn, len(run.saves), megabytes, size, _times(theirs, run.stored), items, f"{sent / MEGABYTE:.2f}", fails


def _expected(run: Run) -> str:
    """Say when the framework's storage will fail, if its checkpoints go on growing as they did lately."""
    saves = max(1, len(run.recent) // RECENT)
    first, last = (max(costs[MAF].sent for costs in turn) for turn in (run.recent[:saves], run.recent[-saves:]))
    growth = (last - first) / (RECENT - 1)
    return "no" if growth <= 0 else f"not yet; expected in turn {run.turn + ceil((MAX_ITEM_BYTES - last) / growth)}"


def charges(runs: Sequence[Run]) -> Iterator[str]:
    """Yield the table of estimated charges and of requests."""
    yield from table(
        ("turns", "operation", f"{MAF}, RU", f"{OURS}, RU", "times less", f"{MAF}, requests", f"{OURS}, requests"),
        (row for run in runs for row in _charge_rows(run)),
    )


def _charge_rows(run: Run) -> Iterator[tuple[object, ...]]:
    accepted = [costs[MAF] for costs in run.saves if not costs[MAF].refused]
    yield run.turn, *_charged("save, all of them", accepted, [costs[OURS] for costs in run.saves])
    yield run.turn, *_charged(f"save, last {RECENT} turns", run.of(MAF), run.of(OURS))
    for how in (KNOWN, BY_ID, LATEST):
        theirs, ours = ([reads[name][how] for reads in run.reads if name in reads] for name in (MAF, OURS))
        yield run.turn, *_charged(f"cold {how}", theirs, ours)


def _charged(operation: str, theirs: Sequence[Cost], ours: Sequence[Cost]) -> tuple[object, ...]:
    one, two = (statistics.fmean(cost.charge for cost in costs) if costs else None for costs in (theirs, ours))
    return operation, _number(one), _number(two), _times(one, two), _requests(theirs), _requests(ours)


def _requests(costs: Sequence[Cost]) -> str:
    if not costs:
        return "refused"
    counts = [cost.requests for cost in costs]
    return str(min(counts)) if min(counts) == max(counts) else f"{statistics.fmean(counts):.2f}, at most {max(counts)}"


def times(runs: Sequence[Run]) -> Iterator[str]:
    """Yield the table of what a save takes, stage by stage."""
    yield from table(
        (
            "turns",
            "save by",
            *(f"{stage}, ms" for stage in STAGES),
            "save, ms",
            "19 of 20 under, ms",
            "of MAF's",
            "of bare",
        ),
        (row for run in runs for row in _time_rows(run)),
    )


def _time_rows(run: Run) -> Iterator[tuple[object, ...]]:
    medians = {name: _median(run.of(name), lambda cost: cost.seconds) for name in (OURS, MAF, FLOOR)}
    for name, median in medians.items():
        costs = run.of(name)
        stages = (_milliseconds(_median(costs, _seconds_of(stage))) for stage in STAGES)
        late = statistics.quantiles([cost.seconds for cost in costs], n=20)[-1] if costs else None
        ratios = (_ratio(median, medians[other]) for other in (MAF, FLOOR))
        yield run.turn, name, *stages, _milliseconds(median), _milliseconds(late), *ratios


def _seconds_of(stage: str) -> Callable[[Cost], float]:
    return lambda cost: cost.stages.get(stage, 0.0)


def _median(costs: Sequence[Cost], what: Callable[[Cost], float]) -> float | None:
    return statistics.median(what(cost) for cost in costs) if costs else None


def _milliseconds(seconds: float | None) -> str:
    return "refused" if seconds is None else f"{seconds * 1000:.2f}"


def _number(value: float | None) -> str:
    return "refused" if value is None else f"{value:.1f}"


def _ratio(one: float | None, two: float | None) -> str:
    return "-" if one is None or two is None else f"{one / two:.2f}x"


def _times(theirs: float | None, ours: float | None) -> str:
    return "-" if theirs is None or ours is None else f"{theirs / ours:.1f}x"


async def measure(kind: str, turns: Sequence[int]) -> None:
    """Run and print one kind."""
    print(f"## {kind}\n", flush=True)
    with tempfile.TemporaryDirectory() as directory:
        runs = [run async for run in converse(kind, turns, Path(directory))]
    print(*stored(runs), *charges(runs), *times(runs), sep="\n", flush=True)
    names = (NOBODY, OURS, MAF)
    peaks = {name: await peak_memory(kind, max(turns), name) for name in names}
    rows = (
        (name, f"{peak / MEGABYTE:.0f}", f"{(peak - peaks[NOBODY]) / MEGABYTE:.0f}") for name, peak in peaks.items()
    )
    print(*table((f"storage, {max(turns)} turns", "peak memory, MB", "above the conversation alone"), rows), sep="\n")


def environment() -> str:
    """Return what the figures depend on."""
    packages = (
        "agent-framework-core",
        "agent-framework-orchestrations",
        "agent-framework-azure-cosmos",
        "azure-cosmos",
    )
    versions = ", ".join(f"{package} {version(package)}" for package in packages)
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    return f"{machine}, {versions}; embedded engine, one state file each; charges and times of the last {RECENT} turns"


async def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--turns", type=int, nargs="+", default=[15], help="lengths of conversation to report")
    parser.add_argument("--kind", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--alone", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore", message=".*is experimental")
    if arguments.alone is not None:
        with tempfile.TemporaryDirectory() as directory:
            await alone(arguments.kind[0], arguments.turns[0], arguments.alone, Path(directory))
        return
    print(environment(), end="\n\n", flush=True)
    for kind in arguments.kind:
        await measure(kind, sorted(set(arguments.turns)))


if __name__ == "__main__":
    asyncio.run(main())
