"""``cosmos-workflow-state emulator``: a local Cosmos DB for NoSQL that runs until it is told to end."""

from __future__ import annotations

import argparse
import asyncio
import base64
import signal
import sys
from binascii import Error as NotBase64Error
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, Final

from cosmos_workflow_state import emulator
from cosmos_workflow_state.emulator._engine._errors import EngineError
from cosmos_workflow_state.emulator._hosts import RemoteAccessError, is_loopback

from ._output import CommandError, say

if TYPE_CHECKING:
    from cosmos_workflow_state.emulator import CosmosEmulator

ABOUT: Final = "run a local Cosmos DB for NoSQL for development and tests"
_PORT: Final = 8081
_LAST_PORT: Final = 65535
_MOST_PARTITIONS: Final = 1000
_WARNING: Final = """\
WARNING: other machines can reach this emulator. Whoever has the key can read,
change and delete all that is in it. It is made for tests: keep it in a network
you trust, and nothing in it that matters.
"""
_PLAIN: Final = """\
WARNING: without --tls everything, too, can be read on its way.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to its parser."""
    parser.add_argument("--host", default="127.0.0.1", help="name or address to listen on (default: %(default)s)")
    parser.add_argument(
        "--port", type=partial(_number, 0, _LAST_PORT), default=_PORT, help="0 picks a free one (default: %(default)s)"
    )
    parser.add_argument("--data", metavar="PATH", help="state file, created if there is none (default: memory)")
    parser.add_argument("--tls", action="store_true", help="speak https, with a certificate made at every start")
    parser.add_argument("--key", type=_key, help="account key, base64 (default: a new one at every start)")
    parser.add_argument(
        "--partitions",
        type=partial(_number, 1, _MOST_PARTITIONS),
        metavar="N",
        help="physical partitions of a container (default: by throughput)",
    )
    parser.add_argument("--allow-remote", action="store_true", help="listen where other machines reach it")
    parser.add_argument("--admin", action="store_true", help="let who has the key set faults and the clock over HTTP")


def run_emulator(arguments: argparse.Namespace) -> None:
    """Run the emulator until SIGTERM or Ctrl-C.

    Args:
        arguments: As parsed.

    Raises:
        CommandError: It cannot run as asked.
        OSError: The address is not there, the port is taken or the file cannot be created.
    """
    try:
        opened = emulator.CosmosEmulator(
            data=arguments.data,
            host=arguments.host,
            port=arguments.port,
            tls=arguments.tls,
            key=arguments.key,
            partitions=arguments.partitions,
            allow_remote=arguments.allow_remote,
            admin=arguments.admin,
        )
        if not is_loopback(arguments.host):
            sys.stderr.write(_WARNING if arguments.tls else _WARNING + _PLAIN)
        asyncio.run(_serve(opened, arguments.data))
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


def _number(low: int, high: int, text: str) -> int:
    number = int(text) if text.isdecimal() else -1
    if not low <= number <= high:
        raise argparse.ArgumentTypeError(f"not a number from {low} to {high}: {text}")
    return number


def _key(text: str) -> str:
    try:
        decoded = base64.b64decode(text, validate=True)
    except (NotBase64Error, ValueError) as error:
        raise argparse.ArgumentTypeError("the key has to be base64") from error
    if not decoded:
        raise argparse.ArgumentTypeError("the key is empty")
    return text
