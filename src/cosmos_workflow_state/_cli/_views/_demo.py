"""What happens in the demo, as lines that anybody can follow, and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from cosmos_workflow_state._cli._demo_processes import (
    FINISHED,
    FOUND,
    KILLED,
    LISTED,
    NOT_FOUND,
    PAUSED,
    STARTED,
    Event,
    Told,
)
from cosmos_workflow_state._cli._output import table
from cosmos_workflow_state._logging import CHECKPOINT_SAVE

INTRODUCTION: Final = (
    "Two tenants, contoso and fabrikam, each have an invoice that a human must",
    "approve. No account, no network: an embedded engine keeps all state in a file.",
)
END: Final = (
    "",
    "Each process found everything in the state file, which stays for you to look at",
    "(SQLite; delete the directory when you are done):",
)
_SHOWN_ID: Final = 8
_DOES: Final = {
    "pause": "starts the approval workflow of both tenants.",
    "resume": "is new. It looks up what {}'s workflow waits for.",
    "trespass": "acts for {} and asks for the other's checkpoint by id.",
}
"""By step, what its process is said to do for a tenant."""
_STEPS: Final = frozenset({PAUSED, KILLED, FOUND, FINISHED, NOT_FOUND})
_PREFIX: Final = "demo."


def told_lines(told: Told) -> Iterator[str]:
    """Yield the lines that tell of one event; none where it is not for people."""
    event = told.event
    if event["event"] == STARTED:
        yield f"\n{told.number}. Process {told.process} {_DOES[told.step].format(event['tenant_id'])}"
    elif event["event"] == KILLED:
        yield "   Both wait. The process is killed now (SIGKILL): it cannot clean up, and"
        yield "   only the file is left."
    elif event["event"] in _SAYS:
        for text in _SAYS[event["event"]](event):
            yield f"   {event['tenant_id']:<8}  {text}"


def stored_lines(told: Iterable[Told]) -> Iterator[str]:
    """Yield a table of what is stored at the end."""
    yield "\nWhat is stored now, oldest first (sizes in bytes, ids shortened):\n"
    rows = [
        [
            one["tenant_id"],
            one["workflow_name"],
            f"{one['checkpoint_id'][:_SHOWN_ID]}...",
            *(one[name] for name in ("iteration_count", "stored_bytes", "raw_bytes")),
        ]
        for one in _checkpoints(told)
    ]
    for line in table(("tenant", "workflow", "id", "iteration", "stored", "raw"), rows):
        yield f"  {line}"


def demo_json(told: Sequence[Told], state_file: str) -> dict[str, Any]:
    """Return what has happened as JSON: one step a process, and what is stored at the end."""
    steps: dict[int, dict[str, Any]] = {}
    for one in told:
        step = steps.setdefault(one.number, {"step": one.step, "process": one.process, "events": []})
        if one.event["event"] in _STEPS:
            step["events"].append(_plain(one.event))
    return {"state_file": state_file, "steps": list(steps.values()), "checkpoints": list(_checkpoints(told))}


def _plain(event: Event) -> dict[str, Any]:
    rest = {name: value for name, value in event.items() if name not in {"event", "level"}}
    return {"event": event["event"].removeprefix(_PREFIX)} | rest


def _checkpoints(told: Iterable[Told]) -> Iterator[dict[str, Any]]:
    """Yield the checkpoints as they were listed, their sizes from the event of each save."""
    events = [one.event for one in told]
    saved = {event["checkpoint_id"]: event for event in events if event["event"] == CHECKPOINT_SAVE.done}
    for event in events:
        if event["event"] == LISTED:
            save = saved[event["checkpoint_id"]]
            sizes = {name: save[name] for name in ("stored_bytes", "raw_bytes")}
            yield {
                "tenant_id": event["tenant_id"],
                "workflow_name": save["workflow_name"],
                "checkpoint_id": event["checkpoint_id"],
                "iteration_count": event["iteration"],
                **sizes,
            }


_SAYS: Final[Mapping[str, Callable[[Event], Sequence[str]]]] = {
    PAUSED: lambda event: [f"asks: {event['question']}"],
    FOUND: lambda event: [f"finds: {event['question']}", f"the human answers: {event['answer']}"],
    FINISHED: lambda event: [f"finished: {event['outcome']}"],
    NOT_FOUND: lambda event: [
        f"{event['checkpoint_id']}: not found",
        f"({event['error']}, as if it did not exist)",
    ],
}
"""By event, what is said of a tenant."""
