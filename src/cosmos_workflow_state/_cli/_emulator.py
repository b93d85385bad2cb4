"""``cosmos-workflow-state emulator``: a local Cosmos DB for NoSQL that runs until it is told to end."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from types import FrameType
from typing import TYPE_CHECKING, Final

from cosmos_workflow_state import emulator
from cosmos_workflow_state.emulator._engine._errors import EngineError
from cosmos_workflow_state.emulator._hosts import RemoteAccessError, is_loopback

from ._output import CommandError, say

if TYPE_CHECKING:
    from cosmos_workflow_state.emulator import CosmosEmulator

_WARNING: Final = """\
WARNING: other machines can reach this emulator. Whoever has the key can read,
change and delete all that is in it. It is made for tests: keep it in a network
you trust, and nothing in it that matters.
"""
_PLAIN: Final = """\
WARNING: without --tls everything, too, can be read on its way.
"""


@dataclass(frozen=True, slots=True)
class Options:
    """How to run it: the arguments of `CosmosEmulator`."""

    data: str | None
    host: str
    port: int
    tls: bool
    key: str | None = field(repr=False)
    partitions: int | None
    allow_remote: bool
    admin: bool


def run_emulator(options: Options) -> None:
    """Run the emulator until SIGTERM or Ctrl-C.

    Args:
        options: How.

    Raises:
        CommandError: It cannot run as asked.
        OSError: The address is not there, the port is taken or the file cannot be created.
    """
    try:
        opened = emulator.CosmosEmulator(**asdict(options))
        if not is_loopback(options.host):
            sys.stderr.write(_WARNING if options.tls else _WARNING + _PLAIN)
        asyncio.run(_serve(opened, options.data))
    except (EngineError, ModuleNotFoundError, RemoteAccessError) as error:
        raise CommandError(str(error)) from error


async def _serve(opened: CosmosEmulator, data: str | None) -> None:
    stop = asyncio.Event()
    with _ended_by(stop, signal.SIGINT, signal.SIGTERM):
        async with opened:
            _tell(opened, data)
            await stop.wait()
    say("The emulator has ended.")


def _tell(opened: CosmosEmulator, data: str | None) -> None:
    say(f"Emulator of Azure Cosmos DB for NoSQL, data in {data or 'memory'}. Ctrl-C ends it.")
    say(f"\n  endpoint  {opened.endpoint}\n  key       {opened.key}\n")
    say(f"export COSMOS_WORKFLOW_STATE_ENDPOINT='{opened.endpoint}'")
    say(f"export COSMOS_WORKFLOW_STATE_KEY='{opened.key}'")
    say("export COSMOS_WORKFLOW_STATE_PROVISIONING='create'")


@contextmanager
def _ended_by(stop: asyncio.Event, *signals: signal.Signals) -> Generator[None]:
    """Set an event of the running loop when one of the signals comes; Windows has no other way than this."""
    loop = asyncio.get_running_loop()

    def end(_number: int, _frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(stop.set)

    before = [signal.signal(number, end) for number in signals]
    try:
        yield
    finally:
        for number, handler in zip(signals, before, strict=True):
            signal.signal(number, handler)
